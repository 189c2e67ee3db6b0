"""The one kind of error that a user can cause, and what the command line makes of it."""

from __future__ import annotations


class BadInputError(ValueError):
    """Input, an option or a resource that the user must change (exit code 2).

    The message is one paragraph that names the file, column, row or option, what was found there
    and what to do. It goes to the trusted operator's terminal only, so it may quote a cell.
    """

"""The error for everything that a user can cause; the command line prints it in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInputError(ValueError):
    """Input, an option or a resource that the user must change (exit code 2).

    The message is one paragraph that names the file, column, row or option, what was found there
    and what to do. It goes to the trusted operator's terminal only, so it may quote a cell.
    """


class InterruptedRun(Exception):  # noqa: N818  # the user's wish, no error
    """A run that a signal stopped (exit code 130): says what is left of it, and how to go on."""


class LackOfMemoryError(BadInputError):
    """What was asked for does not fit into the memory that is free now.

    How much is free may depend on private rows, so nothing that is released may be chosen by it:
    whoever tries several ways to do a thing lets this error end the run.
    """


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the closest known one, if any is close."""
    close = difflib.get_close_matches(found, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""

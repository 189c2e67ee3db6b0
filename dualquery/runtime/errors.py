"""The error for everything that a user can cause; the command line prints it in one line."""

import difflib
import itertools
import logging
from collections.abc import Iterable, Sequence

privacy_log = logging.getLogger("dualquery.privacy_warnings")
"""What weakens a guarantee: the command line lets it speak even where it is quiet."""


class BadInputError(ValueError):
    """Input, an option or a resource that the user must change (exit code 2).

    One paragraph names the file, column, row or option, what was found there and what to do. It
    goes to the operator's terminal only, so it may quote a cell.
    """


class InterruptedRun(Exception):  # noqa: N818  # the user's wish, no error
    """A run that a signal stopped (exit code 130): says what remains and how to go on."""


class LackOfMemoryError(BadInputError):
    """What was asked for does not fit into the free memory, which may depend on private rows.

    So it ends the run: nothing that is released may be chosen by it.
    """


_LONGEST_NAME = 200
_MOST_NAMES = 10_000
"""More or longer names are not compared: that takes the product of two names' lengths each."""


def close_names(found: str, known: Iterable[str], most: int) -> list[str]:
    """Return at most ``most`` names that a misspelt one may have meant; the closest first."""
    short = (name for name in known if len(name) <= _LONGEST_NAME)
    candidates = list(itertools.islice(short, _MOST_NAMES)) if len(found) <= _LONGEST_NAME else []
    return difflib.get_close_matches(found, candidates, n=most)


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the closest known one, if any is close."""
    close = close_names(found, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def suggest(found: str, known: Sequence[str], otherwise: str | None = None) -> str:
    """Return the end of a message: the name among ``known`` that the user may have meant.

    Where none is close, it is ``otherwise``; None lists the first few.
    """
    folded = {name.casefold(): name for name in reversed(known)}
    same = folded.get(str(found).casefold())  # close, whatever its letters' case
    same = same or next((name for name in known if name.lstrip("0") == str(found) != ""), None)
    close = close_names(str(found), known, 3) if same is None else [same]
    if close:
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    if otherwise is not None:
        return otherwise
    shown = ", ".join(map(repr, known[:12]))
    return f"it must be one of {shown}" + (", ..." if len(known) > 12 else "")

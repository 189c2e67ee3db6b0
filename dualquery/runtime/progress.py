"""How long work reports its progress: public facts only."""

import logging
import sys
import time
from collections.abc import Callable
from typing import Protocol

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_text

_log = logging.getLogger(__name__)


class Progress(Protocol):
    """Listens to a run."""

    def phase(self, name: str) -> None:
        """Note that a phase begins."""

    def step(self, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` rounds are over; a phase may count several times."""

    def note(self, text: str) -> None:
        """Show a line to the person who waits for the run."""


class NoProgress:
    """Says nothing."""

    def phase(self, *_: object, **__: object) -> None:
        """Ignore it."""

    step = note = phase


NO_PROGRESS = NoProgress()

WATCHED, LATER_LINES = 2.0, 60.0
"""Seconds of steps after which a log hears how long a phase takes, and between later lines."""

WORTH_TELLING = 10.0
"""Seconds left of a phase that are worth its first line."""


class Lines:
    """Plain lines on stderr as a listener of a run, unless it is to be ``quiet``.

    Early, and then now and then, one says how long the steps that are counted still take.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._phase = ""
        self._begun = self._due = 0.0
        self._before: int | None = None
        self._recent, self._last = (0.0, 0), (0, 0)
        self._told = False

    def phase(self, name: str) -> None:
        """Say which phase begins."""
        self._phase = name
        self._before = None
        _log.info("%s", name)
        if not self._quiet and not _log.isEnabledFor(logging.INFO):  # else it was said already
            print(name, file=sys.stderr, flush=True)

    def step(self, done: int, total: int) -> None:
        """Say now and then how long the steps still take."""
        now = time.monotonic()
        before, self._last = self._last, (done, total)
        if self._before is None or done < before[0] or total != before[1]:
            # A new count; what came before its first step is not repeated.
            self._begun, self._before = now, done
            self._recent = now, done
            self._due, self._told = now + WATCHED, False
        since, already = self._recent
        if now < self._due or not already < done < total:
            return
        # Steps may become slower: the last ones tell, too, how long the others take.
        spent = max((now - self._begun) / (done - self._before), (now - since) / (done - already))
        left = spent * (total - done)
        if not self._told and left < WORTH_TELLING:
            return
        self._recent = now, done
        self._due, self._told = now + LATER_LINES, True
        self.note(f"{self._phase}: {done:,} of {total:,}, about {duration(left)} left of these")

    def note(self, text: str) -> None:
        """Print a line."""
        if not self._quiet:
            print(terminal_text(text), file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a time as a person says it: ``40 s``, ``5 min`` or ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def listener(progress: Progress | bool | None) -> Progress:
    """Return who listens: ``True`` stands for `Lines`, ``False`` or None for nobody."""
    if progress is None or isinstance(progress, bool):
        return Lines() if progress else NO_PROGRESS
    if isinstance(progress, type) or not all(
        callable(getattr(progress, method, None)) for method in ("phase", "step", "note")
    ):
        raise BadInputError(
            f"progress is {progress!r}; give True, False, or an object with the methods "
            "phase(name), step(done, total) and note(text)"
        )
    return progress


def part_of(
    progress: Callable[[int, int], None], before: int, total: int
) -> Callable[[int, int], None]:
    """Return a callback that reports steps of a sub-task, after ``before``, of ``total``."""
    return lambda done, _: progress(before + done, total)

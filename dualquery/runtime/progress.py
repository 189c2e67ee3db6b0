"""How long work reports its progress: public facts only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Listens to a run."""

    def phase(self, name: str) -> None:
        """Note that a phase begins."""
        ...

    def step(self, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` rounds are over."""
        ...

    def note(self, text: str) -> None:
        """Show a line to the person who waits for the run."""
        ...


class NoProgress:
    """Says nothing."""

    def phase(self, name: str) -> None:
        """Ignore it."""

    def step(self, done: int, total: int) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


NO_PROGRESS = NoProgress()


def part_of(
    progress: Callable[[int, int], None], before: int, total: int
) -> Callable[[int, int], None]:
    """Return a callback that reports a sub-task's steps as steps of the whole.

    Parameters
    ----------
    progress
        Listens to the whole.
    before, total
        Steps before the sub-task, and steps of the whole.
    """

    def told(done: int, _: int) -> None:
        progress(before + done, total)

    return told

"""How long work reports itself; told public facts only."""

from __future__ import annotations

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
        """Show a line to whoever waits for the run."""
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

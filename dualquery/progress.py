"""How long work reports itself; told public facts only: phases, and rounds done of rounds."""

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


class NoProgress:
    """Says nothing."""

    def phase(self, name: str) -> None:
        """Ignore it."""

    def step(self, done: int, total: int) -> None:
        """Ignore it."""


NO_PROGRESS = NoProgress()

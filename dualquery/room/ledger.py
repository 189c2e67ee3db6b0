"""What was promised and what has been spent: every private draw is entered before it is made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction

from dualquery.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
)


@dataclass(frozen=True)
class Ground:
    """Why an event covers what is drawn. Public: it goes into the release's proof record.

    Parameters
    ----------
    lemma
        Module of the room whose docstring proves the charge.
    statistic
        What is measured, or what a draw is made from.
    sensitivity
        How far that moves between neighbours, in the norm and the unit of the lemma.
    scale
        Of the noise, in the same unit; None for a draw without noise on numbers.
    proof
        The argument that proves the sensitivity.
    """

    lemma: str
    statistic: str
    sensitivity: float
    scale: float | None = None
    proof: str = ""


class Ledger:
    """Checks each charge against the schedule that the guarantee was computed for.

    The guarantee of a release belongs to its schedule, a sequence of events fixed before any
    private value is read. A charge is allowed when the next scheduled event covers it; anything
    else is a fault of the mechanism and is refused before the draw, so a release can never have
    cost more than it states. Nothing is ever given back. A forked process has a copy of all this,
    which would be spent a second time: it may charge nothing.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = events_of(schedule)
        self._grounds: list[Ground] = []
        self._process = os.getpid()

    @property
    def spent(self) -> int:
        """Number of scheduled events already charged."""
        return len(self._grounds)

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """The ground of every charge, in the order of the schedule's events."""
        return tuple(self._grounds)

    def charge(self, event: Event, ground: Ground) -> None:
        """Enter an event that is about to happen, and why it covers what will be drawn.

        Raises
        ------
        RuntimeError
            If the schedule is used up, its next event does not cover this one, or this is a forked
            process.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a forked process may not charge: this ledger is a copy")
        if self.spent == len(self._schedule):
            raise RuntimeError(f"the budget is spent: {event} is not on the schedule")
        planned = self._schedule[self.spent]
        if not covers(planned, event):
            raise RuntimeError(f"{event} would cost more than the scheduled {planned}")
        self._grounds.append(ground)


def covers(planned: Event, event: Event) -> bool:
    """Return whether ``event`` is of the planned kind and costs no more.

    None of its parameters is larger; of Gaussian noise the cost depends on the ratio of sensitivity
    to scale alone (numbers and noise may be given in another unit), so the ratios are compared,
    exactly.
    """
    if isinstance(planned, SampledQueries) and isinstance(event, SampledQueries):
        return event.range <= planned.range and event.draws <= planned.draws
    if isinstance(planned, LaplaceNoise) and isinstance(event, LaplaceNoise):
        return event.epsilon <= planned.epsilon
    if isinstance(planned, GaussianNoise) and isinstance(event, GaussianNoise):
        ratio, most = (Fraction(e.sensitivity) / Fraction(e.scale) for e in (event, planned))
        return ratio <= most
    return False

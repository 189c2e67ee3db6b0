"""What was promised and what has been spent: every private draw is entered before it is made.

`Ledger.draw` is the one place where private draws are made: it charges, tells the journal, draws.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from dualquery.privacy.events import (
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    SampledQueries,
    Schedule,
    ThresholdedCounts,
    events_of,
    noise_alone,
)
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.randomness import SystemRandomness
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.files import finished_first


class Ledger:
    """Checks each charge against the schedule that the guarantee was computed for.

    The guarantee of a release belongs to its schedule, a sequence of events fixed before any
    private value is read. A charge is allowed when the next scheduled event covers it; anything
    else is a fault of the mechanism and is refused before the draw, so a release can never have
    cost more than it states. Nothing is ever given back. A forked process has a copy of all this,
    which would be spent a second time: it may charge nothing.

    Draws that the journal has from an earlier attempt are charged again here, and not made again.
    Those that were lost are spent: what is asked for afterwards is charged to the next scheduled
    event that covers it, and the events passed over are never drawn.
    """

    def __init__(self, schedule: Schedule, journal: Journal = NO_JOURNAL) -> None:
        self._schedule = events_of(schedule)
        self._journal = journal
        self._grounds: list[Ground | None] = []
        self._process = os.getpid()
        self.lost = 0
        """Number of draws that began in an earlier attempt and have no result; all are charged."""
        self._spare = 0
        self._pass_lost()

    @property
    def spent(self) -> int:
        """Number of scheduled events already charged."""
        return len(self._grounds)

    @property
    def grounds(self) -> tuple[Ground | None, ...]:
        """The ground of every charge, in the order of the schedule's events; None if not drawn."""
        return tuple(self._grounds)

    @property
    def left(self) -> int:
        """Number of scheduled events not yet charged."""
        return len(self._schedule) - self.spent

    def cut_short(self, draws: int) -> bool:
        """Return whether lost draws leave fewer than ``draws``, so these can be spared."""
        self._spare = max(self._spare, draws)
        return self.lost > 0 and self.left < draws

    def draw(
        self,
        event: Event,
        ground: Ground,
        make: Callable[[], NDArray[Any]],
        shape: tuple[int, ...] | None,
        times: int = 1,
    ) -> NDArray[Any]:
        """Charge for a draw and make it; or return what an earlier attempt drew.

        It is charged as ``event``, ``times``; ``ground`` says why that covers it. ``make`` draws,
        after the charge and at most once: integers or float64 of ``shape``, None if that is itself
        part of what is drawn. `RuntimeError` if the schedule does not provide for the charge;
        nothing is drawn then. `BadInputError` if a draw was lost and the schedule has nothing in
        its place, or the journal is of another run.
        """
        events = (event,) * times
        spare, self._spare = self._spare > 0, max(0, self._spare - 1)
        recorded = self._journal.recorded()
        if recorded is not None:
            result, same = recorded.result, recorded.events == events
            if result is None or not same or result.shape != (shape or result.shape):
                raise BadInputError(
                    "the checkpoint is of another run: what it has drawn is not what this run asks "
                    "for at the same place"
                )
            self._enter(events, ground)
            self._journal.take()
            self._pass_lost()
            return result
        self._enter(events, ground)
        with finished_first():  # a draw that is cut off is charged for nothing
            self._journal.begin(events, ground, spare=spare)
            result = make()
            self._journal.end(result)
        return result

    def _enter(self, events: tuple[Event, ...], ground: Ground) -> None:
        for event in events:
            self.charge(event, ground)

    def _pass_lost(self) -> None:
        """Charge the lost draws that come next in the journal, if they are of this schedule."""
        while self.left and (recorded := self._journal.recorded()) and recorded.result is None:
            lost = replace(recorded.ground, numbers=0, variances=0.0, precisions=0.0)
            self._enter(recorded.events, lost)
            self.lost += len(recorded.events)
            self._journal.take()

    def charge(self, event: Event, ground: Ground) -> None:
        """Enter an event that is about to happen, and why it covers what will be drawn.

        `RuntimeError` if the schedule is used up, its next event does not cover this one, or this
        is a forked process.
        """
        if os.getpid() != self._process:
            raise RuntimeError("a forked process may not charge: this ledger is a copy")
        if self.lost:
            while self.left and not covers(self._schedule[self.spent], event):
                self._grounds.append(None)
            if not self.left:
                raise BadInputError(
                    "the run was interrupted in the middle of a private draw, which counts as "
                    "spent, and the rest of the schedule has nothing in its place; what was drawn "
                    "is charged, make a new release"
                )
        if not self.left:
            raise RuntimeError(f"the budget is spent: {event} is not on the schedule")
        planned = self._schedule[self.spent]
        if not covers(planned, event):
            raise RuntimeError(f"{event} would cost more than the scheduled {planned}")
        self._grounds.append(ground)


def prepare(events: Schedule) -> None:
    """Load and try what draws the noise of some events; to be called before they are paid for.

    OpenDP takes seconds to import, in which a process may die: it must not have paid by then.
    """
    kinds = {type(event) for event in events_of(events)}
    if kinds & {GaussianNoise, ThresholdedCounts}:
        SystemRandomness().discrete_gaussian(1.0, 1)
    if LaplaceNoise in kinds:
        SystemRandomness().discrete_laplace(1.0, 1)


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
    if isinstance(planned, ThresholdedCounts) and isinstance(event, ThresholdedCounts):
        return event.delta <= planned.delta and covers(planned.noise, event.noise)
    if isinstance(planned, GaussianNoise) and isinstance(event, GaussianNoise):
        ratio, most = (Fraction(e.sensitivity) / Fraction(e.scale) for e in (event, planned))
        return ratio <= most
    return False


_SENTENCES = {
    SampledQueries: "Draws by weight are exact, from 80-bit integer weights by AES-256-CTR words "
    "seeded by the operating system; arithmetic is IEEE double precision, and the rounding of the "
    "weights, 2^-44 of each, is charged.",
    RandomizedReport: "Each randomized report is one 64-bit word of AES-256-CTR seeded by the "
    "operating system; its probabilities are whole multiples of 2^-64, rounded towards more "
    "privacy.",
    GaussianNoise: "Gaussian noise is discrete Gaussian noise from OpenDP's exact sampler on a "
    "grid of 2^-39 of its scale or less; its distance from rounded continuous noise is charged "
    "where the accountant needs the latter. Scales and sensitivities are computed in double "
    "precision.",
    LaplaceNoise: "Laplace noise is integer noise from OpenDP's exact sampler, added to integer "
    "counts; its scale is computed in double precision.",
}


def numerical_assumptions(schedule: Schedule) -> tuple[str, ...]:
    """Return the assumptions of the room's arithmetic for the release, one sentence each."""
    kinds = {type(event) for event in events_of(noise_alone(schedule))}
    return tuple(sentence for kind, sentence in _SENTENCES.items() if kind in kinds)

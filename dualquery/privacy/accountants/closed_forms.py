"""Composition bounds in closed form: the paper's Theorem 4.1, and advanced composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.privacy.events import (
    Event,
    GameSchedule,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
    pure_epsilon,
)

_ROUNDING = 1e-12
"""Relative margin over the rounding of sums of positive terms."""


@dataclass(frozen=True)
class PaperAccountant:
    """Theorem 4.1 of Gaboardi et al. 2014, as printed.

    ``epsilon = 4 eta T sqrt(2 s T ln(1/delta)) / n``. The theorem rests on Lemma 2.3: k = s T
    draws, each eps'-private, are ``sqrt(2 k ln(1/delta)) eps' + k eps' (exp(eps') - 1)``-private.
    When one record is replaced, a draw of round t is ``2 eta (t - 1) / n``-private, so
    ``eps' = 2 eta T / n`` covers every draw, and the theorem's epsilon is twice the first term of
    the lemma. (When one is added or removed, a draw of the centred weights is half as much: the
    theorem is then on the safe side.) Hence it follows from the lemma where the second term is at
    most the first:

        sqrt(s T) (exp(2 eta T / n) - 1) <= sqrt(2 ln(1/delta)).

    Elsewhere, and for anything but DualQuery with a constant step, it is not supported.
    """

    name: str = "paper"
    assumptions: str = (
        "Gaboardi et al. 2014, Theorem 4.1, where Lemma 2.3 (Dwork, Rothblum and Vadhan 2010) "
        "implies it when one record is replaced (added or removed: with room to spare)."
    )

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return why ``schedule`` cannot be accounted at ``delta``, or None if it can."""
        if not isinstance(schedule, GameSchedule):
            return "Theorem 4.1 is about DualQuery with a constant step and number of samples only"
        if delta <= 0.0:
            return "Theorem 4.1 needs delta > 0"
        if schedule.neighbours.steps > 1:
            return "Theorem 4.1 is about one row, not about units of several, or weights"
        draw = _draw_epsilon(schedule)
        if any(isinstance(e, SampledQueries) and e.range > draw for e in schedule.events()[-1:]):
            return "the step is so small that the rounding of the weights costs more than the step"
        if self._second_term(schedule) > math.sqrt(-2.0 * math.log(delta)):
            return (
                "Theorem 4.1 does not follow from Lemma 2.3 here: "
                f"sqrt(sT) (exp(2 eta T/n) - 1) = {self._second_term(schedule):.4g} is above "
                f"sqrt(2 ln(1/delta)) = {math.sqrt(-2.0 * math.log(delta)):.4g}"
            )
        return None

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return epsilon of ``schedule`` at ``delta``; infinite where not supported."""
        if not isinstance(schedule, GameSchedule) or self.supports(schedule, delta) is not None:
            return math.inf
        draws = schedule.samples * schedule.rounds
        epsilon = 2.0 * _draw_epsilon(schedule) * math.sqrt(-2.0 * draws * math.log(delta))
        return epsilon * (1.0 + _ROUNDING)

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta of ``schedule`` at ``epsilon``; 1 where not supported."""
        if not isinstance(schedule, GameSchedule):
            return 1.0
        draws = schedule.samples * schedule.rounds
        exponent = (epsilon / (2.0 * _draw_epsilon(schedule))) ** 2 / (2.0 * draws)
        delta = math.exp(-exponent * (1.0 - _ROUNDING))
        return delta if self.supports(schedule, delta) is None else 1.0

    @staticmethod
    def _second_term(schedule: GameSchedule) -> float:
        """Return k eps' (exp(eps') - 1) / (sqrt(k) eps')."""
        growth = math.expm1(min(_draw_epsilon(schedule), 700.0))
        return math.sqrt(schedule.samples * schedule.rounds) * growth


def _draw_epsilon(schedule: GameSchedule) -> float:
    return 2.0 * schedule.step * schedule.rounds / schedule.n


@dataclass(frozen=True)
class AdvancedAccountant:
    """Advanced composition of pure mechanisms with their own epsilons, or their plain sum.

    The smaller of ``sum e_i`` (the only one at delta = 0) and
    ``sum e_i (exp(e_i) - 1) + sqrt(2 ln(1/delta) sum e_i^2)``, where a draw of range r has e = r
    (Dwork, Rothblum, Vadhan 2010, Theorem III.3, whose proof allows a different epsilon for each
    mechanism as long as they are fixed beforehand).
    """

    name: str = "advanced"
    assumptions: str = (
        "Basic composition, or advanced composition with a separate epsilon for each draw "
        "(Dwork, Rothblum and Vadhan 2010, Theorem III.3), whichever is smaller."
    )

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return why ``schedule`` cannot be accounted at ``delta``, or None if it can."""
        del delta
        if any(math.isinf(pure_epsilon(event)) for event in events_of(schedule)):
            return "Gaussian noise has no pure epsilon to compose"
        return None

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return epsilon of ``schedule`` at ``delta``; infinite where not supported."""
        if self.supports(schedule, delta) is not None:
            return math.inf
        basic, drift, squares = _sums(events_of(schedule))
        if delta <= 0.0:
            return basic
        advanced = drift + math.sqrt(-2.0 * math.log(delta) * squares)
        return min(basic, advanced * (1.0 + _ROUNDING))

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta of ``schedule`` at ``epsilon``; 1 where not supported."""
        if self.supports(schedule, 0.0) is not None:
            return 1.0
        basic, drift, squares = _sums(events_of(schedule))
        if epsilon >= basic:
            return 0.0
        if epsilon <= drift:
            return 1.0
        return math.exp(-((epsilon - drift) ** 2) / (2.0 * squares) * (1.0 - _ROUNDING))


def _sums(events: tuple[Event, ...]) -> tuple[float, float, float]:
    """Return the sums of e, of e (exp(e) - 1) and of e^2 over all mechanisms, rounded upwards."""
    pairs = [_mechanisms(event) for event in events]
    basic = math.fsum(count * e for count, e in pairs)
    drift = math.fsum(count * e * math.expm1(min(e, 700.0)) for count, e in pairs)
    squares = math.fsum(count * e * e for count, e in pairs)
    up = 1.0 + _ROUNDING
    return basic * up, drift * up, squares * up


def _mechanisms(event: Event) -> tuple[int, float]:
    """Return the number of pure mechanisms of an event and the epsilon of each."""
    match event:
        case SampledQueries(range=width, draws=draws):
            return draws, width
        case LaplaceNoise(epsilon=epsilon):
            return 1, epsilon
        case _:
            return 0, 0.0

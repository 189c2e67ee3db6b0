"""Composition by printed formulas: the paper's Theorem 4.1, advanced composition, and zCDP.

Costs in zero-concentrated differential privacy add up; one optimisation turns rho into delta.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import (
    Event,
    GameSchedule,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
    pure_epsilon,
    threshold_delta,
    zcdp_rho,
)

_ROUNDING = 1e-12
"""Relative margin over the rounding of sums of positive terms, and of one conversion."""

_TINY_RHO = 1e-16
"""Below it dp_accounting's formula for delta loses its digits."""

_SMALLEST_ORDER = 1.0101
"""dp_accounting does not use orders up to 1.01, where its formula is unstable."""


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
    drift = math.fsum(count * e * math.expm1(min(e, 350.0)) for count, e in pairs)
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


def rho_of(schedule: Schedule) -> float:
    """Return rho of a schedule: the sum over its events, for any adaptive choice of them."""
    return math.fsum(zcdp_rho(event) for event in events_of(schedule)) * (1.0 + _ROUNDING)


def epsilon_from_rho(rho: float, delta: float) -> float:
    """Return the smallest epsilon at ``delta`` that rho-zCDP implies.

    Canonne, Kamath, Steinke 2020, Corollary 13: rho-zCDP gives ``delta = inf_a exp((a - 1)(a rho -
    epsilon)) (1 - 1/a)^a / (a - 1)`` over orders a > 1. Every order is valid, so a finite set of
    them errs on the safe side. 0 if ``rho`` is 0; infinite if ``delta`` is 0 and ``rho`` is not.
    """
    if rho == 0.0:
        return 0.0
    if delta <= 0.0:
        return math.inf
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    def convert(orders: NDArray[np.float64]) -> tuple[float, float]:
        epsilon, order = compute_epsilon(orders.tolist(), (orders * rho).tolist(), delta)
        return float(epsilon), float(order)

    return _best_order(convert, math.sqrt(max(-math.log(delta), 1e-9) / rho)) * (1.0 + _ROUNDING)


def delta_from_rho(rho: float, epsilon: float) -> float:
    """Return the smallest delta at ``epsilon`` that rho-zCDP implies (see `epsilon_from_rho`)."""
    if rho == 0.0:
        return 0.0
    if rho < _TINY_RHO:
        # Pinsker: total variation is at most sqrt(KL / 2), and rho bounds KL.
        return math.sqrt(rho / 2.0) * (1.0 + _ROUNDING)
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    def convert(orders: NDArray[np.float64]) -> tuple[float, float]:
        delta, order = compute_delta(orders.tolist(), (orders * rho).tolist(), epsilon)
        return float(delta), float(order)

    # At small epsilon the best order is about 1 / sqrt(2 rho), far from the one of large epsilon.
    guesses = ((epsilon + rho) / (2.0 * rho) - 1.0, math.sqrt(0.5 / rho), 0.05)
    return min(1.0, _best_order(convert, *guesses) * (1.0 + _ROUNDING))


def _best_order(
    convert: Callable[[NDArray[np.float64]], tuple[float, float]], *guesses: float
) -> float:
    """Minimise over orders: a coarse grid of a - 1 around the guesses, then a fine one."""
    coarse = _orders(np.outer(guesses, np.geomspace(1e-3, 1e3, 121)).ravel())
    _, order = convert(coarse)
    if order < 1.0:
        # dp_accounting reports order 0 when nothing is to be optimised.
        return convert(coarse)[0]
    return convert(_orders((order - 1.0) * np.geomspace(0.88, 1.14, 121)))[0]


def _orders(above_one: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(1.0 + above_one, _SMALLEST_ORDER)


class ZcdpAccountant:
    """Zero-concentrated differential privacy of bounded-range mechanisms and Gaussian noise."""

    name: str = "zcdp"
    assumptions: str = (
        "Each draw of bounded range r costs r^2/8 in zero-concentrated differential privacy "
        "(Cesar and Rogers 2021), Gaussian noise sensitivity^2/(2 scale^2); the sum is converted "
        "by Canonne, Kamath and Steinke 2020, Corollary 13."
    )

    def supports(self, schedule: Schedule, delta: float) -> str | None:
        """Return why ``schedule`` cannot be accounted at ``delta``, or None if it can."""
        if delta <= threshold_delta(schedule) and rho_of(schedule) > 0.0:
            return "zero-concentrated differential privacy gives no guarantee at delta = 0"
        return None

    def epsilon(self, schedule: Schedule, delta: float) -> float:
        """Return epsilon of ``schedule`` at ``delta``."""
        return epsilon_from_rho(rho_of(schedule), delta - threshold_delta(schedule))

    def delta(self, schedule: Schedule, epsilon: float) -> float:
        """Return delta of ``schedule`` at ``epsilon``."""
        return delta_from_rho(rho_of(schedule), epsilon) + threshold_delta(schedule)

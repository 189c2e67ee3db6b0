"""Zero-concentrated differential privacy: costs add up; one optimisation turns rho into delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import Schedule, events_of, threshold_delta, zcdp_rho

_ROUNDING = 1e-12
"""Relative margin over the rounding of a sum of positive terms and of one conversion."""

_TINY_RHO = 1e-16
"""Below it dp_accounting's formula for delta loses its digits."""

_SMALLEST_ORDER = 1.0101
"""dp_accounting does not use orders up to 1.01, where its formula is unstable."""


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


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho whose guarantee at ``delta`` in (0, 1) is at most ``epsilon``."""
    low, high = 0.0, epsilon
    while epsilon_from_rho(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        if epsilon_from_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


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


@dataclass(frozen=True)
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

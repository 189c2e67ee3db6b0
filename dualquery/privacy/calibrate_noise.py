"""From a budget to the smallest Gaussian noise, alone or among other private draws.

Every answer is on the safe side: the epsilon of the schedule that it stands for was computed and is
at most the budget's. Only public quantities enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dualquery.privacy.accountants.choice import AUTO, best
from dualquery.privacy.accountants.zcdp import rho_for
from dualquery.privacy.calibrate import largest_that_fits
from dualquery.privacy.events import GaussianNoise, Schedule, require_positive
from dualquery.runtime.errors import BadInputError

_TOLERANCE = 1e-6
"""Relative distance of a calibrated rho from the largest one."""

_LEAST = 1e-10
"""The smallest rho that is tried, in parts of the one that zCDP allows."""


def calibrate_rho(
    schedule_of: Callable[[float], Schedule], epsilon: float, delta: float, accountant: str = AUTO
) -> float:
    """Return the largest rho whose schedule fits a budget, or one part in 10^6 less.

    For mechanisms that share a budget of zero-concentrated differential privacy out among their
    draws: an accountant tighter than its conversion leaves them more to share than `rho_for`.

    ``schedule_of`` makes the schedule of a rho, from public facts; its cost grows with rho, and
    what it raises is passed on. ``epsilon`` > 0, ``delta`` in (0, 1). `BadInputError` if one is out
    of its range, the accountant does not support the schedule, or no rho is small enough.
    """
    require_positive("epsilon", epsilon)
    if not 0.0 < delta < 1.0:
        raise BadInputError(f"Gaussian noise needs a delta between 0 and 1; found {delta}.")

    def cost(rho: float) -> float:
        return best(schedule_of(rho), delta, accountant)[1]

    guess = rho_for(epsilon, delta)
    rho, spent = largest_that_fits(cost, epsilon, _LEAST * guess, guess, _TOLERANCE)
    if not spent <= epsilon:
        raise BadInputError(
            f"Even very large noise costs more than epsilon = {epsilon:g}; ask for a larger "
            "epsilon or another accountant."
        )
    return rho


def calibrate_gaussian_scale(
    epsilon: float, delta: float, sensitivity: float, accountant: str = AUTO
) -> float:
    """Return the smallest scale of one Gaussian measurement that fits the budget.

    In the units of ``sensitivity``, the largest Euclidean distance between the released vectors of
    two neighbours. With ``"auto"`` or ``"exact"`` it is that of the analytic Gaussian mechanism
    (Balle and Wang 2018, Theorem 8). The budget is as for `calibrate_rho`.
    """
    require_positive("the sensitivity", sensitivity)

    def scale_of(rho: float) -> float:
        return sensitivity / math.sqrt(2.0 * rho)

    def schedule_of(rho: float) -> Schedule:
        return (GaussianNoise(sensitivity, scale_of(rho)),)

    return scale_of(calibrate_rho(schedule_of, epsilon, delta, accountant))

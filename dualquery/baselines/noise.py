"""One noisy measurement of a whole workload: the plan and the draw that several baselines share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.intervals import gaussian_half_width, laplace_half_width
from dualquery.mechanism import Budget, Plan
from dualquery.privacy.accountants import best
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.privacy.curator import Curator
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Schedule
from dualquery.queries.family import Counted
from dualquery.queries.sensitivity import differing_queries

_HEADROOM = 1.0 + 1e-11
"""Accountants round their sums upwards by 1e-12: so much more noise stays within the budget."""


@dataclass(frozen=True)
class NoisePlan:
    """Which noise, and how much (its scale, in rows)."""

    noise: str
    scale: float

    @staticmethod
    def of(plan: Plan) -> NoisePlan:
        """Read the noise out of a mechanism's plan."""
        return NoisePlan(plan.parameters["noise"], plan.parameters["scale"])

    @property
    def half_width(self) -> float:
        """Half the width of an interval around a measured count, in steps."""
        if self.noise == "gaussian":
            return gaussian_half_width(self.scale)
        return laplace_half_width(self.scale)


def plan_noise(statistics: Counted, budget: Budget, parameters: Mapping[str, Any]) -> Plan:
    """Spend a budget on one measurement of the queries' counts.

    The sensitivity is the proven bound on the number of queries on which two records can differ.
    """
    differing = differing_queries(statistics)
    public = {**parameters, "differing_queries": differing.count, "bound": differing.method}
    return plan_noise_on(differing.count, statistics.spread, budget, public)


def plan_noise_on(
    differing: int, spread: int, budget: Budget, parameters: Mapping[str, Any]
) -> Plan:
    """Spend a budget on one measurement of counts: Gaussian noise when delta > 0, else Laplace.

    Replacing a record moves at most ``differing`` = D of the counts, each by at most ``spread`` = s
    steps, so L1 = s D and L2 = s sqrt(D).
    """
    count = max(differing, 1)  # counts that nobody can change still get noise of some scale
    if budget.delta > 0:
        sensitivity = spread * math.sqrt(count)
        scale = calibrate_gaussian_scale(
            budget.epsilon, budget.delta, sensitivity, budget.accountant
        )
        noise = "gaussian"
        schedule: Schedule = (GaussianNoise(sensitivity, scale),)
    else:
        scale = laplace_scale(budget.epsilon, spread * count) * _HEADROOM
        noise = "discrete laplace"
        schedule = (LaplaceNoise(spread * count / scale),)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return Plan(schedule, accountant.name, {**parameters, "noise": noise, "scale": scale})


def measure(curator: Curator | None, plan: NoisePlan) -> NDArray[np.int64] | NDArray[np.float64]:
    """Draw the planned measurement."""
    if curator is None:
        raise RuntimeError("a noisy measurement needs a curator")
    if plan.noise == "gaussian":
        return curator.measure_gaussian(plan.scale)
    return curator.measure_laplace(plan.scale)

"""One noisy measurement of a whole workload: the plan and the draw that several baselines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualquery.estimates.intervals import gaussian_half_width, laplace_half_width
from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Neighbours, Schedule
from dualquery.queries.family import Statistic
from dualquery.room.curator import Curator
from dualquery.room.exact import Numbers
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import AllQueries, PrivateStatistic

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


def plan_noise(statistics: Statistic, budget: Budget, parameters: Mapping[str, Any]) -> Plan:
    """Spend a budget on one measurement of the queries' counts.

    The sensitivity is the proven bound on the number of queries on which two records can differ, or
    to which one can contribute.
    """
    moves = AllQueries().moves(statistics, budget.neighbours)
    replaced = budget.neighbours is Neighbours.REPLACE_ONE
    what = "differing_queries" if replaced else "contributing_queries"
    return plan_noise_on(moves, budget, {**parameters, what: moves.entries, "bound": moves.proof})


def plan_noise_on(moves: Moves, budget: Budget, parameters: Mapping[str, Any]) -> Plan:
    """Spend a budget on one measurement of counts: Gaussian noise when delta > 0, else Laplace."""
    if budget.delta > 0:
        sensitivity = moves.l2
        scale = calibrate_gaussian_scale(
            budget.epsilon, budget.delta, sensitivity, budget.accountant
        )
        noise = "gaussian"
        schedule: Schedule = (GaussianNoise(sensitivity, scale),)
    else:
        scale = laplace_scale(budget.epsilon, moves.l1) * _HEADROOM
        noise = "discrete laplace"
        schedule = (LaplaceNoise(moves.l1 / scale),)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return Plan(schedule, accountant.name, {**parameters, "noise": noise, "scale": scale})


def measure(
    curator: Curator | None, plan: NoisePlan, statistic: PrivateStatistic | None = None
) -> Numbers:
    """Draw the planned measurement of a statistic, by default of all queries."""
    if curator is None:
        raise RuntimeError("a noisy measurement needs a curator")
    noise = Gaussian(plan.scale) if plan.noise == "gaussian" else Laplace(plan.scale)
    return curator.measure(AllQueries() if statistic is None else statistic, noise)

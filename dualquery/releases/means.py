"""Buying means of numeric columns: what they cost beside the workload, and how they are drawn.

The mechanism is planned with all but `SHARE` of epsilon. What the accountant then leaves of the
whole goes to one measurement of the columns' sums: Gaussian noise where delta is above 0, for which
a twentieth of epsilon is a tenth of the variance's budget, and Laplace noise else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dualquery.data.schema.grids import Grid
from dualquery.estimates.means import BoughtMean, Noise
from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Schedule, events_of
from dualquery.queries.family import Statistic
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.statistics import ColumnSums

SHARE = 0.05
"""Share of epsilon that the mechanism leaves for the means, whatever their number."""


@dataclass(frozen=True)
class MeansPlan:
    """How the columns' sums are measured.

    Parameters
    ----------
    grids
        Of the columns.
    scale
        Of the noise, over each grid's steps.
    noise
        Its kind.
    """

    grids: tuple[Grid, ...]
    scale: float
    noise: Noise

    def buy(self, curator: Curator, rows: int) -> tuple[BoughtMean, ...]:
        """Measure the sums; ``rows`` is the public number of rows."""
        noise = Gaussian(self.scale) if self.noise == "gaussian" else Laplace(self.scale)
        sums = curator.measure(ColumnSums(self.grids), noise)
        return tuple(
            BoughtMean.of(grid, float(noisy), self.scale, self.noise, rows)
            for grid, noisy in zip(self.grids, sums.tolist(), strict=True)
        )


def without_means(budget: Budget, grids: tuple[Grid, ...]) -> Budget:
    """Return what the mechanism may spend: all of the budget if no means are bought."""
    return replace(budget, epsilon=(1.0 - SHARE) * budget.epsilon) if grids else budget


def with_means(
    plan: Plan[Any], grids: tuple[Grid, ...], queries: Statistic, budget: Budget
) -> tuple[Plan[Any], MeansPlan | None]:
    """Return a plan that measures the sums first, and how; the plan itself if there are none.

    Parameters
    ----------
    plan
        The mechanism's, for `without_means` of the budget.
    grids
        Of the columns whose means are bought.
    queries
        The workload.
    budget
        Of both together.

    Raises
    ------
    BadInputError
        If the accountant that was asked for has no bound for the noise.
    """
    if not grids:
        return plan, None
    moves, rest = ColumnSums(grids).moves(queries, budget.neighbours), events_of(plan.schedule)
    if budget.delta == 0:
        own = math.nextafter(budget.epsilon - (1.0 - SHARE) * budget.epsilon, 0.0)
        scale = laplace_scale(own * (1.0 - 1e-9), moves.l1)
        schedule: Schedule = (LaplaceNoise(moves.l1 / scale), *rest)
        means = MeansPlan(grids, scale, "discrete laplace")
    else:

        def scale_of(rho: float) -> float:
            return moves.l2 / math.sqrt(2.0 * rho)

        def schedule_of(rho: float) -> Schedule:
            return (GaussianNoise(moves.l2, scale_of(rho)), *rest)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        schedule = schedule_of(rho)
        means = MeansPlan(grids, scale_of(rho), "gaussian")
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return replace(plan, schedule=schedule, accountant=accountant.name), means

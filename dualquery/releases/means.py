"""Buying means of numeric columns: what they cost beside the workload, and how they are drawn.

The mechanism is planned with all but `SHARE` of epsilon. What the accountant then leaves of the
whole goes to one measurement of each column's sum, by Gaussian noise where delta is above 0 and by
Laplace noise else.

**How the columns share it.** A column's *need* is its range over its typical size: what noise of a
part of the range is of a mean, in proportion. Ranges with a long tail, as those of incomes, need
most. The sum of the squares of these relative errors is least where Gaussian noise, whose cost goes
with the reciprocal of the variance, has costs in proportion to the needs, and Laplace noise, whose
cost goes with the reciprocal of the scale, in proportion to their powers of 2/3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

SHARE = 0.1
"""Share of epsilon that the mechanism leaves for the means, whatever their number.

With Gaussian noise it is about a fifth of what variances are paid with, so the noise of all else
grows by about a tenth.
"""


@dataclass(frozen=True)
class MeansPlan:
    """How the columns' sums are measured, one after the other.

    Parameters
    ----------
    grids
        Of the columns.
    scales
        Of the noise of each, over the grid's steps.
    noise
        Its kind.
    """

    grids: tuple[Grid, ...]
    scales: tuple[float, ...]
    noise: Noise

    def buy(self, curator: Curator, rows: int) -> tuple[BoughtMean, ...]:
        """Measure the sums; ``rows`` is the public number of rows."""
        kind = Gaussian if self.noise == "gaussian" else Laplace
        found = []
        for grid, scale in zip(self.grids, self.scales, strict=True):
            (noisy,) = curator.measure(ColumnSums((grid,)), kind(scale)).tolist()
            found.append(BoughtMean.of(grid, float(noisy), scale, self.noise, rows))
        return tuple(found)


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
    moves = ColumnSums(grids[:1]).moves(queries, budget.neighbours)
    needs, rest = np.array([grid.need for grid in grids]), events_of(plan.schedule)
    if budget.delta == 0:
        own = math.nextafter(budget.epsilon - (1.0 - SHARE) * budget.epsilon, 0.0)
        parts = _parts(needs ** (2.0 / 3.0)) * own * (1.0 - 1e-9)
        scales = tuple(laplace_scale(part, moves.l1) for part in parts.tolist())
        schedule: Schedule = (*[LaplaceNoise(moves.l1 / scale) for scale in scales], *rest)
        means = MeansPlan(grids, scales, "discrete laplace")
    else:
        parts = _parts(needs)

        def scales_of(rho: float) -> tuple[float, ...]:
            return tuple((moves.l2 / np.sqrt(2.0 * rho * parts)).tolist())

        def schedule_of(rho: float) -> Schedule:
            return (*[GaussianNoise(moves.l2, scale) for scale in scales_of(rho)], *rest)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        schedule = schedule_of(rho)
        means = MeansPlan(grids, scales_of(rho), "gaussian")
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return replace(plan, schedule=schedule, accountant=accountant.name), means


def _parts(needs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return parts of 1 in proportion to needs."""
    parts: NDArray[np.float64] = needs / needs.sum()
    return parts

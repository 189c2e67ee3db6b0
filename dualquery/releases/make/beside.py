"""What is bought beside the workload: the number of rows where it is private, and means of columns.

The mechanism is planned with all but a share of epsilon. What the accountant then leaves of the
whole goes to a measurement of the number of rows, if the user only stated one to plan with, and one
of each column's sum: by Gaussian noise where delta is above 0 and by Laplace noise else.

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
from dualquery.estimates.means import BoughtMean
from dualquery.estimates.measurements import NoiseKind
from dualquery.estimates.total import Total
from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Schedule, events_of
from dualquery.queries.family import Statistic
from dualquery.room.curator import Curator, whole_rows
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.row_count import RowCount
from dualquery.room.statistics import ColumnSums, RowTotal

SHARE = 0.1
"""Share of epsilon that the mechanism leaves for the means, whatever their number.

With Gaussian noise it is about a fifth of what variances are paid with, so the noise of all else
grows by about a tenth.
"""

TOTAL_SHARE = 0.07
"""The same for the number of rows: about an eighth of what variances are paid with."""

_PURE_ACCOUNTANTS = ("paper", "advanced")
"""Accountants without a bound for Gaussian noise."""


@dataclass(frozen=True)
class Beside:
    """What is measured before the mechanism runs, one after the other.

    Parameters
    ----------
    count_scale
        Scale of the noise of the number of rows; None if that is not measured.
    grids
        Of the columns whose sums are measured.
    scales
        Of the noise of each, over the grid's steps.
    noise
        Its kind.
    """

    count_scale: float | None
    grids: tuple[Grid, ...]
    scales: tuple[float, ...]
    noise: NoiseKind

    def buy(self, curator: Curator, count: RowCount) -> tuple[Total, tuple[BoughtMean, ...]]:
        """Measure; ``count`` is the public number of rows so far."""
        kind = Gaussian if self.noise == "gaussian" else Laplace
        total, found = Total.of(count), []
        if self.count_scale is not None:
            (rows,) = curator.measure(RowTotal(), kind(self.count_scale)).tolist()
            measured = replace(count, n=whole_rows(rows))
            total = Total.of(measured, float(rows), self.count_scale, self.noise)
        for grid, scale in zip(self.grids, self.scales, strict=True):
            (noisy,) = curator.measure(ColumnSums((grid,)), kind(scale)).tolist()
            found.append(BoughtMean.of(grid, float(noisy), scale, self.noise, total.copies))
        return total, tuple(found)


def without_beside(budget: Budget, grids: tuple[Grid, ...], count: RowCount) -> Budget:
    """Return what the mechanism may spend: all of the budget if nothing is bought beside it."""
    share = SHARE * bool(grids) + TOTAL_SHARE * count.is_stated
    return replace(budget, epsilon=(1.0 - share) * budget.epsilon) if share else budget


def with_beside(
    plan: Plan[Any],
    grids: tuple[Grid, ...],
    count: RowCount,
    queries: Statistic,
    budget: Budget,
) -> tuple[Plan[Any], Beside]:
    """Return a plan that measures the number of rows and the sums first, and how.

    Parameters
    ----------
    plan
        The mechanism's, for `without_beside` of the budget.
    grids
        Of the columns whose means are bought.
    count
        The public number of rows: measured if it is only stated, unless the plan reads no rows.
    queries
        The workload.
    budget
        Of all together.

    Raises
    ------
    BadInputError
        If the accountant has no bound for the noise.
    """
    rest = events_of(plan.schedule)
    counts = count.is_stated and bool(rest)
    needs, moves = _needs(grids, counts), []
    if counts:
        moves.append(RowTotal().moves(queries, budget.neighbours))
    moves += [ColumnSums((grid,)).moves(queries, budget.neighbours) for grid in grids]
    if not moves:
        return plan, Beside(None, (), (), "gaussian")
    noise: NoiseKind = "gaussian"
    # Beside events that cost their sum, Gaussian noise may cost more than there is.
    if budget.delta == 0 or plan.accountant in _PURE_ACCOUNTANTS:
        noise = "discrete laplace"
        spent = without_beside(budget, grids, count).epsilon
        own = math.nextafter(budget.epsilon - spent, 0.0) * (1.0 - 1e-9)
        parts = needs ** (2.0 / 3.0)
        parts /= parts.sum()
        while True:
            scales = [
                laplace_scale(own * p, m.l1) for p, m in zip(parts.tolist(), moves, strict=True)
            ]
            events = [LaplaceNoise(m.l1 / s) for m, s in zip(moves, scales, strict=True)]
            schedule: Schedule = (*events, *rest)
            if best(schedule, budget.delta, budget.accountant)[1] <= budget.epsilon:
                break
            own *= 0.5  # advanced composition prices them together
    else:
        lengths = np.array([each.l2 for each in moves])
        parts = needs / needs.sum()

        def scales_of(rho: float) -> list[float]:
            found: list[float] = (lengths / np.sqrt(2.0 * rho * parts)).tolist()
            return found

        def schedule_of(rho: float) -> Schedule:
            events = zip(lengths.tolist(), scales_of(rho), strict=True)
            return (*[GaussianNoise(length, scale) for length, scale in events], *rest)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        schedule, scales = schedule_of(rho), scales_of(rho)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    total = scales.pop(0) if counts else None
    found = replace(plan, schedule=schedule, accountant=accountant.name)
    return found, Beside(total, grids, tuple(scales), noise)


def _needs(grids: tuple[Grid, ...], counts: bool) -> NDArray[np.float64]:
    """Return in what proportion costs are shared out, the number of rows first."""
    needs = np.array([grid.need for grid in grids])
    needs *= SHARE / needs.sum() if grids else 1.0
    return np.append(TOTAL_SHARE, needs) if counts else needs

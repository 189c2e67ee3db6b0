"""What is bought beside the workload: the number of rows where it is private, and means of columns.

The mechanism is planned with all but a share of epsilon. What the accountant then leaves of the
whole goes to a measurement of the number of rows, if the user only stated one to plan with, and one
of each column's sum: by Gaussian noise where delta is above 0 and by Laplace noise otherwise. A
column's *need* is its range over its typical size, at least 1: an error of its mean counts as a
share of the smaller of the two. The sum of squares of these shares is least where costs of Gaussian
noise are in proportion to the needs, and costs of Laplace noise to their powers of 2/3.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualquery.data.schema.grids import Grid
from dualquery.estimates.intervals import Total
from dualquery.estimates.means import BoughtMean
from dualquery.estimates.measurements import NoiseKind
from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import calibrate_rho, laplace_scale
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Schedule, events_of
from dualquery.queries.family import Statistic
from dualquery.room.curator import Curator, whole_rows
from dualquery.room.noise.gaussian import Gaussian, check_gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.row_count import RowCount
from dualquery.room.statistics import ColumnSums, RowTotal

SHARE = 0.1
"""Share of epsilon that the mechanism leaves for the means, whatever their number. With Gaussian
noise that is about a fifth of rho, so all else has about a tenth more noise."""

TOTAL_SHARE = 0.07
"""The same for the number of rows: about an eighth of rho."""

_PURE_ACCOUNTANTS = ("paper", "advanced")  # without a bound for Gaussian noise


@dataclass(frozen=True)
class Beside:
    """What is measured before the mechanism runs, one after the other."""

    count_scale: float | None = None  # of the number of rows' noise; None: it is not measured
    grids: tuple[Grid, ...] = ()  # of the columns whose sums are measured
    scales: tuple[float, ...] = ()  # of the noise of each, over the grid's steps
    noise: NoiseKind = "gaussian"

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
    plan: Plan[Any], grids: tuple[Grid, ...], count: RowCount, queries: Statistic, budget: Budget
) -> tuple[Plan[Any], Beside]:
    """Return a plan that measures the number of rows and the sums first, and how.

    ``plan`` is the mechanism's, for `without_beside` of the ``budget`` of all together. A ``count``
    that is only stated is measured, unless the plan reads no rows. `BadInputError` if the
    accountant has no bound for the noise.
    """
    rest = events_of(plan.schedule)
    counts = count.is_stated and bool(rest)
    needs = np.array([grid.need for grid in grids])
    needs *= SHARE / needs.sum() if grids else 1.0
    needs = np.append(TOTAL_SHARE, needs) if counts else needs
    measured: list[RowTotal | ColumnSums] = [RowTotal()] if counts else []
    measured += [ColumnSums((grid,)) for grid in grids]
    if not (moves := [each.moves(queries, budget.neighbours) for each in measured]):
        return plan, Beside()
    noise: NoiseKind = "gaussian"
    # Beside events that cost their sum, Gaussian noise may cost more than there is.
    if budget.delta == 0 or plan.accountant in _PURE_ACCOUNTANTS:
        noise = "discrete laplace"
        spent = without_beside(budget, grids, count).epsilon if rest else 0.0
        own = math.nextafter(budget.epsilon - spent, 0.0) * (1.0 - 1e-9)
        parts = needs ** (2.0 / 3.0)
        while True:
            each = (own * (parts / parts.sum())).tolist()
            scales = [laplace_scale(e, m.l1) for e, m in zip(each, moves, strict=True)]
            events = [LaplaceNoise(m.l1 / s) for m, s in zip(moves, scales, strict=True)]
            schedule: Schedule = (*events, *rest)
            if best(schedule, budget.delta, budget.accountant)[1] <= budget.epsilon:
                break
            own *= 0.5  # advanced composition prices them together
    else:
        lengths, parts = np.array([each.l2 for each in moves]), needs / needs.sum()

        def schedule_of(rho: float) -> Schedule:
            scales = lengths / np.sqrt(2.0 * rho * parts)
            return (*map(GaussianNoise, lengths.tolist(), scales.tolist()), *rest)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        schedule = schedule_of(rho)
        scales = (lengths / np.sqrt(2.0 * rho * parts)).tolist()
        for scale, steps in zip(scales, [1] * counts + [each.steps for each in grids], strict=True):
            check_gaussian(scale * steps, 1)  # as it is drawn, before anything is paid
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    found = replace(plan, schedule=schedule, accountant=accountant.name)
    return found, Beside(scales.pop(0) if counts else None, grids, tuple(scales), noise)

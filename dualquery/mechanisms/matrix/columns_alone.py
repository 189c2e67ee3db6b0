"""How far columns alone would do, by public facts: what `probed` plans with, and `auto` chooses by.

All of it is for columns whose values are equally frequent, as nothing is known of them yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualquery.mechanisms.baselines.product import uniform_probabilities
from dualquery.mechanisms.matrix.columns import plan_columns, spread_of_noise
from dualquery.mechanisms.matrix.dependence import (
    EXPECTED,
    Pairs,
    spread_of_chance,
    spread_of_departures,
    spread_of_fit,
    spread_of_product_fit,
)
from dualquery.mechanisms.matrix.expansion import MOST_LITERALS, literals_of
from dualquery.mechanisms.matrix.looks import Shares, pairs_of
from dualquery.mechanisms.matrix.measurement import choose_measurement
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError, LackOfMemoryError

_USUAL = 1.0 / 3.0
"""Departures that tables usually have, of those expected of columns whose values are equally
frequent: fewer values are, and products of rare ones depart by less."""


@dataclass(frozen=True)
class Spreads:
    """By how much answers err: root mean squares, as shares of the rows.

    Parameters
    ----------
    columns
        By the noise of the columns' shares, were these all that is measured.
    product
        By the noise of independent columns fitted to everything.
    unbiased
        By the noise of unbiased answers from everything.
    departures
        As far as columns are expected to depart from independence.
    chance
        As far as n rows of independent columns do.
    """

    columns: float
    product: float
    unbiased: float
    departures: float
    chance: float

    @property
    def columns_may_do(self) -> bool:
        """Whether columns alone are nearer than everything if they are independent.

        A fit to everything then finds independent columns, with the noise of all that is measured.
        Columns alone have less noise, but do not see what the draw of the rows makes of products.
        """
        return self.departures > 0 and self.product > math.hypot(self.columns, self.chance)

    @property
    def least(self) -> float:
        """What the better of columns and a fit leaves, at `_USUAL` departures."""
        departures = _USUAL * self.departures
        return min(math.hypot(self.columns, departures), spread_of_fit(self.product, departures))


def public_spreads(task: Task, budget: Budget) -> Spreads:
    """Return what public facts tell; all 0 if queries are about no column.

    Raises
    ------
    BadInputError
        If everything cannot be measured (`choose_measurement`).
    """
    workload, neighbours = task.workload, budget.neighbours
    bits, _, possible = literals_of(workload)
    if not (bits[possible] >= 0).any():
        return Spreads(0.0, 0.0, 0.0, 0.0, 0.0)
    chances = uniform_probabilities(workload.domain)
    unit = calibrate_gaussian_scale(budget.epsilon, budget.delta, 1.0, budget.accountant) / task.n
    columns = plan_columns(workload, chances, neighbours)
    nothing = np.zeros(len(columns.scales))
    shares = Shares.of(columns.features, nothing, columns.scales * columns.sensitivity * unit)
    everything = choose_measurement(workload, neighbours, fitted=True)
    scale = everything.sensitivity * unit
    return Spreads(
        spread_of_noise(workload, chances, shares),
        spread_of_product_fit(everything.products, everything.scales * scale, workload, chances),
        everything.mean_deviation * scale,
        spread_of_departures(workload, chances, task.n, EXPECTED),
        spread_of_chance(workload, chances, task.n),
    )


def resolution_of(first: Strategy, task: Task, budget: Budget) -> float:
    """Return how well all of the budget would tell departures: `Pairs.resolution`.

    Parameters
    ----------
    first
        Columns and pairs, as they are measured.
    task, budget
        The queries and the number of rows, and the budget.
    """
    at = pairs_of(first.features)
    scale = calibrate_gaussian_scale(
        budget.epsilon, budget.delta, first.sensitivity, budget.accountant
    )
    chances = uniform_probabilities(task.workload.domain)
    pairs = Pairs.of(
        ProductTerms.of_features(first.features.part(at)),
        np.zeros(len(at)),
        first.scales[at] * scale / task.n,
        chances,
        np.zeros(len(chances)),
    )
    return pairs.resolution


def may_do(task: Task, budget: Budget) -> bool:
    """Return whether columns alone may be all that is worth measuring, for `auto`.

    On generated tables of independent columns (2,000 to 30,000 rows, 15 to 60 columns, epsilon 0.1
    to 1) a fit to everything had 1.1 to 2.6 times the mean error of independent columns where this
    holds, and 0.6 to 1.4 times where it does not.
    """
    if task.workload.way > MOST_LITERALS:
        return False
    try:
        return public_spreads(task, budget).columns_may_do
    except LackOfMemoryError:
        raise
    except BadInputError:
        return False  # the mechanisms refuse the task too, and say why

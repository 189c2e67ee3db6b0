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
from dualquery.mechanisms.matrix.measurement import measurement_for
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale
from dualquery.queries.conjunctions import Workload
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
        As far as columns are expected to depart from independence, and longer products by chance.
    chance
        As far as rows of independent columns do by chance, pairs and longer products.
    """

    columns: float
    product: float
    unbiased: float
    departures: float
    chance: float

    @property
    def columns_are_nearer(self) -> bool:
        """Whether columns alone are nearer than everything if they are independent.

        A fit to everything then finds independent columns, with the noise of all that is measured.
        Columns alone have less noise, but do not see what the draw of the rows makes of products.
        """
        return self.product > math.hypot(self.columns, self.chance)

    @property
    def of_columns(self) -> float:
        """What columns alone leave, at `_USUAL` departures."""
        return math.hypot(self.columns, _USUAL * self.departures)

    @property
    def least(self) -> float:
        """What the better of columns and a fit leaves, at `_USUAL` departures."""
        return min(self.of_columns, spread_of_fit(self.product, _USUAL * self.departures))


def public_spreads(task: Task, budget: Budget) -> Spreads:
    """Return what public facts tell, found once a task; all 0 if queries are about no column.

    Raises
    ------
    BadInputError
        If everything cannot be measured (`measurement_for`).
    """
    return task.once((public_spreads, budget), lambda: _spreads(task, budget))


def _spreads(task: Task, budget: Budget) -> Spreads:
    """Find what `public_spreads` returns."""
    workload, neighbours = task.workload, budget.neighbours
    bits, _, possible = literals_of(workload)
    if not (bits[possible] >= 0).any():
        return Spreads(columns=0.0, product=0.0, unbiased=0.0, departures=0.0, chance=0.0)
    chances = uniform_probabilities(workload.domain)
    unit = calibrate_gaussian_scale(budget.epsilon, budget.delta, 1.0, budget.accountant) / task.n
    columns = plan_columns(workload, chances, neighbours)
    nothing = np.zeros(len(columns.scales))
    shares = Shares.of(columns.features, nothing, columns.scales * columns.sensitivity * unit)
    everything = measurement_for(task, neighbours, fitted=True)
    scale = everything.sensitivity * unit
    return Spreads(
        columns=spread_of_noise(workload, chances, shares),
        product=spread_of_product_fit(
            everything.products, everything.scales * scale, workload, chances
        ),
        unbiased=everything.mean_deviation * scale,
        departures=spread_of_departures(workload, chances, task.rows, EXPECTED),
        chance=spread_of_chance(workload, chances, task.rows),
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


def columns_may_do(task: Task, budget: Budget) -> bool:
    """Return whether columns alone may be all that is worth measuring, for `auto`.

    On generated tables of independent columns (2,000 to 30,000 rows, 15 to 60 columns, epsilon 0.1
    to 1) a fit to everything had 1.1 to 2.6 times the mean error of independent columns where this
    holds, and 0.6 to 1.4 times where it does not.
    """
    workload = task.workload
    if workload.way > MOST_LITERALS or not _pairs_are_asked(workload):
        return False  # `probed` refuses long queries, and has nothing to look at without pairs
    if workload.description.get("kind") == "target marginals":
        return False  # who names a target asks how it depends on the other columns
    try:
        return public_spreads(task, budget).columns_are_nearer
    except LackOfMemoryError:
        raise  # free memory depends on the private rows: it must not choose
    except BadInputError:
        return False  # the mechanisms refuse the task too, and say why


def _pairs_are_asked(workload: Workload) -> bool:
    """Return whether some query is about two columns."""
    bits, _, possible = literals_of(workload)
    columns = np.where(bits >= 0, workload.domain.column_of_bit[bits], -1)[possible]
    most = columns.max(axis=1, initial=-1)
    return bool(((columns >= 0) & (columns != most[:, None])).any())

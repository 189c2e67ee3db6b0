"""The planner: what each stage measures, by predicted errors.

On public facts it chooses the first stage and fixes the schedule; given a first stage it compares
the predicted errors of what the next one may measure. Private numbers do not come here: only public
facts, and noisy means that were charged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.adaptive.evidence import (
    Shares,
    of_order,
    scale_for,
    uniform_strategy,
    up_to_pairs,
)
from dualquery.mechanisms.adaptive.expansion import MOST_LITERALS, Expansion, literals_of
from dualquery.mechanisms.adaptive.interactions import Interactions, expected_interactions
from dualquery.mechanisms.adaptive.measurement import (
    FeatureMeasurement,
    QueryMeasurement,
    measurement_for,
)
from dualquery.mechanisms.adaptive.mixture import Fitting
from dualquery.mechanisms.adaptive.predictions import (
    harmonic,
    rmse_of_chance,
    rmse_of_fit,
    rmse_of_independent_fit,
    rmse_of_interactions,
    rmse_of_shares,
)
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.mechanisms.adaptive.scales import plan_columns, plan_strategy
from dualquery.mechanisms.baselines.product import uniform_probabilities
from dualquery.mechanisms.protocol import Budget, Details, Plan, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale, calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_FIRST = 0.2
"""Part of the budget for a first look."""

_FULL = 0.2
"""Expected interactions over those of columns that are half full, above which columns are full.
Chosen on generated tables of 100 to 300 columns at epsilon 0.02 to 1: with .07 and .11 what exceeds
its noise had the smaller errors, with .4 and .6 everything had. Real tables are at .02 to .1
(baskets, visits) or at .3 to .6 (plants, mushroom, pumsb_star)."""

WIDE = 1000
"""Columns that queries are about, from which on these are measured first. This has smaller errors
than one stage on tables of 3,340 to 17,770 columns; one stage has on those of 69 to 285."""

_ITEMS = 10.0
"""Items of a row, where queries ask which are there together, before anything is measured: real
tables of 120 to 18,000 items have 3 to 200 (``python -m experiments gate`` compares forecasts)."""


class FirstStage(Enum):
    """What is measured first."""

    EVERYTHING = "everything"
    PAIRS = "pairs"  # and columns
    COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class Stages(Details):
    """What the stages measure, with how much noise.

    Parameters
    ----------
    first, reason
        What the first stage is, and why, in a clause.
    neighbours, sensitivity, scale
        What neighbouring tables differ in; the L2 sensitivity of what the first stage measures,
        over its scales; the factor on these, in rows.
    ratios
        Sensitivity over scale of the later stages.
    looked
        What the first stage measures if not everything.
    full, expansion
        Everything; the queries as sums of features.
    predicted
        Errors, as public facts say.
    records, fitting
        Number of synthetic records; the fit that suits the last stage's noise.
    """

    first: FirstStage
    reason: str
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratios: tuple[float, ...] = ()
    looked: Strategy | None = field(default=None, compare=False)
    full: FeatureMeasurement | QueryMeasurement = field(compare=False)
    expansion: Expansion | None = field(default=None, compare=False)
    predicted: Predicted
    records: int
    fitting: Fitting

    def parameters(self) -> Mapping[str, Any]:
        """Return what is measured with how much noise."""
        said: dict[str, Any] = {"first_stage": self.first.value, "stage_reason": self.reason}
        if self.looked is not None:
            said["features"] = len(self.looked.features)
        else:
            said |= self.full.describe(self.scale)
        return said | {
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "later_ratios": list(self.ratios),
            "deviation": self.predicted.least,
            "records": self.records,
            "components": self.fitting.components,
            "steps": self.fitting.steps,
            "pull": self.fitting.pull,
        }


def is_wide(workload: Workload) -> bool:
    """Return whether queries are about `WIDE` columns or more, all of them binary."""
    bits = np.unique(workload.literals[workload.literals >= 0] >> 1)
    columns = np.unique(workload.domain.column_of_bit[bits])
    return len(columns) >= WIDE and bool((workload.domain.sizes[columns] <= 2).all())


def _is_positive(workload: Workload) -> bool:
    """Return whether queries ask which columns of one bit are 1 together, and nothing else."""
    given = workload.literals[workload.literals >= 0]
    columns = workload.domain.column_of_bit[given >> 1]
    return bool((given & 1 == 0).all() and (workload.domain.sizes[columns] == 1).all())


def choose_first(task: Task, budget: Budget) -> tuple[FirstStage, str]:
    """Return the first stage that public facts suggest, and why."""
    if task.frequent is not None:
        return FirstStage.COLUMNS, "the first stage finds the items that are frequent"
    if task.workload.way <= MOST_LITERALS:
        if is_wide(task.workload):
            return FirstStage.COLUMNS, "of many columns, few are worth more than one look"
        if _is_positive(task.workload):
            return FirstStage.COLUMNS, "which columns are full says what of them is worth measuring"
        if columns_may_do(task, budget):
            return FirstStage.PAIRS, "columns alone may be all that is worth measuring"
    return FirstStage.EVERYTHING, "one measurement of all queries has the smallest predicted error"


def plan_schedule(
    sensitivity: float, parts: Sequence[float], budget: Budget
) -> tuple[tuple[GaussianNoise, ...], str]:
    """Return the schedule of stages that fill a budget, and the accountant that says so.

    ``parts`` of rho, in (0, 1), add up to 1. The sensitivity of later stages is not known yet:
    their noise has scale 1, so their sensitivity is the ratio to the scale.
    """

    def schedule_of(rho: float) -> tuple[GaussianNoise, ...]:
        first, *later = (math.sqrt(2.0 * part * rho) for part in parts)
        return (
            GaussianNoise(sensitivity, sensitivity / first),
            *(GaussianNoise(ratio, 1.0) for ratio in later),
        )

    rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
    schedule = schedule_of(rho)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return schedule, accountant.name


@dataclass(frozen=True)
class Request:
    """What is planned for: a first stage and why, options of the fit, and a number of records."""

    first: FirstStage
    reason: str
    components: int | None
    steps: int
    pull: float | None
    records: int


def plan_stages(task: Task, budget: Budget, asked: Request) -> Plan[Stages]:
    """Fix the schedule of the stages: their ratios of sensitivity to scale fill the budget."""
    workload, neighbours, first = task.workload, budget.neighbours, asked.first
    if first is FirstStage.PAIRS and workload.way > MOST_LITERALS:
        raise BadInputError(
            f"a query has {workload.way} literals; a first look takes at most {MOST_LITERALS}"
        )
    full = measurement_for(task, neighbours, fitted=asked.components != 0)
    predicted = predict(task, budget)
    parts: tuple[float, ...] = (1.0,)
    expansion: Expansion | None = None
    looked: Strategy | None = None
    if first is not FirstStage.EVERYTHING:
        if not predicted.columns:
            raise BadInputError("adaptive has nothing to measure: no query depends on a column")
        expansion, parts = Expansion.of(workload), (_FIRST, 1.0 - _FIRST)
        if first is FirstStage.PAIRS:
            # Less where the noise of columns' shares hides interactions.
            seen = predicted.interactions / (predicted.interactions + predicted.columns)
            parts = (max(_FIRST * seen, 0.01), 1.0 - max(_FIRST * seen, 0.01))
        elif not _is_positive(workload):
            # Main effects matter most: they are measured twice before products are.
            parts = (_FIRST, (1.0 - _FIRST) / 2.0, (1.0 - _FIRST) / 2.0)
        looked = _first_look(task, expansion, full, neighbours, first)
    measured = looked or full
    schedule, accountant = plan_schedule(measured.sensitivity, parts, budget)
    scale, ratios = schedule[0].scale, tuple(each.sensitivity for each in schedule[1:])
    if asked.components == 0:
        predicted = replace(predicted, unbiased=scale / task.n * full.mean_deviation)
    ratio = math.hypot(*ratios) if ratios else measured.sensitivity / scale
    details = Stages(
        first=first,
        reason=asked.reason,
        neighbours=neighbours,
        sensitivity=measured.sensitivity,
        scale=scale,
        ratios=ratios,
        looked=looked,
        full=full,
        expansion=expansion,
        predicted=predicted,
        records=asked.records,
        fitting=Fitting.suited(
            task.n, ratio, workload.domain.bits, asked.components, asked.steps, asked.pull
        ),
    )
    remark = f"first stage: {first.value} ({asked.reason})"
    answers = full.of_queries and first is not FirstStage.COLUMNS
    return Plan(schedule, accountant, details, remark, needs_answers=answers)


def _first_look(
    task: Task,
    expansion: Expansion,
    full: FeatureMeasurement | QueryMeasurement,
    neighbours: Neighbours,
    first: FirstStage,
) -> Strategy:
    """Return how columns are measured, or these and pairs."""
    features = expansion.features
    if first is FirstStage.COLUMNS:
        bits = features.bits[of_order(features, 1)]
        if task.frequent is not None:
            bits = task.frequent.bits[:, None]
        return uniform_strategy(Features(bits, features.domain), neighbours)
    strategy = (
        full.strategy
        if isinstance(full, FeatureMeasurement)
        else plan_strategy(expansion.in_blocks(), neighbours)
    )
    small = up_to_pairs(strategy.features)
    return Strategy(strategy.features.part(small), strategy.scales[small], neighbours)


def _sensitivity_of_sign(neighbours: Neighbours) -> float:
    """Return that of a sign's sum: 2, or 1 where a row is added or removed."""
    return neighbours.furthest(2.0, 1.0)


@dataclass(frozen=True)
class Predicted:
    """Predicted errors of answers: root mean squares, as shares of the rows.

    Due to the noise of columns alone; of independent columns fitted to everything; of unbiased
    answers from everything; to the expected interactions, and chance; to chance alone.
    """

    columns: float = 0.0
    product: float = 0.0
    unbiased: float = 0.0
    interactions: float = 0.0
    chance: float = 0.0

    @property
    def fit(self) -> float:
        """That of a fit to everything."""
        return rmse_of_fit(self.product, self.interactions)

    @property
    def least(self) -> float:
        """The smaller one of columns alone and of a fit."""
        return min(math.hypot(self.columns, self.interactions), self.fit)

    @property
    def columns_alone(self) -> bool:
        """Whether columns alone are predicted to have the smaller error."""
        return self.least < self.fit


def predict(task: Task, budget: Budget) -> Predicted:
    """Return predicted errors by public facts, found once a task; all 0 if no column is asked.

    Raises
    ------
    BadInputError
        If everything cannot be measured (`measurement_for`).
    """
    return task.once((predict, budget), lambda: _predict(task, budget))


def _predict(task: Task, budget: Budget) -> Predicted:
    """Find what `predict` returns."""
    workload, neighbours = task.workload, budget.neighbours
    bits, _, possible = literals_of(workload)
    if not (bits[possible] >= 0).any():
        return Predicted()
    chances = _usual_shares(workload)
    unit = calibrate_gaussian_scale(budget.epsilon, budget.delta, 1.0, budget.accountant) / task.n
    columns = plan_columns(workload, chances, neighbours)
    nothing = np.zeros(len(columns.scales))
    shares = Shares.of(columns.features, nothing, columns.scales * columns.sensitivity * unit)
    full = measurement_for(task, neighbours, fitted=True)
    scale = full.sensitivity * unit
    return Predicted(
        columns=rmse_of_shares(workload, chances, shares.uncertain(workload.domain)),
        product=rmse_of_independent_fit(full.products, full.scales * scale, workload, chances),
        unbiased=full.mean_deviation * scale,
        interactions=rmse_of_interactions(workload, chances, task.rows),
        chance=rmse_of_chance(workload, chances, task.rows),
    )


def _usual_shares(workload: Workload) -> Float64:
    """Return shares before anything is measured: uniform, or those of rows of `_ITEMS` items."""
    if not _is_positive(workload):
        return uniform_probabilities(workload.domain)
    columns = len(np.unique(workload.literals[workload.literals >= 0]))
    return np.full(workload.domain.bits, min(0.5, _ITEMS / columns))


def columns_may_do(task: Task, budget: Budget) -> bool:
    """Return whether columns alone may be all that is worth measuring.

    They are if they are nearer than a fit to everything, were all columns independent. On generated
    tables of independent columns (2,000 to 30,000 rows, 15 to 60 columns, epsilon 0.1 to 1) a fit
    had 1.1 to 2.6 times the mean error of independent columns where this holds, and 0.6 to 1.4
    times where it does not.
    """
    workload = task.workload
    bits, _, possible = literals_of(workload)
    columns = np.where(bits >= 0, workload.domain.column_of_bit[bits], -1)[possible]
    most = columns.max(axis=1, initial=-1)
    if not ((columns >= 0) & (columns != most[:, None])).any():
        return False  # there are no pairs to look at
    if workload.description.get("kind") == "target marginals":
        return False  # who names a target asks how it depends on the other columns
    predicted = predict(task, budget)
    return predicted.product > math.hypot(predicted.columns, predicted.chance)


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What a look at columns determines.

    Parameters
    ----------
    looked, shares
        How the columns are measured; their noisy shares.
    workload, expansion, n
        The queries, what they are made of, and the number of rows.
    ratio
        Sensitivity over scale of all that comes next.
    """

    looked: Strategy
    shares: Shares
    workload: Workload
    expansion: Expansion
    n: int
    ratio: float

    @cached_property
    def posterior(self) -> Shares:
        """Posterior means of the shares, and their standard errors."""
        return self.shares.sparse()

    @cached_property
    def chances(self) -> Float64:
        """Posterior means at all bits."""
        return self.posterior.distributions(self.workload.domain)

    @property
    def _full(self) -> bool:
        """Whether columns are full: interactions may be large then."""
        products = ProductTerms.of_features(self.expansion.features)
        found = expected_interactions(products, self.chances)
        largest = expected_interactions(products, np.full(len(self.chances), 0.5))
        return float(found @ found) > _FULL**2 * float(largest @ largest)

    def everything_wins(self, full: FeatureMeasurement | QueryMeasurement) -> bool:
        """Return whether a fit to everything has a smaller predicted error than what is worth it.

        That is the columns and products of `worth_measuring`, which leave out the other
        interactions. Pairs of nearly empty columns hardly interact at all. The columns' shares add
        nothing to queries, nor to wider columns.
        """
        binary = self.workload.domain.has_two_values[self.shares.bits].all()
        if full.of_queries or not binary or not self._full:
            return False
        workload, chances, n = self.workload, self.chances, self.n
        before = self.posterior.uncertain(workload.domain)
        noise = self._noise(len(self.worth_measuring()))
        off = np.where(before < noise / 2.0, before, harmonic(before, noise / 2.0))
        chosen = math.hypot(
            rmse_of_shares(workload, chances, off),
            rmse_of_interactions(workload, chances, n, noise=noise),
        )
        scales = full.scales * scale_for(full.sensitivity, self.ratio) / n
        product = rmse_of_independent_fit(full.products, scales, workload, chances, before)
        return rmse_of_fit(product, rmse_of_interactions(workload, chances, n)) < chosen

    def _noise(self, number: int) -> float:
        """Return the standard deviation of the noise if a number of signs is measured next."""
        unit = _sensitivity_of_sign(self.looked.neighbours) / (self.ratio * self.n)
        return unit * math.sqrt(number)

    def worth_measuring(self) -> NDArray[np.int64]:
        """Return the places of columns and products that are worth measuring; increasing.

        Each column's standard error is its noise at least, each product's expected interaction
        twice that, the noise being the larger the more are measured; the one with the largest is
        measured alone if there are none.
        """
        products = ProductTerms.of_features(self.expansion.features)
        expected = expected_interactions(products, self.chances) / 2.0
        alone = of_order(self.expansion.features, 1)
        _, slopes = products.part(alone).linear()
        off = self.posterior.uncertain(self.workload.domain)
        expected[alone] = np.abs(slopes[:, 0]) * off[products.bits[alone, 0]]
        order = np.argsort(-expected, kind="stable")
        noises = self._noise(1) * np.sqrt(np.arange(1, len(order) + 1))
        worth = np.flatnonzero(expected[order] >= noises)
        return np.sort(order[: worth[-1] + 1 if len(worth) else 1])


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """What a look at columns and pairs determines: noisy means, with a factor on their scales.

    ``n`` and ``rows`` are what weights and chance go by.
    """

    looked: Strategy
    means: Float64
    scale: float
    workload: Workload
    n: int
    rows: int

    @property
    def deviations(self) -> Float64:
        """Standard deviations of the noise of these means."""
        return self.looked.scales * self.scale / self.n

    @cached_property
    def shares(self) -> Shares:
        """The noisy shares of single columns."""
        alone = of_order(self.looked.features, 1)
        singles = self.looked.features.part(alone)
        return Shares.of(singles, self.means[alone], self.deviations[alone])

    def model(self, shares: Shares) -> Interactions:
        """Return the hierarchical model given these means, and shares of single columns."""
        products = ProductTerms.of_features(self.looked.features)
        posterior = shares.posterior(self.workload.domain)
        return Interactions.fit(products, self.means, self.deviations, *posterior)

    def everything_wins(
        self,
        columns: Strategy,
        full: FeatureMeasurement | QueryMeasurement,
        ratio: float,
    ) -> bool:
        """Return whether a fit to everything has a smaller predicted error than the columns alone.

        ``columns`` is how these would be measured, and ``ratio`` the sensitivity over scale of
        either.
        """
        workload = self.workload
        chances, uncertain = self.shares.posterior(workload.domain)
        model = self.model(self.shares)
        interactions = rmse_of_interactions(
            workload, chances, self.rows, model.unknown, model.whole
        )
        nothing = np.zeros(len(columns.scales))
        noise = columns.scales * scale_for(columns.sensitivity, ratio) / self.n
        again = Shares.of(columns.features, nothing, noise)
        noise = full.scales * scale_for(full.sensitivity, ratio) / self.n
        product = rmse_of_independent_fit(full.products, noise, workload, chances)
        first = replace(
            self.shares,
            deviations=np.minimum(uncertain[self.shares.bits], self.shares.deviations),
        )
        alone = first.combined(again).uncertain(workload.domain)
        columns_alone = math.hypot(rmse_of_shares(workload, chances, alone), interactions)
        return rmse_of_fit(product, interactions) < columns_alone

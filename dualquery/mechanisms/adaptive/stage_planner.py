"""The planner: what each stage measures, by predicted errors.

On public facts it chooses the first stage and fixes the schedule; given noisy means it compares the
predicted errors of what the next stage may measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import CORRELATION
from dualquery.mechanisms.adaptive.evidence import (
    Shares,
    in_shares,
    of_order,
    scale_for,
    uniform_strategy,
)
from dualquery.mechanisms.adaptive.expansion import (
    MOST_LITERALS,
    Expansion,
    ProductTerms,
    literals_of,
)
from dualquery.mechanisms.adaptive.interactions import Interactions, expected_interactions
from dualquery.mechanisms.adaptive.measurement import (
    FeatureMeasurement,
    QueryMeasurement,
    measurement_for,
    plan_strategy,
)
from dualquery.mechanisms.adaptive.mixture_fit import Fitting
from dualquery.mechanisms.adaptive.predictions import (
    WIDE,
    Predicted,
    expansion_of,
    is_positive,
    is_wide,
    predict,
    rmse_of_fit,
    rmse_of_independent_fit,
    rmse_of_interactions,
    rmse_of_shares,
)
from dualquery.mechanisms.protocol import Budget, Details, Plan, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import calibrate_gaussian_scale, calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_FIRST = 0.2
"""Part of the budget for a first look, at most; a fifth of that where it can hardly say more than
whether columns are full: of wide tables, and where their noise hides interactions."""

_FULL = 0.2
"""Expected interactions over those of half-full columns, above which columns are full. On generated
tables what exceeds its noise had the smaller errors with .07 and .11, everything with .4 and .6."""


@dataclass(frozen=True, kw_only=True)
class Stages(Details):
    """What the stages measure, with how much noise.

    The ``first``, "everything", "pairs" (and columns) or "columns", measures ``looked``, or else
    ``full``, whose scales have the ``sensitivity`` and, in rows, the factor ``scale``. ``ratios``
    are those of later stages; ``expansion`` is for a look at columns.
    """

    first: str
    reason: str
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratios: tuple[float, ...]
    looked: Strategy | None = field(compare=False)
    full: FeatureMeasurement | QueryMeasurement | None = field(compare=False)
    expansion: Expansion | None = field(compare=False)
    predicted: Predicted
    records: int
    fitting: Fitting

    def parameters(self) -> Mapping[str, Any]:
        """Return what is measured with how much noise."""
        said: dict[str, Any] = {"first_stage": self.first, "stage_reason": self.reason}
        if self.looked is not None:
            said["features"] = len(self.looked.features)
        elif self.full is not None:
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


def choose_first(task: Task, budget: Budget) -> tuple[str, str]:
    """Return the first stage that public facts suggest, and why."""
    if task.frequent is not None:
        return "columns", "the first stage finds the items that are frequent"
    if task.workload.way <= MOST_LITERALS:
        if is_wide(task.workload):
            return "columns", "of thousands of columns, few are worth more than one look"
        if is_positive(task.workload):
            return "columns", "which columns are full says what of them is worth measuring"
        if columns_may_do(task, budget):
            return "pairs", "columns alone may be all that is worth measuring"
    return "everything", "one measurement of all queries has the smallest predicted error"


def plan_schedule(
    sensitivity: float, parts: Sequence[float], budget: Budget
) -> tuple[tuple[GaussianNoise, ...], str]:
    """Return the schedule of stages of some parts of rho, and the accountant that says so.

    The sensitivity of later stages is not known yet: with noise of scale 1 it is the ratio.
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


def plan_stages(
    task: Task,
    budget: Budget,
    first: str,
    reason: str,
    records: int,
    components: int | None,
    steps: int,
    pull: float | None,
) -> Plan[Stages]:
    """Fix the schedule of the stages: their ratios of sensitivity to scale fill the budget."""
    neighbours, predicted = budget.neighbours, predict(task, budget)
    if first != "everything" and not predicted.columns:
        raise BadInputError("adaptive has nothing to measure: no query depends on a column")
    full: FeatureMeasurement | QueryMeasurement | None = None
    expansion: Expansion | None = None
    looked: Strategy | None = None
    parts: tuple[float, ...] = (1.0,)
    if first == "columns":
        expansion = expansion_of(task)
        bits = expansion.features.bits[of_order(expansion.features, 1)]
        if task.frequent is not None:
            bits = task.frequent.bits[:, None]
        looked = uniform_strategy(Features(bits, expansion.features.domain), neighbours)
        parts = _parts_after_columns(task, budget, expansion, len(looked.features))
    else:
        full = measurement_for(task, neighbours, fitted=components != 0)
    if full is not None and first == "pairs":
        looked = _pairs_of(task, full, neighbours)
        interactions = predicted.interactions
        part = _FIRST * max(interactions / (interactions + predicted.columns), _FIRST)
        parts = (part, 1.0 - part)
    measured = looked or full
    assert measured is not None
    schedule, accountant = plan_schedule(measured.sensitivity, parts, budget)
    scale, ratios = schedule[0].scale, tuple(each.sensitivity for each in schedule[1:])
    if full is not None and first == "everything":
        predicted = replace(predicted, unbiased=scale / task.n * full.mean_deviation)
    ratio = math.hypot(*ratios) if ratios else measured.sensitivity / scale
    details = Stages(
        first=first,
        reason=reason,
        neighbours=neighbours,
        sensitivity=measured.sensitivity,
        scale=scale,
        ratios=ratios,
        looked=looked,
        full=full,
        expansion=expansion,
        predicted=predicted,
        records=records,
        fitting=Fitting.suited(task.n, ratio, task.queries.domain.bits, components, steps, pull),
    )
    remark = f"first stage: {first} ({reason})"
    needs_answers = full is not None and full.of_queries
    return Plan(schedule, accountant, details, remark, needs_answers)


def _parts_after_columns(
    task: Task, budget: Budget, expansion: Expansion, columns: int
) -> tuple[float, ...]:
    """Return the parts of the budget for a look at columns and for what comes after it."""
    later, wide = float(WIDE), is_wide(task.workload)
    if not wide:
        of_sign = budget.neighbours.furthest(2.0, 1.0)
        scale = calibrate_gaussian_scale(budget.epsilon, budget.delta, of_sign, budget.accountant)
        # With more of them the noise of each is above an interaction that hardly any exceeds.
        later = min(float(len(expansion.features)), (2.0 * CORRELATION * task.n / scale) ** 2)
    # Where d numbers and M others have the parts a and 1 - a of rho, the sum of variances is least
    # where a / (1 - a) = sqrt(d / M).
    part = 1.0 / (1.0 + math.sqrt(later / columns))
    if task.frequent is not None or not wide:
        return part, 1.0 - part
    return _FIRST**2, (1.0 - _FIRST**2) * part, (1.0 - _FIRST**2) * (1.0 - part)


def _pairs_of(
    task: Task, full: FeatureMeasurement | QueryMeasurement, neighbours: Neighbours
) -> Strategy:
    """Return how columns and pairs are measured in a first look."""
    if isinstance(full, FeatureMeasurement):
        strategy = full.strategy
    else:
        strategy = plan_strategy(Expansion.of(task.workload).in_blocks(), neighbours)
    small = of_order(strategy.features, 1, 2)
    return Strategy(strategy.features.part(small), strategy.scales[small], neighbours)


def everything(
    workload: Workload, expansion: Expansion, neighbours: Neighbours
) -> FeatureMeasurement | None:
    """Return the measurement of all that queries are made of; None unless columns are binary."""
    bits = workload.literals[workload.literals >= 0] >> 1
    if not workload.domain.has_two_values[bits].all():
        return None
    return FeatureMeasurement(expansion, plan_strategy(expansion, neighbours))


def columns_may_do(task: Task, budget: Budget) -> bool:
    """Return whether columns alone have the smaller predicted error, were all independent."""
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


def mean_of_set(numbers: Float64, sets: NDArray[np.int64]) -> Float64:
    """Return each number's mean over its set: blocks of contrasts have one variance each."""
    return np.asarray((np.bincount(sets, numbers) / np.bincount(sets))[sets])


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What a look at columns determines; ``ratio``: sensitivity over scale of all that follows."""

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

    @cached_property
    def columns_full(self) -> bool:
        """Whether columns are full: pairs of nearly empty ones hardly interact at all."""
        features = self.expansion.features
        products = ProductTerms.of_features(features)
        found = expected_interactions(products, self.chances)
        largest = expected_interactions(products, np.full(len(self.chances), 0.5))
        return float(found @ found) > _FULL**2 * float(largest @ largest)

    def everything_wins(self, full: FeatureMeasurement) -> bool:
        """Return whether a fit to everything has a smaller predicted error than columns again."""
        scale = scale_for(full.sensitivity, self.ratio) / self.n
        unit = scale_for(self.looked.sensitivity, self.ratio) / self.n
        again = unit * in_shares(self.looked.features)
        before, workload = self.posterior.deviations, self.workload
        off = replace(self.posterior, deviations=before * again / np.hypot(before, again))
        usual = rmse_of_interactions(workload, self.chances, self.n)
        columns = rmse_of_shares(workload, self.chances, off.uncertain(workload.domain))
        product = rmse_of_independent_fit(full, scale, workload, self.chances)
        fitted = min(rmse_of_fit(product, usual), full.mean_deviation * scale)
        return fitted < math.hypot(columns, usual)

    def worth_measuring(self) -> NDArray[np.int64]:
        """Return places of columns with an error above noise, and products above twice it."""
        products = ProductTerms.of_features(self.expansion.features)
        expected = expected_interactions(products, self.chances) / 2.0
        alone, _, off = self.posterior.as_products(products)
        expected[alone] = off
        order = np.argsort(-expected, kind="stable")
        of_sign = self.looked.neighbours.furthest(2.0, 1.0)
        noise = of_sign / (self.ratio * self.n)
        noises = noise * np.sqrt(np.arange(1, len(order) + 1))
        worth = np.flatnonzero(expected[order] >= noises)
        return np.sort(order[: worth[-1] + 1 if len(worth) else 1])


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """What a look at columns and pairs determines; weights go by ``n``, chance by ``rows``."""

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

    @cached_property
    def first(self) -> Interactions:
        """The hierarchical model given this look alone."""
        return self.model(self.shares)

    def unknown(self, products: ProductTerms) -> Float64:
        """Return the variances of products given this look: float64, one each."""
        first, order, sets = self.first, (products.bits >= 0).sum(axis=1), products.sets
        unknown = np.where(order > 2, first.whole, first.unknown)
        unknown *= expected_interactions(products, first.chances) ** 2
        small, several = order <= 2, (np.bincount(sets)[sets] > 1) & (order == 2)
        # So weak a look is not sure which sets are weak: half is what all pairs leave.
        of_all = 0.5 * several[small]
        unknown[small] = of_all * unknown[small] + (1.0 - of_all) * first.left
        return mean_of_set(unknown, sets)

    def everything_wins(
        self, columns: Strategy, full: FeatureMeasurement | QueryMeasurement, ratio: float
    ) -> bool:
        """Return whether a fit is predicted to err less than columns, at the same ``ratio``.

        What columns leave of a strong pair errs in few answers: large errors count, too.
        """
        workload, of_pairs = self.workload, (self.first.unknown, self.first.whole)
        chances, _ = self.shares.posterior(workload.domain)
        interactions = rmse_of_interactions(workload, chances, self.rows, *of_pairs)
        noise = columns.scales * scale_for(columns.sensitivity, ratio) / self.n
        again = Shares.of(columns.features, np.zeros(len(noise)), noise)
        both = self.shares.shrunk(workload.domain).combined(again)
        alone = rmse_of_shares(workload, chances, both.uncertain(workload.domain))
        scale = scale_for(full.sensitivity, ratio) / self.n
        product = rmse_of_independent_fit(full, scale, workload, chances)
        fitted = min(rmse_of_fit(product, interactions), full.mean_deviation * scale)
        if isinstance(full, FeatureMeasurement):
            of_columns, unknown = np.zeros(len(full.scales)), self.unknown(full.products)
            singles, _, noise = again.as_products(full.products)
            of_columns[singles] = noise**-2.0
            of_columns = mean_of_set(of_columns, full.products.sets)
            large, larger = (
                float((full.expansion.variances(unknown / (1.0 + unknown * each)) ** 2).mean())
                for each in ((full.scales * scale) ** -2.0, of_columns)
            )
            fitted *= min(large / larger, 1.0) ** 0.25 if larger else 1.0
        return fitted < math.hypot(alone, interactions)

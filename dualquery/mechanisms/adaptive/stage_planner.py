"""The planner: what each stage measures, by predicted errors.

On public facts it chooses the first stage and fixes the schedule; given noisy means it compares the
predicted errors of what the next stage may measure.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import CORRELATION
from dualquery.mechanisms.adaptive.evidence import MANY, Shares, of_order, scale_for
from dualquery.mechanisms.adaptive.expansion import MOST_LITERALS, Expansion, Int64, ProductTerms
from dualquery.mechanisms.adaptive.interactions import Interactions, expected_interactions
from dualquery.mechanisms.adaptive.measurement import (
    FeatureMeasurement,
    Measurement,
    QueryMeasurement,
    measurement_for,
    plan_columns,
    plan_strategy,
    with_limit,
)
from dualquery.mechanisms.adaptive.mixture_fit import Fitting
from dualquery.mechanisms.adaptive.predictions import (
    WIDE,
    Predicted,
    binary_columns,
    expansion_of,
    is_positive,
    is_wide,
    of_shares,
    predict,
    rmse_of_fit,
    rmse_of_interactions,
    rmse_of_product,
    rmse_of_queries,
)
from dualquery.mechanisms.adaptive.prior import left_of
from dualquery.mechanisms.protocol import Budget, Details, Plan, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import calibrate_gaussian_scale, calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.rows.repeats import first_occurrences, side_by_side
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_FIRST = 0.2
"""Part of the budget for a first look at pairs, at most. A fifth of that for one at columns that
others follow, and where noise hides interactions: it hardly says more than which are full."""

_FULL = 0.2
"""Expected interactions over those of half-full columns, above which columns are full. On generated
tables what exceeds its noise had the smaller errors with .07 and .11, everything with .4 and .6."""

_GROUP = 5
"""Columns of a group. On netflix-like three have 1.05 times the mean error, 7 twice the time."""


@dataclass(frozen=True, kw_only=True)
class Stages(Details):
    """What the stages measure, with how much noise.

    The ``first`` ("everything", "pairs" and columns, or "columns") measures ``looked`` or ``full``,
    with the ``sensitivity`` and, in rows, the factor ``scale``; later ones have the ``ratios``.
    """

    first: str
    reason: str
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratios: tuple[float, ...]
    looked: Strategy | None = field(compare=False)
    full: Measurement | None = field(compare=False)
    predicted: Predicted
    records: int
    fitting: Fitting

    def parameters(self) -> Mapping[str, Any]:
        """Return what is measured with how much noise."""
        said: dict[str, Any] = {"first_stage": self.first, "stage_reason": self.reason}
        if self.looked is not None:
            said |= {"features": len(self.looked.features), "largest_load": self.looked.limit}
        elif self.full is not None:
            said |= self.full.describe(self.scale)
        return said | {
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "later_ratios": list(self.ratios),
            "deviation": self.predicted.least,
            "records": self.records,
            **{name: getattr(self.fitting, name) for name in ("components", "steps", "pull")},
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
            full = measurement_for(task, budget.neighbours, fitted=True)
            if full.determined and binary_columns(task.workload) >= MANY:  # whose prior it finds
                return "columns", "if queries are measured after it, no look at pairs is lost"
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
        looked = GaussianNoise(sensitivity, sensitivity / first)
        return looked, *(GaussianNoise(ratio, 1.0) for ratio in later)

    rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
    schedule = schedule_of(rho)
    return schedule, best(schedule, budget.delta, budget.accountant)[0].name


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
    full: Measurement | None = None
    looked: Strategy | None = None
    parts: tuple[float, ...] = (1.0,)
    if first == "columns":
        expansion = expansion_of(task)
        bits = expansion.features.bits[of_order(expansion.features, 1)]
        if task.frequent is not None:
            bits = task.frequent.bits[:, None]
        looked = Strategy.uniform(Features(bits, expansion.features.domain), neighbours)
        parts = _parts_after_columns(task, budget, len(looked.features))
    else:
        full = measurement_for(task, neighbours, fitted=components != 0)
        long = task.workload.way > MOST_LITERALS and not task.workload.apart.any()
        if components != 0 and long:
            raise BadInputError("the queries name a column twice, and one is long: ask c in (1, 2)")
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
    a_step = (math.hypot(*ratios) if ratios else measured.sensitivity / scale) / neighbours.steps
    details = Stages(
        first=first,
        reason=reason,
        neighbours=neighbours,
        sensitivity=measured.sensitivity,
        scale=scale,
        ratios=ratios,
        looked=looked,
        full=full,
        predicted=predicted,
        records=records,
        fitting=Fitting.suited(task.n, a_step, task.queries.domain.bits, components, steps, pull),
    )
    needs_answers, remark = full is not None and full.of_queries, f"first stage: {first} ({reason})"
    return Plan(schedule, accountant, details, remark, needs_answers)


def _parts_after_columns(task: Task, budget: Budget, columns: int) -> tuple[float, ...]:
    """Return the parts of the budget for a look at columns and for what comes after it."""
    # Where d numbers and M others have the parts a and 1 - a of rho, the sum of variances is least
    # where a / (1 - a) = sqrt(d / M). M is taken to be between d and ``most``: sqrt(d most).
    sparse, most = not is_wide(task.workload) and is_positive(task.workload), float(WIDE)
    if sparse:
        # Of more products the noise of each is above an interaction that hardly any exceeds.
        sign = budget.neighbours.furthest(2.0, 1.0)
        scale = calibrate_gaussian_scale(budget.epsilon, budget.delta, sign, budget.accountant)
        most = min(len(expansion_of(task).features), (2.0 * CORRELATION * task.n / scale) ** 2)
    part = 1.0 / (1.0 + (most / columns) ** 0.25)
    if task.frequent is not None or sparse:
        return part, 1.0 - part
    return _FIRST**2, (1.0 - _FIRST**2) * part, (1.0 - _FIRST**2) * (1.0 - part)


def _pairs_of(task: Task, full: Measurement, neighbours: Neighbours) -> Strategy:
    """Return how columns and pairs are measured in a first look."""
    if isinstance(full, FeatureMeasurement):
        strategy = full.strategy
    else:
        strategy = plan_strategy(Expansion.of(task.workload).in_blocks(), neighbours)
    small = of_order(strategy.features, 1, 2)
    return with_limit(Strategy(strategy.features.part(small), strategy.scales[small], neighbours))


def columns_may_do(task: Task, budget: Budget) -> bool:
    """Return whether columns alone have the smaller predicted error, were all independent."""
    predicted = predict(task, budget)
    if not predicted.interactions or task.workload.description.get("kind") == "target marginals":
        return False  # who names a target asks how it depends on the other columns
    return predicted.product > math.hypot(predicted.columns, predicted.chance)


def mean_of_set(numbers: Float64, sets: Int64) -> Float64:
    """Return each number's mean over its set: blocks of contrasts have one variance each."""
    return np.asarray((np.bincount(sets, numbers) / np.bincount(sets))[sets])


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What a look at columns determines; weights go by ``n``, chance by ``rows``."""

    looked: Strategy
    shares: Shares
    workload: Workload
    expansion: Expansion
    n: int
    rows: int
    ratio: float  # sensitivity over scale of all that follows

    @cached_property
    def posterior(self) -> Shares:
        """Posterior means of the shares, and their standard errors."""
        return self.shares.sparse()

    @cached_property
    def chances(self) -> Float64:
        """Posterior means at all bits."""
        return self.posterior.distributions(self.workload.domain)

    @cached_property
    def products(self) -> ProductTerms:
        """All that queries are made of."""
        return ProductTerms.of_features(self.expansion.features)

    def all_at_once(self, *, held: bool) -> Measurement | None:
        """Return what follows in place of chosen columns and products: of binary columns.

        Everything, if columns are full, or unbiased answers err less than interactions. Or queries
        themselves, if ``held``, where these err less; of wide, sparse ones no positive queries.
        """
        workload, chances, looked, whole = self.workload, self.chances, self.looked, self.expansion
        found = expected_interactions(self.products, chances)
        largest = expected_interactions(self.products, np.full(len(chances), 0.5))
        are_full = float(found @ found) > _FULL**2 * float(largest @ largest)
        if not workload.domain.has_two_values[looked.features.bits[:, 0]].all():
            return None
        small = are_full or not is_wide(workload)  # noise of thousands never is
        determined = bool(workload.apart.all()) and len(workload) > len(whole.features)
        queries, error = QueryMeasurement(workload, looked.neighbours, determined), math.inf
        if held and (small or not is_positive(workload)):
            error = rmse_of_queries(queries, self.posterior, self.ratio * self.n, self.usual)
        if small:
            full = FeatureMeasurement(whole, plan_strategy(whole, looked.neighbours))
            scale = scale_for(full.sensitivity, self.ratio) / self.n
            unbiased, noise = full.mean_deviation * scale, full.scales * scale
            fit = rmse_of_fit(rmse_of_product(full, noise, workload, chances), self.usual)
            again = scale_for(looked.sensitivity, self.ratio) / self.n / 2.0  # of shares
            off = self.posterior.uncertain(workload.domain)
            off *= again / np.hypot(off, again)
            columns = math.sqrt(of_shares(workload, chances, off).mean() + self.usual**2)
            if (are_full or unbiased <= self.usual) and min(fit, unbiased) < columns:
                return queries if error < min(fit, unbiased) else full
        return queries if error < math.sqrt(self.left(self.worth_measuring())) else None

    @cached_property
    def usual(self) -> float:
        """The error of leaving out all interactions."""
        return rmse_of_interactions(self.workload, self.chances, self.rows)

    @cached_property
    def off(self) -> Float64:
        """Standard errors of the means of all features: of products half of what is expected."""
        expected = expected_interactions(self.products, self.chances) / 2.0
        alone, _, off = self.posterior.as_products(self.products)
        expected[alone] = off
        return expected

    @property
    def noise(self) -> float:
        """The deviation of a sign's noise, if it alone is measured."""
        return self.looked.neighbours.furthest(2.0, 1.0) / (self.ratio * self.n)

    def worth_measuring(self) -> Int64:
        """Return places of columns with an error above noise, and products above twice it."""
        order = np.argsort(-self.off, kind="stable")
        noises = self.noise * np.sqrt(np.arange(1, len(order) + 1))
        worth = np.flatnonzero(self.off[order] >= noises)
        return np.sort(order[: worth[-1] + 1 if len(worth) else 1])

    def left(self, chosen: Int64, groups: int = 0, told: Float64 | float = 0) -> float:
        """Return answers' mean variance with chosen features, and what groups have ``told``."""
        features, single = self.expansion.features, of_order(self.expansion.features, 1)
        noise = (len(chosen) + groups) * self.noise**2
        told = told + np.bincount(chosen, minlength=len(features)) / noise
        off, after = self.posterior.uncertain(features.domain), 1.0 / (1.0 + self.off**2 * told)
        off[features.bits[single, 0]] *= np.sqrt(after[single])
        uses = np.bincount(self.expansion.feature, self.expansion.uses, len(features))
        uses[single] = 0.0
        before = (2.0 * self.off) ** 2
        part = uses @ left_of(before, told, 0.0) / (uses @ before) if uses.any() else 0.0
        return float(of_shares(self.workload, self.chances, off).mean() + part * self.usual**2)

    def with_groups(self, chosen: Int64, generator: np.random.Generator) -> NDArray[np.int32]:
        """Return chosen features' bits, and as many random groups of other columns, if they pay.

        A product of signs has the noise of one, and depends on all its columns (Hotelling 1944).
        """
        bits, domain, number = self.expansion.features.bits, self.workload.domain, len(chosen)
        others = np.setdiff1d(of_order(self.expansion.features, 1), chosen)
        means = np.abs(self.products.part(others).factors(self.chances)[0][:, 0])
        # A column more than a quarter full would halve what its group says of the other ones.
        usable = (means >= 0.5) & domain.has_two_values[bits[others, 0]]
        others, means, size = others[usable], means[usable], int(usable.sum()) // _GROUP

        def left(groups: int) -> float:
            noise, told = (number + groups) * self.noise**2, np.zeros(len(bits))
            of_pairs = math.comb(_GROUP, 2) * (CORRELATION / 2.0 * (1.0 - (means**2).mean())) ** 2
            inside = (_GROUP - 1) * (self.off[others] ** 2).mean() + of_pairs
            told[others] = groups / size * means.mean() ** (2 * _GROUP - 2) / (noise + inside)
            return self.left(chosen, groups, told)

        if not size or left(number) >= left(0):
            return bits[chosen]
        rounds = generator.permuted(np.tile(others, (-(-number // size), 1)), axis=1)
        groups = bits[rounds[:, : size * _GROUP], 0].reshape(-1, _GROUP)[:number]
        listed = side_by_side(bits[chosen], np.sort(groups, axis=1))
        return listed[np.unique(first_occurrences(listed, domain.bits))]


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """What a look at columns and pairs determines; weights go by ``n``, chance by ``rows``."""

    neighbours: Neighbours
    products: ProductTerms
    means: Float64
    deviations: Float64
    workload: Workload
    n: int
    rows: int

    @cached_property
    def shares(self) -> Shares:
        """The noisy shares of single columns."""
        return Shares.of(self.products, self.means, self.deviations)

    @cached_property
    def first(self) -> Interactions:
        """The hierarchical model given this look alone."""
        posterior = self.shares.posterior(self.workload.domain)
        return Interactions.fit(self.products, self.means, self.deviations, *posterior)

    def unknown(self, products: ProductTerms) -> Float64:
        """Return the variances of products given this look: float64, one each."""
        first, order, sets = self.first, (products.bits >= 0).sum(axis=1), products.sets
        unknown = np.where(order > 2, first.whole, first.unknown)
        unknown *= expected_interactions(products, first.chances) ** 2
        small, several = order <= 2, (np.bincount(sets)[sets] > 1) & (order == 2)
        # So weak a look is not sure which sets are weak: half is what all pairs leave.
        unknown[small] += (1.0 - 0.5 * several[small]) * (first.left - unknown[small])
        return mean_of_set(unknown, sets)

    def next_stage(self, full: Measurement, ratio: float) -> Measurement | Strategy:
        """Return how everything or the queries are measured; or columns, if they may err less.

        What columns leave of a strong pair errs in few answers: large errors count, too.
        """
        workload, of_pairs = self.workload, (self.first.unknown, self.first.whole)
        shrunk = self.shares.shrunk(workload.domain)
        chances = shrunk.distributions(workload.domain)
        columns = plan_columns(workload, chances, self.neighbours)
        interactions = rmse_of_interactions(workload, chances, self.rows, *of_pairs)
        noise = columns.scales * scale_for(columns.sensitivity, ratio) / self.n
        again = Shares.of(ProductTerms.of_features(columns.features), np.zeros(len(noise)), noise)
        off = shrunk.combined(again).uncertain(workload.domain)
        alone = math.hypot(math.sqrt(of_shares(workload, chances, off).mean()), interactions)
        if isinstance(full, QueryMeasurement):
            error = rmse_of_queries(full, shrunk, ratio * self.n, interactions)
            return full if error < alone else columns
        unknown = self.unknown(full.products)
        full = full.refined(unknown, (ratio * self.n / self.neighbours.steps) ** 2)
        both = full.scales * scale_for(full.sensitivity, ratio) / self.n
        small = of_order(full.strategy.features, 1, 2)
        both[small] = 1.0 / np.hypot(1.0 / both[small], 1.0 / self.deviations)  # as in the fit
        product = rmse_of_product(full, both, workload, chances)
        unbiased = math.sqrt(full.expansion.variances(both**2).mean())
        fitted = min(rmse_of_fit(product, interactions), unbiased)
        singles, _, noise = again.as_products(full.products)
        precisions = np.bincount(singles, noise**-2.0, len(unknown)).astype(np.float64)
        of_columns = mean_of_set(precisions, full.products.sets)
        left = [unknown / (1.0 + unknown * each) for each in (both**-2.0, of_columns)]
        large, larger = ((full.expansion.variances(each) ** 2).mean() for each in left)
        fitted *= min(large / larger, 1.0) ** 0.25 if larger else 1.0
        return full if fitted < alone else columns

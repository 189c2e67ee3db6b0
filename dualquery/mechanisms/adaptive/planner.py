"""The planner: what each stage measures, by predicted errors.

On public facts it chooses the first stage and fixes the schedule; given a first stage it compares
the predicted errors of what the next one may measure. Private numbers do not come here: only public
facts, and noisy means that were charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.guessed import CORRELATION
from dualquery.mechanisms.adaptive.ensemble import Fitting
from dualquery.mechanisms.adaptive.evidence import (
    Shares,
    in_shares,
    of_order,
    scale_for,
    uniform_strategy,
)
from dualquery.mechanisms.adaptive.expansion import MOST_LITERALS, Expansion, literals_of
from dualquery.mechanisms.adaptive.interactions import Interactions, expected_interactions
from dualquery.mechanisms.adaptive.measurement import (
    FeatureMeasurement,
    QueryMeasurement,
    measurement_for,
)
from dualquery.mechanisms.adaptive.predictions import (
    interactions_of,
    rmse_of_chance,
    rmse_of_fit,
    rmse_of_independent_fit,
    rmse_of_interactions,
    rmse_of_noise,
    rmse_of_shares,
)
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.mechanisms.adaptive.scales import FIT, plan_columns, plan_strategy
from dualquery.mechanisms.baselines.product import uniform_probabilities
from dualquery.mechanisms.protocol import Budget, Details, Plan, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_gaussian_scale, calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError, LackOfMemoryError

Float64 = NDArray[np.float64]

_FIRST, _LEAST = 0.2, 0.01
"""Part of the budget for a first look at columns and pairs, at most and at least: less where the
noise of columns' shares hides interactions."""

_SECOND = 1000
"""Features that the second stage may measure of a wide table. Where d numbers and M others have the
parts a and 1 - a of rho, the sum of variances is least where a / (1 - a) = sqrt(d / M)."""

_FIRST_LOOK = 0.04
"""Part of the budget with which columns of a wide table are measured first of all: it says whether
they are full, so that the rest is better spent on everything that is asked."""

_USUAL = 1.0 / 3.0
"""Interactions that tables usually have, of those expected of columns whose values are equally
frequent: fewer values are, and products of rare ones interact by less."""

_FULL = 0.2
"""Expected interactions over those of columns that are half full, above which columns are full.
Chosen on generated tables of 100 to 300 columns at epsilon 0.02 to 1: with .07 and .11 what exceeds
its noise had the smaller errors, with .4 and .6 everything had. Real tables are at .02 to .1
(baskets, visits) or at .3 to .6 (plants, mushroom, pumsb_star)."""

_FIT_TO_NOISE = 0.125
"""Mean error of a fit to everything over interactions of nearly empty columns, in mean standard
deviations of the answers' noise, below which it has the smaller error: generated baskets of 120 to
3,000 items, triples of the 100 commonest, at epsilon 0.5 to 4."""

_CLEAR = 2.0
"""Standard deviations of noise that a product's expected interaction has to exceed so that it is
measured: each that is measured adds noise to all."""

WIDE = 1000
"""Columns that queries are about, from which on these are measured first. This has smaller errors
than one stage on tables of 3,340 to 17,770 columns; one stage has on those of 69 to 285."""


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
    looked, small
        What the first stage measures if not everything, and its places there.
    full, expansion
        Everything, if it is known beforehand; the queries as sums of features.
    deviation, unbiased
        Predicted errors: of the better answers (after a look at columns: of a share), and of
        unbiased answers from everything.
    records, fitting
        Number of synthetic records; the fit that the first stage's noise suits.
    """

    first: FirstStage
    reason: str
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratios: tuple[float, ...] = ()
    looked: Strategy | None = field(default=None, compare=False)
    small: NDArray[np.int64] | None = field(default=None, compare=False)
    full: FeatureMeasurement | QueryMeasurement | None = field(default=None, compare=False)
    expansion: Expansion | None = field(default=None, compare=False)
    deviation: float = 0.0
    unbiased: float = 0.0
    records: int = 0
    fitting: Fitting | None = None

    def parameters(self) -> Mapping[str, Any]:
        """Return what is measured with how much noise."""
        said: dict[str, Any] = {"first_stage": self.first.value, "stage_reason": self.reason}
        if self.first is FirstStage.EVERYTHING and self.full is not None:
            said |= self.full.describe(self.scale)
        elif self.looked is not None:
            said["features"] = len(self.looked.features)
        said |= {
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "later_ratios": list(self.ratios),
            "deviation": self.deviation,
            "records": self.records,
        }
        if self.fitting is not None:
            fit = self.fitting
            said |= {"components": fit.components, "steps": fit.steps, "pull": fit.pull}
        return said


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
            return FirstStage.COLUMNS, "of thousands of columns, few are worth more than one look"
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
    """What is planned for: a first stage and why, and what suits a fit.

    ``suited`` takes a number of rows, a sensitivity over scale, and a number of bits.
    """

    first: FirstStage
    reason: str
    suited: Callable[[int, float, int], Fitting]
    fitted: bool
    records: int


def plan_stages(task: Task, budget: Budget, asked: Request) -> Plan[Stages]:
    """Fix the schedule of the stages: their ratios of sensitivity to scale fill the budget."""
    planner = {
        FirstStage.EVERYTHING: _plan_everything,
        FirstStage.PAIRS: _plan_pairs,
        FirstStage.COLUMNS: _plan_columns,
    }[asked.first]
    plan = planner(task, budget, asked)
    return replace(plan, remark=f"first stage: {asked.first.value} ({asked.reason})")


def _plan_everything(task: Task, budget: Budget, asked: Request) -> Plan[Stages]:
    """Plan one measurement of everything, with the smallest noise that fits."""
    full = measurement_for(task, budget.neighbours, fitted=asked.fitted)
    scale = calibrate_gaussian_scale(
        budget.epsilon, budget.delta, full.sensitivity, budget.accountant
    )
    schedule = (GaussianNoise(full.sensitivity, scale),)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    unbiased = scale / task.n * full.mean_deviation
    details = Stages(
        first=FirstStage.EVERYTHING,
        reason=asked.reason,
        neighbours=budget.neighbours,
        sensitivity=full.sensitivity,
        scale=scale,
        full=full,
        deviation=unbiased,
        unbiased=unbiased,
        records=asked.records,
        fitting=asked.suited(task.n, full.sensitivity / scale, task.workload.domain.bits),
    )
    return Plan(schedule, accountant.name, details, needs_answers=full.of_queries)


def _plan_pairs(task: Task, budget: Budget, asked: Request) -> Plan[Stages]:
    """Plan a first look at columns and pairs, and what comes after it."""
    workload, neighbours = task.workload, budget.neighbours
    if workload.way > MOST_LITERALS:
        raise BadInputError(
            f"a query has {workload.way} literals; a first look takes at most {MOST_LITERALS}"
        )
    predicted = predict(task, budget)
    if not predicted.columns:
        raise BadInputError("adaptive has nothing to measure: no query depends on a column")
    full = measurement_for(task, neighbours, fitted=True)
    if isinstance(full, FeatureMeasurement):
        strategy = full.strategy
    else:
        expansion = Expansion.of(workload).in_blocks()
        strategy = plan_strategy(expansion, neighbours, FIT)
    small = np.flatnonzero((strategy.features.bits >= 0).sum(axis=1) <= 2)
    looked = Strategy(strategy.features.part(small), strategy.scales[small], neighbours)
    interactions = predicted.interactions
    part = max(_FIRST * interactions / (interactions + predicted.columns), _LEAST)
    schedule, accountant = plan_schedule(looked.sensitivity, (part, 1.0 - part), budget)
    details = Stages(
        first=FirstStage.PAIRS,
        reason=asked.reason,
        neighbours=neighbours,
        sensitivity=looked.sensitivity,
        scale=schedule[0].scale,
        ratios=tuple(each.sensitivity for each in schedule[1:]),
        looked=looked,
        small=small,
        full=full,
        deviation=predicted.least,
        unbiased=predicted.unbiased,
        records=asked.records,
    )
    return Plan(schedule, accountant, details, needs_answers=full.of_queries)


def _plan_columns(task: Task, budget: Budget, asked: Request) -> Plan[Stages]:
    """Plan a first look at columns, and what comes after it."""
    neighbours = budget.neighbours
    expansion = Expansion.of(task.workload)
    features = expansion.features
    bits = features.bits[of_order(features, 1)]
    if not len(bits):
        raise BadInputError("adaptive has nothing to measure: no query depends on a column")
    if task.frequent is not None:
        bits = task.frequent.bits[:, None]
    looked = uniform_strategy(Features(bits, features.domain), neighbours)
    full, later = None, float(_SECOND)
    if not is_wide(task.workload):
        full = everything(task.workload, expansion, neighbours)
    if full is not None:
        scale = calibrate_gaussian_scale(
            budget.epsilon, budget.delta, _sensitivity_of_sign(neighbours), budget.accountant
        )
        # With more of them the noise of each is above an interaction that hardly any exceeds.
        later = min(float(len(features)), (2.0 * CORRELATION * task.n / scale) ** 2)
    part = 1.0 / (1.0 + math.sqrt(later / len(looked.features)))
    parts: tuple[float, ...] = (part, 1.0 - part)
    if task.frequent is None and is_wide(task.workload):
        parts = (_FIRST_LOOK, *((1.0 - _FIRST_LOOK) * each for each in parts))
    schedule, accountant = plan_schedule(looked.sensitivity, parts, budget)
    ratios = tuple(each.sensitivity for each in schedule[1:])
    again = math.hypot(looked.sensitivity / schedule[0].scale, *ratios[:-1])
    unbiased = 0.0
    if full is not None:
        unbiased = scale_for(full.sensitivity, ratios[-1]) / task.n * full.mean_deviation
    details = Stages(
        first=FirstStage.COLUMNS,
        reason=asked.reason,
        neighbours=neighbours,
        sensitivity=looked.sensitivity,
        scale=schedule[0].scale,
        ratios=ratios,
        looked=looked,
        full=full,
        expansion=expansion,
        deviation=float(in_shares(looked.features).min()) / task.n * looked.sensitivity / again,
        unbiased=unbiased,
        records=asked.records,
    )
    return Plan(schedule, accountant, details)


def everything(
    workload: Workload, expansion: Expansion, neighbours: Neighbours
) -> FeatureMeasurement | None:
    """Return the measurement of all that queries are made of; None unless columns are binary."""
    bits = workload.literals[workload.literals >= 0] >> 1
    if not workload.domain.has_two_values[bits].all():
        return None
    return FeatureMeasurement(expansion, plan_strategy(expansion, neighbours, FIT))


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
    def least(self) -> float:
        """The smaller one of columns alone and of a fit, at `_USUAL` interactions."""
        usual = _USUAL * self.interactions
        return min(math.hypot(self.columns, usual), rmse_of_fit(self.product, usual))


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
    chances = uniform_probabilities(workload.domain)
    unit = calibrate_gaussian_scale(budget.epsilon, budget.delta, 1.0, budget.accountant) / task.n
    columns = plan_columns(workload, chances, neighbours)
    nothing = np.zeros(len(columns.scales))
    shares = Shares.of(columns.features, nothing, columns.scales * columns.sensitivity * unit)
    full = measurement_for(task, neighbours, fitted=True)
    scale = full.sensitivity * unit
    return Predicted(
        columns=rmse_of_noise(workload, chances, shares),
        product=rmse_of_independent_fit(full.products, full.scales * scale, workload, chances),
        unbiased=full.mean_deviation * scale,
        interactions=rmse_of_interactions(workload, chances, task.rows),
        chance=rmse_of_chance(workload, chances, task.rows),
    )


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
    try:
        predicted = predict(task, budget)
    except LackOfMemoryError:
        raise  # free memory depends on the private rows: it must not choose
    except BadInputError:
        return False  # the mechanisms refuse the task too, and say why
    return predicted.product > math.hypot(predicted.columns, predicted.chance)


@dataclass(frozen=True, eq=False)
class ColumnEvidence:
    """What a look at columns determines.

    Parameters
    ----------
    looked, shares, posterior
        How the columns are measured; their noisy shares; posterior means and standard errors.
    workload, expansion, n
        The queries, what they are made of, and the number of rows.
    ratio
        Sensitivity over scale of all that comes next.
    """

    looked: Strategy
    shares: Shares
    posterior: tuple[Float64, Float64]
    workload: Workload
    expansion: Expansion
    n: int
    ratio: float

    def at_bits(self, values: Float64) -> Float64:
        """Return values of the columns at their bits, 0 at bits that were not looked at."""
        placed = np.zeros(self.workload.domain.bits)
        placed[self.shares.bits] = values
        return placed

    @cached_property
    def chances(self) -> Float64:
        """The posterior shares at the columns' bits."""
        return self.at_bits(self.posterior[0])

    @cached_property
    def columns_full(self) -> bool:
        """Whether columns are full: interactions may be large then."""
        features = self.expansion.features
        products = ProductTerms.of_features(features)
        found = expected_interactions(products, self.chances)
        largest = expected_interactions(products, np.full(len(self.chances), 0.5))
        return float(found @ found) > _FULL**2 * float(largest @ largest)

    def everything_wins(self, full: FeatureMeasurement | QueryMeasurement | None) -> bool:
        """Return whether a fit to everything has a smaller predicted error than columns again.

        Pairs of nearly empty columns hardly interact at all: only what exceeds its noise is worth
        it, but where longer queries are asked and the noise of all is small.
        """
        if full is None:
            return False
        scale = scale_for(full.sensitivity, self.ratio) / self.n
        interactions = interactions_of(self.workload, self.chances)
        if not self.columns_full:
            left = _FIT_TO_NOISE * scale * full.mean_deviation
            return self.workload.way > 2 and left < float(interactions.mean())
        unit = scale_for(self.looked.sensitivity, self.ratio) / self.n
        again = unit * in_shares(self.looked.features)
        off = self.posterior[1] * again / np.hypot(self.posterior[1], again)
        columns = rmse_of_shares(self.workload, self.chances, self.at_bits(off))
        usual = math.sqrt(float(np.mean(interactions**2)))
        product = rmse_of_independent_fit(
            full.products, full.scales * scale, self.workload, self.chances
        )
        return rmse_of_fit(product, usual) < math.hypot(columns, usual)

    def worth_measuring(self) -> NDArray[np.int64]:
        """Return the places of columns and products that are worth measuring; increasing.

        Each column's standard error is its noise at least, each product's expected interaction
        `_CLEAR` times that, the noise being the larger the more are measured; the one with the
        largest is measured alone if there are none.
        """
        products = ProductTerms.of_features(self.expansion.features)
        expected = expected_interactions(products, self.chances) / _CLEAR
        alone = of_order(self.expansion.features, 1)
        _, slopes = products.part(alone).linear()
        off = self.at_bits(self.posterior[1])
        expected[alone] = np.abs(slopes[:, 0]) * off[products.bits[alone, 0]]
        order = np.argsort(-expected, kind="stable")
        noise = _sensitivity_of_sign(self.looked.neighbours) / (self.ratio * self.n)
        noises = noise * np.sqrt(np.arange(1, len(order) + 1))
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
        alone = rmse_of_noise(workload, chances, first.combined(again))
        return rmse_of_fit(product, interactions) < math.hypot(alone, interactions)

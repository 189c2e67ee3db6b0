"""Predicted errors: root mean squares of a workload's answers, before anything else is measured.

All follow from the noise, and from shares that are public or noisy. The error told before a budget
is spent is that on public facts, times factors found by the gate.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError, noise_error
from dualquery.estimates.intervals import CORRELATION, departures
from dualquery.mechanisms.adaptive.evidence import Shares
from dualquery.mechanisms.adaptive.expansion import (
    MOST_LITERALS,
    Expansion,
    ProductTerms,
    chances_of_literals,
    literals_of,
    pairs_and_more,
    products_of_others,
)
from dualquery.mechanisms.adaptive.measurement import (
    MORE_NOISE,
    FeatureMeasurement,
    Measurement,
    QueryMeasurement,
    measurement_for,
    plan_columns,
)
from dualquery.mechanisms.adaptive.prior import left_of
from dualquery.mechanisms.baselines.independent import uniform_probabilities
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.calibrate import calibrate_gaussian_scale
from dualquery.queries.conjunctions import Workload
from dualquery.room.strategy import Strategy

Float64 = NDArray[np.float64]

WIDE = 1000
"""Columns that queries are about, from which on these are measured first, and features later. So
errors are smaller on tables of 3,340 to 17,770 columns, and one stage's on those of 69 to 285."""

_ITEMS = 11.0
"""Items of a row, where queries ask which are there together, before anything is measured."""

MAX, MEAN, _WIDTH = 0.681, 0.287, math.sqrt(8.0)
"""Factors of told errors, in the middle of ranges whose ends have the ratio 8."""

_BASIS = "from the noise, and from how far columns usually are from independent"
_LOST = (
    "; WARNING: at this number of rows and epsilon noise is likely to hide most links between "
    "columns, so answers and records will show them weaker than they are, or not at all"
)


def rmse_of_interactions(
    workload: Workload, chances: Float64, n: int, unknown: float = 1.0, whole: float = 1.0
) -> float:
    """Return the error of leaving out interactions, and the draw of n rows.

    ``unknown`` and ``whole`` are as in `Interactions`; longer products are taken to be like pairs.
    """
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)[possible]
    pairs, more = pairs_and_more(holds**2, holds * (1.0 - holds))
    total = CORRELATION**2 * pairs * (unknown - whole) + departures(holds) ** 2 * whole
    return float(np.sqrt((total + (pairs + more) / n).sum() / len(bits)))


def rmse_of_product(full: Measurement, off: Float64, workload: Workload, chances: Float64) -> float:
    """Return the error of independent columns fitted to everything; ``off``: standard errors.

    A share has the Fisher information of all its products, as if all other shares were known.
    """
    products = full.products
    means, slopes = products.factors(chances)
    told = (slopes * products_of_others(means) / off[:, None]) ** 2
    present = products.bits >= 0
    information = np.bincount(products.bits[present], told[present], len(chances))
    left = np.divide(1.0, np.sqrt(information), out=np.zeros(len(chances)), where=information > 0)
    return math.sqrt(of_shares(workload, chances, left).mean())


def rmse_of_fit(of_independent: float, interactions: float) -> float:
    """Return the error of a fitted mixture: on 95 of 99 generated tables 0.5 to 1.5 times this."""
    return math.sqrt(of_independent * (of_independent + interactions))


def of_shares(workload: Workload, chances: Float64, uncertain: Float64) -> Float64:
    """Return independent answers' variances due to those of shares, to first order: ``(m,)``."""
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)
    off = np.where((bits >= 0) & possible[:, None], uncertain[bits], 0.0)
    return np.asarray(((products_of_others(holds) * off) ** 2).sum(axis=1))


def independent(workload: Workload, shares: Shares) -> tuple[Float64, Float64, Float64]:
    """Return independent columns' answers, and variances of interactions, and of columns' noise."""
    chances, off = shares.distributions(workload.domain), shares.uncertain(workload.domain)
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)
    interactions, noise = departures(holds) ** 2, of_shares(workload, chances, off)
    return possible * holds.prod(axis=1), possible * interactions, possible * noise


def rmse_of_queries(queries: QueryMeasurement, shares: Shares, ratio: float, usual: float) -> float:
    """Return the error of a fit to determined queries, or else of shrunk answers.

    ``ratio``: sensitivity over scale, times the rows; ``usual``: `rmse_of_interactions`.
    """
    workload, noise = queries.workload, queries.sensitivity / ratio
    if queries.determined:
        chances, off = shares.distributions(workload.domain), queries.scales * noise / MORE_NOISE
        return min(rmse_of_fit(rmse_of_product(queries, off, workload, chances), usual), noise)
    _, interactions, off = independent(workload, shares)
    return math.sqrt(MORE_NOISE * left_of(interactions, noise**-2, off).mean())


def binary_columns(workload: Workload) -> int:
    """Return the number of columns that queries are about; 0 unless all of them are binary."""
    bits = np.unique(workload.literals[workload.literals >= 0] >> 1)
    columns = np.unique(workload.domain.column_of_bit[bits])
    return len(columns) if (workload.domain.sizes[columns] <= 2).all() else 0


def is_wide(workload: Workload) -> bool:
    """Return whether queries are about `WIDE` columns or more, all of them binary."""
    return binary_columns(workload) >= WIDE


def is_positive(workload: Workload) -> bool:
    """Return whether queries only ask which columns of one bit are 1 together.

    And of more than twice as many as a row is taken to have: `_ITEMS`. Most are empty then.
    """
    given = np.unique(workload.literals[workload.literals >= 0])
    single = workload.domain.sizes[workload.domain.column_of_bit[given >> 1]] == 1
    return len(given) > 2 * _ITEMS and bool((given & 1 == 0).all() and single.all())


def expansion_of(task: Task) -> Expansion:
    """Return the queries as sums of features, found once a task."""
    return task.once(Expansion.of, lambda: Expansion.of(task.workload))


@dataclass(frozen=True)
class Predicted:
    """Predicted errors of answers: root mean squares, as shares of the rows.

    Of the noise of columns alone; of independent columns fitted to everything (``product``); of
    unbiased answers; of interactions and chance; of chance. And independent columns' mean answer.
    """

    columns: float = 0.0
    product: float = 0.0
    unbiased: float = 0.0
    interactions: float = 0.0
    chance: float = 0.0
    answer: float = 0.0

    @property
    def loses_interactions(self) -> bool:
        """Whether columns alone are predicted to have a smaller error than a fit."""
        return math.hypot(self.columns, self.interactions) < self._fit

    @property
    def least(self) -> float:
        """The smallest one of columns alone, a fit, the answer 0, and twice unbiased ones."""
        columns = math.hypot(self.columns, self.interactions)
        return min(columns, self._fit, self.answer, 2.0 * self.unbiased)

    @property
    def _fit(self) -> float:
        return rmse_of_fit(self.product, self.interactions)


def predict(task: Task, budget: Budget) -> Predicted:
    """Return predicted errors by public facts, found once a task; all 0 if no column is asked."""
    return task.once((predict, budget), lambda: _predict(task, budget))


def _predict(task: Task, budget: Budget) -> Predicted:
    workload, neighbours = task.workload, budget.neighbours
    bits, negated, possible = literals_of(workload)
    if not (bits[possible] >= 0).any():
        return Predicted()
    chances = uniform_probabilities(workload.domain)
    if is_positive(workload):
        chances = np.full(len(chances), _ITEMS / len(np.unique(bits[bits >= 0])))
    answers = possible * chances_of_literals(bits, negated, chances).prod(axis=1)
    unit = calibrate_gaussian_scale(budget.epsilon, budget.delta, 1.0, budget.accountant) / task.n
    columns = plan_columns(workload, chances, neighbours)
    noise = columns.scales * columns.sensitivity * unit
    shares = Shares.of(ProductTerms.of_features(columns.features), np.zeros(len(noise)), noise)
    full: Measurement
    if workload.way <= MOST_LITERALS and (is_wide(workload) or is_positive(workload)):
        expansion = expansion_of(task)
        full = FeatureMeasurement(expansion, Strategy.uniform(expansion.features, neighbours))
    else:
        full = measurement_for(task, neighbours, fitted=True)
    scale = full.sensitivity * unit
    return Predicted(
        columns=math.sqrt(of_shares(workload, chances, shares.uncertain(workload.domain)).mean()),
        product=rmse_of_product(full, full.scales * scale, workload, chances),
        unbiased=full.mean_deviation * scale,
        interactions=rmse_of_interactions(workload, chances, task.rows),
        chance=rmse_of_interactions(workload, chances, task.rows, 0.0, 0.0),
        answer=float(answers.mean()),
    )


def expected_error(task: Task, predicted: Predicted, *, fitted: bool) -> ExpectedError:
    """Return the errors to expect; the max goes by the largest of as many Gaussian numbers."""
    scale = math.sqrt(predicted.least * predicted.unbiased) if fitted else predicted.unbiased
    noise = noise_error("gaussian", scale, len(task.queries), 1.0)
    if not fitted:
        return noise
    lost = _LOST if predicted.loses_interactions and task.workload.way > 1 else ""
    ends, both = (1.0 / _WIDTH, 1.0, _WIDTH), (MAX * noise.max_error.about, MEAN * predicted.least)
    most, mean = (Estimate(*(min(about * end, 1.0) for end in ends)) for about in both)
    return ExpectedError(most, mean, _BASIS + lost)

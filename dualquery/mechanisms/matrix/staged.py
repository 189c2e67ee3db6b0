"""`staged`: the columns' shares first; then, with what is left, only what is worth its noise.

For tables of many binary columns that are nearly empty. Of thousands of columns a workload asks for
hundreds of thousands of products, nearly all of them as good as known once the columns' shares
are: a pair of columns cannot be far from independent where one is nearly empty. So the first stage
measures every column, and the second, with far less noise, the columns and products that the first
left uncertain.

**Privacy.** Two Gaussian measurements, adaptively composed. The schedule fixes before any row is
read that there are two, and the ratio of sensitivity to scale of each. What the second measures is
chosen by the noisy numbers of the first; whatever is chosen, its sensitivity over all legal records
is proven by the room, its scale is set to the planned ratio, and the ledger refuses it otherwise.
The cost of Gaussian noise depends on that ratio alone, so it is fixed although the content is not:
zero-concentrated and Gaussian differential privacy compose adaptively where each mechanism, for
every outcome of those before it, has a cost fixed beforehand (Bun and Steinke 2016, Lemma 2.3;
Dong, Roth and Su, "Gaussian differential privacy", JRSS B 84, 2022, Theorem 4). All else is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.expected import Estimate, ExpectedError
from dualquery.estimates.intervals import LEVEL, Intervals
from dualquery.estimates.measurements import CHOSEN, Measurements
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.expansion import Expansion, literals_of
from dualquery.mechanisms.matrix.mixture import Mixture, MixtureFit
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.matrix.shares import posterior
from dualquery.mechanisms.matrix.width import is_wide
from dualquery.mechanisms.protocol import (
    Budget,
    Details,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
)
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.statistics.features import FeatureSums
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

_FIRST = 0.8
"""Share of rho that the first stage gets. Noise falls with the root of the number of features: the
second stage measures so few that a fifth gives it far less noise than the first has."""

_CORRELATION = 0.1
"""Standard deviation of the correlation of two columns, before anything is measured; half as much
for every further column of a product."""

_COMPONENTS, _STEPS, _PULL = 64, 600, 0.2
"""Of the mixture that records are drawn from (`MixtureFit`)."""

_LEAST = 1e-9
"""Chance of a value in a record, at least: some value of a column has one above 0."""

_MAX_ERROR = (0.3, 4.0, 8.0)
_MEAN_ERROR = (0.0002, 0.05, 0.3)
"""Errors in standard deviations of a column's share after the first stage: least, middle and
largest of runs on npm-deps, kosarak, BMS-WebView-2, facebook-pages, msweb and groceries, widened a
little; the least are of positive queries. Other tables and queries may lie outside."""


@dataclass(frozen=True, kw_only=True)
class TwoStages(Details):
    """What the two stages measure, with how much noise.

    Parameters
    ----------
    expansion
        The queries as sums of features, products of signs.
    neighbours, sensitivity
        What neighbouring tables differ in, and the L2 distance between the sums of the columns'
        signs of two of them.
    scale
        Standard deviation of the noise on these sums.
    ratio
        Sensitivity over scale of the second stage.
    deviation
        Standard deviation of a column's share after the first stage.
    records
        Number of synthetic records.
    """

    expansion: Expansion = field(compare=False)
    neighbours: Neighbours
    sensitivity: float
    scale: float
    ratio: float
    deviation: float
    records: int

    def parameters(self) -> Mapping[str, Any]:
        """Return the noise of both stages."""
        return {
            "features": len(self.expansion.features),
            "neighbours": self.neighbours.value,
            "sensitivity": self.sensitivity,
            "scale": self.scale,
            "second_ratio": self.ratio,
            "deviation": self.deviation,
            "records": self.records,
        }


@dataclass(frozen=True, kw_only=True)
class Staged(Mechanism[TwoStages]):
    """Measures every column's share, then what is worth its noise; for many binary columns.

    Shares are posterior means (`shares`); queries are answered as if columns were independent, but
    for departures that were measured (`departures`).
    """

    name: ClassVar[str] = "staged"
    pure: ClassVar[bool] = False

    records: int | None = None
    """Number of synthetic records; None for one a private row, up to `default_records`."""

    def __post_init__(self) -> None:
        if self.records is not None and (not isinstance(self.records, int) or self.records < 1):
            raise BadInputError(f"records is {self.records!r}; a whole number from 1 on is needed")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the queries' own answers; features are counted in passes of their own."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[TwoStages]:
        """Fix both stages' ratios of sensitivity to scale; they fill the budget."""
        if budget.delta == 0:
            raise BadInputError("staged needs --delta above 0; with delta 0 use laplace or mwem")
        expansion = Expansion.of(task.workload)
        singles = _singles(expansion.features)
        if not len(singles):
            raise BadInputError("staged has nothing to measure: no query depends on a column")
        sensitivity = _alike(expansion.features, singles, budget.neighbours).sensitivity

        def schedule_of(rho: float) -> tuple[GaussianNoise, GaussianNoise]:
            first, second = (math.sqrt(2.0 * part * rho) for part in (_FIRST, 1.0 - _FIRST))
            return GaussianNoise(sensitivity, sensitivity / first), GaussianNoise(second, 1.0)

        rho = calibrate_rho(schedule_of, budget.epsilon, budget.delta, budget.accountant)
        first, second = schedule = schedule_of(rho)
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        return Plan(
            schedule=schedule,
            accountant=accountant.name,
            details=TwoStages(
                expansion=expansion,
                neighbours=budget.neighbours,
                sensitivity=sensitivity,
                scale=first.scale,
                ratio=second.sensitivity,
                deviation=float(
                    _in_shares(expansion.features, singles).min() * first.scale / task.n
                ),
                records=self.records or task.default_records,
            ),
            needs_answers=False,
        )

    def expected_error(self, task: Task, plan: Plan[TwoStages]) -> ExpectedError | None:
        """Estimate the error from the noise of the columns' shares; None if these are few."""
        if not is_wide(task.workload):
            return None  # what is left of the noise was measured on wide tables
        deviation = plan.details.deviation
        return ExpectedError(
            Estimate(*(min(factor * deviation, 1.0) for factor in _MAX_ERROR)),
            Estimate(*(min(factor * deviation, 1.0) for factor in _MEAN_ERROR)),
            "the deviation of the columns' shares, times what was left of it on six public tables",
        )

    def run(self, task: Task, plan: Plan[TwoStages], curator: Curator, session: Session) -> Outcome:
        """Measure twice, and answer."""
        planned, n = plan.details, task.n
        features = planned.expansion.features
        singles = _singles(features)
        columns = _alike(features, singles, planned.neighbours)
        looked = _means(curator, columns, planned.scale, n)
        first = SharesStage.of(features, singles, looked, planned.scale / n)
        shares, uncertain = first.posterior()

        expected = _expected(features, singles, shares, uncertain)
        chosen = worth_measuring(expected, _noise_of_one(planned, n))
        strategy = _alike(features, chosen, planned.neighbours)
        scale = scale_for(strategy.sensitivity, planned.ratio)
        noisy = _means(curator, strategy, scale, n)

        single = np.isin(chosen, singles)
        products = chosen[~single]
        second = SharesStage.of(features, chosen[single], noisy[single], scale / n)
        shares, uncertain = _combined(singles, shares, uncertain, second)
        means = np.zeros(task.workload.domain.bits)
        means[features.bits[singles, 0]] = np.where(
            features.contrasts[singles, 0], 1.0 - 2.0 * shares, shares
        )
        departures = Departures(features, means, expected)
        model = departures.shrunk(products, noisy[~single], scale / n)
        generator = np.random.default_rng(session.public_seed)
        mixture = _mixture(features, model, products, generator, session).model()
        return Outcome(
            answers=np.clip(planned.expansion.answers(model), 0.0, 1.0),
            records=mixture.sample(planned.records, generator),
            trace=(
                {"stage": 1, "columns": len(singles), "products": 0},
                {"stage": 2, "columns": int(single.sum()), "products": len(products)},
            ),
            intervals=_intervals(task.workload, features, (first, second), planned.neighbours),
            measurements=Measurements.joined(
                (
                    Measurements.of_features(columns.features, looked, planned.scale / n),
                    Measurements.of_features(strategy.features, noisy, scale / n, CHOSEN),
                )
            ),
            model=mixture,
        )


@dataclass(frozen=True, eq=False)
class SharesStage:
    """Noisy shares of 1s at the bits of some features of one factor, as a stage measured them.

    Parameters
    ----------
    features
        int64, shape ``(s,)``: the features' places.
    shares, deviations
        float64, shape ``(s,)``: the shares, and the standard deviations of their noise.
    """

    features: NDArray[np.int64]
    shares: Float64
    deviations: Float64

    @staticmethod
    def of(
        features: Features, places: NDArray[np.int64], noisy: Float64, deviation: float
    ) -> SharesStage:
        """Return the shares that noisy means of features tell; the sign of a share p is 1 - 2 p."""
        shares = np.where(features.contrasts[places, 0], (1.0 - noisy) / 2.0, noisy)
        return SharesStage(places, shares, _in_shares(features, places) * deviation)

    def posterior(self) -> tuple[Float64, Float64]:
        """Return posterior means and standard deviations; shares of equal noise are alike."""
        means, spread = np.empty((2, len(self.shares)))
        for deviation in np.unique(self.deviations):
            alike = self.deviations == deviation
            means[alike], spread[alike] = posterior(self.shares[alike], float(deviation))
        return means, spread


def _means(curator: Curator, strategy: Strategy, scale: float, n: int) -> Float64:
    """Return noisy means of features."""
    sums = curator.measure(FeatureSums(strategy), Gaussian(scale))
    return sums.astype(np.float64) / n


def worth_measuring(expected: Float64, noise_of_one: float) -> NDArray[np.int64]:
    """Return the features whose measurement tells more than its noise hides; increasing places.

    Parameters
    ----------
    expected
        float64, shape ``(f,)``: by how much each feature may differ from what is known, as a
        standard deviation.
    noise_of_one
        Standard deviation of the noise if one feature is measured; of m of them it is the root of
        m times as large.

    Returns
    -------
    int64: as many as possible of which each may differ by its noise, the most uncertain ones; the
    most uncertain feature if there are none.
    """
    order = np.argsort(-expected, kind="stable")
    noise = noise_of_one * np.sqrt(np.arange(1, len(order) + 1))
    worth = np.flatnonzero(expected[order] >= noise)
    return np.sort(order[: worth[-1] + 1 if len(worth) else 1])


def scale_for(sensitivity: float, ratio: float) -> float:
    """Return the scale of noise with a planned ratio of sensitivity to scale, or a little more."""
    # More than the division's rounding: the ledger compares exactly.
    return sensitivity / ratio * (1.0 + 2.0**-50)


def _noise_of_one(planned: TwoStages, n: int) -> float:
    """Return the noise of the mean of a sign in the second stage, were it alone: its sensitivity is
    2, or 1 where a row is added or removed, for each row that neighbours differ in.
    """
    return planned.neighbours.furthest(2.0, 1.0) / (planned.ratio * n)


def _singles(features: Features) -> NDArray[np.int64]:
    """Return the places of the features of one column."""
    return np.flatnonzero((features.bits >= 0).sum(axis=1) == 1)


def _in_shares(features: Features, places: NDArray[np.int64]) -> Float64:
    """Return by how much a share changes where the mean of its feature changes by 1: 1/2 or 1."""
    return np.where(features.contrasts[places, 0], 0.5, 1.0)


def _alike(features: Features, chosen: NDArray[np.int64], neighbours: Neighbours) -> Strategy:
    """Return how some features are measured: all with the same noise, and no row left out."""
    some = Features(features.bits[chosen], features.domain)
    return Strategy(some, np.ones(len(chosen)), neighbours)


def _expected(
    features: Features, singles: NDArray[np.int64], shares: Float64, uncertain: Float64
) -> Float64:
    """Return by how much each feature may differ from what the columns' shares say of it.

    A factor by what its share may be off; a product by its factors' standard deviations, times how
    large correlations are expected to be.
    """
    bits, factor = features.bits, 1.0 / _in_shares(features, singles)
    spread = np.zeros(features.domain.bits)
    spread[bits[singles, 0]] = factor * np.sqrt(shares * (1.0 - shares))
    factors = (bits >= 0).sum(axis=1)
    expected: Float64 = np.where(bits >= 0, spread[bits], 1.0).prod(axis=1)
    expected *= _CORRELATION * 0.5 ** np.maximum(factors - 2.0, 0.0)
    expected[singles] = factor * uncertain
    return expected


def _combined(
    singles: NDArray[np.int64], shares: Float64, uncertain: Float64, second: SharesStage
) -> tuple[Float64, Float64]:
    """Return the shares and what they may be off, with those of the second stage weighed in."""
    at = np.searchsorted(singles, second.features)
    shares, uncertain = shares.copy(), uncertain.copy()
    trust = uncertain[at] ** 2 / (uncertain[at] ** 2 + second.deviations**2)
    shares[at] = np.clip(shares[at] + trust * (second.shares - shares[at]), 0.0, 1.0)
    uncertain[at] = np.sqrt(trust) * second.deviations
    return shares, uncertain


def _mixture(
    features: Features,
    model: Float64,
    products: NDArray[np.int64],
    generator: np.random.Generator,
    session: Session,
) -> Mixture:
    """Return a mixture to draw records from: of columns with measured products, else independent.

    Parameters
    ----------
    features, model
        The features, and their means.
    products
        Those of two columns or more that were measured.
    """
    domain, bits = features.domain, features.bits
    singles = _singles(features)
    columns = domain.column_of_bit[bits[singles, 0]]
    held = np.flatnonzero(np.isin(domain.column_of_bit, columns))
    means = np.zeros(domain.bits)
    means[bits[singles, 0]] = model[singles]
    # The values of a column that nobody asks about share what the others leave.
    asked = np.isin(held, bits[singles, 0])
    column = domain.column_of_bit[held]
    left = 1.0 - np.bincount(column, means[held])[column]
    others = np.bincount(column, ~asked)[column]
    rest = np.maximum(left, _LEAST) / np.maximum(others, 1)
    binary = domain.has_two_values[held]
    filled = np.where(asked | binary, means[held], rest)
    values = np.where(binary, filled, np.maximum(filled, _LEAST))[:, None].astype(np.float32)
    if len(products):
        tied = np.unique(bits[products][bits[products] >= 0])
        fitted = np.concatenate((singles[np.isin(bits[singles, 0], tied)], products))
        fit = MixtureFit(
            ProductTerms.of_features(Features(bits[fitted], domain)),
            model[fitted],
            np.ones(len(fitted)),
            _COMPONENTS,
            _STEPS,
            _PULL,
        ).run(generator, session.threads, session.progress)
        values = np.repeat(values, _COMPONENTS, axis=1)
        values[np.searchsorted(held, fit.bits)] = fit.values
    # Noisy shares of a column do not add up to 1; chances do.
    place = np.cumsum(np.diff(column, prepend=-1) > 0) - 1
    totals = np.add.reduceat(values, np.searchsorted(place, np.arange(place[-1] + 1)), axis=0)
    values = np.where(binary[:, None], values, values / totals[place])
    return Mixture(domain, held, values)


def _intervals(
    workload: Workload,
    features: Features,
    stages: tuple[SharesStage, SharesStage],
    neighbours: Neighbours,
) -> Intervals:
    """Return intervals by Frechet's bounds from intervals of the columns' shares.

    A conjunction holds on no more rows than each of its literals, and fails on no more than all of
    them together. Each share has an interval from each stage that measured it. One of the first
    stage misses with the chance of its noise, whatever is chosen afterwards; one of the second
    stage misses with that of its own noise, whatever the first stage chose. The chances of all
    that a query rests on add up to 1 - `LEVEL`.
    """
    bits, negated, possible = literals_of(workload)
    miss = (1.0 - LEVEL) / (len(stages) * workload.way)
    half = NormalDist().inv_cdf(1.0 - miss / 2.0) * (1.0 + 1e-9)
    low, high = np.zeros(workload.domain.bits), np.ones(workload.domain.bits)
    for stage in stages:
        at = features.bits[stage.features, 0]
        shares = np.clip(stage.shares, 0.0, 1.0)  # never a single point: see `Intervals.around`
        low[at] = np.maximum(low[at], shares - half * stage.deviations)
        high[at] = np.minimum(high[at], shares + half * stage.deviations)
    present = bits >= 0
    fails = np.where(present, np.where(negated, high[bits], 1.0 - low[bits]), 0.0)
    holds = np.where(present, np.where(negated, 1.0 - low[bits], high[bits]), 1.0)
    lower = np.where(possible, 1.0 - fails.sum(axis=1), 0.0)
    upper = np.where(possible, holds.min(axis=1), 0.0)
    if not neighbours.rows_public:
        # A noisy number of rows moves every share by half its error, the sum of three by more than
        # `Intervals.for_rows` allows for.
        lower = np.where(present.sum(axis=1) > 2, 0.0, lower)
    return Intervals(
        np.clip(lower, 0.0, 1.0),
        np.clip(upper, 0.0, 1.0),
        "from the noise of the columns' shares: a query holds on no more rows than its rarest "
        "literal",
    )

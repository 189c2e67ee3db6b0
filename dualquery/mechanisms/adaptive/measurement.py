"""What is measured for a workload: its features, or the queries themselves if that is better.

Where few queries share features, noise on the queries themselves is smaller. Both are known before
any row is read. Scales are found by closed forms; the room computes what they cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.estimates.intervals import Guesses, guesses_of
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.adaptive.expansion import (
    MOST_LITERALS,
    Expansion,
    ProductTerms,
    chances_of_literals,
    literals_of,
    products_of_others,
    sets_of,
)
from dualquery.mechanisms.protocol import Task
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.sensitivity.contrasts import squared_lengths
from dualquery.room.sensitivity.moves import complemented
from dualquery.room.statistics import AllQueries, FeatureSums
from dualquery.room.strategy import Strategy, rounding_room
from dualquery.runtime.errors import BadInputError

Float64 = NDArray[np.float64]

MORE_NOISE = 1.4
"""Factor of noise that a fit makes up for, of the longest features and of queries in their place;
best on Adult, groceries, plants, BMS-WebView-2 and kosarak with 1,000 to 100,000 queries. And of
the variance by which queries that are shrunk after a look must be better."""

_UNUSED = 0.1
"""Least use of a set of columns, relative to the mean of those of as many columns: an estimate
learns from features that no query needs."""

_CLIMBS = 40
"""Climbs of a search for large loads. On Adult 300 find ones larger by 0 to 8%."""

_ROUNDS = 8
"""Of both fixed points of scales, which halve the distance to the end, in logarithms."""

_STEPS = 8
"""Scales to each factor of 2: loads are added up, and noise is drawn, scale by scale."""


@dataclass(frozen=True, eq=False)
class FeatureMeasurement:
    """Features, those of each set of columns with noise of their own."""

    expansion: Expansion
    strategy: Strategy

    of_queries = determined = False

    @property
    def products(self) -> ProductTerms:
        """The features."""
        return ProductTerms.of_features(self.strategy.features)

    @property
    def scales(self) -> Float64:
        """By the features' columns."""
        return self.strategy.scales

    @property
    def sensitivity(self) -> float:
        """See `dualquery.room.strategy`."""
        return self.strategy.sensitivity

    @cached_property
    def mean_deviation(self) -> float:
        """From the features of each query."""
        return float(np.sqrt(self.expansion.variances(self.scales**2).mean()))

    @property
    def basis(self) -> str:
        """The noise of a query's features."""
        basis = "from the noise of each query's features, shortest near independent columns"
        return "; ".join(filter(None, (basis, self.strategy.note)))

    @property
    def absent_row_answer(self) -> Float64:
        """All features of a row that is not there are 0."""
        return self.answers(np.zeros(len(self.scales)))

    def draw(self, curator: Curator, scale: float) -> Float64:
        """Measure the features."""
        return sums_of(self.strategy, curator, scale)

    def answers(self, means: Float64) -> Float64:
        """Add up the features of each query."""
        return self.expansion.answers(means)

    def deviations(self, deviations: Float64) -> Float64:
        """Add up the features' variances."""
        return np.sqrt(self.expansion.variances(deviations**2))

    def guesses(self, workload: Workload, means: Float64, deviations: Float64) -> Guesses:
        """Return guesses of the answers, independent of the noise of their own features."""
        expansion, features = self.expansion, self.expansion.features
        bits, negated, _ = literals_of(workload)
        alone = np.flatnonzero((features.bits >= 0).sum(axis=1) == 1)
        place = np.full(features.domain.bits, -1)
        place[features.bits[alone, 0]] = alone
        feature = np.where(bits >= 0, place[bits], -1)
        present = feature >= 0
        # A literal's share is linear in its own feature; that of a contrast is (1 - c) / n.
        contrast, values = features.contrasts[feature, 0], features.values[feature, 0]
        slopes = np.where(contrast, -1.0 / values, 1.0)
        shares = np.where(contrast, 1.0 / values, 0.0)
        shares += slopes * expansion.projected(means)[feature]
        shares, slopes = np.where(negated, 1.0 - shares, shares), np.where(negated, -slopes, slopes)

        # The noise that it shares with a query is that of the query's terms about its column.
        terms = np.flatnonzero(np.isin(expansion.feature, alone))
        query, other = expansion.query[terms], expansion.feature[terms]
        weights = expansion.coefficient[terms] * deviations[other] ** 2
        covariances = np.zeros(shares.shape)
        for slot in range(workload.way):
            own = feature[query, slot]
            same = features.columns[own, 0] == features.columns[other, 0]
            tied = present[query, slot] & (same & contrast[query, slot] | (own == other))
            at, inner = query[tied], expansion.inner(own[tied], other[tied])
            shared = np.bincount(at, weights[tied] * inner, len(bits))
            covariances[:, slot] = slopes[:, slot] * shared
        shares, variances = np.where(present, shares, np.nan), expansion.variances(deviations**2)
        return guesses_of(expansion.answers(means), variances, shares, covariances)

    def refined(self, unknown: Float64, precision: float) -> FeatureMeasurement:
        """Return the same features, with half of the precision where errors fall most.

        ``unknown`` are the features' variances before, float64 ``(f,)``; ``precision`` is the
        squared sensitivity over scale, in rows. The other half is spread as before: whatever is
        unknown, no noise grows by much more than the square root of 2.
        """
        sets, neighbours = _Sets.of_features(self.strategy.features), self.strategy.neighbours
        known = np.bincount(sets.of) / np.bincount(sets.of, unknown + 1e-6 / precision)
        costs = sets.costs(neighbours) * sets.met(self.strategy)
        same, half = self.scales[sets.leaders] ** -2.0, precision / 2.0
        precisions = same * half / (costs @ same)
        precisions += sets.allotted(self.expansion, costs, known, half, unused=1e-9)
        return replace(self, strategy=sets.strategy(self.expansion, precisions**-0.5, neighbours))

    def kept(self, noisy: Float64, deviations: Float64) -> Measurements:
        """Return the features' noisy means."""
        strategy = self.strategy
        return Measurements.of_features(strategy.features, noisy, deviations, strategy.note)

    def describe(self, scale: float) -> Mapping[str, Any]:
        """Say how many features there are, and their noise in rows."""
        scales, limit = self.scales * scale, self.strategy.limit
        ends = {"least_scale": float(scales.min()), "largest_scale": float(scales.max())}
        return {"measured": "features", "features": len(scales), **ends, "largest_load": limit}


@dataclass(frozen=True, eq=False)
class QueryMeasurement:
    """The queries themselves, with one noise; ``determined``: there are more than features."""

    workload: Workload
    neighbours: Neighbours
    determined: bool = False

    of_queries = True
    basis = "from the noise of each answer, each on its own"
    mean_deviation = 1.0

    @cached_property
    def products(self) -> ProductTerms:
        """The queries' literals; none of queries that a fit cannot take."""
        bits, negated, _ = literals_of(self.workload)
        bits[~self.workload.apart] = -1
        return ProductTerms(self.workload.domain, bits, negated, literals=True)

    @cached_property
    def scales(self) -> Float64:
        """The same for all."""
        return np.ones(len(self.workload))

    @cached_property
    def sensitivity(self) -> float:
        """Compute it from the number of queries on which neighbours can differ."""
        return AllQueries().moves(self.workload, self.neighbours).l2

    @property
    def absent_row_answer(self) -> Float64:
        """Where a complement was counted, queries hold on a row that is not there."""
        return complemented(self.workload).astype(np.float64)

    def draw(self, curator: Curator, scale: float) -> Float64:
        """Measure the queries."""
        return curator.measure(AllQueries(), Gaussian(scale)).astype(np.float64)

    def answers(self, means: Float64) -> Float64:
        """Return the means: they are the answers."""
        return means

    def deviations(self, deviations: Float64) -> Float64:
        """Return the deviations as they are."""
        return deviations

    def guesses(self, workload: Workload, means: Float64, deviations: Float64) -> None:
        """Return nothing: each was measured on its own."""

    def kept(self, noisy: Float64, deviations: Float64) -> Measurements:
        """Return the queries' noisy answers."""
        return Measurements.of_codes(
            self.workload.literals, noisy, deviations, absent=self.absent_row_answer
        )

    def describe(self, scale: float) -> Mapping[str, Any]:  # noqa: ARG002
        """Say that there are no features."""
        return {"measured": "queries"}


def sums_of(strategy: Strategy, curator: Curator, scale: float) -> Float64:
    """Return noisy sums of features; charged."""
    return curator.measure(FeatureSums(strategy), Gaussian(scale)).astype(np.float64)


Measurement = FeatureMeasurement | QueryMeasurement


def measurement_for(task: Task, neighbours: Neighbours, *, fitted: bool) -> Measurement:
    """Return `choose_measurement` of a task's queries, made once for all who plan with it."""
    return task.once(
        (choose_measurement, neighbours, fitted),
        lambda: choose_measurement(task.workload, neighbours, fitted=fitted),
    )


def choose_measurement(workload: Workload, neighbours: Neighbours, *, fitted: bool) -> Measurement:
    """Return what a fit learns more from, or the measurement of less noise without a fit."""
    if workload.way > MOST_LITERALS:
        return QueryMeasurement(workload, neighbours)
    expansion = Expansion.of(workload).in_blocks()
    queries = QueryMeasurement(workload, neighbours, len(workload) > len(expansion.features))
    if expansion.variances(np.ones(len(expansion.features))).max(initial=0.0) < 1e-9:
        raise BadInputError("adaptive has nothing to measure: each answer is 0 or 1 for all rows")
    features = FeatureMeasurement(expansion, plan_strategy(expansion, neighbours, fitted=fitted))
    noise = features.sensitivity * features.mean_deviation
    singles = np.count_nonzero((expansion.features.bits >= 0).sum(axis=1) == 1)
    fits = fitted and 2 * singles < len(workload) < len(expansion.features)  # else it gains little
    most = (MORE_NOISE if fits else 1.0) * queries.sensitivity
    return features if noise <= most or (fitted and not workload.apart.all()) else queries


def plan_strategy(expansion: Expansion, neighbours: Neighbours, *, fitted: bool = True) -> Strategy:
    """Return good scales, one for each set of columns; the answers' mean variance is 1.

    A set with only some cells asked costs as often as records of large load meet one, which a
    search with the scales so far says. For a fit queries count by variances: large errors matter.
    """
    sets = _Sets.of_features(expansion.features)
    costs, nothing = sets.costs(neighbours), np.zeros(len(sets.leaders))
    scales = sets.allotted(expansion, costs, nothing, fitted=fitted) ** -0.5
    met = np.ones(len(costs))
    for _ in range(_ROUNDS - 1 if sets.partial.any() else 0):
        # The geometric mean of old and new: the repetition does not swing.
        met = np.sqrt(met * sets.met(Strategy(sets.features, scales[sets.of], neighbours)))
        scales = sets.allotted(expansion, costs * met, nothing, fitted=fitted) ** -0.5
    longest = sets.factors == sets.factors.max()
    scales *= np.where(longest & fitted, MORE_NOISE, 1.0)
    return sets.strategy(expansion, scales, neighbours)


@dataclass(frozen=True, eq=False)
class _Sets:
    """Features by their columns."""

    features: Features
    of: NDArray[np.int64]
    leaders: NDArray[np.int64]
    partial: NDArray[np.bool_]
    factors: NDArray[np.int64]

    @staticmethod
    def of_features(features: Features) -> _Sets:
        """Find the sets."""
        leaders, of = sets_of(features.columns.astype(np.int32), features.domain.columns)
        kinds = features.kinds[leaders]
        return _Sets(features, of, leaders, kinds[:, 0] > 0, kinds.sum(axis=1))

    def sums(self, numbers: Float64, feature: NDArray[np.int64]) -> Float64:
        """Add up numbers by the sets of their features."""
        return np.bincount(self.of[feature], numbers, len(self.leaders)).astype(np.float64)

    def means_by_size(self, numbers: Float64) -> Float64:
        """Return the mean of some numbers over the sets of as many columns: float64, ``(s,)``."""
        sums, sets = np.bincount(self.factors, numbers), np.bincount(self.factors)
        means: Float64 = np.where(sums > 0, sums / np.maximum(sets, 1), numbers.mean())
        return means[self.factors]

    def allotted(
        self,
        expansion: Expansion,
        costs: Float64,
        known: Float64,
        budget: float = 1.0,
        unused: float = _UNUSED,
        *,
        fitted: bool = True,
    ) -> Float64:
        """Return the precisions, beside ``known`` ones, that bring errors down the most."""
        # With p what a set costs at precision 1 and c its sum of squared coefficients, sum c v is
        # least where variances are sqrt(level p / c), or what they were (reverse water-filling:
        # Cover and Thomas 2006, Section 10.3.3; ResidualPlanner's closed form, if none is known).
        weights = np.ones(len(expansion.constant))
        for _ in range(_ROUNDS if fitted else 1):
            used = self.sums(expansion.uses * weights[expansion.query], expansion.feature)
            used = np.maximum(used * costs, unused * self.means_by_size(used * costs))
            worth = np.sqrt(used) / costs
            order = np.argsort(known / worth)
            spent, gained = (np.cumsum((costs * each)[order]) for each in (known, worth))
            level = ((budget + spent) / gained).min()
            precisions: Float64 = np.maximum(level * worth - known, 0.0)
            of_query = expansion.variances((1.0 / (known + precisions))[self.of])
            # Half way, in logarithms, to the squares of the queries' variances.
            weights = np.sqrt(weights) * of_query / of_query.mean()
        return precisions

    def met(self, strategy: Strategy) -> Float64:
        """Return how often records of large load meet a cell of each set, 1 of whole ones."""
        shares = np.bincount(self.of, strategy.loads.shares_held(_CLIMBS), len(self.leaders))
        return np.where(self.partial, np.maximum(shares, 1 / _CLIMBS), 1.0)

    def strategy(self, expansion: Expansion, scales: Float64, neighbours: Neighbours) -> Strategy:
        """Return a strategy of few different scales, the answers' mean variance being 1."""
        rounded: Float64 = np.exp2(np.round(_STEPS * np.log2(scales)) / _STEPS)[self.of]
        rounded /= np.sqrt(expansion.variances(rounded**2).mean())
        return with_limit(Strategy(self.features, rounded, neighbours))

    def costs(self, neighbours: Neighbours) -> Float64:
        """Return what each set costs at scale 1, where all its columns differ (`strategy`)."""
        features = self.features
        columns = features.columns[self.leaders]
        blocks = squared_lengths(features.domain, columns)
        if not neighbours.replaces:
            return np.where(self.partial, 1.0, blocks)
        sizes = axis_sizes(features.domain)[columns]
        odd = np.where(columns >= 0, 1.0 / (sizes - 1.0), 1.0).prod(axis=1)
        odd *= self.factors & 1
        mixed = features.kinds[self.leaders, 1] > 0
        return np.where(self.partial, np.where(mixed, 4.0, 2.0), 2.0 * blocks * (1.0 + odd))


def with_limit(plain: Strategy) -> Strategy:
    """Return a strategy with a limit on loads, where one that matters is found."""
    limit = plain.loads.largest_found(_CLIMBS) * rounding_room(plain.features)
    return replace(plain, limit=limit if limit < plain.loads.proven() else None)


def plan_columns(workload: Workload, chances: Float64, neighbours: Neighbours) -> Strategy:
    """Return how the columns that queries are about are measured, if these are all.

    ``chances`` are likely shares of 1s: float64, shape ``(bits,)``.
    """
    bits, negated, possible = literals_of(workload)
    domain = workload.domain
    present = (bits >= 0) & possible[:, None]
    features = Features(np.unique(bits[present])[:, None].astype(np.int32), domain)
    changes = products_of_others(chances_of_literals(bits, negated, chances)) ** 2
    column = domain.column_of_bit[bits]
    used = np.bincount(column[present], changes[present], domain.columns)[features.columns[:, 0]]
    signs = features.contrasts[:, 0]
    # In shares: the sign of a share changes by 2 where this changes by 1.
    unit = np.where(signs, 2.0, 1.0)
    cost = np.where(signs, 1.0, 2.0) if neighbours.replaces else unit**-2
    # All of them 0: each is a product with shares that are taken to be 0.
    weight = used / used.max() if used.max() > 0.0 else np.ones(len(used))
    # The fourth root has the least mean variance, a constant the same noise for all: of their
    # geometric mean no few columns are left with the largest error.
    least = (cost / np.maximum(weight, _UNUSED * weight.mean())) ** 0.25
    powers = np.log2(unit * np.sqrt(least))
    return Strategy(features, np.exp2(np.round(_STEPS * powers) / _STEPS), neighbours)

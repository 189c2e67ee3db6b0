"""What is measured for a workload: its features, or the queries themselves if that is better.

Features are shared by many queries. Where few queries share them, noise on the queries themselves
is smaller. Both are known before any row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.guessed import Guesses, guesses_of
from dualquery.estimates.measurements import Measurements
from dualquery.mechanisms.adaptive.expansion import MOST_LITERALS, Expansion, literals_of
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.mechanisms.adaptive.scales import plan_strategy
from dualquery.mechanisms.protocol import Task
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.sensitivity.bounds import complemented
from dualquery.room.statistics import AllQueries, FeatureSums
from dualquery.room.strategy import Strategy

Float64 = NDArray[np.float64]

_HEAVY_ROWS = (
    "a row that adds more than a public limit to what is measured counts as missing in columns of "
    "three or more values; a search of all possible records found none that would"
)
"""What is said of a measurement with a limit."""

_MORE_NOISE = 1.35
"""Features are measured if they give the answers at most this times the noise of the queries
themselves: a fit learns more from them. So it was on Adult, groceries, plants, BMS-WebView-2 and
kosarak with 1,000 to 100,000 queries at ratios of 1.1 to 1.35; at 1.6 queries are better."""


@dataclass(frozen=True, eq=False)
class FeatureMeasurement:
    """Features, those of each set of columns with noise of their own."""

    expansion: Expansion
    strategy: Strategy

    of_queries = False

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
        missing = f"; {_HEAVY_ROWS}" if self._limited else ""
        return (
            f"from the noise of each query's features, shortest near independent columns{missing}"
        )

    @property
    def _limited(self) -> bool:
        return self.strategy.limit is not None

    @property
    def absent_row_answer(self) -> Float64:
        """All features of a row that is not there are 0."""
        return self.answers(np.zeros(len(self.scales)))

    def draw(self, curator: Curator, scale: float) -> Float64:
        """Measure the features."""
        return curator.measure(FeatureSums(self.strategy), Gaussian(scale)).astype(np.float64)

    def answers(self, means: Float64) -> Float64:
        """Add up the features of each query."""
        return self.expansion.answers(means)

    def deviations(self, deviations: Float64) -> Float64:
        """Add up the features' variances."""
        spread: Float64 = np.sqrt(self.expansion.variances(deviations**2))
        return spread

    def guesses(self, workload: Workload, means: Float64, deviations: Float64) -> Guesses:
        """Return what the shares of single columns tell."""
        return guesses_from(self.expansion, workload, means, deviations)

    def kept(self, noisy: Float64, deviations: Float64) -> Measurements:
        """Return the features' noisy means."""
        note = _HEAVY_ROWS if self._limited else ""
        return Measurements.of_features(self.strategy.features, noisy, deviations, note)

    def describe(self, scale: float) -> Mapping[str, Any]:
        """Say how many features of each kind there are, and their noise in rows."""
        kinds, kind = np.unique(self.strategy.features.kinds, axis=0, return_inverse=True)
        said = []
        for number, (indicators, contrasts) in enumerate(kinds.tolist()):
            scales = self.scales[kind.ravel() == number] * scale
            ends = {"least_scale": float(scales.min()), "largest_scale": float(scales.max())}
            factors = {"indicators": indicators, "contrasts": contrasts}
            said.append({**factors, "features": len(scales), **ends})
        whole = {"measured": "features", "features": len(self.scales)}
        return {**whole, "kinds": said, "largest_load": self.strategy.limit}


@dataclass(frozen=True, eq=False)
class QueryMeasurement:
    """The queries themselves, all with the same noise."""

    workload: Workload
    neighbours: Neighbours

    of_queries = True
    basis = "from the noise of each answer, each on its own"
    mean_deviation = 1.0

    @cached_property
    def products(self) -> ProductTerms:
        """The queries' literals."""
        bits, negated, _ = literals_of(self.workload)
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


def measurement_for(
    task: Task, neighbours: Neighbours, *, fitted: bool
) -> FeatureMeasurement | QueryMeasurement:
    """Return `choose_measurement` of a task's queries, made once for all who plan with it."""
    return task.once(
        (choose_measurement, neighbours, fitted),
        lambda: choose_measurement(task.workload, neighbours, fitted=fitted),
    )


def choose_measurement(
    workload: Workload, neighbours: Neighbours, *, fitted: bool
) -> FeatureMeasurement | QueryMeasurement:
    """Return what a fit learns more from, or the measurement of less noise without a fit."""
    queries = QueryMeasurement(workload, neighbours)
    if workload.way > MOST_LITERALS:
        return queries
    expansion = Expansion.of(workload).in_blocks()
    if not len(expansion.features):
        return queries  # no legal record satisfies any of them
    strategy = plan_strategy(expansion, neighbours, fitted=fitted)
    features = FeatureMeasurement(expansion, strategy)
    noise = features.sensitivity * features.mean_deviation
    return features if noise <= (_MORE_NOISE if fitted else 1.0) * queries.sensitivity else queries


def guesses_from(
    expansion: Expansion, workload: Workload, means: Float64, deviations: Float64
) -> Guesses:
    """Return guesses of the queries' answers, independent of the noise of their own features."""
    features, projection = expansion.features, expansion.projection
    bits, negated, _ = literals_of(workload)
    alone = np.flatnonzero((features.bits >= 0).sum(axis=1) == 1)
    place = np.full(features.domain.bits, -1)
    place[features.bits[alone, 0]] = alone
    feature = np.where(bits >= 0, place[bits], -1)
    present = feature >= 0

    # A literal's share is a linear function of its own feature; that of a contrast is (1 - c) / n.
    contrast, values = features.contrasts[feature, 0], features.values[feature, 0]
    slopes = np.where(contrast, -1.0 / values, 1.0)
    shares = np.where(contrast, 1.0 / values, 0.0) + slopes * projection(means)[feature]
    shares, slopes = np.where(negated, 1.0 - shares, shares), np.where(negated, -slopes, slopes)

    # The noise that it shares with a query is that of the query's terms about this column alone.
    terms = np.flatnonzero(np.isin(expansion.feature, alone))
    query, other = expansion.query[terms], expansion.feature[terms]
    weights = expansion.coefficient[terms] * deviations[other] ** 2
    covariances = np.zeros(shares.shape)
    for slot in range(workload.way):
        own = feature[query, slot]
        same = features.columns[own, 0] == features.columns[other, 0]
        tied = present[query, slot] & (same & contrast[query, slot] | (own == other))
        at, inner = query[tied], projection.inner(own[tied], other[tied])
        shared = np.bincount(at, weights[tied] * inner, len(bits))
        covariances[:, slot] = slopes[:, slot] * shared
    return guesses_of(
        expansion.answers(means),
        expansion.variances(deviations**2),
        np.where(present, shares, np.nan),
        covariances,
    )

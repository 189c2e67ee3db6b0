"""Which features get how much noise: scales from public facts, found by closed forms.

What they cost is not decided here: the room computes the sensitivity of whatever strategy it gets
(`dualquery.room.strategy`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.mechanisms.adaptive.expansion import (
    Expansion,
    chances_of_literals,
    literals_of,
    products_of_others,
)
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.room.features import Features
from dualquery.room.sensitivity.contrasts import squared_lengths
from dualquery.room.strategy import Strategy, rounding_room
from dualquery.rows.repeats import first_occurrences

Float64 = NDArray[np.float64]

_UNUSED = 0.1
"""Least use of a set of columns, relative to the mean of those of as many columns: an estimate
learns from features that no query needs."""

_MORE_NOISE = 1.5
"""Factor on the noise of features of the most factors: a mixture predicts these from the others."""

_POWER = 1.0 / 8.0
"""Of columns that are measured alone, the noise is proportional to this power of cost over use."""

_CLIMBS, _FEW_CLIMBS = 300, 40
"""Climbs of the search for the largest load (`loads`)."""

_ROUNDS, _REPETITIONS = 3, 8

_STEPS, _FINE_STEPS = 8, 64
"""Scales to each factor of 2: of features with indicators, and of others. Loads of rows are added
up, and noise is drawn, scale by scale, so a few serve better than thousands."""


def plan_strategy(expansion: Expansion, neighbours: Neighbours, *, fitted: bool = True) -> Strategy:
    """Return good scales, one for each set of columns; the answers' mean variance is 1.

    With p what a set of columns costs at scale 1 and c its sum of squared coefficients in a mean
    query, the mean variance of the answers is ``sum c s^2`` and the squared sensitivity about
    ``sum p / s^2``: by Cauchy and Schwarz the best is ``s^2 ~ sqrt(p / c)`` (of contrasts this is
    ResidualPlanner's closed form). A set of which only some cells are asked costs as often as
    records of large load meet one of these, which a search with the scales so far says. For a fit
    queries count by their variances: the largest error matters, too.
    """
    features = expansion.features
    sets = _Sets.of_features(features)
    costs = sets.costs(features, neighbours)
    met = np.ones(len(costs))
    weights, variances = np.ones(len(expansion.constant)), np.ones(len(costs))
    for number in range(_ROUNDS if sets.partial.any() else 1):
        if number:
            loads = Strategy(features, np.sqrt(variances)[sets.of], neighbours).loads
            shares = np.bincount(sets.of, loads.shares_held(_FEW_CLIMBS), len(met))
            # The geometric mean of old and new: the repetition does not swing.
            met = np.where(sets.partial, np.sqrt(met * np.maximum(shares, 1 / _FEW_CLIMBS)), 1.0)
        for _ in range(_REPETITIONS):
            used = sets.sums(expansion.uses * weights[expansion.query], expansion.feature)
            # In units of what they cost: a contrast is larger than an indicator.
            used = np.maximum(used * costs, _UNUSED * sets.means_by_size(used * costs))
            variances = np.sqrt(variances * costs * np.sqrt(met / used))
            if fitted:
                of_query = expansion.variances(variances[sets.of])
                weights = (of_query / of_query.mean()) ** 2
    longest = sets.factors == sets.factors.max()
    scales = np.sqrt(variances) * np.where(longest & fitted, _MORE_NOISE, 1.0)
    steps = np.where(sets.partial, _STEPS, _FINE_STEPS)
    of_features: Float64 = np.exp2(np.round(steps * np.log2(scales)) / steps)[sets.of]
    of_features /= np.sqrt(expansion.variances(of_features**2).mean())
    return with_limit(Strategy(features, of_features, neighbours))


@dataclass(frozen=True, eq=False)
class _Sets:
    """Features by their columns."""

    of: NDArray[np.int64]
    leaders: NDArray[np.int64]
    partial: NDArray[np.bool_]
    factors: NDArray[np.int64]

    @staticmethod
    def of_features(features: Features) -> _Sets:
        """Find the sets."""
        first = first_occurrences(features.columns.astype(np.int32), features.domain.columns)
        leaders, of = np.unique(first, return_inverse=True)
        kinds = features.kinds[leaders]
        return _Sets(of.ravel(), leaders, kinds[:, 0] > 0, kinds.sum(axis=1))

    def sums(self, numbers: Float64, feature: NDArray[np.int64]) -> Float64:
        """Add up numbers by the sets of their features."""
        return np.bincount(self.of[feature], numbers, len(self.leaders)).astype(np.float64)

    def means_by_size(self, numbers: Float64) -> Float64:
        """Return the mean of some numbers over the sets of as many columns: float64, ``(s,)``."""
        sums, sets = np.bincount(self.factors, numbers), np.bincount(self.factors)
        means: Float64 = np.where(sums > 0, sums / np.maximum(sets, 1), numbers.mean())
        return means[self.factors]

    def costs(self, features: Features, neighbours: Neighbours) -> Float64:
        """Return what each set costs at scale 1, where all its columns differ (`strategy`)."""
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
    # The power 1/4 has the least mean variance, 0 the same noise for all: between them no few
    # columns are left with the largest error.
    powers = np.log2(unit * (cost / np.maximum(weight, 0.01 * weight.mean())) ** _POWER)
    return Strategy(features, np.exp2(np.round(_STEPS * powers) / _STEPS), neighbours)

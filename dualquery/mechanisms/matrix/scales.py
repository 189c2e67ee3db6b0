"""Which features get how much noise: scales from public facts, found by closed forms.

What they cost is not decided here: the room computes the sensitivity of whatever strategy it gets
(`dualquery.room.strategy`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.privacy.neighbours import Neighbours
from dualquery.room.features import Features
from dualquery.room.strategy import Strategy, rounding_room

_NORM = 3
"""Norm of the queries' variances that is made small: between their mean and their largest."""

_MORE_NOISE = 1.5
_LEAST_USED = 0.02
"""Least use of a kind of feature, relative to the most used one."""

_CLIMBS, _FEW_CLIMBS = 300, 50
"""Climbs of the search for the largest load (`loads`)."""

_REPETITIONS = 20


def plan_strategy(expansion: Expansion, neighbours: Neighbours) -> Strategy:
    """Return good scales, one for each kind of feature (so many indicators, so many signs).

    They are such that the mean variance of the answers is 1.

    With S the squared sensitivity of a kind alone and c its sum of squared coefficients in a mean
    query, the mean variance of the answers is ``sum c s^2`` and (1) is at most ``sum S / s^2``: by
    Cauchy and Schwarz the best is ``s^2 ~ sqrt(S / c)``. Three more things enter:

    - the largest error matters as much as the mean one, so queries count by a power of their
      variances, which makes the mean the `_NORM`-norm of the variances; repetitions settle them;
    - features that no query needs are measured a little (`_LEAST_USED`): the fit learns from them;
    - the fit predicts features of the most factors from the others, so they get `_MORE_NOISE`.
    """
    features, m = expansion.features, len(expansion.constant)
    kinds, kind = np.unique(features.kinds, axis=0, return_inverse=True)
    kind = kind.ravel()
    costs = np.array(
        [_cost_alone(features, kind == number, neighbours) for number in range(len(kinds))]
    )
    squares = expansion.coefficient**2
    weights = np.ones(m)
    variances = np.ones(len(kinds))
    for _ in range(_REPETITIONS):
        used = np.bincount(kind[expansion.feature], squares * weights[expansion.query], len(kinds))
        used = np.maximum(used, _LEAST_USED * used.max())
        # The geometric mean of old and new: the repetition does not swing.
        variances = np.sqrt(variances * np.sqrt(costs / used))
        of_query = expansion.variances(variances[kind])
        weights = (of_query / of_query.mean()) ** (_NORM - 1)
    factors = kinds.sum(axis=1)
    of_kind = np.sqrt(variances) * np.where(factors == factors.max(), _MORE_NOISE, 1.0)
    scales: NDArray[np.float64] = of_kind[kind]
    scales /= np.sqrt(expansion.variances(scales**2).mean())
    return with_limit(Strategy(features, scales, neighbours))


def with_limit(plain: Strategy) -> Strategy:
    """Return a strategy with a limit on loads, where one that matters is found."""
    limit = plain.loads.largest_found(_CLIMBS) * rounding_room(plain.features)
    return replace(plain, limit=limit if limit < plain.loads.proven() else None)


def _cost_alone(features: Features, chosen: NDArray[np.bool_], neighbours: Neighbours) -> float:
    """Return about the squared sensitivity of some features at scale 1."""
    alone = Features(features.bits[chosen], features.domain)
    ones = np.ones(len(alone))
    plain = Strategy(alone, ones, neighbours)
    return replace(plain, limit=plain.loads.largest_found(_FEW_CLIMBS)).sensitivity ** 2

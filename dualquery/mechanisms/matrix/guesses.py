"""What the noisy shares of single columns tell of queries whose features were measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.guessed import Guesses
from dualquery.estimates.independence import guesses_of
from dualquery.mechanisms.matrix.expansion import Expansion, literals_of
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


def guesses_from(
    expansion: Expansion, workload: Workload, means: Float64, deviations: Float64
) -> Guesses:
    """Return guesses of the queries' answers, independent of the noise of their own features.

    Parameters
    ----------
    expansion, workload
        The queries, in features and as they are.
    means, deviations
        float64, shape ``(f,)``: noisy means of the features, and the standard deviations of their
        noise.
    """
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

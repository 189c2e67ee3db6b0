"""Predicted errors: root mean squares of a workload's answers, before anything else is measured.

Of independent columns the error is that of their shares, and the interactions that are left out; of
a full fit it is the geometric mean of the error of independent columns fitted to everything, and of
that and the interactions. All follow from the noise, and from shares that are public or noisy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.guessed import CORRELATION
from dualquery.mechanisms.adaptive.expansion import (
    chances_of_literals,
    literals_of,
    products_of_others,
)
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


def rmse_of_interactions(
    workload: Workload,
    chances: Float64,
    n: int,
    unknown: float = 1.0,
    whole: float = 1.0,
    noise: float = math.inf,
) -> float:
    """Return the error of leaving out interactions, and the draw of n rows.

    Parameters
    ----------
    workload, n
        The queries, and the number of rows.
    chances
        float64, shape ``(bits,)``: the shares of 1s.
    unknown, whole
        Mean squares of interactions in units of the expected ones: of pairs what their posterior
        means leave, and of longer products, which are taken to be like pairs.
    noise
        Standard deviation of the noise of products of signs, of which those are measured that are
        expected to be above twice that.
    """
    total = 0.0
    for order, variances, others in _sets_of(workload, chances):
        # Each further literal halves the standard deviation; a sign is twice its share's.
        expected = CORRELATION * 0.5 ** (order - 2) * np.sqrt(variances)
        off = noise / 2.0**order
        if off < math.inf:
            expected = np.where(expected < 2.0 * off, expected, harmonic(expected, off))
        left = unknown * expected**2 if order == 2 else whole * expected**2 + variances / n
        total += float((left * others).sum())
    return math.sqrt(total / len(workload))


def rmse_of_chance(workload: Workload, chances: Float64, n: int) -> float:
    """Return the error of independent columns due to the draw of n rows of such columns."""
    sets = _sets_of(workload, chances)
    total = sum(float((variances * others).sum()) for _, variances, others in sets)
    return math.sqrt(total / n / len(workload))


def _sets_of(workload: Workload, chances: Float64) -> Iterator[tuple[int, Float64, Float64]]:
    """Yield all pairs and triples of literals, by their places.

    Their order, the products of their variances, and those of the others' squared chances. Larger
    sets add next to nothing.
    """
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)[possible]
    variances, squares = holds * (1.0 - holds), holds**2
    for order in (2, 3)[: workload.way - 1]:
        for places in map(list, combinations(range(workload.way), order)):
            rest = np.delete(squares, places, axis=1).prod(axis=1)
            yield order, variances[:, places].prod(axis=1), rest


def rmse_of_independent_fit(
    products: ProductTerms,
    deviations: Float64,
    workload: Workload,
    chances: Float64,
    uncertain: Float64 | None = None,
) -> float:
    """Return the error of independent columns that are fitted to noisy products.

    A column's share is known from all products that it is a factor of, each weighed by its Fisher
    information, as if all other shares were known; ``uncertain`` are standard errors before that.
    """
    means, slopes = products.factors(chances)
    told = (slopes * products_of_others(means) / deviations[:, None]) ** 2
    present = products.bits >= 0
    information = np.bincount(products.bits[present], told[present], len(chances))
    off = np.divide(1.0, np.sqrt(information), out=np.zeros(len(chances)), where=information > 0)
    return rmse_of_shares(workload, chances, off if uncertain is None else harmonic(off, uncertain))


def rmse_of_fit(of_independent: float, interactions: float) -> float:
    """Return the error of a fitted mixture.

    That of fitted independent columns where there are no interactions; where these are large, the
    geometric mean of noise and interactions. On 99 lines about generated tables (600 and 3,000
    rows, 12 and 40 columns, three strengths of latent classes, epsilon 0.1, 1, 5) errors were 0.5
    to 1.5 times this, but for 4.
    """
    return math.sqrt(of_independent * (of_independent + interactions))


def rmse_of_shares(workload: Workload, chances: Float64, uncertain: Float64) -> float:
    """Return the error of independent columns due to standard errors of shares, to first order."""
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)
    off = np.where((bits >= 0) & possible[:, None], uncertain[bits], 0.0)
    return math.sqrt(float(((products_of_others(holds) * off) ** 2).sum(axis=1).mean()))


def harmonic(deviations: Float64, others: Float64 | float) -> Float64:
    """Return the standard deviations of means of two estimates, weighed by their precisions."""
    both = np.hypot(deviations, others)
    return np.divide(deviations * others, both, out=np.zeros_like(both), where=both > 0.0)

"""Predicted errors: root mean squares of a workload's answers, before anything else is measured.

Of independent columns the error is that of their shares, and the interactions that are left out; of
a full fit it is the geometric mean of the error of independent columns fitted to everything, and of
that and the interactions. All follow from the noise, and from shares that are public or noisy.
"""

from __future__ import annotations

import math

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
    workload: Workload, chances: Float64, n: int, unknown: float = 1.0, whole: float = 1.0
) -> float:
    """Return the error of leaving out interactions, and the draw of n rows.

    ``unknown`` and ``whole`` are mean squares of interactions in units of the expected ones: what
    pairs' posterior means leave, and of longer products, which are taken to be like pairs.
    """
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)[possible]
    pairs, by_chance = _by_order(holds, 1.0)
    _, longer = _by_order(holds, 0.25)  # each further literal halves the standard deviation
    total = CORRELATION**2 * (pairs * unknown + 16.0 * longer * whole) + by_chance / n
    return float(np.sqrt(total.sum() / len(bits)))


def rmse_of_chance(workload: Workload, chances: Float64, n: int) -> float:
    """Return the error of independent columns due to the draw of n rows of such columns."""
    bits, negated, possible = literals_of(workload)
    pairs, longer = _by_order(chances_of_literals(bits, negated, chances)[possible], 1.0)
    return float(np.sqrt((pairs + longer).sum() / n / len(bits)))


def _by_order(chances: Float64, part: float) -> tuple[Float64, Float64]:
    """Return sums over the pairs, and over the larger sets, of a query's literals."""
    none, one, two, more = np.ones(len(chances)), *np.zeros((3, len(chances)))
    for chance in chances.T:
        holds, tied = chance**2, part * chance * (1.0 - chance)
        none, one, two, more = (
            none * holds,
            one * holds + none * tied,
            two * holds + one * tied,
            more * (holds + tied) + two * tied,
        )
    return two, more


def rmse_of_independent_fit(
    products: ProductTerms, deviations: Float64, workload: Workload, chances: Float64
) -> float:
    """Return the error of independent columns that are fitted to noisy products.

    A column's share is known from all products that it is a factor of, each weighed by its Fisher
    information, as if all other shares were known.
    """
    means, slopes = products.factors(chances)
    told = (slopes * products_of_others(means) / deviations[:, None]) ** 2
    present = products.bits >= 0
    information = np.bincount(products.bits[present], told[present], len(chances))
    off = np.divide(1.0, np.sqrt(information), out=np.zeros(len(chances)), where=information > 0)
    return rmse_of_shares(workload, chances, off)


def rmse_of_fit(of_independent: float, interactions: float) -> float:
    """Return the error of a fitted mixture.

    That of fitted independent columns where there are no interactions; where these are large, the
    geometric mean of noise and interactions. On 95 of 99 generated tables errors were 0.5 to 1.5
    times this.
    """
    return math.sqrt(of_independent * (of_independent + interactions))


def rmse_of_shares(workload: Workload, chances: Float64, uncertain: Float64) -> float:
    """Return the error of independent columns due to standard errors of shares, to first order."""
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)
    off = np.where((bits >= 0) & possible[:, None], uncertain[bits], 0.0)
    return math.sqrt(float(((products_of_others(holds) * off) ** 2).sum(axis=1).mean()))

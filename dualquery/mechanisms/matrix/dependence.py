"""How much columns depend on each other, as a noisy look at columns and pairs tells.

With the shares of single values known, a product of factors has a mean under independent columns;
what a pair's noisy mean differs from it by is a departure, and noise. Post-processing of noisy
numbers, and of public ones before there are any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.estimates.independence import CORRELATION
from dualquery.mechanisms.baselines.product import product_answers
from dualquery.mechanisms.matrix.columns import spread_of_shares
from dualquery.mechanisms.matrix.departures import products_of_others
from dualquery.mechanisms.matrix.expansion import chances_of_literals, literals_of
from dualquery.mechanisms.matrix.outliers import BY_NOISE, chance_by_noise
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.matrix.scale_mixture import likelihood_of, logarithms
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]

_HALF = 0.5
"""By how much each further literal lessens the departure of a pair (`estimates.independence`)."""

_STRENGTHS = np.array([0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Standard deviations that departures may have, in units of the expected ones."""

_PRIOR = 1.0 / (1.0 + (_STRENGTHS / 0.25) ** 2)
_PRIOR /= _PRIOR.sum()
"""Chances of these before anything is measured: most columns hardly depend on each other."""

_APART, _ROUNDS = 0.1, 100
"""Part of `_PRIOR` that the search for the departures' prior starts from, the rest being what they
say if all are of one strength; and its rounds. A larger part would find in weak noise whatever it
allows; with fewer rounds few large departures among many are not told from one strength of all."""

_TOLD = 1 << 15
"""Departures that tell the prior, at most: more would say the same."""


@dataclass(frozen=True)
class Left:
    """What departs from independence, in units of the expected departures: mean squares.

    Parameters
    ----------
    unknown
        Of pairs: what is left after their posterior means.
    whole
        Of pairs, before these are taken off. Longer products, of which no more is known than that
        they are like pairs, depart by as much.
    """

    unknown: float
    whole: float


EXPECTED = Left(1.0, 1.0)
"""Before anything is measured."""


def spread_of_departures(workload: Workload, chances: Float64, n: int, left: Left) -> float:
    """Return by how much answers depart from what is known of columns and pairs: root mean square.

    Pairs and longer products as `dualquery.estimates.independence` has it, times what is left of
    them; and what the draw of n rows makes of longer products, were columns independent.

    Parameters
    ----------
    workload, n
        The queries, and the number of rows.
    chances
        float64, shape ``(bits,)``: the shares of 1s.
    left
        How much departs.
    """
    bits, negated, possible = literals_of(workload)
    holds = chances_of_literals(bits, negated, chances)[possible]
    pairs, by_chance = _by_order(holds, 1.0)
    _, longer = _by_order(holds, _HALF**2)
    expected = pairs * left.unknown + longer / _HALF**4 * left.whole
    total = CORRELATION**2 * expected + by_chance / n
    return float(np.sqrt(total.sum() / len(bits)))


def spread_of_chance(workload: Workload, chances: Float64, n: int) -> float:
    """Return by how much answers of n rows differ from independence by chance: root mean square.

    What the draw of the rows makes of products of two literals or more, were columns independent.
    """
    bits, negated, possible = literals_of(workload)
    pairs, longer = _by_order(chances_of_literals(bits, negated, chances)[possible], 1.0)
    return float(np.sqrt((pairs + longer).sum() / n / len(bits)))


def _by_order(chances: Float64, part: float) -> tuple[Float64, Float64]:
    """Return sums over the pairs, and over the larger sets, of a query's literals.

    Each of the products of ``part`` times the variances of those in the set, and of the squared
    chances of the others: float64, shape ``(m,)`` each.
    """
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


def spread_of_product_fit(
    products: ProductTerms, deviations: Float64, workload: Workload, chances: Float64
) -> float:
    """Return by how much answers err if independent columns are fitted to noisy products.

    The root of the mean square. A column's share is known from all products that it is a factor of,
    each weighed by how much it changes with the share (its Fisher information), as if all other
    shares were known.
    """
    means, slopes = factors_of(products, chances)
    told = (slopes * products_of_others(means) / deviations[:, None]) ** 2
    present = products.bits >= 0
    information = np.bincount(products.bits[present], told[present], len(chances))
    off = np.divide(1.0, np.sqrt(information), out=np.zeros(len(chances)), where=information > 0)
    return spread_of_shares(workload, chances, off)


def spread_of_fit(of_product: float, departures: float) -> float:
    """Return by how much answers of a fitted mixture err: root mean square.

    As much as fitted independent columns (``of_product``) where nothing departs from these. Where
    departures are large, a fit leaves what lies between its noise and the departures: their
    geometric mean. On 99 lines about generated tables (600 and 3,000 rows, 12 and 40 columns, three
    strengths of latent classes, epsilon 0.1, 1, 5) errors were 0.5 to 1.5 times this, but for 4.
    """
    return float(np.sqrt(of_product * (of_product + departures)))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Noisy pairs of columns beside what independent columns would have.

    Parameters
    ----------
    bits
        int64, shape ``(p, 2)``: the two bits of each, increasing.
    apart, expected, variances
        float64, shape ``(p,)``: by how much each differs from independence, how large that is
        expected to be, as a standard deviation, and the variance of its noise.
    slopes
        float64, shape ``(p,)``: by how much a product changes with the covariance of its two bits.
    """

    bits: NDArray[np.int64]
    apart: Float64
    expected: Float64
    variances: Float64
    slopes: Float64

    @staticmethod
    def of(
        products: ProductTerms,
        noisy: Float64,
        deviations: Float64,
        chances: Float64,
        uncertain: Float64,
    ) -> Pairs:
        """Compare products of two factors with independent columns.

        Parameters
        ----------
        products, noisy, deviations
            The products, their noisy means, and the standard deviations of their noise.
        chances, uncertain
            float64, shape ``(bits,)``: the shares of 1s, and what they may be off.
        """
        bits = products.bits[:, :2].astype(np.int64)
        means, slopes = (values[:, :2] for values in factors_of(products, chances))
        off = products_of_others(means) * slopes * uncertain[bits]
        spread = np.sqrt(chances * (1.0 - chances))[bits].prod(axis=1)
        slope = slopes.prod(axis=1)
        return Pairs(
            bits,
            noisy - means.prod(axis=1),
            CORRELATION * np.abs(slope) * spread,
            deviations**2 + (off**2).sum(axis=1),
            slope,
        )

    @property
    def resolution(self) -> float:
        """Standard error of the mean square of departures, as the noise allows, over the expected.

        Weighed as in `left`. It falls as the variance of the noise does; inf if there are no pairs.
        """
        weights = self.slopes**-2
        expected = float((weights * self.expected**2).sum())
        noise = math.sqrt(2.0 * float(((weights * self.variances) ** 2).sum()))
        return noise / expected if expected > 0 else math.inf

    @cached_property
    def _posterior(self) -> tuple[Float64, Float64]:
        return posterior(self.apart, self.expected, self.variances)

    @property
    def departures(self) -> Float64:
        """The posterior means of the departures: float64, shape ``(p,)``."""
        return self._posterior[0] if len(self.apart) else np.zeros(0)

    def left(self) -> Left:
        """Return how much departs from independence, weighed as the covariances of bits are."""
        if not len(self.apart):
            return Left(0.0, 0.0)
        means, squares = self._posterior
        weights = self.slopes**-2
        expected = float((weights * self.expected**2).sum())
        unknown = float((weights * np.maximum(squares - means**2, 0.0)).sum())
        whole = float((weights * squares).sum())
        return Left(unknown / expected, whole / expected) if expected > 0 else Left(0.0, 0.0)

    def answers(self, workload: Workload, chances: Float64) -> Float64:
        """Return the answers of independent columns, moved as the pairs' departures tell.

        float64, shape ``(m,)``, in [0, 1]. A pair's departure counts on the rows where a query's
        other literals hold (`departures`).
        """
        answers = product_answers(workload, chances)
        if not len(self.apart):
            return answers
        bits, negated, possible = literals_of(workload)
        holds = chances_of_literals(bits, negated, chances)
        signs = np.where(negated, -1.0, 1.0)
        rows = np.where(possible[:, None], bits, np.int32(-1))
        covariances = self.departures / self.slopes
        answers += moved_by_pairs(rows, holds, signs, self.bits, covariances)
        return np.clip(answers, 0.0, 1.0)


def moved_by_pairs(
    bits: NDArray[np.int32],
    factors: Float64,
    slopes: Float64,
    pairs: NDArray[np.int64],
    covariances: Float64,
) -> Float64:
    """Return by how much products depart as pairs of their factors do: float64, shape ``(m,)``.

    A pair's departure counts on the rows where the other factors hold.

    Parameters
    ----------
    bits
        int32, shape ``(m, k)``: the bit of each factor, in any order; -1 for none.
    factors, slopes
        float64, shape ``(m, k)``: the factors' means, 1 for none, and by how much they change with
        the shares of their bits.
    pairs, covariances
        int64, shape ``(p, 2)``, increasing, and float64, shape ``(p,)``: pairs of bits, and by how
        much the share of rows that hold both departs.
    """
    moved = np.zeros(len(bits))
    if not len(pairs):
        return moved
    count = int(pairs.max()) + 1
    keys = pairs[:, 0] * count + pairs[:, 1]
    order = np.argsort(keys)
    for first, second in combinations(range(bits.shape[1]), 2):
        ends = np.sort(bits[:, [first, second]].astype(np.int64), axis=1)
        wanted = ends[:, 0] * count + ends[:, 1]
        place = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)]
        inside = (ends[:, 0] >= 0) & (ends[:, 1] < count)
        found = np.flatnonzero(inside & (keys[place] == wanted))
        rest = np.delete(factors[found], (first, second), axis=1).prod(axis=1)
        both = slopes[found, first] * slopes[found, second]
        moved[found] += both * covariances[place[found]] * rest
    return moved


def posterior(apart: Float64, expected: Float64, variances: Float64) -> tuple[Float64, Float64]:
    """Return the posterior means of departures from independence, and those of their squares.

    The prior is a mixture of normal distributions around 0, as in `scale_mixture`. The noisy
    departures tell it (`_prior_of`).

    Parameters
    ----------
    apart, expected, variances
        float64, shape ``(p,)``: noisy departures, how large each is expected to be, as a standard
        deviation, and the variance of its noise.
    """
    some = slice(None, None, -(-len(apart) // _TOLD) or 1)
    prior = _prior_of(apart[some], expected[some], variances[some])
    signal = np.outer(_STRENGTHS**2, expected**2)
    total = signal + variances
    weights = prior[:, None] * likelihood_of(logarithms(apart, total))
    weights /= weights.sum(axis=0)
    kept = signal / total
    means = (weights * kept).sum(axis=0) * apart
    squares = (weights * (kept * variances + (kept * apart) ** 2)).sum(axis=0)
    return means, squares


def _prior_of(apart: Float64, expected: Float64, variances: Float64) -> Float64:
    """Return the chances of `_STRENGTHS` that some departures tell; parameters as of `posterior`.

    All are of one strength, unless single ones stand out of what noise and that strength explain.
    Were the largest of so many always believed to be more than that, the noise of each table's
    largest would be.
    """
    total = np.outer(_STRENGTHS**2, expected**2) + variances
    logs = logarithms(apart, total)
    of_all = logs.sum(axis=1)
    alike: Float64 = _PRIOR * np.exp(of_all - of_all.max())
    alike /= alike.sum()
    if chance_by_noise(np.abs(apart) / np.sqrt(alike @ total)) > BY_NOISE:
        return alike
    likelihood = likelihood_of(logs)
    prior: Float64 = (1.0 - _APART) * alike + _APART * _PRIOR
    for _ in range(_ROUNDS):
        own = prior[:, None] * likelihood
        prior = (own / own.sum(axis=0)).mean(axis=1)
    return prior


def means_of_products(products: ProductTerms, chances: Float64) -> Float64:
    """Return the means of products under independent columns: float64, shape ``(f,)``."""
    means: Float64 = factors_of(products, chances)[0].prod(axis=1)
    return means


def factors_of(products: ProductTerms, chances: Float64) -> tuple[Float64, Float64]:
    """Return the means of products' factors, 1 for padding, and their slopes, 0 for padding.

    A factor's mean changes by its slope times what the share of its bit does. float64, ``(f, k)``.
    """
    domain, bits = products.domain, products.bits
    share = chances[bits]
    if products.literals:
        slopes = np.where(products.second, -1.0, 1.0)
        means = np.where(products.second, 1.0 - share, share)
    else:
        sizes = axis_sizes(domain)[domain.column_of_bit[bits]].astype(np.float64)
        contrast = products.second | domain.has_two_values[bits]
        slopes = np.where(contrast, -sizes, 1.0)
        means = np.where(contrast, 1.0 - sizes * share, share)
    return np.where(bits >= 0, means, 1.0), np.where(bits >= 0, slopes, 0.0)

"""Means of products: independent columns, and what was measured of their departures.

With m_a the mean of a factor, a sign or an indicator of column a, that of a product of factors of
the columns A is

    sum over the partitions of A into pairs and single columns, one pair at most, of
        d_ab times the product of the other columns' m,  plus d_A,

where d_ab is what the pair's mean departs from ``m_a m_b`` and d_A what is left (the start of
Bahadur's expansion, "A representation of the joint distribution of responses to n dichotomous
items", 1961). A departure that was not measured is what all pairs have in common (below), or 0; one
that was measured is shrunk towards that, by its noise and by how large departures turn out to be.

Rows that differ in how much they hold tie all columns: where a row's chances of its 1s are those of
the columns times a factor of its own, whose mean is 1 and whose variance is c, a pair of columns
departs by c times the product of their shares. So `common` of the product of the columns' variances
is what every pair is taken to depart by, measured or not; but for pairs whose own departures are
typically larger, most of which are next to nothing, only a part of it.

A pair's noisy mean also tells where the means of its two columns lie, and that of a product of five
where five lie. So these and `common` are predicted together from all of them that were measured,
linearly (Henderson, "Best linear unbiased estimation and prediction under a selection model",
Biometrics 31, 1975), with each product's own departure as a random effect (`scale_mixture`).
Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.independence import CORRELATION
from dualquery.mechanisms.matrix.scale_mixture import (
    AS_EXPECTED,
    SCALES,
    chances_of_scales,
    likelihood_of,
    logarithms,
    shrunk,
)
from dualquery.room.features import Features
from dualquery.rows.repeats import side_by_side

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Float64 = NDArray[np.float64]

_CERTAIN = 1e-12
"""A mean that is off by less is taken as known."""

_PASSES, _SETTLED = 24, 0.1
"""Predictions of columns and `Departures.common`, at most; they end where the latter moves by less
than this part of what it may be off."""

_COMMON = 1.0
"""Standard deviation of `Departures.common`, before pairs are measured."""


@dataclass(frozen=True, eq=False)
class Departures:
    """Products, and how large their departures from independence are expected to be.

    Parameters
    ----------
    features
        The products; with every product all pairs of its factors.
    means, uncertain
        float64, shape ``(bits,)``: the means of the factors, at their bits, and what they may be
        off, as standard deviations.
    expected
        float64, shape ``(f,)``: the departures' standard deviations, before they are measured.
    common
        What pairs depart by, in units of the product of their columns' variances.
    own, spread
        What pairs depart by besides, in units of `expected`: the mean, and the root mean square.
    """

    features: Features
    means: Float64
    uncertain: Float64
    expected: Float64
    common: float = 0.0
    own: float = 0.0
    spread: float = 1.0

    def with_columns(
        self, pairs: NDArray[np.int64], weighed: NDArray[np.int32], noisy: Float64, deviation: float
    ) -> Departures:
        """Return the same with what measured products tell of the columns and of all pairs.

        To first order a product's mean is off by each column's error times the other columns'
        means. What a column may still be off is told as if all else were known: too small where
        many pairs depart to one side.

        Parameters
        ----------
        pairs
            int64, shape ``(p,)``: the pairs that were measured, among the features.
        weighed
            int32, shape ``(w, k)``: the bits of other products that were measured.
        noisy
            float64, shape ``(p + w,)``: the noisy means of both.
        deviation
            Standard deviation of the noise.
        """
        from scipy.sparse import csr_array, hstack

        if not len(noisy):
            return self
        bits = side_by_side(self.features.bits[pairs][:, :2], weighed)
        held = np.unique(bits[bits >= 0])
        means, off = self.means[held], np.maximum(self.uncertain[held], _CERTAIN)
        variances = deviation**2 + self._variances(bits)
        expected = np.append(self.expected[pairs], self._expected(weighed))
        apart = noisy - self._signs(bits).prod(axis=1)
        row, place = np.nonzero(bits >= 0)
        column = np.searchsorted(held, bits[row, place])
        of_columns = csr_array(
            (self._effects(bits)[row, place], (row, column)), (len(bits), len(held))
        )
        effects = hstack((of_columns, self._units(bits)[:, None]), format="csr")
        found, still, prior = _predicted(
            effects, apart, np.append(off, _COMMON), expected, deviation, variances, len(pairs)
        )
        columns, uncertain = self.means.copy(), self.uncertain.copy()
        columns[held] = np.clip(means + found[:-1], np.where(self._signed[held], -1.0, 0.0), 1.0)
        uncertain[held] = still[:-1]
        return replace(
            self,
            means=columns,
            uncertain=uncertain,
            common=float(found[-1]),
            own=float(prior @ SCALES) * math.sqrt(2.0 / math.pi),
            spread=math.sqrt(float(prior @ SCALES**2)),
        )

    def products(self, chosen: NDArray[np.int64], noisy: Float64, deviation: float) -> Float64:
        """Return the means of all products: float64, shape ``(f,)``.

        Parameters
        ----------
        chosen
            int64: the products of two factors or more that were measured.
        noisy
            float64, one each: their noisy means.
        deviation
            Standard deviation of the noise.
        """
        factors = (self.features.bits >= 0).sum(axis=1)
        departures = self._of_all_pairs()
        off = np.where(factors == 2, (self.spread * self.expected) ** 2, 0.0)
        bits, expected = self.features.bits, self.expected
        of_two = factors[chosen] == 2
        pairs, longer = chosen[of_two], chosen[~of_two]

        apart = noisy[of_two] - self._means(departures)[pairs]
        variances = deviation**2 + self._variances(bits[pairs])
        prior = chances_of_scales(apart, expected[pairs], variances)
        moved, off[pairs] = shrunk(apart, expected[pairs], variances, prior)
        departures[pairs] += moved

        # Pairs tell what longer products depart by, and how large their own departures may be. What
        # pairs may be off counts as noise: longer products are off with them, and in a query about
        # 1s most of both cancels.
        apart = noisy[~of_two] - self._means(departures)[longer]
        variances = deviation**2 + self._variances(bits[longer])
        variances += self._variances_of_pairs(bits[longer], off)
        prior = chances_of_scales(apart, expected[longer], variances, AS_EXPECTED.sum() * prior)
        departures[longer] += shrunk(apart, expected[longer], variances, prior)[0]

        model = self._means(np.where(factors == 2, departures, 0.0))
        model[factors > 2] += departures[factors > 2]
        means: Float64 = np.clip(model, -1.0, 1.0)
        return means

    def _of_all_pairs(self) -> Float64:
        """Return what pairs depart by before their own are known; 0 of other features."""
        bits = self.features.bits
        pairs = (bits >= 0).sum(axis=1) == 2
        departures = np.where(pairs, self.common * self._units(bits), 0.0)
        typical = departures**2 + (self.own * self.expected) ** 2
        departures *= np.divide(
            departures**2, typical, out=np.zeros_like(typical), where=typical > 0
        )
        return departures

    @cached_property
    def _signed(self) -> NDArray[np.bool_]:
        """Which bits' factors are contrasts, signs among them; the others are indicators."""
        signed = np.zeros(len(self.means), np.bool_)
        factors = self.features.bits >= 0
        signed[self.features.bits[factors]] = self.features.contrasts[factors]
        return signed

    def _signs(self, bits: NDArray[np.int32]) -> Float64:
        """Return the means of products' factors, 1 for padding."""
        return np.where(bits >= 0, self.means[bits], 1.0)

    def _effects(self, bits: NDArray[np.int32]) -> Float64:
        """Return by how much products change with each factor's mean: the others' product."""
        return products_of_others(self._signs(bits))

    def _variances(self, bits: NDArray[np.int32]) -> Float64:
        """Return by how much products of columns' means may be off, as variances."""
        off = np.where(bits >= 0, self.uncertain[bits], 0.0)
        variances: Float64 = ((self._effects(bits) * off) ** 2).sum(axis=1)
        return variances

    def _units(self, bits: NDArray[np.int32]) -> Float64:
        """Return by how much products change with `common`: a pair by its variances' product."""
        means = self.means[bits]
        # The variance of a sign of mean m is 4 times that of the share that it tells, 1 - m^2.
        variances = np.where(self._signed[bits], (1.0 - means**2) / 2.0, means * (1.0 - means))
        return _over_pairs(bits, variances, self._signs(bits))

    def _expected(self, bits: NDArray[np.int32]) -> Float64:
        """Return by how much products of signs may depart by their pairs, if none is known."""
        variances = np.maximum(1.0 - self.means[bits] ** 2, 0.0)
        return CORRELATION * np.sqrt(_over_pairs(bits, variances, self._signs(bits) ** 2))

    def _means(self, departures: Float64) -> Float64:
        """Return the products' means from those of the columns, and from pairs' departures."""
        bits = self.features.bits
        signs = self._signs(bits)
        model: Float64 = signs.prod(axis=1)
        for held, pair, rest in self._pairs_within(bits, signs):
            model[held] += departures[pair] * rest
        return model

    def _variances_of_pairs(self, bits: NDArray[np.int32], off: Float64) -> Float64:
        """Return by how much products are off as their pairs' departures are; both variances."""
        variances = np.zeros(len(bits))
        for held, pair, rest in self._pairs_within(bits, self._signs(bits)):
            variances[held] += off[pair] * rest**2
        return variances

    def _pairs_within(
        self, bits: NDArray[np.int32], signs: Float64
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64], Float64]]:
        """Yield which products hold a pair of factors, that pair's place, and the others' mean."""
        for first, second in combinations(range(bits.shape[1]), 2):
            held = bits[:, second] >= 0
            rest = np.delete(signs[held], (first, second), axis=1).prod(axis=1)
            yield held, self._pairs(bits[held, first], bits[held, second]), rest

    def _pairs(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the places of pairs of columns among the products."""
        bits, count = self.features.bits, self.features.domain.bits
        pairs = np.flatnonzero((bits >= 0).sum(axis=1) == 2)
        keys = bits[pairs, 0].astype(np.int64) * count + bits[pairs, 1]
        order = np.argsort(keys)
        wanted = first.astype(np.int64) * count + second
        return pairs[order[np.searchsorted(keys, wanted, sorter=order)]]


def products_of_others(factors: Float64) -> Float64:
    """Return the product of all other factors in the place of each: float64, ``(m, k)``, both."""
    places = range(factors.shape[1])
    products = [np.delete(factors, place, axis=1).prod(axis=1) for place in places]
    return np.stack(products, axis=1)


def _over_pairs(bits: NDArray[np.int32], sizes: Float64, rest: Float64) -> Float64:
    """Return sums over a product's pairs of factors: both sizes, times the rest of the others."""
    sums = np.zeros(len(bits))
    for first, second in combinations(range(bits.shape[1]), 2):
        both = np.where(bits[:, second] >= 0, sizes[:, first] * sizes[:, second], 0.0)
        sums += both * np.delete(rest, (first, second), axis=1).prod(axis=1)
    return sums


def _predicted(
    effects: csr_array,
    apart: Float64,
    uncertain: Float64,
    expected: Float64,
    deviation: float,
    variances: Float64,
    pairs: int,
) -> tuple[Float64, Float64, Float64]:
    """Return what columns and all pairs depart by, how surely, and the chances of `SCALES`.

    Products that stand out have large departures of their own, and tell little of what is common to
    all: each counts by the inverse of the variance that it is likely to have, which what is found
    tells in turn (Lange, Little and Taylor, "Robust statistical modeling using the t distribution",
    JASA 84, 1989, with the prior of departures for theirs).

    Parameters
    ----------
    effects
        By how much products change with each: ``(p, e)``.
    apart, expected
        float64, shape ``(p,)``: by how much products differ from what is known, and how large their
        own departures are expected to be.
    uncertain
        float64, shape ``(e,)``: standard deviations of the effects, before.
    deviation, variances
        Standard deviation of the noise; float64, shape ``(p,)``: the variances of all but products'
        own departures.
    pairs
        How many products are pairs; these come first, and tell the chances.

    Returns
    -------
    float64, shapes ``(e,)``, ``(e,)`` and ``(s,)``; of the second, the standard deviations if all
    other effects were known and no product counted more than others. Where triples are tied, many
    pairs depart to one side; the weights would call them precise.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    own, among = np.outer(SCALES**2, expected**2), slice(pairs)
    found, left = np.zeros(len(uncertain)), apart
    for _ in range(_PASSES):
        prior = chances_of_scales(left[among], expected[among], variances[among])
        weights = prior[:, None] * likelihood_of(logarithms(left, own + variances))
        precisions = (weights / (own + deviation**2)).sum(axis=0) / weights.sum(axis=0)
        trusted = effects.T @ diags_array(precisions)
        equations = trusted @ effects + diags_array(uncertain**-2)
        diagonal, before = equations.diagonal(), found
        inverse = diags_array(1.0 / diagonal)
        found, _ = cg(equations, trusted @ apart, before, rtol=1e-8, M=inverse)
        left = apart - effects @ found
        if abs(found[-1] - before[-1]) <= _SETTLED * diagonal[-1] ** -0.5:
            break
    prior = chances_of_scales(left[among], expected[among], variances[among])
    typical = 1.0 / (deviation**2 + expected**2 * (prior @ SCALES**2))
    return found, ((effects**2).T @ typical + uncertain**-2) ** -0.5, prior

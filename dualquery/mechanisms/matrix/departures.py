"""Means of products: independent columns, and what was measured of their departures.

With m_a the mean of a factor, a sign or an indicator of column a, that of a product of factors of
the columns A is

    sum over the partitions of A into pairs and single columns, one pair at most, of
        d_ab times the product of the other columns' m,  plus d_A,

where d_ab is what the pair's mean departs from ``m_a m_b`` and d_A what is left (the start of
Bahadur's expansion, "A representation of the joint distribution of responses to n dichotomous
items", 1961). A departure that was not measured is taken to be 0; one that was measured is shrunk
towards 0, by its noise and by how large departures turn out to be, at most as large as expected:
from columns that are independent the result is never further than a measured departure.
Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.room.features import Features

Float64 = NDArray[np.float64]

_SCALES = np.array([0.0, 0.125, 0.25, 0.5, 1.0])
"""Standard deviations that departures may have, in units of the expected ones. Larger ones, 2 to 8,
let noise through that made the largest errors a tenth larger on BMS-WebView-2."""

_EXPECTED = 8
"""Departures that the expectation counts for, beside those that were measured."""

_ROUNDS = 50
"""Of expectation and maximisation."""


@dataclass(frozen=True, eq=False)
class Departures:
    """Products, and how large their departures from independence are expected to be.

    Parameters
    ----------
    features
        The products; with every product all pairs of its factors.
    means
        float64, shape ``(bits,)``: the means of the factors, at their bits.
    expected
        float64, shape ``(f,)``: the departures' standard deviations, before they are measured.
    """

    features: Features
    means: Float64
    expected: Float64

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
        departures = np.zeros(len(self.features))
        # Pairs first: the departures of longer products are from what the pairs say.
        for longer in (False, True):
            model = self._means(departures)
            now = (factors[chosen] > 2) == longer
            places = chosen[now]
            apart = noisy[now] - model[places]
            departures[places] = shrunk(apart, self.expected[places], deviation)
        model = self._means(np.where(factors == 2, departures, 0.0))
        model[factors > 2] += departures[factors > 2]
        means: Float64 = np.clip(model, -1.0, 1.0)
        return means

    def _means(self, departures: Float64) -> Float64:
        """Return the products' means from those of the columns, and from pairs' departures."""
        bits = self.features.bits
        signs = np.where(bits >= 0, self.means[bits], 1.0)
        model: Float64 = signs.prod(axis=1)
        way = bits.shape[1]
        for first in range(way):
            for second in range(first + 1, way):
                held = bits[:, second] >= 0
                rest = np.delete(signs[held], (first, second), axis=1).prod(axis=1)
                pair = self._pairs(bits[held, first], bits[held, second])
                model[held] += departures[pair] * rest
        return model

    def _pairs(self, first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the places of pairs of columns among the products."""
        bits, count = self.features.bits, self.features.domain.bits
        pairs = np.flatnonzero((bits >= 0).sum(axis=1) == 2)
        keys = bits[pairs, 0].astype(np.int64) * count + bits[pairs, 1]
        order = np.argsort(keys)
        wanted = first.astype(np.int64) * count + second
        return pairs[order[np.searchsorted(keys, wanted, sorter=order)]]


def shrunk(noisy: Float64, expected: Float64, deviation: float) -> Float64:
    """Return posterior means of departures, by a prior that the noisy ones tell.

    The prior is a mixture of normal distributions around 0 whose standard deviations are multiples
    of the expected ones (Stephens, "False discovery rates: a new deal", Biostatistics 18, 2017).
    Where departures are smaller than expected, noise stays out.

    Parameters
    ----------
    noisy, expected
        float64, shape ``(c,)``: departures with noise, and their expected sizes.
    deviation
        Standard deviation of the noise, Gaussian and independent.
    """
    signal = np.outer(_SCALES**2, expected**2)
    variances = signal + deviation**2
    logs = -0.5 * (np.log(variances) + noisy**2 / variances)
    likelihood = np.exp(logs - logs.max(axis=0))
    start = np.where(_SCALES == 1.0, float(_EXPECTED), 0.0)
    prior = np.full(len(_SCALES), 1.0 / len(_SCALES))
    for _ in range(_ROUNDS):
        own = prior[:, None] * likelihood
        prior = (start + (own / own.sum(axis=0)).sum(axis=1)) / (_EXPECTED + len(noisy))
    weights = prior[:, None] * likelihood
    weights /= weights.sum(axis=0)
    found: Float64 = (weights * (signal / variances)).sum(axis=0) * noisy
    return found

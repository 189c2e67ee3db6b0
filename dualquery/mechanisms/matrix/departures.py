"""Means of products: independent columns, and what was measured of their departures.

With m_a the mean of a factor, a sign or an indicator of column a, that of a product of factors of
the columns A is

    sum over the partitions of A into pairs and single columns, one pair at most, of
        d_ab times the product of the other columns' m,  plus d_A,

where d_ab is what the pair's mean departs from ``m_a m_b`` and d_A what is left (the start of
Bahadur's expansion, "A representation of the joint distribution of responses to n dichotomous
items", 1961). A departure that was not measured is taken to be 0; one that was measured is shrunk
towards 0, by its noise and by how large departures are expected to be: from columns that are
independent the result is never further than a measured departure. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.room.features import Features

Float64 = NDArray[np.float64]


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

    def shrunk(self, chosen: NDArray[np.int64], noisy: Float64, deviation: float) -> Float64:
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
        size = self.expected[chosen]
        weight = size**2 / (size**2 + deviation**2)
        # Pairs first: the departures of longer products are from what the pairs say.
        for longer in (False, True):
            model = self._means(departures)
            now = (factors[chosen] > 2) == longer
            places = chosen[now]
            departures[places] = weight[now] * (noisy[now] - model[places])
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

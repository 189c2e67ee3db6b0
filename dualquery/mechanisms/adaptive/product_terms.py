"""Products of one factor a column: what is measured, and what a mixture is fitted to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.room.features import Features
from dualquery.rows.repeats import pad_right

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """What a mixture is fitted to: products of features' factors, or of queries' ``literals``.

    ``bits`` of a product are on different columns, padded with -1: int32, ``(f, k)``. Of a bit's
    two terms the ``second`` is the negation of a literal, or the contrast of a wide column.
    """

    domain: Domain
    bits: NDArray[np.int32]
    second: NDArray[np.bool_]
    literals: bool

    @staticmethod
    def of_features(features: Features) -> ProductTerms:
        """Return the products that a mixture is fitted to when features are measured."""
        wide = features.contrasts & (features.values > 2)
        return ProductTerms(features.domain, features.bits, wide, literals=False)

    def part(self, places: NDArray[Any]) -> ProductTerms:
        """Return some of the products."""
        return replace(self, bits=self.bits[places], second=self.second[places])

    def rows(self, held: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return which of `terms` each product multiplies, padded on the right with -1."""
        places = 2 * np.searchsorted(held, np.maximum(self.bits, 0)) + self.second
        rows = np.where(self.bits >= 0, places, -1).astype(np.int32)
        # Literals that repeat others left padding between the rest.
        return np.ascontiguousarray(pad_right(rows))

    def terms(self, held: NDArray[np.int64]) -> tuple[Float32, Float32]:
        """Return intercepts and factors: terms that `rows` names are linear in the values of bits.

        The value of a bit of a binary column is the mean of its sign, that of any other a share.
        """
        binary = self.domain.has_two_values[held]
        if self.literals:
            # The probabilities of a literal and of its negation.
            intercept = np.where(binary, 0.5, 0.0)
            factor = np.where(binary, -0.5, 1.0)
            intercepts = np.stack((intercept, 1.0 - intercept), axis=1)
            factors = np.stack((factor, -factor), axis=1)
        else:
            # A sign or an indicator, and a contrast.
            sizes = np.where(binary, 0.0, axis_sizes(self.domain)[self.domain.column_of_bit[held]])
            intercepts = np.stack((np.zeros(len(held)), ~binary), axis=1)
            factors = np.stack((np.ones(len(held)), -sizes), axis=1)
        return intercepts.ravel().astype(np.float32), factors.ravel().astype(np.float32)

    def single_chances(self, targets: Float64) -> tuple[NDArray[np.int32], Float64]:
        """Return the bits that stand alone, and the chances that they are 1."""
        alone = (self.bits >= 0).sum(axis=1) == 1
        place = (self.bits[alone] >= 0).argmax(axis=1)
        bits, shares = self.bits[alone, place], targets[alone]
        second = self.second[alone, place]
        if self.literals:
            return bits, np.where(second, 1.0 - shares, shares)
        column = self.domain.column_of_bit[bits]
        contrast = second | self.domain.has_two_values[bits]
        return bits, np.where(contrast, (1.0 - shares) / axis_sizes(self.domain)[column], shares)

    def factors(self, chances: Float64) -> tuple[Float64, Float64]:
        """Return the means of factors and their slopes in the shares of their bits: ``(f, k)``."""
        constants, slopes = self.linear()
        means = constants + slopes * chances[self.bits]
        return np.where(self.bits >= 0, means, 1.0), np.where(self.bits >= 0, slopes, 0.0)

    def linear(self) -> tuple[Float64, Float64]:
        """Return the means of factors where their bits have share 0, and their slopes."""
        if self.literals:
            return np.where(self.second, 1.0, 0.0), np.where(self.second, -1.0, 1.0)
        sizes = axis_sizes(self.domain)[self.domain.column_of_bit[self.bits]].astype(np.float64)
        contrast = self.second | self.domain.has_two_values[self.bits]
        return np.where(contrast, 1.0, 0.0), np.where(contrast, -sizes, 1.0)

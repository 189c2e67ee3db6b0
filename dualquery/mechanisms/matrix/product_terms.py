"""Products of one factor a column: what is measured, and what a mixture is fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.room.features import Features
from dualquery.rows.repeats import pad_right

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """What a mixture is fitted to: products of features' factors, or of queries' literals.

    Parameters
    ----------
    domain
        The columns.
    bits
        int32, shape ``(f, k)``: the bits of each product, on different columns, padded with -1.
    negated
        bool, shape ``(f, k)``: for literals, whether each is negated. None for factors: the signs
        of binary columns and the indicators of others (`features`).
    """

    domain: Domain
    bits: NDArray[np.int32]
    negated: NDArray[np.bool_] | None = None

    @staticmethod
    def of_features(features: Features) -> ProductTerms:
        """Return what a mixture is fitted to when features are measured."""
        return ProductTerms(features.domain, features.bits)

    def rows(self, held: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return where the terms of each product lie in `table`, padded on the right with -1."""
        places = np.searchsorted(held, np.maximum(self.bits, 0))
        if self.negated is not None:
            places = 2 * places + self.negated
        rows = np.where(self.bits >= 0, places, -1).astype(np.int32)
        # Literals that repeat others left padding between the rest.
        return np.ascontiguousarray(pad_right(rows))

    def table(self, values: Float32, binary: NDArray[np.bool_]) -> Float32:
        """Return the mean of every term: the values themselves, or the chances of all literals."""
        if self.negated is None:
            return values
        chances = np.where(binary[:, None], (1 - values) / 2, values)
        both = np.stack((chances, 1 - chances), axis=1)
        return np.ascontiguousarray(both.reshape(-1, values.shape[1]), np.float32)

    def slopes(self, slopes: Float32, binary: NDArray[np.bool_]) -> Float32:
        """Return the derivatives by the values from those by the table."""
        if self.negated is None:
            return slopes
        of_chance = slopes[::2] - slopes[1::2]
        return np.where(binary[:, None], of_chance / np.float32(-2), of_chance)

    def single_chances(self, targets: Float64) -> tuple[NDArray[np.int32], Float64]:
        """Return the bits that stand alone, and the chances that they are 1."""
        alone = (self.bits >= 0).sum(axis=1) == 1
        place = (self.bits[alone] >= 0).argmax(axis=1)
        bits, shares = self.bits[alone, place], targets[alone]
        if self.negated is None:
            return bits, np.where(self.domain.has_two_values[bits], (1.0 - shares) / 2.0, shares)
        return bits, np.where(self.negated[alone, place], 1.0 - shares, shares)

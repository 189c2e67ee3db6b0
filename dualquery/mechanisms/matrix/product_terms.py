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
        """Return the products that a mixture is fitted to when features are measured."""
        return ProductTerms(features.domain, features.bits)

    def rows(self, held: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return where the terms of each product lie in `table`, padded on the right with -1."""
        places = np.searchsorted(held, np.maximum(self.bits, 0))
        if self.negated is not None:
            places = 2 * places + self.negated
        rows = np.where(self.bits >= 0, places, -1).astype(np.int32)
        # Literals that repeat others left padding between the rest.
        return np.ascontiguousarray(pad_right(rows))

    def terms(self, binary: NDArray[np.bool_]) -> tuple[Float32, Float32]:
        """Return the means of the terms that `rows` names, as ``intercept + factor * value``.

        Parameters
        ----------
        binary
            bool, shape ``(bits,)``: of each bit held, whether its value is the mean of a sign;
            else it is a share.

        Returns
        -------
        float32, as many of each bit: intercepts, and factors of the bits' values.
        """
        if self.negated is None:
            return np.zeros(len(binary), np.float32), np.ones(len(binary), np.float32)
        # The probabilities of a literal and of its negation.
        intercept = np.where(binary, 0.5, 0.0)
        factor = np.where(binary, -0.5, 1.0)
        intercepts = np.stack((intercept, 1.0 - intercept), axis=1)
        factors = np.stack((factor, -factor), axis=1)
        return intercepts.ravel().astype(np.float32), factors.ravel().astype(np.float32)

    def single_chances(self, targets: Float64) -> tuple[NDArray[np.int32], Float64]:
        """Return the bits that stand alone, and the chances that they are 1."""
        alone = (self.bits >= 0).sum(axis=1) == 1
        place = (self.bits[alone] >= 0).argmax(axis=1)
        bits, shares = self.bits[alone, place], targets[alone]
        if self.negated is None:
            return bits, np.where(self.domain.has_two_values[bits], (1.0 - shares) / 2.0, shares)
        return bits, np.where(self.negated[alone, place], 1.0 - shares, shares)

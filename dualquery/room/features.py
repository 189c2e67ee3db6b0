"""Features: products of indicators "column = value" and of signs of binary columns.

On a legal record a feature is 0 or 1 if it has indicators only, 1 or -1 if it has signs only, and
0, 1 or -1 if it has both. The sign of a binary column with bit b is ``(-1)^b``. A one-hot column of
two bits is binary, too: its first bit says everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.rows.repeats import first_occurrences, pad_right

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Features:
    """Distinct products of factors on different columns.

    Parameters
    ----------
    bits
        int32, shape ``(f, k)``: the factors of each feature, increasing, padded on the right with
        -1. The first bit of a binary column stands for its sign, any other for its indicator.
    domain
        The bits and the columns they belong to.
    """

    bits: NDArray[np.int32]
    domain: Domain

    def __post_init__(self) -> None:
        # The bounds of `strategy` rest on these.
        bits, domain = self.bits, self.domain
        if bits.ndim != 2 or bits.dtype != np.int32:
            raise ValueError("features need int32 bits, one feature a row")
        if bits.max(initial=-1) >= domain.bits or bits.min(initial=-1) < -1:
            raise ValueError("features need bits of the domain, and -1 for padding")
        if not np.array_equal(bits, pad_right(bits)) or (bits[:, :1] < 0).any():
            raise ValueError("a feature has increasing bits, one at least, then padding")
        columns = np.where(bits >= 0, domain.column_of_bit[bits], -1)
        if ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any():
            raise ValueError("the factors of a feature lie on different columns")
        # Its sign is the negated sign of the first bit, so it would be the same feature again.
        second = self.signs & (bits > domain.offsets[columns])
        if second.any():
            raise ValueError("the sign of a binary column is said by its first bit")
        if (first_occurrences(bits, domain.bits) != np.arange(len(bits))).any():
            raise ValueError("no feature stands there twice")

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def signs(self) -> NDArray[np.bool_]:
        """Which factors are signs: bool, shape ``(f, k)``."""
        return (self.bits >= 0) & self.domain.has_two_values[self.bits]

    @cached_property
    def kinds(self) -> Int64:
        """Number of indicators and number of signs of each feature: int64, shape ``(f, 2)``."""
        factors = (self.bits >= 0).sum(axis=1)
        signs = self.signs.sum(axis=1)
        return np.stack((factors - signs, signs), axis=1).astype(np.int64)

    @cached_property
    def monomials(self) -> Monomials:
        """The positive conjunctions from whose counts those of the features follow."""
        return Monomials.of(self)


@dataclass(frozen=True, eq=False)
class Monomials:
    """Features as sums of positive conjunctions: a sign is ``1 - 2 b``.

    Feature ``owner`` has ``coefficient`` times the conjunction ``term``, or times 1 where ``term``
    is ``len(literals)``.
    """

    literals: NDArray[np.int32]
    """Distinct positive conjunctions, padded with -1: shape ``(m, k)``."""
    owner: Int64
    term: Int64
    coefficient: Int64

    @staticmethod
    def of(features: Features) -> Monomials:
        """Multiply out the signs."""
        way = features.bits.shape[1]
        rows, owners, coefficients = [], [], []
        for pattern in range(1 << way):
            kept = (pattern >> np.arange(way) & 1).astype(bool)
            # Indicators are always kept; signs are kept, or replaced by 1.
            fits = ((features.bits >= 0) & ~features.signs <= kept).all(axis=1)
            fits &= (kept <= (features.bits >= 0)).all(axis=1)
            owner = np.flatnonzero(fits)
            rows.append(np.where(kept, features.bits[owner], np.int32(-1)))
            owners.append(owner)
            coefficients.append((-2) ** (features.signs[owner] & kept).sum(axis=1))
        bits = pad_right(np.concatenate(rows))
        first = first_occurrences(bits, features.domain.bits)
        new = (first == np.arange(len(bits))) & (bits[:, 0] >= 0)
        number = np.where(bits[:, 0] >= 0, np.cumsum(new) - 1, int(new.sum()))
        return Monomials(
            literals=np.where(bits[new] >= 0, 2 * bits[new], np.int32(-1)),
            owner=np.concatenate(owners),
            term=number[first],
            coefficient=np.concatenate(coefficients).astype(np.int64),
        )

    def combine(self, counts: Int64, n: int, features: int) -> Int64:
        """Return the sums of the features over rows, int64, from the conjunctions' counts."""
        total = np.zeros(features, np.int64)
        np.add.at(total, self.owner, self.coefficient * np.append(counts, n)[self.term])
        return total

"""Features: products of indicators "column = value" and of contrasts.

The *contrast* of a value v of a column with n values is ``1 - n [column = v]``: on a record the
contrasts of all values add up to 0, and so do those of one value on all values. That of the first
bit of a binary column is its *sign*, ``(-1)^b``; a one-hot column of two bits is binary, too, and
its first bit says everything.

A feature is a product of factors on different columns. Its factors on binary columns are signs.
Those on wider columns are all indicators, or all contrasts; contrasts of wider columns are measured
for all values of a set of columns, or for none: they make a *block* (`blocks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.rows.repeats import first_occurrences, pad_right

Int64 = NDArray[np.int64]

MOST_CELLS = 1 << 20
"""Of a block: features stay below this in magnitude, so sums over 2^33 rows are exact doubles."""


@dataclass(frozen=True, eq=False)
class Features:
    """Distinct products of factors on different columns.

    Parameters
    ----------
    bits
        int32, shape ``(f, k)``: the factors of each feature, increasing, padded on the right with
        -1. The first bit of a binary column stands for its sign.
    domain
        The bits and the columns they belong to.
    centred
        bool, shape ``(f,)``: whether the factors on wider columns are contrasts; else they are
        indicators, as they are for None.
    """

    bits: NDArray[np.int32]
    domain: Domain
    centred: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        # The bounds of `strategy` rest on these.
        bits, domain = self.bits, self.domain
        if bits.ndim != 2 or bits.dtype != np.int32:
            raise ValueError("features need int32 bits, one feature a row")
        if bits.max(initial=-1) >= domain.bits or bits.min(initial=-1) < -1:
            raise ValueError("features need bits of the domain, and -1 for padding")
        if not np.array_equal(bits, pad_right(bits)) or (bits[:, :1] < 0).any():
            raise ValueError("a feature has increasing bits, one at least, then padding")
        if self.centred is None:
            object.__setattr__(self, "centred", np.zeros(len(bits), np.bool_))
        elif self.centred.shape != (len(bits),) or self.centred.dtype != np.bool_:
            raise ValueError("each feature is centred or not")
        columns = self.columns
        if ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any():
            raise ValueError("the factors of a feature lie on different columns")
        # Its sign is the negated sign of the first bit, so it would be the same feature again.
        second = self._binary & (bits > domain.offsets[columns])
        if second.any():
            raise ValueError("the sign of a binary column is said by its first bit")
        if (first_occurrences(bits, domain.bits) != np.arange(len(bits))).any():
            raise ValueError("no feature stands there twice")
        cells = self.blocks.cells
        if not np.array_equal(np.bincount(self.blocks.of, minlength=len(cells)), cells):
            raise ValueError("contrasts of wide columns need all values of their columns")
        if cells.max(initial=1) > MOST_CELLS:
            raise ValueError(f"a block has at most {MOST_CELLS:,} cells")

    def __len__(self) -> int:
        return len(self.bits)

    @cached_property
    def columns(self) -> Int64:
        """The column of each factor, padded with -1: int64, shape ``(f, k)``."""
        columns = np.where(self.bits >= 0, self.domain.column_of_bit[self.bits], -1)
        return np.asarray(columns, np.int64)

    @cached_property
    def _binary(self) -> NDArray[np.bool_]:
        return (self.bits >= 0) & self.domain.has_two_values[self.bits]

    @cached_property
    def contrasts(self) -> NDArray[np.bool_]:
        """Which factors are contrasts, signs among them: bool, shape ``(f, k)``."""
        assert self.centred is not None
        return self._binary | ((self.bits >= 0) & self.centred[:, None])

    @cached_property
    def values(self) -> Int64:
        """Number of values of each factor's column, 1 for padding: int64, shape ``(f, k)``."""
        return np.where(self.bits >= 0, axis_sizes(self.domain)[self.columns], 1)

    @cached_property
    def kinds(self) -> Int64:
        """Numbers of indicators and of contrasts of each feature: int64, shape ``(f, 2)``."""
        factors = (self.bits >= 0).sum(axis=1)
        contrasts = self.contrasts.sum(axis=1)
        return np.stack((factors - contrasts, contrasts), axis=1).astype(np.int64)

    @cached_property
    def indicators(self) -> NDArray[np.int32]:
        """Bits of the indicators of those that have any, padded on the right with -1."""
        bits = pad_right(np.where(self.contrasts, np.int32(-1), self.bits)[self.kinds[:, 0] > 0])
        return np.ascontiguousarray(bits[:, (bits >= 0).any(axis=0)])

    @cached_property
    def blocks(self) -> Blocks:
        """The features of contrasts only, by their columns."""
        chosen = np.flatnonzero((self.contrasts == (self.bits >= 0)).all(axis=1))
        columns = self.columns[chosen]
        first = first_occurrences(columns.astype(np.int32), self.domain.columns)
        leaders, of = np.unique(first, return_inverse=True)
        wide = self.contrasts & ~self._binary
        cells = np.where(wide, self.values, 1)[chosen[leaders]].prod(axis=1, dtype=np.float64)
        return Blocks(chosen, of.ravel(), columns[leaders], cells)

    def part(self, chosen: NDArray[np.int64]) -> Features:
        """Return some of the features; of a block all or none."""
        assert self.centred is not None
        return Features(self.bits[chosen], self.domain, self.centred[chosen])


@dataclass(frozen=True, eq=False)
class Blocks:
    """Features of contrasts only, those about the same columns together."""

    features: Int64  # increasing
    of: Int64  # the block of each
    columns: Int64  # (b, k): those of each block, increasing, padded with -1
    cells: NDArray[np.float64]  # (b,): features of each, one a cell of its wide columns


@dataclass(frozen=True, eq=False)
class Monomials:
    """Features as sums of positive conjunctions: a contrast is ``1 - n b``.

    Feature ``owner`` has ``coefficient`` times the conjunction ``term``, or times 1 where ``term``
    is ``len(literals)``.
    """

    literals: NDArray[np.int32]  # (m, k): distinct positive conjunctions, padded with -1
    owner: Int64
    term: Int64
    coefficient: Int64

    @staticmethod
    def of(features: Features) -> Monomials:
        """Multiply out the contrasts."""
        way = features.bits.shape[1]
        rows, owners, coefficients = [], [], []
        for pattern in range(1 << way):
            kept = (pattern >> np.arange(way) & 1).astype(bool)
            # Indicators are always kept; contrasts are kept, or replaced by 1.
            fits = ((features.bits >= 0) & ~features.contrasts <= kept).all(axis=1)
            fits &= (kept <= (features.bits >= 0)).all(axis=1)
            owner = np.flatnonzero(fits)
            rows.append(np.where(kept, features.bits[owner], np.int32(-1)))
            owners.append(owner)
            factors = np.where(features.contrasts[owner] & kept, -features.values[owner], 1)
            coefficients.append(factors.prod(axis=1))
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

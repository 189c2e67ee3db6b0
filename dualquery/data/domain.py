"""The structure of the bits: which make up which column, and what legal records are. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Domain:
    """Columns as consecutive runs of bits.

    A column of one bit is binary: both values of the bit are legal. A column of two or more bits is
    one-hot: exactly one of its bits is 1 in a legal record.

    Parameters
    ----------
    offsets
        int64, ``(columns + 1,)``: column ``j`` owns the bits ``offsets[j] .. offsets[j + 1] - 1``.
    max_ones
        If not None, all columns are binary, and a private record has at most this many 1s, as rows
        are cut when they are read (`data.encoding.truncation`): proofs of sensitivity may use it.
    """

    offsets: NDArray[np.int64]
    max_ones: int | None = None

    @property
    def columns(self) -> int:
        """Number of columns of the user's table."""
        return len(self.offsets) - 1

    @property
    def bits(self) -> int:
        """Number of bits of a record (d in the papers)."""
        return int(self.offsets[-1])

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Bits of each column, int64, shape ``(columns,)``."""
        return np.diff(self.offsets)

    @cached_property
    def column_of_bit(self) -> NDArray[np.int32]:
        """Column of each bit, int32, shape ``(bits,)``."""
        return np.repeat(np.arange(self.columns, dtype=np.int32), self.sizes)

    @cached_property
    def has_two_values(self) -> NDArray[np.bool_]:
        """Which bits lie on columns of two values: bool, ``(bits + 1,)``; the padding's is not."""
        return np.append((self.sizes <= 2)[self.column_of_bit], False)

    def covers(self, other: Domain) -> bool:
        """Return whether the columns are the same and every legal record of ``other`` is legal."""
        most = self.bits if other.max_ones is None else other.max_ones
        legal = self.max_ones is None or most <= self.max_ones
        return legal and np.array_equal(self.offsets, other.offsets)

    @staticmethod
    def binary(bits: int) -> Domain:
        """Return the domain of ``bits`` binary columns."""
        return Domain(np.arange(bits + 1, dtype=np.int64))


def axis_sizes(domain: Domain) -> NDArray[np.int64]:
    """Return the number of values of every column: 2 if binary, else one a bit; ``(columns,)``."""
    return np.maximum(domain.sizes, 2)


def cells_of(domain: Domain) -> int:
    """Return the number of legal records, exactly: the product of `axis_sizes`."""
    return math.prod(axis_sizes(domain).tolist())


def column_values(rows: NDArray[np.uint8], domain: Domain) -> NDArray[np.int64]:
    """Return the value of every column of legal records, ``(r, bits)``: int64, ``(r, columns)``.

    A binary column has the value of its bit, a one-hot column the position of its 1.
    """
    position = np.arange(domain.bits) - np.repeat(domain.offsets[:-1], domain.sizes)
    weight = np.where(domain.sizes[domain.column_of_bit] == 1, 1, position)
    return np.add.reduceat(rows * weight, domain.offsets[:-1], axis=1, dtype=np.int64)


def rows_of_values(values: NDArray[Any], domain: Domain) -> NDArray[np.uint8]:
    """Return the legal records with given column values: the inverse of `column_values`."""
    rows = np.zeros((len(values), domain.bits), dtype=np.uint8)
    binary = domain.sizes == 1
    rows[:, domain.offsets[:-1][binary]] = values[:, binary]
    for column in np.flatnonzero(~binary):
        rows[np.arange(len(rows)), domain.offsets[column] + values[:, column]] = 1
    return rows

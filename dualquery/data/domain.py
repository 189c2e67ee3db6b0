"""The structure of the bits: which bits make up which column. Public, and all that queries need."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
        """Which bits lie on columns of two values: bool, shape ``(bits + 1,)``.

        The last entry, which the padding -1 finds, is False.
        """
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

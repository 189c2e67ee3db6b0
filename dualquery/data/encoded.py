"""Rows as bits: lists of the bits that are 1, or what each column sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class BitRows:
    """Encoded rows as lists of the bits that are 1.

    Parameters
    ----------
    indptr
        int64, shape ``(rows + 1,)``, starting at 0.
    bits
        int32, the bits of row ``r`` at ``indptr[r] .. indptr[r + 1] - 1``.
    """

    indptr: NDArray[np.int64]
    bits: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Encoded rows, column by column.

    Parameters
    ----------
    rows
        Number of rows.
    flags
        Pairs of bits, int32 ``(k,)``, and their values 0 or 1 in each row, uint8 ``(k, rows)``.
    codes
        Pairs of first bits, int32 ``(k,)``, of one-hot columns, and the local bits that are 1 in
        each row, int32 ``(k, rows)``.
    """

    rows: int
    flags: tuple[tuple[NDArray[np.int32], NDArray[np.uint8]], ...]
    codes: tuple[tuple[NDArray[np.int32], NDArray[np.int32]], ...] = ()

    def __len__(self) -> int:
        return self.rows

    def listed(self) -> BitRows:
        """Return the rows as lists of the bits that are 1, in no order."""
        places, bits = [], []
        for numbers, values in self.flags:
            row, at = np.nonzero(values.T)
            places.append(row)
            bits.append(numbers[at])
        for starts, codes in self.codes:
            places.append(np.tile(np.arange(self.rows), len(starts)))
            bits.append((starts[:, None] + codes).ravel())
        rows = np.concatenate(places)
        counts = np.bincount(rows, minlength=self.rows)
        order = np.argsort(rows, kind="stable")
        pointers = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return BitRows(pointers, np.concatenate(bits)[order].astype(np.int32))


Encoded: TypeAlias = BitRows | CodedRows

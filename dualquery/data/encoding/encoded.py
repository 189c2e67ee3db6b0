"""Rows as bits: lists of the bits that are 1, or what each column sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class BitRows:
    """Rows as lists of the bits that are 1: row ``r`` has ``bits[indptr[r]:indptr[r + 1]]``."""

    indptr: NDArray[np.int64]
    bits: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Encoded rows, column by column.

    ``flags`` are pairs of bits, ``(k,)``, and their values 0 or 1 in each row, ``(k, rows)``;
    ``codes`` are pairs of the first bits of one-hot columns and the local bits that are 1.
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

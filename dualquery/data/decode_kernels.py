"""Compiled loop that reads the values of one-hot columns from records."""

from __future__ import annotations

from numba import int32, int64, uint8

from dualquery.runtime.array_types import Array, kernel, read_only


@kernel(int64(read_only(uint8, 2), read_only(int64), int32[:, :]))
def column_codes(records: Array, offsets: Array, codes: Array) -> int:
    """Write the local bit of every one-hot column, and the value of every binary one.

    Parameters
    ----------
    records
        uint8 0/1, shape ``(r, bits)``.
    offsets
        int64, shape ``(columns + 1,)``.
    codes
        int32, shape ``(columns, r)``: result.

    Returns
    -------
    ``record * columns + column`` of the first one-hot column without exactly one 1; -1 if none.
    """
    columns = len(offsets) - 1
    for row in range(len(records)):
        for column in range(columns):
            first, stop = offsets[column], offsets[column + 1]
            if stop - first == 1:
                codes[column, row] = records[row, first]
                continue
            ones = 0
            for bit in range(first, stop):
                if records[row, bit]:
                    ones += 1
                    codes[column, row] = bit - first
            if ones != 1:
                return row * columns + column
    return -1

"""Compiled loops over records and features: loads of rows, and records of large load."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int32, int64, uint64, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel, read_only

Array = NDArray[Any]

_LOADS = float64[::1]
_PLANES = 31
"""Binary digits of a count of features."""


@kernel(
    void(read_only(uint64, 2), read_only(int32, 2), read_only(int64), read_only(float64), _LOADS)
)
def add_loads(words: Array, members: Array, starts: Array, weights: Array, loads: Array) -> None:
    """Add to ``loads`` the weights of the features whose indicators each row of a block meets.

    The features of one weight are counted for 64 rows at a time, in binary digits: digit ``j`` of
    all 64 counts is one word. ``words`` are the packed bits, ``(attributes, 64)``; ``members`` the
    rows of these that each feature asks about, one at least, padded on the right with -1; features
    ``starts[c] .. starts[c + 1] - 1`` have the weight ``weights[c]``.
    """
    planes = np.empty((_PLANES, words.shape[1]), np.uint64)
    carry = np.empty(words.shape[1], np.uint64)
    for c in range(len(weights)):
        planes[:] = 0
        used = 0
        for f in range(starts[c], starts[c + 1]):
            for w in range(len(carry)):
                carry[w] = words[members[f, 0], w]
            for i in range(1, members.shape[1]):
                if members[f, i] >= 0:
                    for w in range(len(carry)):
                        carry[w] &= words[members[f, i], w]
            for digit in range(_PLANES):
                left = np.uint64(0)
                for w in range(len(carry)):
                    both = planes[digit, w] & carry[w]
                    planes[digit, w] ^= carry[w]
                    carry[w] = both
                    left |= both
                used = max(used, digit + 1)
                if left == 0:
                    break
        for row in range(len(loads)):
            count = 0
            for digit in range(used - 1, -1, -1):
                word = planes[digit, row >> 6] >> np.uint64(row & 63)
                count = 2 * count + int(word & np.uint64(1))
            loads[row] += weights[c] * count


@kernel(
    float64(
        int32[::1], read_only(int32, 2), read_only(float64), read_only(int32), read_only(int64),
        read_only(int32), read_only(int64),
    ),
)  # fmt: skip
def climb(
    record: Array, members: Array, weights: Array, column_of_value: Array, indptr: Array,
    touching: Array, offsets: Array,
) -> float:  # fmt: skip
    """Change one column at a time while that makes a record's load larger; return the load.

    ``record`` has the value of each column, numbered through all columns. ``members`` are the
    values that each feature asks for, padded on the right with -1; ``indptr`` and ``touching`` the
    features that ask about each column; ``offsets`` the first value of each column, and one more.
    """
    columns = len(record)
    widest = 0
    for c in range(columns):
        widest = max(widest, offsets[c + 1] - offsets[c])
    gain = np.empty(widest)
    unchanged = 0
    c = 0
    while unchanged < columns:
        start = offsets[c]
        gain[:] = 0.0
        for t in range(indptr[c], indptr[c + 1]):
            f = touching[t]
            own = -1
            holds = True
            for i in range(members.shape[1]):
                value = members[f, i]
                if value < 0:
                    break
                if column_of_value[value] == c:
                    own = value - start
                elif record[column_of_value[value]] != value:
                    holds = False
                    break
            if holds and own >= 0:
                gain[own] += weights[f]
        best = record[c] - start
        for v in range(offsets[c + 1] - start):
            if gain[v] > gain[best] * (1.0 + 1e-12):
                best = v
        if best == record[c] - start:
            unchanged += 1
        else:
            record[c] = best + start
            unchanged = 0
        c = (c + 1) % columns
    total = 0.0
    for f in range(len(members)):
        holds = True
        for i in range(members.shape[1]):
            value = members[f, i]
            if value < 0:
                break
            if record[column_of_value[value]] != value:
                holds = False
                break
        if holds:
            total += weights[f]
    return total

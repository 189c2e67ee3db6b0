"""How a model's chances become whole records: compiled loops, whose random words are public."""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int64, uint8, uint64, void

from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only

_INTS, _CHANCES = read_only(int64), read_only(float32, 2)


@kernel(void(_INTS, _CHANCES, _INTS, int64[:, :]))
def round_values(offsets: Array, chances: Array, sizes: Array, counts: Array) -> None:
    """Write how many records of each component have each bit: int64 ``(bits, K)``, all 0 before.

    Within a column, what a value got too little or too much so far is added to its share of the
    next component; whole parts are given out, then the largest rests. Those of a one-hot column add
    up to ``sizes``, the records of each component.
    """
    widest = 2  # by a loop: NumPy's functions take seconds to compile
    for column in range(len(offsets) - 1):
        widest = max(widest, offsets[column + 1] - offsets[column])
    owed, rest = np.empty(widest), np.empty(widest)
    given = np.empty(widest, np.int64)
    for column in range(len(offsets) - 1):
        first = offsets[column]
        bits = offsets[column + 1] - first
        values = max(bits, 2)  # a binary column: 1, then 0
        for value in range(values):
            owed[value] = 0.0
        for component in range(len(sizes)):
            size, total = sizes[component], 0.0
            if size == 0:
                continue
            for value in range(bits):
                total += chances[first + value, component]
            total = 1.0 if bits == 1 else total
            left = size
            for value in range(values):
                share = 1.0 - chances[first, component]
                if value < bits:
                    share = chances[first + value, component] / total
                owed[value] += size * share
                given[value] = max(int(np.floor(owed[value])), 0)
                rest[value] = owed[value] - given[value]
                left -= given[value]
            while left != 0:
                step, best = (1 if left > 0 else -1), -1
                for value in range(values):
                    usable = step > 0 or given[value] > 0
                    if usable and (best < 0 or step * rest[value] > step * rest[best]):
                        best = value
                given[best] += step
                rest[best] -= step
                left -= step
            for value in range(values):
                owed[value] = rest[value]
                if value < bits:
                    counts[first + value, component] = given[value]


@kernel(void(_INTS, read_only(int64, 2), _INTS, _INTS, uint64, uint8[:, :]))
def deal(
    offsets: Array, counts: Array, sizes: Array, order: Array, key: np.uint64, records: Array
) -> None:
    """Deal the values of every column to the records of each component at random.

    ``counts`` and ``sizes`` as of `round_values`; ``order``, int64 ``(n,)``, has the places of the
    records by component; ``key`` seeds the (public) random words. ``records``, uint8 ``(n, bits)``,
    all 0, is the result.
    """
    begin, step = 0, np.uint64(0)
    for component in range(len(sizes)):
        size = sizes[component]
        if size == 0:
            continue
        hand = order[begin : begin + size].copy()
        for column in range(len(offsets) - 1):
            first, stop = offsets[column], offsets[column + 1]
            # The most common value goes to those that are left; 0 of a binary column is unwritten.
            dealt, last = 0, -1
            if stop - first > 1:
                last = first + np.argmax(counts[first:stop, component])
            for bit in range(first, stop):
                if bit == last:
                    continue
                for _ in range(counts[bit, component]):
                    step += np.uint64(1)
                    word = mix(key + step * GOLDEN) >> np.uint64(32)
                    other = dealt + int((word * np.uint64(size - dealt)) >> np.uint64(32))
                    hand[dealt], hand[other] = hand[other], hand[dealt]
                    records[hand[dealt], bit] = 1
                    dealt += 1
            if last >= 0:
                for place in range(dealt, size):
                    records[hand[place], last] = 1
        begin += size


@kernel(void(read_only(int64, 2), read_only(float64, 2), float64[:, :], int64[:]))
def round_targets(cells: Array, chances: Array, owed: Array, targets: Array) -> None:
    """Write a value of the target for each record, in order.

    A record gets the value after which two sums of squares together are least: of what its cells
    are owed, on average over the pairs, and of what the record is owed itself.

    ``cells`` int64 ``(r, p)``: each record's, one a pair of columns; ``chances`` float64 ``(r,
    values)``, adding up to 1; ``owed`` float64 ``(cells, values)``, changed in place.
    """
    pairs, values = cells.shape[1], chances.shape[1]
    claim = np.empty(values)
    for record in range(len(cells)):
        claim[:] = 0.0
        for pair in range(pairs):
            cell = cells[record, pair]
            claim += owed[cell]
        best = 0
        for value in range(values):
            claim[value] += 2 * pairs * chances[record, value]
            if claim[value] > claim[best]:
                best = value
        targets[record] = best
        for pair in range(pairs):
            cell = cells[record, pair]
            owed[cell] += chances[record]
            owed[cell, best] -= 1.0

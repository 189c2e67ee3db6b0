"""Compiled loops of mixtures: chances of conjunctions, and records with rounded counts.

All of it is post-processing of public numbers.
"""

from __future__ import annotations

import numpy as np
from numba import float32, float64, int32, int64, uint8, uint64, void

from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only


@kernel(
    void(
        read_only(int32, 2), read_only(int32), read_only(float64), read_only(float32, 2), float64[:]
    )
)
def conjunction_chances(
    literals: Array, column_of_bit: Array, weights: Array, chances: Array, out: Array
) -> None:
    """Write the chance of every conjunction, float64 ``(m,)``.

    Literals, int32 ``(m, k)``, increase in a row, then padding -1: those on one column stand side
    by side. A one-hot column takes a single value: two different positive literals on it exclude
    each other, a positive one implies the negations of others, and the chances of negated values
    add up. ``weights`` are float64 ``(K,)``, adding up to 1, and ``chances`` float32 ``(bits, K)``.
    """
    way, components = literals.shape[1], len(weights)
    product = np.empty(components)
    other = np.empty(components)
    for query in range(len(literals)):
        for k in range(components):
            product[k] = weights[k]
        first = 0
        while first < way and literals[query, first] >= 0:
            column = column_of_bit[literals[query, first] >> 1]
            stop, positives, positive = first, 0, 0
            for k in range(components):
                other[k] = 1.0
            while (
                stop < way
                and literals[query, stop] >= 0
                and column_of_bit[literals[query, stop] >> 1] == column
            ):
                code = literals[query, stop]
                if code & 1:
                    for k in range(components):
                        other[k] -= chances[code >> 1, k]
                else:
                    positives += 1
                    positive = code >> 1
                stop += 1
            if positives > 0:
                for k in range(components):
                    product[k] *= chances[positive, k] if positives == 1 else 0.0
            else:
                for k in range(components):
                    product[k] *= max(other[k], 0.0)
            first = stop
        out[query] = 0.0
        for k in range(components):
            out[query] += product[k]


@kernel(void(read_only(int64), read_only(float32, 2), read_only(int64), int64[:, :]))
def round_values(offsets: Array, chances: Array, sizes: Array, counts: Array) -> None:
    """Write how many records of each component have each bit: int64 ``(bits, K)``.

    Within a column, what a value got too little or too much in the components so far is added to
    its share of the next one; whole parts are given out, then the largest rests. Those of a one-hot
    column add up to ``sizes``, the records of each component.
    """
    widest = 2
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
            size = sizes[component]
            if size == 0:
                for bit in range(first, first + bits):
                    counts[bit, component] = 0
                continue
            total = 0.0
            for value in range(bits):
                total += chances[first + value, component]
            if bits == 1:
                total = 1.0
            left = size
            for value in range(values):
                if value < bits:
                    share = chances[first + value, component] / total
                else:
                    share = 1.0 - chances[first, component]
                owed[value] += size * share
                given[value] = max(int(np.floor(owed[value])), 0)
                rest[value] = owed[value] - given[value]
                left -= given[value]
            while left > 0:
                best = 0
                for value in range(1, values):
                    if rest[value] > rest[best]:
                        best = value
                given[best] += 1
                rest[best] -= 1.0
                left -= 1
            while left < 0:
                best = -1
                for value in range(values):
                    if given[value] > 0 and (best < 0 or rest[value] < rest[best]):
                        best = value
                given[best] -= 1
                rest[best] += 1.0
                left += 1
            for value in range(values):
                owed[value] = rest[value]
                if value < bits:
                    counts[first + value, component] = given[value]


@kernel(int64(uint64, int64), inline="always")
def _below(word: np.uint64, bound: int) -> int:
    """Return a whole number from 0 to ``bound - 1``, ``bound`` at most 2^32."""
    return int(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel(
    void(
        read_only(int64),
        read_only(int64, 2),
        read_only(int64),
        read_only(int64),
        uint64,
        uint8[:, :],
    )
)
def deal(
    offsets: Array, counts: Array, sizes: Array, order: Array, key: np.uint64, records: Array
) -> None:
    """Deal the values of every column to the records of each component at random.

    ``counts`` and ``sizes`` as of `round_values`; ``order``, int64 ``(n,)``, has the places of the
    records, those of one component after another; ``key`` seeds the (public) random words.
    ``records``, uint8 ``(n, bits)``, all 0, is the result.
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
            last = -1
            if stop - first > 1:
                last = first
                for bit in range(first + 1, stop):
                    if counts[bit, component] > counts[last, component]:
                        last = bit
            dealt = 0
            for bit in range(first, stop):
                if bit == last:
                    continue
                for _ in range(counts[bit, component]):
                    step += np.uint64(1)
                    other = dealt + _below(mix(key + step * GOLDEN), size - dealt)
                    hand[dealt], hand[other] = hand[other], hand[dealt]
                    records[hand[dealt], bit] = 1
                    dealt += 1
            if last >= 0:
                for place in range(dealt, size):
                    records[hand[place], last] = 1
        begin += size

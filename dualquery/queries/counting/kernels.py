"""Compiled loops over queries: counts over packed blocks, and the truth on one record.

Numba vectorises the loops over the 64 words of a block, which a loop over literals inside would
stop. `count_sparse` is for blocks in which most columns are nearly empty.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint8, uint64, void

from dualquery.runtime.array_types import Array, kernel, popcount, read_only

FEW_WORDS = np.uint64(5)
"""Up to this number, words of 64 are faster visited one by one than in vectors (measured)."""

_COUNT = void(read_only(int32, 2), read_only(uint64, 2), int64[::1])


@kernel(uint64(int32), inline="always")
def _flips(literal: int) -> np.uint64:
    """Return the word to XOR with: all 1s for a negated literal, else 0."""
    return np.uint64(0) - np.uint64(literal & 1)


@kernel(void(read_only(int32, 2), uint8[::1]))
def mention(literals: Array, mentioned: Array) -> None:
    """Set ``mentioned`` to 1 for each bit that queries mention."""
    for q in range(len(literals)):
        for j in range(literals.shape[1]):
            if literals[q, j] >= 0:
                mentioned[literals[q, j] >> 1] = 1


@kernel(void(read_only(int32, 2), read_only(int32, 1), int32[:, ::1], types.boolean[::1]))
def renumber(literals: Array, numbers: Array, renumbered: Array, negative: Array) -> None:
    """Give the bits of literals new numbers, and fill rows up with their first literal.

    ``negative`` receives whether all literals of a query are negated.
    """
    for q in range(len(literals)):
        negated = 1
        for j in range(literals.shape[1]):
            literal = literals[q, j] if literals[q, j] >= 0 else literals[q, 0]
            renumbered[q, j] = 2 * numbers[literal >> 1] + (literal & 1)
            negated &= literal
        negative[q] = negated == 1


@kernel(void(read_only(int32, 2), int64, int64, int64, int64[::1], int64[::1]))
def sort_stably(
    literals: Array, place: int, shift: int, keys: int, order: Array, sorted_order: Array
) -> None:
    """Write the order of queries, sorted further by one of their literals, counting its values.

    The key of query ``q`` is ``literals[q, place] >> shift``, below ``keys``; among equal keys
    ``order`` is kept.
    """
    starts = np.zeros(keys + 1, np.int64)
    for q in range(len(literals)):
        starts[(literals[q, place] >> shift) + 1] += 1
    for key in range(keys):
        starts[key + 1] += starts[key]
    for q in order:
        key = literals[q, place] >> shift
        sorted_order[starts[key]] = q
        starts[key] += 1


@kernel(_COUNT)
def count_three(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of three literals, some repeated, holds."""
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        b = literals[q, 1] >> 1
        c = literals[q, 2] >> 1
        flip_a = _flips(literals[q, 0])
        flip_b = _flips(literals[q, 1])
        flip_c = _flips(literals[q, 2])
        total = np.uint64(0)
        for w in range(64):
            total += popcount(
                (words[a, w] ^ flip_a) & (words[b, w] ^ flip_b) & (words[c, w] ^ flip_c)
            )
        counts[q] += np.int64(total)


@kernel(_COUNT)
def count_many(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of any number of literals holds."""
    held = np.empty(64, np.uint64)
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        flip = _flips(literals[q, 0])
        for w in range(64):
            held[w] = words[a, w] ^ flip
        for j in range(1, literals.shape[1]):
            a = literals[q, j] >> 1
            flip = _flips(literals[q, j])
            for w in range(64):
                held[w] &= words[a, w] ^ flip
        total = np.uint64(0)
        for w in range(64):
            total += popcount(held[w])
        counts[q] += np.int64(total)


@kernel(void(read_only(uint64, 2), uint64[::1]))
def occupy(words: Array, occupied: Array) -> None:
    """Write which of the 64 words of each column are not 0, as the bits of one word."""
    for a in range(len(words)):
        held = np.uint64(0)
        for w in range(64):
            held |= np.uint64(words[a, w] != np.uint64(0)) << np.uint64(w)
        occupied[a] = held


@kernel(void(read_only(int32, 2), read_only(uint64, 2), read_only(uint64, 1), int64[::1]))
def count_sparse(literals: Array, words: Array, occupied: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query holds, by the words that can matter.

    Where a positive literal's word is 0 no row satisfies the query; the words that are left are
    found in ``occupied`` (see `occupy`), without touching the columns. If all literals are negated,
    every row of a word that is 0 in all of them satisfies the query.
    """
    for q in range(len(literals)):
        candidates = ~np.uint64(0)
        union = np.uint64(0)
        positive = False
        for j in range(literals.shape[1]):
            held = occupied[literals[q, j] >> 1]
            union |= held
            if literals[q, j] & 1 == 0:
                positive = True
                candidates &= held
        total = np.uint64(0)
        if not positive:
            candidates = union
            total = np.uint64(64) * (np.uint64(64) - popcount(union))
        if popcount(candidates) > FEW_WORDS:
            if literals.shape[1] == 3:
                count_three(literals[q : q + 1], words, counts[q : q + 1])
            else:
                count_many(literals[q : q + 1], words, counts[q : q + 1])
            continue
        while candidates != np.uint64(0):
            lowest = candidates & (~candidates + np.uint64(1))
            w = np.int64(popcount(lowest - np.uint64(1)))
            candidates ^= lowest
            held = ~np.uint64(0)
            for j in range(literals.shape[1]):
                a = literals[q, j] >> 1
                # A negated literal whose word is 0 holds in all its rows, and need not be read.
                if occupied[a] & lowest != np.uint64(0):
                    held &= words[a, w] ^ _flips(literals[q, j])
            total += popcount(held)
        counts[q] += np.int64(total)


@kernel(void(read_only(int32, 2), read_only(uint8, 1), uint8[::1]))
def evaluate(literals: Array, record: Array, truth: Array) -> None:
    """Write whether each query holds on ``record``, as 0/1."""
    # holds[code + 1] is the truth of a literal; the padding code -1 is true. No branch depends on
    # the record, so nothing is mispredicted.
    holds = np.ones(2 * len(record) + 1, np.uint8)
    for bit in range(len(record)):
        holds[2 * bit + 1] = record[bit]
        holds[2 * bit + 2] = 1 - record[bit]
    if literals.shape[1] == 3:
        for q in range(len(literals)):
            truth[q] = (
                holds[literals[q, 0] + 1] & holds[literals[q, 1] + 1] & holds[literals[q, 2] + 1]
            )
        return
    for q in range(len(literals)):
        value = np.uint8(1)
        for j in range(literals.shape[1]):
            value &= holds[literals[q, j] + 1]
        truth[q] = value

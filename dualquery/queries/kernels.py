"""Compiled loops over queries: counts over packed blocks, and the truth on one record.

Numba vectorises the loops over the 64 words of a block; the first four counting kernels differ only
in the number of literals, because a loop over literals inside would stop that. `count_listed` is
for blocks in which most columns are nearly empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, int64, njit, types, uint8, uint64, void
from numpy.typing import NDArray

from dualquery.data.popcount_kernels import popcount

Array = NDArray[Any]


def _read(scalar: types.Type, dimensions: int) -> types.Array:
    """Return the type of an array that is only read: frozen arrays and memory maps fit it too."""
    return types.Array(scalar, dimensions, "C", readonly=True)


LISTED_WORDS = 8
"""So many words of 64 are faster visited one by one than all 64 in vectors (measured)."""

_COUNT = void(_read(int32, 2), _read(uint64, 2), int64[::1])


@njit(uint64(int32), nogil=True, cache=True, inline="always")
def _flips(literal: int) -> np.uint64:
    """Return the word to XOR with: all 1s for a negated literal, else 0."""
    return np.uint64(0) - np.uint64(literal & 1)


@njit(_COUNT, nogil=True, cache=True)
def count_one(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of one literal holds."""
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        flip_a = _flips(literals[q, 0])
        total = np.uint64(0)
        for w in range(64):
            total += popcount(words[a, w] ^ flip_a)
        counts[q] += np.int64(total)


@njit(_COUNT, nogil=True, cache=True)
def count_two(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of two literals holds."""
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        b = literals[q, 1] >> 1
        flip_a = _flips(literals[q, 0])
        flip_b = _flips(literals[q, 1])
        total = np.uint64(0)
        for w in range(64):
            total += popcount((words[a, w] ^ flip_a) & (words[b, w] ^ flip_b))
        counts[q] += np.int64(total)


@njit(_COUNT, nogil=True, cache=True)
def count_three(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of three literals holds."""
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


@njit(_COUNT, nogil=True, cache=True)
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


@njit(void(_read(int32, 2), _read(int64, 1), _read(uint64, 2), int64[::1]), nogil=True, cache=True)
def count_listed(literals: Array, runs: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query holds, by the words where its key is not 0.

    The key of a query is its first literal. Queries of one key follow each other, those of run
    ``r`` from ``runs[r]`` to ``runs[r + 1]``, and share the list of the key's words.
    """
    listed = np.empty(65, np.int64)
    for r in range(len(runs) - 1):
        start, stop = runs[r], runs[r + 1]
        key = literals[start, 0] >> 1
        flip_key = _flips(literals[start, 0])
        length = np.int64(0)
        for w in range(64):
            listed[length] = w
            length += np.int64(words[key, w] != flip_key)
        if length == 0:
            continue
        if length > LISTED_WORDS:
            if literals.shape[1] == 3:
                count_three(literals[start:stop], words, counts[start:stop])
            else:
                count_many(literals[start:stop], words, counts[start:stop])
            continue
        for q in range(start, stop):
            total = np.uint64(0)
            for i in range(length):
                w = listed[i]
                held = words[key, w] ^ flip_key
                for j in range(1, literals.shape[1]):
                    held &= words[literals[q, j] >> 1, w] ^ _flips(literals[q, j])
                total += popcount(held)
            counts[q] += np.int64(total)


@njit(void(_read(int32, 2), _read(uint8, 1), uint8[::1]), nogil=True, cache=True)
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

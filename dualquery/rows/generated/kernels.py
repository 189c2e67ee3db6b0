"""Compiled generators of random bits, keyed by (column, block) so that any order gives the same.

Random words come from the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, with
Stafford's constants) applied to a Weyl sequence. Start and step of the sequence are hashes of
(seed, column, block), so that two cells share no stretch of it. A word needs no other word before
it, which lets the processor make eight at a time.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint64, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only, unit

BIAS_BITS = 16
"""A bias is a whole multiple of 2^-16."""


@kernel(uint64(uint64, uint64), inline="always")
def _key(seed: np.uint64, number: np.uint64) -> np.uint64:
    """Return the key of the ``number``-th stream below ``seed``."""
    return np.uint64(mix(seed + GOLDEN * (number + np.uint64(1))))


@kernel(uint64[::1](uint64, uint64, int64))
def hash_words(seed: np.uint64, stream: np.uint64, count: int) -> Array:
    """Return the first ``count`` words of a stream."""
    words = np.empty(count, np.uint64)
    start = _key(seed, stream)
    for i in range(count):
        words[i] = _key(start, np.uint64(i))
    return words


@kernel(float64[::1](uint64, uint64, int64))
def uniforms(seed: np.uint64, stream: np.uint64, count: int) -> Array:
    """Return the first ``count`` words of a stream as numbers strictly between 0 and 1."""
    words = hash_words(seed, stream, count)
    numbers = np.empty(count)
    for i in range(count):
        numbers[i] = unit(words[i])
    return numbers


@kernel(uint64(uint64, int64))
def bias(seed: np.uint64, column: int) -> np.uint64:
    """Return the bias of a column, uniform on ``0 .. 2^16 - 1``, in units of 2^-16."""
    return np.uint64(mix(_key(seed, np.uint64(column))) >> np.uint64(64 - BIAS_BITS))


@kernel(void(uint64, int64, read_only(int32), uint64[:, ::1]))
def fill_biased(seed: np.uint64, block: int, columns: Array, out: Array) -> None:
    """Fill one block of ``columns`` with independent bits, each 1 with its column's bias.

    With ``r`` the bits made so far and ``z`` fresh fair ones, ``r & z`` halves the probability of a
    1 and ``r | z`` takes it half way to 1: going through the binary digits of the bias from the
    last one up makes 64 biased bits of 16 words, without a comparison.
    """
    for i in range(len(columns)):
        column = np.int64(columns[i])
        probability = bias(seed, column)
        start = _key(_key(seed, np.uint64(column)), np.uint64(block))
        step = mix(start ^ GOLDEN) | np.uint64(1)
        for w in range(64):
            out[i, w] = np.uint64(0)
        for digit in range(BIAS_BITS):
            raised = np.uint64(0) - ((probability >> np.uint64(digit)) & np.uint64(1))
            base = start + step * np.uint64(64 * digit)
            for w in range(64):
                z = mix(base + step * np.uint64(w))
                out[i, w] = (out[i, w] & z) | (raised & (out[i, w] | z))


class Users(NamedTuple):
    """The users of one block, in the order of their tastes; each owns a stretch of a line."""

    stretches: NDArray[np.float64]
    """(users + 1,): where each user's stretch begins; it is as long as their activity."""
    tastes: NDArray[np.int64]
    """(tastes + 1,): where the users of each taste begin."""
    rows: NDArray[np.int32]
    """(users,): the row of each user."""


_USERS = types.NamedTuple((float64[::1], int64[::1], int32[::1]), Users)


@kernel(void(uint64, int64, read_only(int32), read_only(float64, 2), _USERS, uint64[:, ::1]))
def fill_ratings(
    seed: np.uint64, block: int, columns: Array, rates: Array, users: Users, out: Array
) -> None:
    """Set the bits of the users who rated each of ``columns``, in one block of users.

    Ratings of an item are a Poisson process on a line on which each user owns a stretch as long as
    their activity, users of one taste side by side: a user hit at least once has rated the item,
    with probability ``1 - exp(-activity * rate)``. ``rates`` are hits a unit of activity, ``(items,
    tastes)``; ``out`` is zeroed, ``(len(columns), 64)``.
    """
    cumulative, first_of_taste, rows = users.stretches, users.tastes, users.rows
    count = len(rows)
    tastes = rates.shape[1]
    # Buckets of equal length, each with the first user who reaches into it: a look-up in O(1).
    buckets = 2 * count
    scale = buckets / cumulative[count]
    guide = np.empty(buckets + 1, np.int32)
    user = 0
    for bucket in range(buckets + 1):
        while user < count - 1 and cumulative[user + 1] * scale <= bucket:
            user += 1
        guide[bucket] = user
    for i in range(len(columns)):
        column = np.int64(columns[i])
        state = _key(_key(seed, np.uint64(column)), np.uint64(block))
        step = mix(state ^ GOLDEN) | np.uint64(1)
        taste = 0
        position = 0.0
        while True:
            state += step
            wait = -math.log(unit(mix(state)))
            # What a taste's stretch does not use up of the wait is left for the next one.
            while taste < tastes:
                end = cumulative[first_of_taste[taste + 1]]
                ahead = (end - position) * rates[column, taste]
                if wait < ahead:
                    position += wait / rates[column, taste]
                    break
                wait -= ahead
                position = end
                taste += 1
            if taste == tastes:
                break
            user = int(guide[min(int(position * scale), buckets)])
            while user < count - 1 and cumulative[user + 1] <= position:
                user += 1
            row = int(rows[user])
            out[i, row >> 6] |= np.uint64(1) << np.uint64(row & 63)

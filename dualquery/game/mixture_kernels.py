"""Compiled loops over which queries hold on which records, 8 queries a byte.

Sums are reordered for speed: everything here is post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int64, njit, types, void
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK = 512
"""Queries whose weights stay in the nearest cache while the rounds pass."""
_LARGEST = 1e200
"""Weights are held between this and its inverse: no answers worth a thought go beyond."""

_PLACES = np.array([128, 64, 32, 16, 8, 4, 2, 1], np.uint8)

_TRUTHS = types.Array(types.uint8, 2, "C", readonly=True)
_READ = types.Array(float64, 1, "C", readonly=True)
_WHOLE = types.Array(int64, 1, "C", readonly=True)


@njit(
    void(_TRUTHS, int64, int64, _WHOLE, _READ, float64, _READ, *(float64[::1],) * 3),
    nogil=True,
    cache=True,
    fastmath=True,
)
def add_moments(
    truths: Array,
    first: int,
    last: int,
    multiples: Array,
    scales: Array,
    step: float,
    answers: Array,
    totals: Array,
    expected: Array,
    information: Array,
) -> None:
    """Walk through the rounds' weights of some queries and their complements.

    After k steps a query whose answer is a, and which held on s of the records, weighs
    ``w = exp(step (k a - s))``, and its complement ``1 / w``.

    Parameters
    ----------
    truths
        Bit q (big-endian) of row t: whether query q holds on the record of round t.
    first, last
        The queries ``first .. last - 1`` are visited, multiples of 8.
    multiples
        Steps of each record; only rounds with a scale are walked through.
    scales
        Of each round but the first, float64, shape ``(T - 1,)``.
    step
        The unit of steps.
    answers
        Of all queries.
    totals
        Gets ``w + 1/w`` of the visited queries, added up for each scaled round.
    expected, information
        Get the sums over rounds of ``scale k step (w - 1/w)`` and ``scale (k step)^2 (w + 1/w)``
        for each visited query.
    """
    rise, own = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        width = min(BLOCK, last - start)
        own[:] = 1.0
        taken, multiple, fall = 0, int64(0), 1.0
        for t in range(len(scales)):
            if multiples[t] != multiple:
                multiple = multiples[t]
                fall = math.exp(-step * multiple)
                for j in range(width):
                    rise[j] = math.exp(step * multiple * answers[start + j])
            taken += multiple
            log_factor = step * taken
            slope, bend = scales[t] * log_factor, scales[t] * log_factor * log_factor
            total = 0.0
            for byte in range(width // 8):
                bits = truths[t, start // 8 + byte]
                for k in range(8):
                    j = 8 * byte + k
                    weight = own[j] * rise[j] * (fall if bits & _PLACES[k] else 1.0)
                    weight = min(max(weight, 1.0 / _LARGEST), _LARGEST)
                    own[j] = weight
                    complement = 1.0 / weight
                    total += weight + complement
                    expected[start + j] += slope * (weight - complement)
                    information[start + j] += bend * (weight + complement)
            totals[t] += total


@njit(void(_TRUTHS, int64, int64, _READ, float64[::1]), nogil=True, cache=True, fastmath=True)
def add_answers(truths: Array, first: int, last: int, shares: Array, answers: Array) -> None:
    """Add the answers of the records in their shares to those of ``first .. last - 1``."""
    block = np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        width = min(BLOCK, last - start)
        block[:] = 0.0
        for t in range(len(shares)):
            share = shares[t]
            for byte in range(width // 8):
                bits = truths[t, start // 8 + byte]
                for k in range(8):
                    block[8 * byte + k] += share if bits & _PLACES[k] else 0.0
        for j in range(width):
            answers[start + j] += block[j]


@njit(void(_TRUTHS, int64, int64, _READ, float64[::1]), nogil=True, cache=True, fastmath=True)
def add_sums(truths: Array, first: int, last: int, values: Array, sums: Array) -> None:
    """Add to each record the values of those queries ``first .. last - 1`` that hold on it."""
    for start in range(first, last, BLOCK):
        width = min(BLOCK, last - start)
        for t in range(len(sums)):
            total = 0.0
            for byte in range(width // 8):
                bits = truths[t, start // 8 + byte]
                for k in range(8):
                    total += values[start + 8 * byte + k] if bits & _PLACES[k] else 0.0
            sums[t] += total

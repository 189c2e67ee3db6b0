"""Compiled loops over which queries hold on which records, 8 queries a byte.

Sums are reordered for speed: everything here is post-processing.
"""

import math
from typing import Any

import numpy as np
from numba import float64, int64, uint8, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel, read_only

Array = NDArray[Any]

BLOCK = 512  # queries whose weights stay in the nearest cache while the rounds pass
LARGEST = 1e200  # weights are held between this and its inverse
_LARGEST_LOG = 230.0  # of a round's factor: its product with a weight is a number, too
_PLACES = np.array([128, 64, 32, 16, 8, 4, 2, 1], np.uint8)


_TRUTHS = read_only(uint8, 2)
_READ = read_only(float64)


@kernel(inline="always", fastmath=True)
def _factors(rise: Array, step: float, answers: Array, start: int, width: int) -> float:
    """Write by what a round multiplies the weights of queries; return the factor of a hit."""
    for j in range(width):
        rise[j] = math.exp(min(step * answers[start + j], _LARGEST_LOG))
    return math.exp(-min(step, _LARGEST_LOG))


@kernel(inline="always", fastmath=True)
def _next(weight: float, rise: float, fall: float, hit: bool) -> float:
    return min(max(weight * rise * (fall if hit else 1.0), 1.0 / LARGEST), LARGEST)


@kernel(void(_TRUTHS, int64, int64, float64, _READ, float64[::1]), fastmath=True)
def add_totals(
    truths: Array, first: int, last: int, step: float, answers: Array, totals: Array
) -> None:
    """Add up each round's weights of the queries ``first .. last - 1`` and their complements.

    After k records a query whose answer is a, and which held on s of the records, weighs
    ``w = exp(step (k a - s))``, and its complement ``1 / w``. ``totals`` gets the sums after each
    record, as many as it has room for, added. Bit q (big-endian) of row t of ``truths``: whether
    query q holds on the record of round t. ``first`` and ``last`` are multiples of 8.
    """
    rise, own = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        width = min(BLOCK, last - start)
        own[:] = 1.0
        fall = _factors(rise, step, answers, start, width)
        for t in range(len(totals)):
            total = 0.0
            for byte in range(width // 8):
                bits = truths[t, start // 8 + byte]
                for k in range(8):
                    j = 8 * byte + k
                    own[j] = _next(own[j], rise[j], fall, bits & _PLACES[k])
                    total += own[j] + 1.0 / own[j]
            totals[t] += total


@kernel(
    void(_TRUTHS, int64, int64, _READ, float64, _READ, float64[::1], float64[::1]), fastmath=True
)
def add_moments(
    truths: Array,
    first: int,
    last: int,
    scales: Array,
    step: float,
    answers: Array,
    expected: Array,
    information: Array,
) -> None:
    """Add up the weights w of `add_totals` over the rounds, which have scales.

    ``expected`` gets ``scale k step (w - 1/w)`` of each visited query, ``information`` gets
    ``scale (k step)^2 (w + 1/w)``.
    """
    rise, own = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        width = min(BLOCK, last - start)
        own[:] = 1.0
        fall = _factors(rise, step, answers, start, width)
        for t in range(len(scales)):
            played = t + 1
            slope, bend = scales[t] * step * played, scales[t] * (step * played) ** 2
            for byte in range(width // 8):
                bits = truths[t, start // 8 + byte]
                for k in range(8):
                    j = 8 * byte + k
                    own[j] = _next(own[j], rise[j], fall, bits & _PLACES[k])
                    complement = 1.0 / own[j]
                    expected[start + j] += slope * (own[j] - complement)
                    information[start + j] += bend * (own[j] + complement)


@kernel(void(_TRUTHS, int64, int64, _READ, float64[::1]), fastmath=True)
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


@kernel(void(_TRUTHS, int64, int64, _READ, float64[::1]), fastmath=True)
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

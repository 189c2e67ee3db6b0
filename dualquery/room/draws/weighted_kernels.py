"""Numba kernels of private draws: integer weights, their exact sums, and the lookup of draws.

Outcomes are queries, or queries and their complements: with ``sides`` 2 the class is closed under
complement and the complement of a query has the negative of its score; with ``sides`` 1 it is not.

A weight is an 80-bit integer, ``floor(exp(x) 2^80)`` for ``x`` in ``[-CLAMP, 0]``, held as two
limbs of 38 and 42 bits so that sums of up to 2^26 weights fit two 64-bit words exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, types
from numpy.typing import NDArray

from dualquery.room.draws.exp_kernels import exponential
from dualquery.runtime.array_types import kernel

HIGH_BITS = 38
LOW_BITS = 42
LOW_MASK = (1 << LOW_BITS) - 1
CLAMP = 24.0
"""Log-weights lie within this of the largest: the floor holds e^-24 of the largest weight."""
BLOCK = 64
"""Queries a block: sums are kept per block, and only blocks that were hit are walked again."""


class Scores(NamedTuple):
    """Exact scores ``rounds * counts - n * hits`` of all queries."""

    counts: NDArray[np.int64]  # (m,): rows that satisfy each query, exact
    hits: NDArray[np.int32]  # (m,): past records that do
    rounds: int  # number of past records
    n: int  # number of rows

    @staticmethod
    def of(values: NDArray[np.int64]) -> Scores:
        """Return scores that are no game's."""
        return Scores(np.ascontiguousarray(values), np.zeros(len(values), np.int32), 1, 0)


class Law(NamedTuple):
    """What gives every outcome its integer weight."""

    scores: Scores
    sides: int  # 2 if every query stands for its complement too, of the negative score; else 1
    largest: int  # the largest score of an outcome
    unit: float  # log-weight of one unit of score, > 0


class Limbs(NamedTuple):
    """Integers as pairs of limbs, ``high * 2^LOW_BITS + low``."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]


_SCORES = types.NamedTuple((int64[::1], int32[::1], int64, int64), Scores)
_LAW = types.NamedTuple((_SCORES, int64, int64, types.float64), Law)
_LIMBS = types.NamedUniTuple(types.uint64[::1], 2, Limbs)


@kernel("void(int32[::1], uint8[::1])")
def add_hits(hits: NDArray[np.int32], truth: NDArray[np.uint8]) -> None:
    """Add a record's truth to every query's number of hits, in place."""
    for query in range(len(hits)):
        hits[query] += np.int32(truth[query])


@kernel(int64(_SCORES, int64))
def score_of(scores: Scores, query: int) -> int:
    """Return one score."""
    score: int = scores.rounds * scores.counts[query] - scores.n * np.int64(scores.hits[query])
    return score


@kernel(int64(_SCORES, int64))
def largest_score(scores: Scores, sides: int) -> int:
    """Return the largest score of an outcome; with two sides that of a query or a complement."""
    largest: int = score_of(scores, 0)
    for query in range(len(scores.counts)):
        score = score_of(scores, query)
        largest = max(largest, score if sides == 1 else abs(score))
    return largest


@kernel("UniTuple(uint64, 2)(int64, int64, float64)")
def weight(score: np.int64, largest: np.int64, unit: float) -> tuple[np.uint64, np.uint64]:
    """Return the two limbs of the integer weight of one outcome."""
    exponent = -unit * np.float64(largest - score)
    share = exponential(exponent if exponent > -CLAMP else -CLAMP)
    # Both products by a power of two, the difference and the truncations (floors, as nothing is
    # negative) are exact in binary floating point.
    scaled = share * np.float64(1 << HIGH_BITS)
    high = np.int64(scaled)
    low = np.int64((scaled - np.float64(high)) * np.float64(1 << LOW_BITS))
    return np.uint64(high), np.uint64(low)


@kernel(types.UniTuple(types.uint64, 2)(_LAW, int64))
def block_sum(law: Law, block: int) -> tuple[np.uint64, np.uint64]:
    """Return the limbs of the sum of the weights of a block's outcomes."""
    scores, largest, unit = law.scores, law.largest, law.unit
    high = np.uint64(0)
    low = np.uint64(0)
    # One side after the other: a loop over queries alone is what the compiler vectorises.
    for side in range(law.sides):
        sign = 1 - 2 * side
        for query in range(block * BLOCK, min((block + 1) * BLOCK, len(scores.counts))):
            more_high, more_low = weight(sign * score_of(scores, query), largest, unit)
            high += more_high
            low += more_low
    return high + (low >> np.uint64(LOW_BITS)), low & np.uint64(LOW_MASK)


@kernel(types.void(_LAW, _LIMBS))
def cumulative_sums(law: Law, sums: Limbs) -> None:
    """Fill ``sums`` (blocks + 1 long) with the exact sum of the weights before each block."""
    high, low = sums.high, sums.low
    high[0] = np.uint64(0)
    low[0] = np.uint64(0)
    for block in range(len(high) - 1):
        more_high, more_low = block_sum(law, block)
        total = low[block] + more_low
        high[block + 1] = high[block] + more_high + (total >> np.uint64(LOW_BITS))
        low[block + 1] = total & np.uint64(LOW_MASK)


@kernel(int64(_LAW, _LIMBS, _LIMBS, types.int64[::1], types.int8[::1]))
def look_up(
    law: Law, sums: Limbs, drawn: Limbs, queries: NDArray[np.int64], signs: NDArray[np.int8]
) -> int:
    """Find the query under each draw, draws sorted upwards; return how many were found.

    The result is the number of draws unless a block's weights do not add up to the sum that they
    were drawn from, which the caller must treat as a fault.
    """
    scores, sides, largest, unit = law.scores, law.sides, law.largest, law.unit
    high, low, draw_high, draw_low = sums.high, sums.low, drawn.high, drawn.low
    draws = len(draw_high)
    draw = 0
    for block in range(len(high) - 1):
        end_high = high[block + 1]
        end_low = low[block + 1]
        if draw == draws:
            break
        if draw_high[draw] > end_high or (
            draw_high[draw] == end_high and draw_low[draw] >= end_low
        ):
            continue
        at_high = high[block]
        at_low = low[block]
        for query in range(block * BLOCK, min((block + 1) * BLOCK, len(scores.counts))):
            for side in range(sides):
                sign = 1 - 2 * side
                more_high, more_low = weight(sign * score_of(scores, query), largest, unit)
                at_low += more_low
                at_high += more_high + (at_low >> np.uint64(LOW_BITS))
                at_low &= np.uint64(LOW_MASK)
                while draw < draws and (
                    draw_high[draw] < at_high
                    or (draw_high[draw] == at_high and draw_low[draw] < at_low)
                ):
                    queries[draw] = query
                    signs[draw] = sign
                    draw += 1
        if at_high != end_high or at_low != end_low:
            return -1
    return draw

"""Numba kernels of private draws: integer weights, their exact sums, and the lookup of draws.

Outcomes are queries, or queries and their complements: with ``sides`` 2 the class is closed under
complement and the complement of a query has the negative of its score; with ``sides`` 1 it is not.

Scores are an array of int64, or those of a game (`GameScores`), which are computed when asked for.

A weight is an 80-bit integer, ``floor(exp(x) 2^80)`` for ``x`` in ``[-CLAMP, 0]``, held as two
limbs of 38 and 42 bits so that sums of up to 2^26 weights fit two 64-bit words exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import int32, int64, types
from numba.extending import overload
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


class GameScores(NamedTuple):
    """Scores ``rounds * counts - n * hits`` of queries after some rounds of the game."""

    counts: NDArray[np.int64]
    """Number of rows that satisfy each query, exact; shape ``(m,)``."""
    hits: NDArray[np.int32]
    """Number of past records that do; shape ``(m,)``."""
    rounds: int
    """Number of past records."""
    n: int
    """Number of rows."""


Scores: TypeAlias = NDArray[np.int64] | GameScores
"""The score of every outcome (of every query with ``sides`` 2), exact."""


class Law(NamedTuple):
    """What gives every outcome its integer weight."""

    scores: Scores
    sides: int
    """2 if every query stands for its complement too, whose score is the negative; else 1."""
    largest: np.int64 | int
    """The largest score of an outcome."""
    unit: float
    """Log-weight of one unit of score, > 0."""


class Limbs(NamedTuple):
    """Integers as pairs of limbs, ``high * 2^LOW_BITS + low``."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]


_ARRAY = types.Array(int64, 1, "C")
_GAME = types.NamedTuple((int64[::1], int32[::1], int64, int64), GameScores)
_LAWS = [types.NamedTuple((s, int64, int64, types.float64), Law) for s in (_ARRAY, _GAME)]
_LIMBS = types.NamedUniTuple(types.uint64[::1], 2, Limbs)


def score_of(scores: Any, query: Any) -> Any:
    """Return one score, int64 (inside compiled code, as it is for both kinds of scores)."""
    if isinstance(scores, GameScores):
        return scores.rounds * int(scores.counts[query]) - scores.n * int(scores.hits[query])
    return scores[query]


def count_of(scores: Any) -> Any:
    """Return how many scores there are."""
    return len(scores.counts) if isinstance(scores, GameScores) else len(scores)


@overload(score_of, strict=False)
def _compile_score_of(scores: Any, query: Any) -> Any:  # noqa: ARG001
    if isinstance(scores, types.NamedTuple):
        return lambda scores, query: (
            scores.rounds * scores.counts[query] - scores.n * np.int64(scores.hits[query])
        )
    return lambda scores, query: scores[query]


@overload(count_of, strict=False)
def _compile_count_of(scores: Any) -> Any:
    if isinstance(scores, types.NamedTuple):
        return lambda scores: len(scores.counts)
    return lambda scores: len(scores)


@kernel("void(int32[::1], uint8[::1])")
def add_hits(hits: NDArray[np.int32], truth: NDArray[np.uint8]) -> None:
    """Add a record's truth to every query's number of hits, in place."""
    for query in range(len(hits)):
        hits[query] += np.int32(truth[query])


@kernel(int64(_GAME))
def largest_magnitude(scores: GameScores) -> int:
    """Return ``max |score|``: the largest score of the class closed under complement."""
    largest = np.int64(0)
    for query in range(count_of(scores)):
        largest = max(largest, abs(score_of(scores, query)))
    return int(largest)


@kernel(int64(_ARRAY))
def largest_score(scores: NDArray[np.int64]) -> np.int64:
    """Return the largest of one or more scores."""
    largest = np.int64(scores[0])
    for score in scores:
        largest = max(largest, score)
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


@kernel(*[types.UniTuple(types.uint64, 2)(law, int64) for law in _LAWS])
def block_sum(law: Law, block: int) -> tuple[np.uint64, np.uint64]:
    """Return the limbs of the sum of the weights of a block's outcomes."""
    scores, largest, unit = law.scores, law.largest, law.unit
    high = np.uint64(0)
    low = np.uint64(0)
    # One side after the other: a loop over queries alone is what the compiler vectorises.
    for side in range(law.sides):
        sign = 1 - 2 * side
        for query in range(block * BLOCK, min((block + 1) * BLOCK, count_of(scores))):
            more_high, more_low = weight(sign * score_of(scores, query), largest, unit)
            high += more_high
            low += more_low
    return high + (low >> np.uint64(LOW_BITS)), low & np.uint64(LOW_MASK)


@kernel(*[types.void(law, _LIMBS) for law in _LAWS])
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


@kernel(*[int64(law, _LIMBS, _LIMBS, types.int64[::1], types.int8[::1]) for law in _LAWS])
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
        for query in range(block * BLOCK, min((block + 1) * BLOCK, count_of(scores))):
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

"""Exact draws of outcomes with integer weights: what every exponential mechanism here rests on.

A 53-bit uniform on rounded floating-point weights would be off by more in total variation, over a
whole run, than a delta of 1/n^2 allows. Here scores are integers. Weights are 80-bit integers,
added without rounding, and a draw is a uniform integer below their sum, by rejection from whole
random words. What remains is the relative error of a single integer weight:

- ``exp`` of a product: one rounding of an argument of at most 24 (2^-48.4) and our own ``exp``, a
  fixed sequence of IEEE operations proven to be within 2^-51 (`exp_kernels`);
- the floor to 80 bits of a share of at least e^-24 (2^-45.4).

Together they stay below ``WEIGHT_ERROR`` = 2^-44, and the schedule charges 4 times that for every
draw. Log-weights are clamped from below at the largest minus 24. Clamping is a maximum of functions
that each move by as much between neighbours as a log-weight does, so the range of a draw stays the
same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.randomness import Randomness


@dataclass(frozen=True, eq=False, slots=True)
class Sample:
    """Queries drawn from the weights: differentially private, hence public once drawn."""

    queries: NDArray[np.int64]  # (draws,): positions in the workload, in increasing order
    signs: NDArray[np.int8]  # (draws,): +1 for the query itself, -1 for its complement

    @property
    def outcomes(self) -> NDArray[np.int64]:
        """Queries and signs in one number each: twice the position, and 1 for a complement."""
        return 2 * self.queries + (self.signs < 0)

    @staticmethod
    def of(outcomes: NDArray[np.int64]) -> Sample:
        """Return the sample that `outcomes` were of."""
        return Sample(outcomes >> 1, (1 - 2 * (outcomes & 1)).astype(np.int8))


def draw_outcomes(
    scores: kernels.Scores, sides: int, unit: float, draws: int, randomness: Randomness
) -> Sample:
    """Draw outcomes independently, each with probability proportional to its integer weight.

    The weights are those of `Law`: with ``sides`` 2 every query stands for its complement too.
    """
    blocks = -(-len(scores.counts) // kernels.BLOCK)
    law = kernels.Law(scores, sides, kernels.largest_score(scores, sides), float(unit))
    sums = kernels.Limbs(np.empty(blocks + 1, np.uint64), np.empty(blocks + 1, np.uint64))
    kernels.cumulative_sums(law, sums)
    drawn = uniform_below(int(sums.high[-1]), int(sums.low[-1]), draws, randomness)
    queries = np.empty(draws, dtype=np.int64)
    signs = np.empty(draws, dtype=np.int8)
    found = kernels.look_up(law, sums, drawn, queries, signs)
    if found != draws:
        raise RuntimeError("a block of query weights changed between its sum and its draw")
    return Sample(queries, signs)


def uniform_below(high: int, low: int, count: int, randomness: Randomness) -> kernels.Limbs:
    """Return exact uniform integers below ``high * 2^42 + low``, sorted, as pairs of limbs.

    Bits beyond the bound's length are dropped and values not below it are drawn again, so no value
    is favoured; at least half of the proposals are kept. ``low < 2^42`` and ``high >= 1``.
    """
    if high < 1:
        raise ValueError(f"the bound's high limb is {high}; at least 1 is needed")
    spare = np.uint64(64 - high.bit_length())
    spare_low = np.uint64(64 - kernels.LOW_BITS)
    kept_high: list[NDArray[np.uint64]] = []
    kept_low: list[NDArray[np.uint64]] = []
    missing = count
    while missing > 0:
        words = randomness.words(2 * (2 * missing + 8))
        proposed_high = words[0::2] >> spare
        proposed_low = words[1::2] >> spare_low
        below = (proposed_high < np.uint64(high)) | (
            (proposed_high == np.uint64(high)) & (proposed_low < np.uint64(low))
        )
        kept_high.append(proposed_high[below][:missing])
        kept_low.append(proposed_low[below][:missing])
        missing -= len(kept_high[-1])
    all_high = np.concatenate(kept_high) if kept_high else np.zeros(0, np.uint64)
    all_low = np.concatenate(kept_low) if kept_low else np.zeros(0, np.uint64)
    order = np.lexsort((all_low, all_high))
    return kernels.Limbs(all_high[order], all_low[order])

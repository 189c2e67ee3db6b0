"""Multiplicative weights over the queries, and exact draws from them (the query player).

The class of queries is closed under complement, implicitly: one integer score a query holds both,

    S_q = sum over K past records x of (c_q - n q(x)) = K c_q - n h_q,    c_q = n q(D),

h_q being the number of these records that satisfy q. The counts are held already and the hits are
public; the score is computed from them, exactly, whenever it is needed, so that the player holds
4 bytes a query beside the counts. After rounds with step eta the query has log-weight
``(eta / n) S_q`` and its complement the negative of it (Algorithm 1 of the DualQuery paper, with
the sign that raises the weight of a query which the records so far under-serve).

**When a record is added or removed,** n is private and a public N stands in for it. Statistic from
1/2, the middle of its values, a query is ``c_q - n/2``, so that a record contributes 1/2 or -1/2 to
it, and ``c_q + (N - n)/2`` stands in for c_q: log-weights then move by at most ``eta K / 2N`` in
K rounds, up or down, and the range is half of that for replacing a record. In whole numbers it is
the game with ``2 c_q + N - n`` for the counts and 2N for n (`QueryWeights.centred`).

**Draws are exact.** A 53-bit uniform on rounded floating-point weights would be off by more in
total variation, over a whole run, than a delta of 1/n^2 allows. Here scores are integers, so
neighbours differ in them exactly as the proof says. Weights are 80-bit integers, added without
rounding, and a draw is a uniform integer below their sum, by rejection from whole random words.
What remains is the relative error of a single integer weight:

- ``exp`` of a product: one rounding of an argument of at most 24 (2^-48.4) and our own ``exp``, a
  fixed sequence of IEEE operations proven to be within 2^-51 (`exponential_kernels`);
- the floor to 80 bits of a share of at least e^-24 (2^-45.4).

Together they stay below ``WEIGHT_ERROR`` = 2^-44, and the schedule charges 4 times that for every
draw. Log-weights are clamped from below at the largest minus 24. Clamping is a maximum of
functions that each move by at most eta K / n between neighbours, so the range of a draw stays the
same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.room import weights_kernels as kernels
from dualquery.room.randomness import Randomness

MOST_QUERIES = (1 << 25) - 1
"""Above this, sums of weights could overflow their two words."""

MOST_ROUNDS = 1 << 21
"""Above this, scores of 10^12 rows could overflow, and hits."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Queries drawn from the weights: differentially private, hence public once drawn.

    Parameters
    ----------
    queries
        int64, shape ``(draws,)``: positions in the workload, in increasing order.
    signs
        int8, shape ``(draws,)``: +1 for the query itself, -1 for its complement.
    """

    queries: NDArray[np.int64]
    signs: NDArray[np.int8]


class QueryWeights:
    """The query player's distribution. Private: lives in the curator and never leaves it.

    Parameters
    ----------
    counts
        int64, shape ``(m,)``: number of rows that satisfy each query, exact. Not copied.
    n
        Number of rows (public).
    step
        Learning rate eta.
    """

    def __init__(self, counts: NDArray[np.int64], n: int, step: float) -> None:
        if len(counts) > MOST_QUERIES:
            raise ValueError(f"{len(counts):,} queries; the weights hold at most {MOST_QUERIES:,}")
        self._counts = np.ascontiguousarray(counts, dtype=np.int64)
        self._hits = np.zeros(len(counts), dtype=np.int32)
        self._n = n
        self._step = step
        self._rounds = 0

    @staticmethod
    def centred(
        counts: NDArray[np.int64], rows: int, public_rows: int, step: float
    ) -> QueryWeights:
        """Return the weights for neighbours by adding or removing a row.

        Parameters
        ----------
        counts, step
            As of the class.
        rows
            The true number of rows, private.
        public_rows
            N.
        """
        doubled = 2 * np.asarray(counts, np.int64) + (public_rows - rows)
        return QueryWeights(doubled, 2 * public_rows, step)

    @property
    def range(self) -> float:
        """Bounded range of one draw: a log-weight moves by at most eta K / n between neighbours.

        A count moves by at most 1 when a row is replaced, and a centred, doubled one by at most 1
        when a row is added or removed.
        """
        return 2.0 * self._step * self._rounds / self._n

    def update(self, truth: NDArray[np.uint8]) -> None:
        """Move every weight by one round.

        Parameters
        ----------
        truth
            uint8, shape ``(m,)``: value of every query on the round's record.

        Raises
        ------
        ValueError
            If there were `MOST_ROUNDS` already.
        """
        if self._rounds == MOST_ROUNDS:
            raise ValueError(f"more than {MOST_ROUNDS:,} rounds: scores would wrap")
        kernels.add_hits(self._hits, truth)
        self._rounds += 1

    @property
    def scores(self) -> kernels.GameScores:
        """The scores of the queries."""
        return kernels.GameScores(self._counts, self._hits, self._rounds, self._n)

    def sample(self, draws: int, randomness: Randomness) -> Sample:
        """Draw queries independently, each with probability proportional to its integer weight."""
        largest = kernels.largest_magnitude(self.scores)
        return draw_outcomes(self.scores, 2, largest, self._step / self._n, draws, randomness)


def draw_outcomes(
    scores: kernels.Scores,
    sides: int,
    largest: int,
    unit: float,
    draws: int,
    randomness: Randomness,
) -> Sample:
    """Draw outcomes independently, each with probability proportional to its integer weight.

    Parameters
    ----------
    scores
        Score of every query, exact: int64, shape ``(m,)``, or those of a game.
    sides
        2 if every query stands for its complement too, whose score is the negative; else 1.
    largest
        Largest score of an outcome.
    unit
        Log-weight of one unit of score; > 0.
    draws
        How many draws.
    randomness
        Source of uniform words.
    """
    blocks = -(-kernels.count_of(scores) // kernels.BLOCK)
    law = kernels.Law(scores, sides, int(largest), float(unit))
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
    is favoured; at least half of the proposals are kept.

    Parameters
    ----------
    high, low
        Limbs of the bound; ``low < 2^42`` and ``high >= 1``.
    count
        How many integers.
    randomness
        Source of uniform words.

    Returns
    -------
    Arrays of shape ``(count,)``.
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

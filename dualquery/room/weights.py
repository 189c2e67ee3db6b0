"""Multiplicative weights over the queries, and exact draws from them (the query player).

The class of queries is closed under complement, implicitly: one integer score a query holds both,

    S_q = sum over K past records x of (c_q - n q(x)) = K c_q - n h_q,    c_q = n q(D),

h_q being the number of these records that satisfy q. The counts are held already and the hits are
public; the score is computed from them, exactly, whenever it is needed, so that the player holds
4 bytes a query beside the counts. After rounds with step eta the query has log-weight
``(eta / n) S_q`` and its complement the negative of it (Algorithm 1 of the DualQuery paper, with
the sign that raises the weight of a query which the records so far under-serve).

**When a record is added or removed,** n is private and a public N stands in for it. Counted from
1/2, the middle of its values, a query is ``c_q - n/2``, so that a record contributes 1/2 or -1/2 to
it, and ``c_q + (N - n)/2`` stands in for c_q: log-weights then move by at most ``eta K / 2N`` in
K rounds, up or down, and the range is half of that for replacing a record. In whole numbers it is
the game with ``2 c_q + N - n`` for the counts and 2N for n (`QueryWeights.centred`). Such a number
moves by 1; where a *unit* of R rows is added or removed by R, where it is replaced by 2R, for a row
that is replaced moves c_q by 1 and N - n not at all.

**Lemma.** Between neighbours that move a count by at most u, a log-weight moves by at most
``u eta K / n``, up or down, after K rounds, so a draw has the bounded range ``2 u eta K / n``. The
weights and the draws are exact (`room.draws.exact_draws`, whose rounding `RANGE_SLACK` pays for),
and scores are integers, so neighbours differ in them exactly as the proof says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import RANGE_SLACK, SampledQueries
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.exact_draws import Sample, draw_outcomes
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import Randomness

MOST_QUERIES = (1 << 25) - 1
"""Above this, sums of weights could overflow their two words."""

MOST_ROUNDS = 1 << 21
"""Above this, scores of 10^12 rows could overflow, and hits."""


class QueryWeights:
    """The query player's distribution. Private: lives in the curator and never leaves it.

    ``counts`` (int64, not copied) are the exact numbers of rows that satisfy each query, ``n`` is
    the public number of rows, ``step`` the learning rate eta, and ``move`` u: how far one count
    moves at most between neighbours.
    """

    def __init__(self, counts: NDArray[np.int64], n: int, step: float, move: float = 1.0) -> None:
        if len(counts) > MOST_QUERIES:
            raise ValueError(f"{len(counts):,} queries; the weights hold at most {MOST_QUERIES:,}")
        self._counts = np.ascontiguousarray(counts, dtype=np.int64)
        self._hits = np.zeros(len(counts), dtype=np.int32)
        self._n = n
        self._step = step
        self.move = move
        self._rounds = 0

    @staticmethod
    def centred(
        counts: NDArray[np.int64], rows: int, public_rows: int, step: float, move: float = 1.0
    ) -> QueryWeights:
        """Return the weights where the number of ``rows`` is private; ``move`` is of doubled ones.

        Adding or removing a row moves a centred, doubled count by 1.
        """
        doubled = 2 * np.asarray(counts, np.int64) + (public_rows - rows)
        return QueryWeights(doubled, 2 * public_rows, step, move)

    @property
    def range(self) -> float:
        """Bounded range of one draw: log-weights move by at most u eta K / n between neighbours."""
        return 2.0 * self.move * self._step * self._rounds / self._n

    def update(self, truth: NDArray[np.uint8]) -> None:
        """Move every weight by one round, by the queries' values on its record: uint8, ``(m,)``.

        `ValueError` if there were `MOST_ROUNDS` already.
        """
        if self._rounds == MOST_ROUNDS:
            raise ValueError(f"more than {MOST_ROUNDS:,} rounds: scores would wrap")
        kernels.add_hits(self._hits, truth)
        self._rounds += 1

    @property
    def scores(self) -> kernels.Scores:
        """The scores of the queries."""
        return kernels.Scores(self._counts, self._hits, self._rounds, self._n)

    def sample(self, draws: int, randomness: Randomness) -> Sample:
        """Draw queries independently, each with probability proportional to its integer weight."""
        return draw_outcomes(self.scores, 2, self._step / self._n, draws, randomness)


def sample_queries(weights: QueryWeights, draws: int, ledger: Ledger, source: Randomness) -> Sample:
    """Charge for ``draws`` draws, each an exponential mechanism of bounded range; make them."""
    moved = f"one count by {weights.move:g}"
    ground = Ground(__name__, "counts of the queries, once a round", weights.move, proof=moved)
    event = SampledQueries(weights.range + RANGE_SLACK, draws)
    made = ledger.draw(event, ground, lambda: weights.sample(draws, source).outcomes, (draws,))
    return Sample.of(made)

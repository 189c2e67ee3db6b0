"""What the game has shown so far, and the best-response problem that follows. All of it is public.

**Why draws are remembered.** Algorithm 1 shows a few draws a round and forgets them. Yet the draws
of earlier rounds come from nearly the same distribution: between rounds ``u < t`` the log-weight of
a query moves by ``eta sum_{u <= v < t} (q(D) - q(x^v))``, where the records are public and ``q(D)``
is, near the end of a game, about what the records answer on average. So a draw of round u counts as
``exp`` of that much (with its sign) of a draw of round t: importance sampling with an estimated
ratio. It is post-processing of draws that are paid for, and lets a round make do with far fewer.
"""

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.dualquery.best_response import Problems
from dualquery.queries.disjunctions import Disjunctions
from dualquery.room.draws.exact_draws import Sample
from dualquery.rules.forbidden import Forbidden
from solvers import BestResponse

GRAIN = 8
"""A remembered draw counts as a whole number of eighths: solvers prove more of whole weights."""
_LARGEST_DRIFT = 6.0
"""Estimated log-ratios are cut here: beyond it the estimate is no guide."""


class Transcript:
    """The records played, at most ``rounds``, and the queries drawn.

    A best response looks at the draws of ``remembered_rounds``, the present one included; 1 is
    Algorithm 1. The draws of k rounds ago count ``(1 - 1/remembered_rounds)^k`` as much.
    """

    def __init__(
        self,
        queries: Disjunctions,
        step: float,
        remembered_rounds: int,
        rounds: int,
        rules: Forbidden | None = None,
    ) -> None:
        self.queries, self.step = queries, step
        self._problems = Problems(queries, rules)
        self._played = 0
        # Written at once, so that a lack of memory shows before the first draw.
        self._records = np.full((rounds, queries.domain.bits), 0, np.uint8)
        self._truths = np.full((rounds, -(-len(queries) // 8)), 0, np.uint8)
        self.samples: list[Sample] = []  # of rounds 2, 3, ...: i was drawn after i + 1 records
        self._decay = 1.0 - 1.0 / remembered_rounds
        self._grain = GRAIN if remembered_rounds > 1 else 1
        self._remembered_rounds = remembered_rounds
        # Draws that are remembered, oldest first: query, sign, rounds since, records that satisfy.
        self._drawn = self._signs = self._ages = self._hits = np.zeros(0, np.int64)
        # Sum of t over the records of rounds t on which each query holds.
        self._weighted = np.zeros(len(queries), np.float32)

    @property
    def truths(self) -> NDArray[np.uint8]:
        """Which of m queries hold on each record played: uint8, m bits a row, packed."""
        return self._truths[: self._played]

    @property
    def records(self) -> NDArray[np.uint8]:
        """The records played: uint8, shape ``(rounds so far, d)``."""
        return self._records[: self._played]

    def play(self, record: NDArray[np.uint8]) -> None:
        """Add the round's record, uint8 ``(d,)``."""
        truth = self.queries.on_record(record)
        self._records[self._played] = record
        self._truths[self._played] = np.packbits(truth)
        self._played += 1
        self._weighted += np.float32(self._played) * truth
        self._ages = self._ages + 1
        self._hits = self._hits + truth[self._drawn]

    def show(self, sample: Sample) -> None:
        """Add the round's draws."""
        self.samples.append(sample)
        first = np.searchsorted(-self._ages, -self._remembered_rounds, side="right")
        fresh = np.zeros(len(sample.queries), np.int64)
        self._drawn = np.concatenate((self._drawn[first:], sample.queries))
        self._signs = np.concatenate((self._signs[first:], sample.signs))
        self._ages = np.concatenate((self._ages[first:], fresh))
        self._hits = np.concatenate((self._hits[first:], fresh))

    def best_response(self) -> BestResponse:
        """Pose the problem of the draws that are remembered."""
        copies = np.rint(self._grain * self._worth()).astype(np.int64)
        return self._problems.of(self._drawn, self._signs * copies)

    def _worth(self) -> NDArray[np.float64]:
        """Return how many draws of the present round each draw counts as."""
        rounds = len(self.records)
        # Later records tell more: the record of round t counts in proportion to t.
        average = self._weighted[self._drawn] * (2.0 / (rounds * (rounds + 1)))
        moved = self._ages * average - self._hits
        drift = self.step * self._signs * moved
        ratio = np.exp(np.clip(drift, -_LARGEST_DRIFT, _LARGEST_DRIFT))
        number, total = np.bincount(self._ages), np.bincount(self._ages, ratio)
        mean = total / np.maximum(number, 1)
        faded = self._decay ** np.arange(len(number))
        return np.asarray(faded[self._ages] * ratio / mean[self._ages], dtype=np.float64)

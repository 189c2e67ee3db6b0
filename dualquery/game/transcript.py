"""What the game has shown so far, and the best-response problem that follows. All of it is public.

**Why draws are remembered.** Algorithm 1 shows a few draws a round and forgets them. Yet the draws
of earlier rounds come from nearly the same distribution: between rounds ``u < t`` the log-weight of
a query moves by ``eta sum_{u <= v < t} (q(D) - q(x^v))``, where the records are public and ``q(D)``
is, near the end of a game, about what the records answer on average. So a draw of round u counts as
``exp`` of that much (with its sign) of a draw of round t: importance sampling with an estimated
ratio. It is post-processing of draws that are paid for, and lets a round make do with far fewer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.weights import Sample
from dualquery.queries.disjunctions import Disjunctions
from solvers import BestResponse

GRAIN = 8
"""A remembered draw counts as a whole number of eighths: solvers prove more of whole weights."""
_LARGEST_DRIFT = 6.0
"""Estimated log-ratios are cut here: beyond it the estimate is no guide."""


@dataclass(eq=False)
class _Remembered:
    """A round's draws, and what has moved their weights since then."""

    sample: Sample
    gathered: int
    """Steps of the records until then."""
    hits: NDArray[np.int64]
    """Steps of the records since then on which each draw's query holds."""
    age: int = 0
    """Rounds since then."""


class Transcript:
    """The records played and the queries drawn.

    Parameters
    ----------
    queries
        What is drawn from, m queries.
    step
        Learning rate of the query player, or the unit of learning rates.
    memory
        Rounds whose draws the best response looks at, the present one included; >= 1, and 1 is
        Algorithm 1. The draws of k rounds ago count ``(1 - 1/memory)^k`` as much.
    """

    def __init__(self, queries: Disjunctions, step: float, memory: int) -> None:
        self.queries = len(queries)
        self.step = step
        self.records: list[NDArray[np.uint8]] = []
        self.truths: list[NDArray[np.uint8]] = []
        """Which queries hold on each record: m bits, packed."""
        self.multiples: list[int] = []
        """Learning rate of each record's round, in steps."""
        self.samples: list[Sample] = []
        """Samples of rounds 2, 3, ...: entry i was drawn after i + 1 records."""
        self._posed = queries
        self._decay = 1.0 - 1.0 / memory
        self._grain = GRAIN if memory > 1 else 1
        self._recent: deque[_Remembered] = deque(maxlen=memory)
        self._gathered = 0
        self._average = np.zeros(len(queries))
        """The records' answers, the record of round t with a share proportional to t."""

    def play(self, record: NDArray[np.uint8], multiple: int = 1) -> None:
        """Add the round's record, uint8 ``(d,)``, and its learning rate in steps."""
        truth = self._posed.on_record(record)
        self.records.append(record)
        self.truths.append(np.packbits(truth))
        self.multiples.append(multiple)
        self._gathered += multiple
        self._average += (truth - self._average) * (2.0 / (len(self.records) + 1))
        for each in self._recent:
            each.hits += np.int64(multiple) * truth[each.sample.queries]
            each.age += 1

    def show(self, sample: Sample) -> None:
        """Add the round's draws."""
        self.samples.append(sample)
        hits = np.zeros(len(sample.queries), np.int64)
        self._recent.append(_Remembered(sample, self._gathered, hits))

    def best_response(self) -> BestResponse:
        """Pose the problem of the draws that are remembered."""
        queries = np.concatenate([each.sample.queries for each in self._recent])
        signs = np.concatenate([each.sample.signs for each in self._recent])
        worth = np.concatenate([self._worth(each) for each in self._recent])
        copies = np.rint(self._grain * worth)
        drawn = [np.bincount(queries, copies * (signs == sign)) for sign in (1, -1)]
        of_query, of_complement = (np.flatnonzero(each) for each in drawn)
        return self._posed.best_response(
            np.concatenate((of_query, of_complement)),
            np.concatenate((drawn[0][of_query], -drawn[1][of_complement])).astype(np.int64),
        )

    def _worth(self, each: _Remembered) -> NDArray[np.float64]:
        """Return how many draws of the present round each draw of an earlier one counts as."""
        steps = self._gathered - each.gathered
        moved = steps * self._average[each.sample.queries] - each.hits
        drift = self.step * each.sample.signs * moved
        ratio = np.exp(np.clip(drift, -_LARGEST_DRIFT, _LARGEST_DRIFT))
        return np.asarray(self._decay**each.age * ratio / ratio.mean(), dtype=np.float64)

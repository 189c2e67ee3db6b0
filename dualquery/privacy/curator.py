"""The private room: the only code that reads private rows and holds exact answers.

To audit the privacy of a release, read this file, ``weights.py`` and the ``schedule`` that the
accountant was given. A ``Curator`` reads the rows once, keeps the exact counts to itself and gives
out differentially private results only; each is charged to the ledger *before* it is drawn.
Everything that happens elsewhere is post-processing of these results and of public inputs.

Neighbours: one row replaced by another, the number of rows n public.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.records import Records
from dualquery.privacy.events import (
    RANGE_SLACK,
    DiscreteGaussianNoise,
    LaplaceNoise,
    SampledQueries,
    Schedule,
    events_of,
)
from dualquery.privacy.ledger import Ledger
from dualquery.privacy.randomness import Randomness
from dualquery.privacy.weights import QueryWeights, Sample
from dualquery.queries.sensitivity import differing_queries
from dualquery.queries.workload import Workload


class Curator:
    """Holds the exact answers to a workload and sells private results about them.

    Parameters
    ----------
    records
        The private rows. They are read here, once.
    workload
        The queries whose answers are held.
    schedule
        The events that the release's guarantee was computed for.
    randomness
        Source of the private draws.
    threads
        Threads for the pass over the rows.
    """

    def __init__(
        self,
        records: Records,
        workload: Workload,
        schedule: Schedule,
        randomness: Randomness,
        *,
        threads: int = 1,
    ) -> None:
        self._counts = workload.counts(records, threads=threads)
        self._workload = workload
        self._n = records.n
        self._ledger = Ledger(schedule)
        self._randomness = randomness
        self._threads = threads
        self._weights: QueryWeights | None = None

    def begin_game(self, step: float) -> None:
        """Start multiplicative weights over the queries, uniform, with learning rate ``step``."""
        self._weights = QueryWeights(self._counts, self._n, step)

    def reweight(self, record: NDArray[np.uint8]) -> None:
        """Raise the weights of queries that a public record under-serves; nothing comes out.

        Parameters
        ----------
        record
            uint8, shape ``(d,)``: the round's best response.
        """
        self._game.update(self._workload.on_record(record))

    def sample_queries(self, draws: int) -> Sample:
        """Draw queries from the weights: each draw an exponential mechanism of bounded range."""
        self._ledger.charge(SampledQueries(self._game.range + RANGE_SLACK, draws))
        return self._game.sample(draws, self._randomness)

    def measure_gaussian(self, scale: float) -> NDArray[np.int64]:
        """Return all counts plus discrete Gaussian noise of the given scale (in rows)."""
        sensitivity = math.sqrt(differing_queries(self._workload).count)
        self._ledger.charge(DiscreteGaussianNoise(sensitivity, scale))
        return self._counts + self._randomness.discrete_gaussian(scale, len(self._counts))

    def measure_laplace(self, scale: float) -> NDArray[np.int64]:
        """Return all counts plus discrete Laplace noise of the given scale (in rows)."""
        sensitivity = differing_queries(self._workload).count
        self._ledger.charge(LaplaceNoise(sensitivity / scale))
        return self._counts + self._randomness.discrete_laplace(scale, len(self._counts))

    @property
    def _game(self) -> QueryWeights:
        if self._weights is None:
            raise RuntimeError("begin_game must come before the first round")
        return self._weights


def numerical_assumptions(schedule: Schedule) -> tuple[str, ...]:
    """Return what the room's arithmetic takes for granted, a sentence each, for the release."""
    sentences = []
    events = events_of(schedule)
    if any(isinstance(event, SampledQueries) for event in events):
        sentences.append(
            "Queries are drawn exactly from 80-bit integer weights by AES-256-CTR words seeded "
            "by the operating system; exp is taken to be accurate to 8 units in the last place, "
            "and the rounding of the weights is charged."
        )
    if any(not isinstance(event, SampledQueries) for event in events):
        sentences.append(
            "Noise is integer noise from OpenDP's exact samplers, added to integer counts; its "
            "scale is computed in double precision."
        )
    return tuple(sentences)

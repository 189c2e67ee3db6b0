"""Counts of the held queries: all of them, some of them, or one.

**Lemma.** The moves of these vectors are those of `dualquery.room.sensitivity.moves`: of
`count_moves` for several queries, which bounds how many of them can move, and of `one_count_move`
for one. When a record is added or removed, conjunctions without positive literals are counted on
the rows where they do *not* hold (`complemented`); the public N less the noisy count is given out.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Statistic
from dualquery.room.exact import Exact, Numbers
from dualquery.room.private_data import PrivateData, as_conjunctions
from dualquery.room.sensitivity.bounds import complemented
from dualquery.room.sensitivity.moves import Moves, count_moves, one_count_move


@dataclass(frozen=True, slots=True)
class AllQueries:
    """The counts of all queries, in steps."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the counts, or those of complements, move."""
        return count_moves(queries, neighbours)

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts, of complements where these hold on fewer records."""
        moves = self.moves(data.queries, data.neighbours)
        counts = _contributed(data, data.queries, data.counts)
        return Exact(type(self).__name__, counts, moves, unit=data.queries.step)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:
        """Return the counts that noisy ones stand for; by public facts."""
        return _as_counts(data, data.queries, noisy)


@dataclass(frozen=True, eq=False, slots=True)
class SomeQueries:
    """The counts of some conjunctions, in rows."""

    positions: NDArray[np.int64]
    """Whole numbers, public. The moves are those of these queries alone."""

    def __post_init__(self) -> None:
        given = np.asarray(self.positions)
        if given.ndim != 1 or given.dtype.kind not in "iu":  # a mask would choose other queries
            raise ValueError("the queries to measure must be a list of positions")
        object.__setattr__(self, "positions", np.array(given, np.int64))

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the counts of these queries move."""
        return count_moves(self._of(as_conjunctions(queries)), neighbours)

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts, of complements where these hold on fewer records."""
        part = self._of(data.conjunctions)
        counts = _contributed(data, part, data.counts[self.positions])
        return Exact(type(self).__name__, counts, count_moves(part, data.neighbours))

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:
        """Return the counts that noisy ones stand for; by public facts."""
        return _as_counts(data, self._of(data.conjunctions), noisy)

    def _of(self, queries: Workload) -> Workload:
        """Return these of some queries; the same object each time, whose bounds are then known."""
        return _some(queries, self.positions.tobytes())


@dataclass(frozen=True, slots=True)
class OneQuery:
    """The count of one query, in steps: a vector of one number."""

    position: int
    """Of the query; public."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how one count moves."""
        return Moves.of_entries(1, one_count_move(queries, neighbours), "definition")

    def exact(self, data: PrivateData) -> Exact:
        """Return the count."""
        count = data.counts[[operator.index(self.position)]]
        moves = self.moves(data.queries, data.neighbours)
        return Exact(type(self).__name__, count, moves, unit=data.queries.step)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return the noisy count as it is."""
        return noisy


@lru_cache(maxsize=4)
def _some(queries: Workload, positions: bytes) -> Workload:
    """Return the queries at some positions, int64."""
    return queries.take(np.frombuffer(positions, np.int64))


def _contributed(
    data: PrivateData, queries: Statistic, counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the counts, of complements where these are counted. Private."""
    if data.rows_public:
        return counts
    return np.where(complemented(queries), data.rows.n - counts, counts)


def _as_counts(data: PrivateData, queries: Statistic, noisy: Numbers) -> Numbers:
    """Return the counts that noisy ones of complements stand for."""
    if data.rows_public:
        return noisy
    return np.where(complemented(queries), data.public_rows - noisy, noisy)

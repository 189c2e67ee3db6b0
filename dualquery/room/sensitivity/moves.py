"""How far exact numbers move between neighbouring tables; the room charges it, plans ask for it.

When one record is *replaced*, the number of rows n is public; a count moves by at most the spread
of its query, and only the counts of queries that tell the two records apart move.

When one record is *added or removed*, n is private, and a public number of rows N stands in for it
(see `dualquery.room.row_count`). A count then moves by what one record contributes. Two things
make that small:

- *Complements.* A conjunction without positive literals holds on most records, so the room counts
  the rows on which it does **not** hold, and gives out N less that: see
  `dualquery.room.sensitivity.bounds.contributing_queries`.
- *Centres.* A query's values lie in ``low .. high``. Counted from their middle z, a record
  contributes at most half of the range, up or down: the room uses ``c + (N - n) z`` for a count c
  where only the log-ratio of weights or the comparison of scores matters. That is half of what
  replacing a record does, at the price of a common shift by (N - n) z.

When one *unit* of at most K rows is replaced, added or removed (`dualquery.privacy.neighbours`), n
is private, too, and the same numbers are counted: complements, centres, N in the place of n. A step
that adds or removes a row moves them as above. A step that replaces a row moves them as it moves
plain counts: it leaves n and N alone, so a complement moves as its count does, and a centre not at
all. Neighbours are at most K steps apart, and move the numbers by at most K times the larger of the
two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Statistic
from dualquery.room.sensitivity.bounds import (
    contributing_queries,
    differing_queries,
    parities_apart,
)


@dataclass(frozen=True)
class Moves:
    """How far a vector of numbers moves between neighbours."""

    l1: float  # largest sum of the absolute moves of its entries; infinite where none is proven
    l2: float  # largest Euclidean length of its move
    entries: int = 0  # most entries that move, where `l1` and `l2` follow from it; else 0
    proof: str = ""  # the argument that proves the moves

    @staticmethod
    def of_entries(entries: int, each: float, proof: str = "") -> Moves:
        """Return the moves of a vector of which ``entries`` move, each by at most ``each``.

        Numbers that no record can move are charged as if one of them did, so that noise has a
        scale.
        """
        charged = max(entries, 1)
        return Moves(each * charged, each * math.sqrt(charged), entries, proof)

    @staticmethod
    def between(
        neighbours: Neighbours, replaced: Callable[[], Moves], added: Callable[[], Moves]
    ) -> Moves:
        """Return how far neighbours are apart, by the steps of their relation.

        ``replaced`` and ``added`` give how far the vector moves when one row is replaced, or added
        or removed; asked only if a step of the relation may do that.
        """
        if neighbours.unit is None and neighbours.weight is None:
            return replaced() if neighbours.replaces else added()
        steps = [replaced(), added()] if neighbours.replaces else [added()]
        most = neighbours.steps
        # As many entries may move in each step, and no more than that is said of them.
        return Moves(
            most * max(step.l1 for step in steps),
            most * max(step.l2 for step in steps),
            most * max(step.entries for step in steps),
            f"{most} rows, {' or '.join(dict.fromkeys(step.proof for step in steps))}",
        )


def count_moves(queries: Statistic, neighbours: Neighbours) -> Moves:
    """Return how the vector of all counts moves, in steps; of complements, where there are any."""

    def replaced() -> Moves:
        differing = differing_queries(queries)
        return Moves.of_entries(differing.count, queries.spread, differing.method)

    def added() -> Moves:
        if isinstance(queries, Workload):
            contributing = contributing_queries(queries)
            return Moves.of_entries(contributing.count, 1, contributing.method)
        return Moves.of_entries(len(queries), _one_contribution(queries), "queries")

    return Moves.between(neighbours, replaced, added)


def one_count_move(queries: Statistic, neighbours: Neighbours) -> float:
    """Return how far one count moves, in steps."""
    return neighbours.furthest(queries.spread, _one_contribution(queries))


def _one_contribution(queries: Statistic) -> float:
    """Return how far one count moves when a record is added, in steps."""
    # Counts that nobody can move are charged for a step, so that noise has a scale.
    return max(1.0, abs(queries.low) / queries.step, abs(queries.high) / queries.step)


def score_move(queries: Statistic, neighbours: Neighbours) -> float:
    """Return how far the error of a public model on one query moves, in steps; centred."""
    middle = twice_the_middle(queries) / 2.0
    half = max(0.5, queries.high / queries.step - middle, middle - queries.low / queries.step)
    return neighbours.furthest(queries.spread, half)


def twice_the_middle(queries: Statistic) -> int:
    """Return twice the middle of the queries' range, rounded to whole steps."""
    return round((queries.low + queries.high) / queries.step)


def table_moves(neighbours: Neighbours) -> Moves:
    """Return how the cells of a partition move: of a histogram, a marginal or a 2^k table.

    A record lies in one cell: replacing it moves two of them, adding or removing it one.
    """
    return Moves.between(
        neighbours,
        lambda: Moves.of_entries(2, 1, "exclusive cells"),
        lambda: Moves.of_entries(1, 1, "exclusive cells"),
    )


def parity_moves(sets: Workload, neighbours: Neighbours) -> Moves:
    """Return how the numbers of rows with an odd sum move, one for each set of bits.

    Adding a record moves the *signed* count of a set, n less twice its odd rows, by 1 up or down,
    and half of it is what the room measures: every entry moves by 1/2.
    """
    return Moves.between(
        neighbours,
        lambda: Moves.of_entries(parities_apart(sets), 1, "parities"),
        lambda: Moves.of_entries(len(sets), 0.5, "parities"),
    )

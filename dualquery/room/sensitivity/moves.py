"""How far exact counts move between neighbouring tables: what the room charges, and a plan asks.

When one record is *replaced*, the number of rows n is public; a count moves by at most the spread
of its query, and only the counts of queries that tell the two records apart move.

When one record is *added or removed*, n is private, and a public number of rows N stands in for it
(see `dualquery.room.row_count`). A count then moves by what one record contributes. Two things
make that small:

- *Complements.* A conjunction without positive literals holds on most records, so the room counts
  the rows on which it does **not** hold, and gives out N less that: see
  `dualquery.room.sensitivity.conjunctions.contributing_queries`.
- *Centres.* A query's values lie in ``low .. high``. Statistic from their middle z, a record
  contributes at most half of the range, up or down: the room uses ``c + (N - n) z`` for a count c
  where only the log-ratio of weights or the comparison of scores matters. That is half of what
  replacing a record does, at the price of a common shift by (N - n) z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.privacy.events import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Statistic
from dualquery.queries.forms.fourier import parities_apart
from dualquery.room.sensitivity.conjunctions import contributing_queries, differing_queries


@dataclass(frozen=True)
class Moves:
    """How far a vector of numbers moves between neighbours.

    Parameters
    ----------
    entries
        Most entries that move.
    each
        Most by which each of them moves, > 0, in the unit of the numbers.
    proof
        The argument that proves the number of entries.
    """

    entries: int
    each: float
    proof: str = ""

    @property
    def l1(self) -> float:
        """L1 sensitivity."""
        return self.each * self.entries

    @property
    def l2(self) -> float:
        """L2 sensitivity."""
        return self.each * math.sqrt(self.entries)


def count_moves(statistics: Statistic, neighbours: Neighbours) -> Moves:
    """Return how the vector of all counts moves, in steps; of complements, where there are any."""
    if neighbours is Neighbours.REPLACE_ONE:
        differing = differing_queries(statistics)
        return Moves(differing.count, statistics.spread, differing.method)
    if isinstance(statistics, Workload):
        contributing = contributing_queries(statistics)
        return Moves(contributing.count, 1, contributing.method)
    return Moves(len(statistics), one_count_move(statistics, neighbours), "queries")


def one_count_move(statistics: Statistic, neighbours: Neighbours) -> float:
    """Return how far one count moves, in steps."""
    if neighbours is Neighbours.REPLACE_ONE:
        return statistics.spread
    # Counts that nobody can move are charged for a step, so that noise has a scale.
    return max(1.0, abs(statistics.low) / statistics.step, abs(statistics.high) / statistics.step)


def score_move(statistics: Statistic, neighbours: Neighbours) -> float:
    """Return how far the error of a public model on one query moves, in steps; centred."""
    if neighbours is Neighbours.REPLACE_ONE:
        return statistics.spread
    middle = twice_the_middle(statistics) / 2.0
    return max(
        0.5, statistics.high / statistics.step - middle, middle - statistics.low / statistics.step
    )


def twice_the_middle(statistics: Statistic) -> int:
    """Return twice the middle of the queries' range, rounded to whole steps."""
    return round((statistics.low + statistics.high) / statistics.step)


def table_moves(neighbours: Neighbours) -> Moves:
    """Return how the cells of a partition move: of a histogram, a marginal or a 2^k table.

    A record lies in one cell: replacing it moves two of them, adding or removing it one.
    """
    return Moves(2 if neighbours is Neighbours.REPLACE_ONE else 1, 1)


def parity_moves(sets: Workload, neighbours: Neighbours) -> Moves:
    """Return how the numbers of rows with an odd sum move, one for each set of bits.

    Adding a record moves the *signed* count of a set, n less twice its odd rows, by 1 up or down,
    and half of it is what the room measures: every entry moves by 1/2.
    """
    if neighbours is Neighbours.REPLACE_ONE:
        return Moves(parities_apart(sets), 1)
    return Moves(len(sets), 0.5)

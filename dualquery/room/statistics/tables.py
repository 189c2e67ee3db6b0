"""Tables: the number of rows in every cell of a partition.

**Lemma.** The cells exclude each other, so a record lies in one of them at most. Replacing it moves
at most two numbers by 1 each (L1 2, L2 sqrt 2); adding or removing it moves one
(`dualquery.room.sensitivity.moves.table_moves`). That the cells exclude each other is checked by
`dualquery.queries.forms.cuboids.Cuboids`, and follows for `QueryTable` and `EveryCell` from how
their cells are made.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import table_cells
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.queries.family import Statistic
from dualquery.room.exact import Exact, Numbers
from dualquery.room.private_data import PrivateData
from dualquery.room.sensitivity.moves import Moves, table_moves
from dualquery.rows.histogram import Histogram


class _Table:
    """What all tables share."""

    __slots__ = ()

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the cells move, whatever the queries are."""
        return table_moves(neighbours)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return the noisy numbers as they are."""
        return noisy


@dataclass(frozen=True, slots=True)
class OneCuboid(_Table):
    """The counts of a cuboid's queries, in rows."""

    number: int
    """Of the cuboid, by `dualquery.queries.forms.cuboids.Cuboids.of` the queries; public."""

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells."""
        cells = data.cuboids.queries(operator.index(self.number))
        return Exact(type(self).__name__, data.counts[cells], table_moves(data.neighbours))


@dataclass(frozen=True, slots=True)
class QueryTable(_Table):
    """The rows in every cell of a query's table (`dualquery.queries.conjunctions`).

    They take another pass over the rows.
    """

    position: int
    """Of the query; public."""

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells."""
        cells = table_cells(data.conjunctions, operator.index(self.position))
        return Exact(
            type(self).__name__, data.total(ConjunctionCounts(cells)), table_moves(data.neighbours)
        )


@dataclass(frozen=True, slots=True)
class EveryCell(_Table):
    """The rows in every cell of the whole domain (`dualquery.rows.histogram`).

    They take another pass over the rows.
    """

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells, an axis a column."""
        return Exact(
            type(self).__name__,
            data.total(Histogram(data.queries.domain)),
            table_moves(data.neighbours),
        )

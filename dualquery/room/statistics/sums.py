"""Sums of numeric columns, in steps of public grids (`dualquery.data.schema.grids`).

**Lemma.** A row's number is one of 0 .. M steps of its column's grid, and the room sums twice the
number less M: from -M to M. Replacing a record moves the sum of a column by at most 2 M, adding or
removing one by at most M. Each sum has noise in proportion to M; so over these scales k sums move
by at most 2 k, or k, in L1, and ``2 sqrt(k)``, or ``sqrt(k)``, in L2. Units of several rows are
as many steps (`dualquery.privacy.neighbours`).

That a row's number is at most M is a property of encoded rows, as their legality is: numbers beyond
the declared range are refused or clipped (`dualquery.data.schema.grids.Grid.encode`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualquery.data.schema.grids import Grid, digit_offsets
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.queries.family import Statistic
from dualquery.room.exact import Exact, Numbers
from dualquery.room.private_data import PrivateData
from dualquery.room.sensitivity.moves import Moves


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """The centred sums of the numbers that rows carry. They take another pass over the rows."""

    grids: tuple[Grid, ...]
    """Some of those that the rows were encoded with; public, at least one, none twice."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the sums over their grids' steps move, whatever the queries are."""
        each = neighbours.furthest(2.0, 1.0)
        return Moves.of_entries(len(self.grids), each, "clipped numbers")

    def exact(self, data: PrivateData) -> Exact:
        """Return the sums.

        Raises
        ------
        ValueError
            If the rows carry other numbers: they could move further.
        """
        starts = digit_offsets(data.grids, data.queries.domain.bits)
        carried = dict(zip(data.grids, starts, strict=False))
        if not self.grids or not carried.keys() >= set(self.grids):
            raise ValueError("the sums are not those of the numbers that the rows carry")
        if len(set(self.grids)) < len(self.grids):
            raise ValueError("a column is summed once")
        places = [carried[grid] + np.arange(grid.digits) for grid in self.grids]
        bits = np.concatenate(places).astype(np.int32)
        ones = data.total(ConjunctionCounts(2 * bits[:, None]))
        ends = np.cumsum([grid.digits for grid in self.grids])[:-1]
        sums = [
            grid.centred(own, data.rows.n)
            for grid, own in zip(self.grids, np.split(ones, ends), strict=True)
        ]
        return Exact(
            type(self).__name__,
            np.array(sums, np.int64),
            self.moves(data.queries, data.neighbours),
            np.array([grid.steps for grid in self.grids], np.float64),
        )

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return the noisy sums as they are."""
        return noisy

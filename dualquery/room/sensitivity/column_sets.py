"""A bound on the queries that differ, as a sum over the sets of columns that they look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.room.sensitivity.conjunctions import Conjunctions
from dualquery.rows.repeats import first_occurrences

Int64 = NDArray[np.int64]


def column_set_bound(conjunctions: Conjunctions, records: int = 2) -> int:
    """Bound the differing queries by a sum over the sets of columns that positive literals use.

    Take the queries whose positive literals lie on one set S of columns; x has a cell (one value
    for each column of S), and x' has one. A query can be true at x or x' only if it asks for that
    record's cell, so the queries of S that differ all lie in these at most two cells, and there are
    at most as many as in the two fullest ones.

    A query without positive literals differs only if one record has one of its excluded values A
    and the other has none of its excluded values; so for some literal, in some column c, exactly
    one of x_c and x'_c equals A. Count the query in the cell A of the set {c}, for each of its
    literals: again the two fullest cells of {c}, now holding both kinds, bound what c adds (if
    x_c = x'_c only the queries with a positive literal in that one cell count). Instead, all
    queries without positive literals may be counted as differing.

    A whole marginal has one query in each cell and adds 2.

    For one record it is the fullest cell alone: where f_q(x) = 1 for a query without positive
    literals, x_c = A for one of its literals.
    """
    positives = conjunctions.positives
    excluding = positives == 0
    excluded = conjunctions.count_values(conjunctions.negative[excluding])
    asked = conjunctions.count_values(conjunctions.positive[positives == 1])
    column, columns = conjunctions.column_of_value, len(conjunctions.offsets) - 1
    bound = min(
        int(_largest(excluded + asked, column, columns, records).sum()),
        int(_largest(asked, column, columns, records).sum()) + int(np.count_nonzero(excluding)),
    )
    for count in range(2, positives.max(initial=0) + 1):
        values = conjunctions.positive_values(positives == count, count)
        if len(values):
            bound += int(ColumnSets.of_values(values, column, records).fullest.sum())
    return bound


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """Queries with ``p`` positive literals, grouped by the columns of these."""

    set_of_query: Int64  # (queries,)
    columns: Int64  # (sets, p)
    # (sets,): of the cells (one value a column) of each set, the number of queries in the fullest
    # one, or in the two fullest, added: as many as there are records.
    fullest: Int64

    @staticmethod
    def of_values(
        values: NDArray[np.int32], column_of_value: Int64, records: int = 2
    ) -> ColumnSets:
        """Group the rows of ``values`` (sorted values, shape ``(queries, p)``, no padding)."""
        base = len(column_of_value)
        cell_row, cell_of_query, count = np.unique(
            first_occurrences(values, base), return_inverse=True, return_counts=True
        )
        columns = column_of_value[values[cell_row]]
        set_row, set_of_cell = np.unique(
            first_occurrences(columns.astype(np.int32), base), return_inverse=True
        )
        fullest = _largest(count, set_of_cell, len(set_row), records)
        return ColumnSets(set_of_cell[cell_of_query], columns[set_row], fullest)


def _largest(amount: Int64, owner: Int64, owners: int, number: int) -> Int64:
    """Return for each owner the sum of its ``number`` largest amounts (of all if it has fewer)."""
    order = np.lexsort((-amount, owner))
    start = np.searchsorted(owner[order], np.arange(owners + 1))
    rank = np.arange(len(order)) - start[owner[order]]
    leading = order[rank < number]
    return np.bincount(owner[leading], amount[leading], owners).astype(np.int64)

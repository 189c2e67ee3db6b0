"""The queries inside queries: every conjunction of some of a query's literals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.runtime.errors import BadInputError

MOST_LITERALS = 12
"""Of one query: it has 2 to this power queries inside."""

_MOST_ENTRIES = 1 << 28
"""Literals of all queries inside, repeats included (1 GiB)."""


@dataclass(frozen=True, eq=False)
class Subqueries:
    """All conjunctions of one or more literals of the same query, each once.

    Bit j of a pattern stands for the j-th literal of the query. Positions without a literal add
    nothing; no literal at all has the place ``len(workload)``.
    """

    workload: Workload  # the different conjunctions
    place: NDArray[np.int64]  # (m, 2^k): where the conjunction of the literals in a pattern is

    @staticmethod
    def of(workload: Workload) -> Subqueries:
        """List the queries inside the queries of a workload.

        Raises
        ------
        BadInputError
            If they would be too many.
        """
        way, m = workload.way, len(workload)
        if way > MOST_LITERALS or (m << way) * way > _MOST_ENTRIES:
            raise BadInputError(
                f"{m:,} queries of {way} literals have too many queries inside (2^{way} each); "
                f"at most {MOST_LITERALS} literals and {_MOST_ENTRIES:,} entries in all can be "
                "listed: ask fewer or shorter queries"
            )
        pattern = np.arange(1 << way)
        inside = (pattern[:, None] >> np.arange(way) & 1).astype(bool)
        rows = np.where(inside, workload.literals[:, None, :], np.int32(-1)).reshape(-1, way)
        rows = pad_right(rows)
        first = first_occurrences(rows, 2 * workload.domain.bits)
        new = (first == np.arange(len(rows))) & (rows[:, 0] >= 0)
        number = np.cumsum(new) - 1
        place = np.where(rows[first, 0] >= 0, number[first], new.sum())
        description = {"kind": "subqueries", "of": dict(workload.description)}
        found = Workload(rows[new], workload.domain, description)
        return Subqueries(found, place.reshape(m, 1 << way))

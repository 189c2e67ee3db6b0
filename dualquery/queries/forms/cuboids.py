"""Cuboids: the conjunctions of a workload that together make up a marginal, as one question.

When one record is replaced, it leaves one cell of a table and enters another: the counts of a
cuboid move by 2 in all (L1), or sqrt(2) in L2, however many cells there are. When one is added or
removed, one of them moves by 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.family import Statistic
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True, eq=False)
class Cuboids:
    """The queries of a workload by the columns that they look at.

    Cuboid c has the queries ``members[indptr[c]:indptr[c + 1]]``, increasing; no two of them hold
    on one record.
    """

    indptr: NDArray[np.int64]
    members: NDArray[np.int64]
    whole: NDArray[np.bool_]  # (cuboids,): whether every cell of the marginal is there

    @staticmethod
    def of(queries: Statistic) -> Cuboids:
        """Gather the queries into cuboids, in the order of their first members.

        Raises
        ------
        BadInputError
            If two queries about the same columns could hold on one record: only cells, with one
            value of each column, exclude each other.
        """
        workload = conjunctions_of(queries)
        if workload is None:
            raise BadInputError(
                f"cuboids are made of conjunctions, not of {type(queries).__name__}; ask for whole "
                "marginals"
            )
        domain, literals = workload.domain, workload.literals
        used = literals >= 0
        columns = np.where(used, domain.column_of_bit[literals >> 1], -1).astype(np.int32)
        several = used[:, 1:] & (columns[:, 1:] == columns[:, :-1])
        negated = used & (literals & 1 == 1) & (domain.sizes[columns] > 1)
        repeated = first_occurrences(literals, 2 * domain.bits) != np.arange(len(literals))
        wrong = np.flatnonzero(several.any(axis=1) | negated.any(axis=1) | repeated)
        if len(wrong):
            raise BadInputError(
                f"query {wrong[0]} is no cell of a marginal, or is there twice: cuboids need one "
                "value of each column; ask for whole marginals"
            )
        first = first_occurrences(columns, domain.columns)
        leaders, cuboid = np.unique(first, return_inverse=True)
        counts = np.bincount(cuboid)
        cells = np.where(used, axis_sizes(domain)[columns], 1).astype(np.float64).prod(axis=1)
        return Cuboids(
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            members=np.argsort(cuboid, kind="stable").astype(np.int64),
            whole=counts == cells[leaders],
        )

    def __len__(self) -> int:
        return len(self.whole)

    def queries(self, cuboid: int) -> NDArray[np.int64]:
        """Return the queries of one cuboid."""
        return self.members[self.indptr[cuboid] : self.indptr[cuboid + 1]]

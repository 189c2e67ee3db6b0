"""0/1 queries as sums of conjunctions: the form in which families reach DualQuery.

A best response maximises a weighted sum of conjunctions. A query that is the sum of conjunctions
that exclude each other fits into it: each of them gets the weight of the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.literals import LiteralRows

if TYPE_CHECKING:
    from dualquery.rows.row_sums import Rows


@dataclass(frozen=True, eq=False)
class Disjunctions:
    """``m`` queries, each the sum of one or more conjunctions that exclude each other."""

    conjunctions: LiteralRows  # of all queries, one query after another; repeats allowed
    indptr: NDArray[np.int64]  # query j has the conjunctions indptr[j] .. indptr[j + 1] - 1

    def __post_init__(self) -> None:
        """Refuse a query without conjunctions, and conjunctions without a query."""
        indptr = self.indptr
        if not (
            isinstance(indptr, np.ndarray)
            and indptr.ndim == 1
            and indptr.dtype.kind in "iu"
            and len(indptr) > 1
            and indptr[0] == 0
            and indptr[-1] == len(self.conjunctions)
            and (indptr[1:] > indptr[:-1]).all()
        ):
            raise ValueError(
                "every query is the sum of at least one conjunction, and every conjunction is part "
                "of one query"
            )
        own = indptr.astype(np.int64)
        own.flags.writeable = False  # what is proven of them must stay so
        object.__setattr__(self, "indptr", own)

    low = 0.0
    high = 1.0
    step = 1.0
    spread = 1

    @staticmethod
    def one_each(conjunctions: LiteralRows) -> Disjunctions:
        """Return queries of one conjunction each."""
        return Disjunctions(conjunctions, np.arange(len(conjunctions) + 1, dtype=np.int64))

    @staticmethod
    def of_terms(
        literals: NDArray[np.int32], owner: NDArray[np.int64], domain: Domain
    ) -> Disjunctions:
        """Gather conjunctions, int32 ``(t, k)``, by the query that each belongs to."""
        indptr = np.concatenate(([0], np.cumsum(np.bincount(owner)))).astype(np.int64)
        return Disjunctions(LiteralRows(literals[np.argsort(owner, kind="stable")], domain), indptr)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def domain(self) -> Domain:
        """The bits and the columns they belong to."""
        return self.conjunctions.domain

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return in how many of the records each query holds, exactly: int64, ``(m,)``."""
        # Not a method of a derived class: a third party's rows cannot count in another way.
        counts = LiteralRows.counts(self.conjunctions, records, threads)
        if len(self.conjunctions) == len(self):  # one each
            return counts
        return np.add.reduceat(counts, self.indptr[:-1], dtype=np.int64)

    def on_record(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return which queries hold on one record, uint8 ``(bits,)``: uint8, ``(m,)``, 0/1."""
        truth = LiteralRows.on_record(self.conjunctions, record)
        if len(self.conjunctions) == len(self):  # one each
            return truth
        return np.add.reduceat(truth, self.indptr[:-1], dtype=np.uint8)

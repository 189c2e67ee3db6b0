"""A workload: the public list of conjunctions that a release answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.data.domain import Domain
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.protocol import Schema
    from dualquery.rows.protocol import Rows


@dataclass(frozen=True, eq=False)
class Workload:
    """``m`` conjunctions of at most ``k`` literals over the bits of a domain.

    A literal has the code ``2 * bit + negated``. A query stands for its complement too: whoever
    needs ``1 - q`` uses the one number of ``q``. On construction the literals of each row are
    sorted and columns of padding only are dropped, so that equal queries have equal rows.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``, each row padded with -1; at least one literal a row, none twice.
    domain
        The bits and the columns they belong to.
    description
        How the queries were made; values that JSON can hold.
    repeats
        Whether a query may stand in the list more than once.

    Raises
    ------
    BadInputError
        When there are no queries, a literal is not one of the domain, a query is empty, has a
        literal twice or a literal with its negation, or is repeated without leave.
    """

    literals: NDArray[np.int32]
    domain: Domain
    description: Mapping[str, Any] = field(default_factory=dict)
    repeats: bool = False

    # Values 0 and 1 (see `dualquery.queries.family`).
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    step: ClassVar[float] = 1.0
    spread: ClassVar[int] = 1

    def __post_init__(self) -> None:
        rows = np.asarray(self.literals)
        if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "iu":
            raise BadInputError(
                "a workload needs an integer array of one or more queries by one or more literals, "
                f"not {rows.dtype} of shape {rows.shape}"
            )
        codes = 2 * self.domain.bits
        _refuse(
            (rows < -1) | (rows >= codes),
            f"has a literal outside -1..{codes - 1}",
            lambda q: rows[q],
        )
        # As unsigned numbers the padding -1 is the largest and goes to the right.
        rows = np.sort(rows.astype(np.int32).view(np.uint32), axis=1).view(np.int32)
        _refuse(rows[:, :1] < 0, "has no literal", lambda q: rows[q])
        _refuse(
            (rows[:, 1:] >= 0) & (rows[:, 1:] >> 1 == rows[:, :-1] >> 1),
            "uses one bit twice",
            lambda q: rows[q],
        )
        rows = np.ascontiguousarray(rows[:, (rows >= 0).any(axis=0)])
        if not self.repeats:
            first = first_occurrences(rows, codes)
            _refuse(
                (first != np.arange(len(rows)))[:, None], "repeats query", lambda q: int(first[q])
            )
        object.__setattr__(self, "literals", rows)

    def __len__(self) -> int:
        return len(self.literals)

    @property
    def way(self) -> int:
        """The largest number of literals of a query (k in the papers)."""
        return int(self.literals.shape[1])

    def take(self, indices: ArrayLike) -> Workload:
        """Return the workload of the queries at ``indices``, in that order, repeats allowed."""
        return Workload(self.literals[np.asarray(indices)], self.domain, self.description, True)

    def on_record(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return which queries hold on one record.

        Parameters
        ----------
        record
            uint8, shape ``(bits,)``, 0/1.

        Returns
        -------
        uint8, shape ``(m,)``, 0/1.
        """
        from dualquery.queries.counting import kernels

        if record.shape != (self.domain.bits,):
            raise ValueError(f"a record of {self.domain.bits} bits expected, not {record.shape}")
        truth = np.empty(len(self), np.uint8)
        kernels.evaluate(self.literals, np.ascontiguousarray(record, np.uint8), truth)
        return truth

    def answers_on(self, records: NDArray[np.uint8], threads: int = 1) -> NDArray[np.float64]:
        """Return the answers on synthetic records: the share of them on which each query holds.

        Parameters
        ----------
        records
            uint8, shape ``(r, bits)``, 0/1, ``r >= 1``.
        threads
            Number of threads; the answers do not depend on it.

        Returns
        -------
        float64, shape ``(m,)``, in [0, 1].
        """
        from dualquery.queries.counting.passes import count_conjunctions
        from dualquery.rows.packed import RecordsBuilder

        if len(records) == 0:
            raise ValueError("answers need at least one record")
        builder = RecordsBuilder(self.domain.bits)
        builder.append_dense(records)
        return count_conjunctions(self.literals, builder.build(), threads) / len(records)

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return in how many of the records each query holds, exactly.

        Parameters
        ----------
        records
            The rows, of this domain.
        threads
            Number of threads, at least 1; the counts do not depend on it.

        Returns
        -------
        int64, shape ``(m,)``, in ``0 .. n``.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end.
        """
        from dualquery.queries.counting.planner import ConjunctionCounts

        if records.bits != self.domain.bits:
            raise ValueError(f"records of {self.domain.bits} bits expected, not {records.bits}")
        return records.total(ConjunctionCounts(self.literals), threads)

    def text(self, schema: Schema) -> pl.Series:
        """Return each query as text that `dualquery.queries.text.parse_query` reads: ``(m,)``."""
        from dualquery.queries.text import print_queries

        return print_queries(self.literals, schema)

    def to_columns(self) -> dict[str, pl.Series]:
        """Return columns ``literal_1`` .. ``literal_k`` of literals: Int32, null for padding."""
        import polars as pl

        names = [f"literal_{j + 1}" for j in range(self.way)]
        series = [
            pl.Series(name, column) for name, column in zip(names, self.literals.T, strict=True)
        ]
        return {s.name: s.set(s < 0, None) for s in series}

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
    ) -> Workload:
        """Return the workload that `to_columns` wrote; other columns are ignored.

        Raises
        ------
        BadInputError
            When there is no column ``literal_1``, or its values are not queries of the domain.
        """
        names: list[str] = []
        while (name := f"literal_{len(names) + 1}") in columns:
            names.append(name)
        if not names:
            raise BadInputError("the table of queries has no column literal_1")
        rows = np.stack([columns[name].fill_null(-1).to_numpy() for name in names], axis=1)
        return cls(rows, domain, description)


def _refuse(wrong: NDArray[np.bool_], complaint: str, show: Any) -> None:
    """Raise for the first row with a wrong entry."""
    rows = np.flatnonzero(wrong.any(axis=1))
    if len(rows):
        query = int(rows[0])
        raise BadInputError(f"query {query} {complaint}: {show(query)}")

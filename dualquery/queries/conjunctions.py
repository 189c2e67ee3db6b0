"""A workload: the public list of conjunctions that a release answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.data.domain import Domain
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import QueryFamily, Statistic, as_records
from dualquery.queries.literals import LiteralRows, read_padded, refuse_rows, write_padded
from dualquery.queries.products import Products
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema


@dataclass(frozen=True, eq=False)
class Workload(LiteralRows, QueryFamily):
    """``m`` conjunctions of at most ``k`` literals over the bits of a domain.

    A query stands for its complement too: whoever needs ``1 - q`` uses the one number of ``q``.

    Parameters
    ----------
    literals, domain
        See `LiteralRows`.
    description
        How the queries were made; values that JSON can hold.
    repeats
        Whether a query may stand in the list more than once.

    Raises
    ------
    BadInputError
        As `LiteralRows`, and when a query is repeated although ``repeats`` is False.
    """

    description: Mapping[str, Any] = field(default_factory=dict)
    repeats: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.repeats:
            first = first_occurrences(self.literals, 2 * self.domain.bits)
            refuse_rows(first != np.arange(len(self)), "repeats query", lambda q: int(first[q]))

    def answers_on(self, records: NDArray[np.uint8], threads: int = 1) -> NDArray[np.float64]:
        """Return the share of synthetic records, uint8 ``(r, bits)``, on which each query holds."""
        from dualquery.queries.counting import CountingPass

        packed = as_records(records, self.domain)
        return CountingPass(self.literals).run(packed, threads) / len(records)

    def take(self, indices: ArrayLike) -> Workload:
        """Return the workload of the queries at ``indices``, in that order, repeats allowed."""
        return Workload(self.literals[np.asarray(indices)], self.domain, self.description, True)

    def find(self, literals: NDArray[np.int32]) -> int | None:
        """Return the position of a query, given by its literals, increasing; None if absent."""
        if len(literals) > self.way:
            return None
        wanted = np.full(self.way, -1, dtype=np.int32)
        wanted[: len(literals)] = literals
        found = np.flatnonzero((self.literals == wanted).all(axis=1))
        return int(found[0]) if len(found) else None

    def over(self, domain: Domain) -> Workload:
        """Return the queries over a domain of the same bits, each once; check their description."""
        try:
            json.dumps(dict(self.description), allow_nan=False, default=np.generic.item)
        except (TypeError, ValueError):
            raise BadInputError("a workload's description holds what JSON cannot hold") from None
        return replace(self, domain=domain, repeats=False)

    def disjunctions(self) -> Disjunctions:
        """Return the conjunctions themselves."""
        return Disjunctions.one_each(self)

    def products(self) -> Products:
        """Return the conjunctions as products of indicators, one a column."""
        return Products.of_conjunctions(self)

    def text(self, schema: Schema) -> pl.Series:
        """Return each query in the plain form of questions: String, ``(m,)``."""
        from dualquery.queries.literals import print_queries

        return print_queries(self.literals, schema)

    def to_columns(self) -> dict[str, pl.Series]:
        """Return columns ``literal_1`` .. ``literal_k`` of literals: Int32, null for padding."""
        return write_padded("literal", self.literals)

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
    ) -> Workload:
        """Return the workload that `to_columns` wrote (see `queries_of_table`)."""
        return cls(read_padded("literal", columns), domain, description)


def conjunctions_of(queries: Statistic) -> Workload | None:
    """Return the queries if they are a list of conjunctions, else None.

    The one place outside the private room that asks which family queries are of.
    """
    return queries if isinstance(queries, Workload) else None


def require_conjunctions(queries: Statistic) -> Workload:
    """Return the queries of a mechanism for conjunctions; `BadInputError` for another family."""
    workload = conjunctions_of(queries)
    if workload is None:
        raise BadInputError(
            f"this mechanism answers conjunctions, not {type(queries).__name__}; use the mechanism "
            "mwem, from start=uniform"
        )
    return workload


def table_cells(workload: Workload, query: int) -> NDArray[np.int32]:
    """Return the cells of a query's table as conjunctions; every record lies in exactly one.

    ``query`` is the position of one with w literals. int32, shape ``(2^w, w)``: literal codes. In
    cell c the i-th of the query's bits, in the order of its literals, is bit i of the number c.
    """
    literals = workload.literals[query]
    bits = literals[literals >= 0] >> 1
    zero = 1 - (np.arange(1 << len(bits))[:, None] >> np.arange(len(bits)) & 1)
    return np.asarray((2 * bits + zero).astype(np.int32))

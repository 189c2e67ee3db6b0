"""What every family of queries offers: all that the private room and a mechanism rely on.

A query q is a function of a record with values in ``low .. high``; q(D) is its mean over the rows.
Every family fixes a grid: a query's values are whole multiples of ``step``, so that

    counts = n q(D) / step

are integers, exactly, and whoever adds integer noise or compares integer scores knows what
neighbours differ in. Replacing one row moves one count by at most ``spread``, the largest
``(max q - min q) / step`` of a query: the sensitivity in steps. It is computed from the queries
themselves, never taken from a mechanism.

=================== ============== ====== ======== ==========================================
family              values         step   spread   queries
=================== ============== ====== ======== ==========================================
`Workload`          0, 1           1      1        conjunctions of literals
`Parities`          -1, 1          1      2        signs of sets of bits
`RangeQueries`      0, 1           1      1        boxes: products of intervals of columns
`HistogramQueries`  a matrix's     2^-e   computed any functions over a small domain
=================== ============== ====== ======== ==========================================

A family of a user's own implements `Queries`, declares its range, grid and spread, and is tried on
public records (`dualquery.room.declared`); over a small domain `HistogramQueries.tabulate` makes
one of any function. To serve MWEM it also has a method ``products()``
(`dualquery.queries.forms.products`), to serve DualQuery ``disjunctions()``
(`dualquery.queries.forms.disjunctions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.protocol import Schema
    from dualquery.rows.packed import Records
    from dualquery.rows.protocol import Rows


class Statistic(Protocol):
    """What the private room needs: ``m`` queries that can be counted, and their sensitivity."""

    @property
    def domain(self) -> Domain:
        """The bits and the columns they belong to."""
        ...

    @property
    def low(self) -> float:
        """Lower bound on the values of the queries."""
        ...

    @property
    def high(self) -> float:
        """Upper bound on the values of the queries."""
        ...

    @property
    def step(self) -> float:
        """Width of the grid that all values lie on: a power of two."""
        ...

    @property
    def spread(self) -> int:
        """Most steps between two values of one query, at least 1."""
        ...

    def __len__(self) -> int: ...

    def __hash__(self) -> int: ...

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return ``n q(D) / step`` for every query, exactly: int64, shape ``(m,)``."""
        ...


@runtime_checkable
class Queries(Statistic, Protocol):
    """A public list of ``m`` queries over the records of a domain."""

    @property
    def description(self) -> Mapping[str, Any]:
        """How the queries were made; values that JSON can hold, ``kind`` among them."""
        ...

    @property
    def way(self) -> int:
        """Most columns or literals that a query looks at."""
        ...

    def answers_on(self, records: NDArray[np.uint8], threads: int = 1) -> NDArray[np.float64]:
        """Return the answers on synthetic records, uint8 ``(r, bits)``: float64, shape ``(m,)``."""
        ...

    def text(self, schema: Schema) -> pl.Series:
        """Return each query as text: String, shape ``(m,)``."""
        ...

    def to_columns(self) -> dict[str, pl.Series]:
        """Return columns of a table, a row a query, that describe the queries completely."""
        ...


def as_records(rows: NDArray[np.uint8], domain: Domain) -> Records:
    """Pack synthetic records, uint8 of shape ``(r, bits)`` with ``r >= 1``, to be counted."""
    from dualquery.rows.packed import RecordsBuilder

    if len(rows) == 0:
        raise ValueError("answers need at least one record")
    builder = RecordsBuilder(domain.bits)
    builder.append_dense(rows)
    return builder.build()


def require_bits(records: Rows, domain: Domain) -> None:
    """Refuse rows of another domain: a fault of the caller."""
    if records.bits != domain.bits:
        raise ValueError(f"records of {domain.bits} bits expected, not {records.bits}")

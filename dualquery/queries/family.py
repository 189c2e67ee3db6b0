"""What every family of queries offers: all that the private room and a mechanism rely on.

A query q is a function of a record with values in ``low .. high``; q(D) is its mean over the rows.
Every family fixes a grid: a query's values are whole multiples of ``step``, so that

    counts = n q(D) / step

are integers, exactly, and whoever adds integer noise or compares integer scores knows what
neighbours differ in. Replacing one row moves one count by at most ``spread``, the largest
``(max q - min q) / step`` of a query: the sensitivity in steps. It is computed from the queries
themselves, never taken from a mechanism.

A family of a user's own implements `Queries`, declares its range, grid and spread, and is tried on
public records (`dualquery.room.declared`); over a small domain `HistogramQueries.tabulate` makes
one of any function. To serve MWEM it also has a method ``products()``, to serve DualQuery
``disjunctions()``. `QueryFamily` has the defaults of all that a family may leave out; a family that
does not inherit from it is treated as if it did.

None of these methods lowers what the private room charges: how far counts move is proven in
`dualquery.room` from the literals of a `Workload`, and for every other family from its declared
range, grid and spread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema
    from dualquery.rows.packed import Records
    from dualquery.rows.row_sums import Rows


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


class QueryFamily:
    """What a family need not write itself: the defaults, to inherit from.

    The rest of `Queries` is the family's own.
    """

    def answers_on(
        self: Statistic, records: NDArray[np.uint8], threads: int = 1
    ) -> NDArray[np.float64]:
        """Return the answers on synthetic records, uint8 ``(r, bits)``: float64, shape ``(m,)``."""
        counts = self.counts(as_records(records, self.domain), threads)
        return np.asarray(counts * self.step / len(records), dtype=np.float64)

    def over(self, domain: Domain) -> Queries:  # noqa: ARG002
        """Return the queries over a schema's own domain, of the same columns and bits.

        That domain may say that rows have few 1s, which only some families make use of. The default
        is the queries as they are.
        """
        return cast("Queries", self)

    def disjunctions(self) -> Disjunctions:
        """Return the queries, mapped to [0, 1], as sums of conjunctions that exclude each other.

        `BadInputError` by default: the queries have no such form.
        """
        raise BadInputError(
            f"{type(self).__name__} are not sums of conjunctions, so DualQuery cannot find "
            "their best response; use the mechanism mwem"
        )

    def products(self) -> Products:
        """Return the queries as products of functions of single columns.

        `BadInputError` by default: the queries have no such form.
        """
        raise BadInputError(
            f"{type(self).__name__} have no products(), which MWEM needs; take gaussian "
            "or laplace, or tabulate them with HistogramQueries.tabulate if the domain is small"
        )


def over_domain(queries: Queries, domain: Domain) -> Queries:
    """Return `QueryFamily.over` of any family."""
    over: Callable[[Domain], Queries] = _offered(queries, "over")
    return over(domain)


def disjunctions_of(queries: Queries) -> Disjunctions:
    """Return `QueryFamily.disjunctions` of any family."""
    disjunctions: Callable[[], Disjunctions] = _offered(queries, "disjunctions")
    return disjunctions()


def products_of(queries: Queries) -> Products:
    """Return `QueryFamily.products` of any family."""
    products: Callable[[], Products] = _offered(queries, "products")
    return products()


def offers(queries: Queries, name: str) -> bool:
    """Return whether a family has a method of its own that `QueryFamily` has a default of."""
    own = getattr(type(queries), name, None)
    return own is not None and own is not getattr(QueryFamily, name)


def _offered(queries: Queries, name: str) -> Any:
    """Return a method of a family, or the default if the family does not have it."""
    return getattr(queries, name, None) or partial(getattr(QueryFamily, name), queries)


def as_records(rows: NDArray[np.uint8], domain: Domain) -> Records:
    """Pack synthetic records, uint8 of shape ``(r, bits)`` with ``r >= 1``, to be counted."""
    from dualquery.rows.packed import RecordsBuilder

    if len(rows) == 0:
        raise ValueError("answers need at least one record")
    builder = RecordsBuilder(domain.bits)
    builder.append_dense(rows)
    return builder.build()


def require_bits(records: Rows, domain: Domain) -> None:
    """Refuse rows of another domain: a fault of the caller.

    Rows may carry numbers behind the bits of the domain (`dualquery.data.schema.grids`).
    """
    if records.bits < domain.bits:
        raise ValueError(f"records of {domain.bits} bits expected, not {records.bits}")

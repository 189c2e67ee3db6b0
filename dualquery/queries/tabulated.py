"""An explicit matrix of queries over a small domain: any functions of a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualquery.data.domain import Domain, axis_sizes, cells_of, rows_of_values
from dualquery.queries.family import QueryFamily, require_bits
from dualquery.queries.products import Products
from dualquery.rows.histogram import Histogram
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema
    from dualquery.rows.row_sums import Rows

GRID_BITS = 16
"""Values are rounded to this many bits below the largest one: scores (`dualquery.room.scores`) then
fit 63 bits up to ten billion rows or more."""


class HistogramQueries(QueryFamily):
    """Linear queries given by their value on every cell of the domain.

    The values are rounded to multiples of a public power of two, ``step``: the coarsest one that
    represents them exactly, or ``2^-16`` of the largest value's power of two. The rounded values
    are the queries from there on, so the counts in steps are integers and their sensitivity is
    computed from the matrix without any rounding.

    Parameters
    ----------
    matrix
        Shape ``(m, N)``, finite: query by cell. Cells in C order of the domain's columns, the last
        column fastest.
    domain
        The columns; None for one column of N values.

    Raises
    ------
    BadInputError
        If the matrix is empty or not finite, or its cells are not the domain's.
    """

    way = 1

    def __init__(self, matrix: ArrayLike, domain: Domain | None = None) -> None:
        values = np.asarray(matrix, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
            raise BadInputError(
                "a query matrix needs one or more rows and two or more columns (cells), not the "
                f"shape {values.shape}"
            )
        if not np.isfinite(values).all():
            query, cell = np.argwhere(~np.isfinite(values))[0]
            raise BadInputError(
                f"query {query} has the value {values[query, cell]} on cell {cell}; finite "
                "numbers are needed"
            )
        self.domain = Domain(np.array([0, values.shape[1]])) if domain is None else domain
        if cells_of(self.domain) != values.shape[1]:
            raise BadInputError(
                f"the query matrix has {values.shape[1]:,} cells, but the domain "
                f"{cells_of(self.domain):,}"
            )
        self.step, self.steps = on_grid(values)
        """Values in steps: int64, shape ``(m, N)``."""
        self.low = float(self.steps.min()) * self.step
        self.high = float(self.steps.max()) * self.step
        self.spread = max(1, int(np.ptp(self.steps, axis=1).max()))
        self.description: Mapping[str, Any] = {"kind": "matrix", "step": self.step}

    @classmethod
    def tabulate(
        cls,
        function: Callable[[NDArray[np.int64]], ArrayLike],
        domain: Domain,
        low: float,
        high: float,
    ) -> HistogramQueries:
        """Return a user's own queries: any function, evaluated on every legal record.

        Parameters
        ----------
        function
            Takes records, 0/1 in int64 ``(r, bits)``, and returns values, shape ``(r, m)``.
        domain
            A small domain.
        low, high
            The declared range of the values; checked on every legal record.

        Raises
        ------
        BadInputError
            If the domain is too large, or a value lies outside the declared range.
        """
        cells = cells_of(domain)
        check_memory(cells * (domain.bits + 64), f"a table of {cells:,} cells", "drop columns")
        shape = tuple(axis_sizes(domain).tolist())
        records = rows_of_values(np.indices(shape).reshape(len(shape), -1).T, domain)
        values = np.asarray(function(records.astype(np.int64)), dtype=np.float64)
        if values.ndim != 2 or len(values) != cells:
            raise BadInputError(
                f"the function returned the shape {values.shape} for {cells:,} records; one row a "
                "record and one column a query are needed"
            )
        outside = ~((values >= low) & (values <= high))
        if outside.any():
            cell, query = np.argwhere(outside)[0]
            raise BadInputError(
                f"query {query} is {values[cell, query]} on the record "
                f"{records[cell].tolist()}, outside its declared range {low:g} to {high:g}"
            )
        return cls(values.T, domain)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def values(self) -> NDArray[np.float64]:
        """Value of every query on every cell, on the grid: float64, shape ``(m, N)``."""
        return np.asarray(self.steps * self.step, dtype=np.float64)

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return ``n q(D) / step`` exactly: int64, shape ``(m,)``."""
        require_bits(records, self.domain)
        cells = records.total(Histogram(self.domain), threads).astype(np.int64)
        return self.steps @ cells.ravel()

    def products(self) -> Products:
        """Return the queries as functions of one column, the cell, each scaled into [-1, 1].

        `BadInputError` if they do not fit into memory.
        """
        check_memory(
            60 * self.steps.size,
            f"a matrix of {len(self):,} queries by {self.steps.shape[1]:,} cells",
            "take fewer queries or cells",
        )
        largest = np.abs(self.values).max(axis=1)
        largest[largest == 0] = 1.0
        values = self.values / largest[:, None]
        coefficient = np.concatenate((values[:, :1], values[:, 1:] - values[:, :1]), axis=1)
        query, index = np.nonzero(coefficient)
        numbers = np.arange(len(self), dtype=np.int32)
        return Products(
            sizes=np.array([values.shape[1]]),
            columns=np.zeros((len(self), 1), dtype=np.int32),
            factors=numbers[:, None],
            factor_column=np.zeros(len(self), dtype=np.int32),
            indptr=np.searchsorted(query, np.arange(len(self) + 1)).astype(np.int64),
            index=index.astype(np.int32),
            coefficient=coefficient[query, index],
            cumulative=np.zeros(1, dtype=np.bool_),
            scale=largest,
        )

    def text(self, schema: Schema) -> pl.Series:  # noqa: ARG002
        """Return each query as ``row 3``: its row of the matrix."""
        import polars as pl

        return pl.Series("query", [f"row {number}" for number in range(len(self))])

    def to_columns(self) -> dict[str, pl.Series]:
        """Return a column ``values``: a list of float64, one a cell."""
        import polars as pl

        return {"values": pl.Series("values", list(self.values))}

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, pl.Series], domain: Domain, description: Mapping[str, Any]
    ) -> HistogramQueries:
        """Return the matrix that `to_columns` wrote (see `queries_of_table`)."""
        if "values" not in columns:
            raise BadInputError("the table of queries has no column values")
        made = cls(np.array(columns["values"].to_list()), domain)
        made.description = description
        return made


def on_grid(values: NDArray[np.float64]) -> tuple[float, NDArray[np.int64]]:
    """Round values to a power-of-two grid; return its step and the values in steps.

    The steps are at most ``2^GRID_BITS`` in size; if they share a power of two, it goes into the
    step.
    """
    largest = float(np.abs(values).max())
    if largest == 0:
        return 1.0, np.zeros(values.shape, dtype=np.int64)
    exponent = math.frexp(largest * (1.0 - 2.0**-53))[1] - GRID_BITS  # rounded values stay
    steps = np.rint(np.ldexp(values, -exponent)).astype(np.int64)
    together = int(np.bitwise_or.reduce(np.abs(steps), axis=None))
    shared = (together & -together).bit_length() - 1
    return math.ldexp(1.0, exponent + shared), steps >> shared

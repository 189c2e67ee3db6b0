"""What a user would count conjunctions with instead: each on its own best layout of the bits.

An alternative is prepared for a small sample of the queries, which is not timed; its count, which
is, returns how many rows satisfy each of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Count = Callable[[], NDArray[np.int64]]


@dataclass(frozen=True)
class Alternative:
    """A way to count conjunctions."""

    name: str  # with its own way of saying it
    module: str  # what must be installed for it
    prepare: Callable[[NDArray[np.uint8], NDArray[np.int32]], Count]
    """Returns the function to be timed, given the bits (uint8 0/1, shape ``(n, d)``, in columns)
    and the literals of the queries (int32, shape ``(m, 3)``)."""

    @property
    def installed(self) -> bool:
        """Whether it can run here."""
        return importlib.util.find_spec(self.module) is not None


def _numpy(bits: NDArray[np.uint8], literals: NDArray[np.int32]) -> Count:
    truth = {
        int(code): np.ascontiguousarray(bits[:, code >> 1] != (code & 1))
        for code in np.unique(literals)
    }

    def count() -> NDArray[np.int64]:
        return np.array(
            [np.count_nonzero(truth[a] & truth[b] & truth[c]) for a, b, c in literals.tolist()]
        )

    return count


def _scipy(bits: NDArray[np.uint8], literals: NDArray[np.int32]) -> Count:
    from scipy.sparse import csc_array

    codes, places = np.unique(literals, return_inverse=True)
    columns = csc_array((bits[:, codes >> 1] != (codes & 1)).astype(np.int32))
    a, b, c = places.reshape(literals.shape).T

    def count() -> NDArray[np.int64]:
        product = columns[:, a].multiply(columns[:, b]).multiply(columns[:, c])
        return np.asarray(product.sum(axis=0)).ravel()

    return count


def _polars(bits: NDArray[np.uint8], literals: NDArray[np.int32]) -> Count:
    import polars as pl

    frame = pl.DataFrame({f"c{i}": column.astype(bool) for i, column in enumerate(bits.T)})

    def literal(code: int) -> pl.Expr:
        column = pl.col(f"c{code >> 1}")
        return ~column if code & 1 else column

    queries = [
        (literal(a) & literal(b) & literal(c)).sum().alias(str(i))
        for i, (a, b, c) in enumerate(literals.tolist())
    ]
    return lambda: frame.select(queries).to_numpy()[0].astype(np.int64)


def _duckdb(bits: NDArray[np.uint8], literals: NDArray[np.int32]) -> Count:
    import duckdb
    import polars as pl

    frame = pl.DataFrame({f"c{i}": column.astype(bool) for i, column in enumerate(bits.T)})
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    connection.execute("CREATE TABLE records AS SELECT * FROM frame")
    connection.unregister("frame")
    conditions = (
        " AND ".join(f"{'NOT ' if code & 1 else ''}c{code >> 1}" for code in query)
        for query in literals.tolist()
    )
    counts = ", ".join(f"count(*) FILTER ({condition})" for condition in conditions)
    text = f"SELECT {counts} FROM records"  # noqa: S608  # whole numbers only are put in
    return lambda: np.array(connection.execute(text).fetchone(), np.int64)


ALTERNATIVES = (
    Alternative("NumPy boolean columns", "numpy", _numpy),
    Alternative("Polars expressions", "polars", _polars),
    Alternative("DuckDB count(*) FILTER", "duckdb", _duckdb),
    Alternative("SciPy sparse products", "scipy", _scipy),
)

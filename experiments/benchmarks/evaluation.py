"""Counting 500,000 signed 3-way conjunctions on random bits of the shape of KDD Cup 99.

Beside it what a user would count with instead, each on its own best layout of the bits, which is
prepared for a small sample of the queries and not timed.
"""

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dualquery.data.domain import Domain
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.rows.generated.biased import Biased, Generator, generated_records
from dualquery.rows.packed import PackedBlock, Records

T = TypeVar("T")

ROWS, BITS, QUERIES = 494_021, 396, 500_000
SAMPLE = 200
"""Queries on which the alternatives are timed; their times are scaled to the whole workload."""

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


def fastest(function: Callable[[], T], repetitions: int) -> tuple[float, T]:
    """Return the seconds of the fastest of some calls, and the last result."""
    best = np.inf
    for _ in range(repetitions):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def stored_records(generator: Generator) -> Records:
    """Return a generator's table as packed blocks in memory."""
    records = generated_records(generator)
    everything = np.arange(records.bits, dtype=np.int32)
    blocks = (PackedBlock(records.block(block, everything)) for block in range(records.blocks))
    return Records(records.n, records.bits, tuple(blocks))


def run(console: Console, quick: bool) -> dict[str, Any]:
    """Measure, check that all agree, and print a table."""
    rows, queries = (20_000, 20_000) if quick else (ROWS, QUERIES)
    cores = os.cpu_count() or 1
    records = stored_records(Biased(rows, BITS, seed=1))
    workload = random_conjunctions(Domain.binary(BITS), queries, seed=1)
    table = Table(
        "counted by", "threads", "seconds", "slower by",
        title=f"{queries:,} signed 3-way conjunctions on {rows:,} x {BITS} random bits",
    )  # fmt: skip
    ours: dict[str, float] = {}
    for threads in sorted({1, cores}):
        seconds, counts = fastest(lambda t=threads: workload.counts(records, t), 3)  # type: ignore[misc]
        ours[str(threads)] = seconds
        table.add_row("dualquery", f"{threads}", f"{seconds:.2f}", "")

    sample = workload.literals[:SAMPLE]
    bits = np.asfortranarray(records.dense_rows(0, rows))
    others: dict[str, Any] = {}
    for other in ALTERNATIVES:
        if not other.installed:
            others[other.name] = None
            table.add_row(other.name, "", f"{other.module} is not installed", "")
            continue
        sample_seconds, found = fastest(other.prepare(bits, sample), 2)
        if not np.array_equal(found, counts[:SAMPLE]):
            raise RuntimeError(f"{other.name} counts otherwise")
        seconds = sample_seconds * queries / SAMPLE
        ratios = {threads: seconds / own for threads, own in ours.items()}
        others[other.name] = {"scaled_seconds": seconds, "times_ours": ratios}
        shown = " / ".join(f"{ratio:.0f}" for ratio in ratios.values())
        table.add_row(other.name, "own", f"{seconds:,.1f}", shown)
    console.print(table)
    return {"rows": rows, "bits": BITS, "queries": queries, "dualquery": ours, "others": others}

"""``arrow`` and ``duckdb``: tables that a library hands on as Arrow batches, from the start."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NamedTuple

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.arrow_blocks import frames_of_batches, is_list
from dualquery.data.readers.python_objects import BLOCK_ROWS, ListItems, check_columns
from dualquery.data.readers.source import Source
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_FILE_MAGIC = b"ARROW1"


class Batches(NamedTuple):
    """Batches, the schema that they have, and the bytes that their file has."""

    schema: Any
    batches: Iterator[Any]
    stored: int = 0


Open = Callable[[], contextlib.AbstractContextManager[Batches]]
"""Opens a table's batches, from the start."""


@dataclass(frozen=True, eq=False)
class BatchTable:
    """A table with one value a cell; ``steady`` if its rows come in the same order each time."""

    open: Open
    names: tuple[str, ...]
    label: str
    block_rows: int = BLOCK_ROWS
    steady: bool = True
    implied_schema: ClassVar[str | None] = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        with self.open() as found:
            for batch in frames_of_batches(found.batches, self.label, stored=found.stored):
                for frame in batch.iter_slices(self.block_rows):
                    yield frame.select([frame.get_column(name) for name in columns])


def open_arrow(path: FilePath, label: str) -> Source:
    """Return the source for a file or a stream of Arrow's IPC format."""
    return _source(partial(_arrow, path, label), label)


def open_duckdb(text: str, label: str) -> Source:
    """Return the source for ``FILE?SELECT ...``: what a query of a DuckDB database returns.

    The database is opened for reading only. A row of the result counts as one row of the table, so
    a query that joins or aggregates must keep what belongs to one person in one row. Neither the
    query nor a view of the database may reach other files or the network.
    """
    file, question, query = text.partition("?")
    if not question or not query.strip():
        raise BadInputError(f"{label}: write duckdb:FILE?SELECT ... (in quotation marks)")
    if not Path(file).is_file():
        raise BadInputError(f"{label}: there is no such file as {file}")
    return _source(partial(_query, file, query, label), label, steady=False)


def _source(opened: Open, label: str, *, steady: bool = True) -> Source:
    with opened() as found:
        schema = found.schema
        check_columns(schema.names, label)
    table = BatchTable(opened, tuple(schema.names), label, steady=steady)
    return ListItems(table) if is_list(schema) else table


@contextlib.contextmanager
def _arrow(path: FilePath, label: str) -> Iterator[Batches]:
    import pyarrow as pa

    with open_bytes(path, label) as stream:
        try:
            yield _batches(stream, Path(str(path)).stat().st_size)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise BadInputError(f"{label}: damaged file of Arrow batches ({fault})") from None


def _batches(stream: BinaryIO, stored: int) -> Batches:
    """Open Arrow batches in either form."""
    import pyarrow as pa

    magic = stream.read(len(_FILE_MAGIC))
    stream.seek(0)
    try:
        if magic == _FILE_MAGIC:
            file = pa.ipc.open_file(stream)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
            return Batches(file.schema, batches, stored)
        reader = pa.ipc.open_stream(stream)
        return Batches(reader.schema, iter(reader), stored)
    except MemoryError:
        raise OSError("what it says of itself is larger than the memory") from None


@contextlib.contextmanager
def _query(file: str, query: str, label: str) -> Iterator[Batches]:
    try:
        import duckdb
    except ImportError:
        raise BadInputError(
            f"{label}: DuckDB is not installed; install it with: pip install 'dualquery[duckdb]'"
        ) from None
    try:
        with duckdb.connect(file, read_only=True) as connection:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            found = connection.sql(query)
            if found is None:
                raise BadInputError(f"{label}: the query returns no table; write SELECT ...")
            reader = found.to_arrow_reader(BLOCK_ROWS)
            yield Batches(reader.schema, iter(reader))
    except duckdb.Error as fault:
        raise BadInputError(f"{label}: DuckDB refuses ({fault})") from None

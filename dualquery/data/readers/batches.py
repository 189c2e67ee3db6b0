"""``arrow`` and ``duckdb``: tables that a library hands on as Arrow batches, from the start."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.arrow_blocks import frames_of_batches
from dualquery.data.readers.python_objects import (
    BLOCK_ROWS,
    check_names,
    check_width,
    rows_of_frames,
)
from dualquery.data.readers.source import ItemRows, Source
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_FILE_MAGIC = b"ARROW1"

Open = Callable[[], contextlib.AbstractContextManager[Any]]
"""Opens a PyArrow reader of batches, from the start."""


@dataclass(frozen=True, eq=False)
class BatchTable:
    """A table with one value a cell."""

    open: Open
    names: tuple[str, ...]
    label: str
    block_rows: int = BLOCK_ROWS
    steady: bool = True
    """Whether the rows come in the same order each time; those of a query may not."""
    implied_schema: ClassVar[str | None] = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        for frame in _frames(self.open, self.label, self.block_rows):
            yield frame.select([frame.get_column(name) for name in columns])


@dataclass(frozen=True, eq=False)
class BatchItems:
    """A table whose only column lists the item ids of each row."""

    open: Open
    label: str
    block_rows: int = BLOCK_ROWS

    def width(self) -> int | None:
        """Return None: the form does not say which items there are."""
        return None

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block; a null list is an empty row."""
        return rows_of_frames(_frames(self.open, self.label, self.block_rows), self.label)


def open_arrow(path: FilePath, label: str) -> Source:
    """Return the source for a file or a stream of Arrow's IPC format.

    Raises
    ------
    BadInputError
        If it is neither, or two of its columns have the same name.
    """
    return batch_source(partial(_arrow, path, label), label)


def open_duckdb(text: str, label: str) -> Source:
    """Return the source for ``FILE?SELECT ...``: what a query of a DuckDB database returns.

    The database is opened for reading only. A row of the result counts as one row of the table, so
    a query that joins or aggregates must keep what belongs to one person in one row. Neither the
    query nor a view of the database may reach other files or the network.

    Raises
    ------
    BadInputError
        If DuckDB is not installed, there is no such file, or it refuses the query.
    """
    file, question, query = text.partition("?")
    if not question or not query.strip():
        raise BadInputError(f"{label}: write duckdb:FILE?SELECT ... (in quotation marks)")
    if not Path(file).is_file():
        raise BadInputError(f"{label}: there is no such file as {file}")
    return batch_source(partial(_query, file, query, label), label, steady=False)


def batch_source(opened: Open, label: str, *, steady: bool = True) -> Source:
    """Return a source of the one form or the other, by the columns that a reader states.

    ``steady`` says whether the rows come in the same order each time.
    """
    import pyarrow as pa

    with opened() as reader:
        schema = reader.schema
        check_width(len(schema), label)
        check_names(schema.names, label)
        kind = schema.types[0] if len(schema) == 1 else None
    if kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return BatchItems(opened, label)
    return BatchTable(opened, tuple(schema.names), label, steady=steady)


def _frames(opened: Open, label: str, block_rows: int) -> Iterator[pl.DataFrame]:
    """Yield what a reader gives as tables of at most so many rows."""
    with opened() as reader:
        stored = getattr(reader, "stored", 0)
        for frame in frames_of_batches(iter(reader), label, stored=stored):
            yield from frame.iter_slices(block_rows)


@contextlib.contextmanager
def _arrow(path: FilePath, label: str) -> Iterator[Any]:
    import pyarrow as pa

    with open_bytes(path, label) as stream:
        try:
            yield _batches(stream, Path(str(path)).stat().st_size)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise BadInputError(f"{label}: damaged file of Arrow batches ({fault})") from None


def _batches(stream: BinaryIO, stored: int) -> _Batches:
    """Open a file of Arrow batches of so many bytes, in either form."""
    import pyarrow as pa

    magic = stream.read(len(_FILE_MAGIC))
    stream.seek(0)
    try:
        if magic == _FILE_MAGIC:
            file = pa.ipc.open_file(stream)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
            return _Batches(file.schema, batches, stored)
        reader = pa.ipc.open_stream(stream)
        return _Batches(reader.schema, iter(reader), stored)
    except MemoryError:
        raise OSError("what it says of itself is larger than the memory") from None


@dataclass(frozen=True)
class _Batches:
    """Batches of a file, with the schema that they have, and the file's size in bytes."""

    schema: Any
    batches: Iterator[Any]
    stored: int

    def __iter__(self) -> Iterator[Any]:
        return self.batches


@contextlib.contextmanager
def _query(file: str, query: str, label: str) -> Iterator[Any]:
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
            yield found.to_arrow_reader(BLOCK_ROWS)
    except duckdb.Error as fault:
        raise BadInputError(f"{label}: DuckDB refuses ({fault})") from None

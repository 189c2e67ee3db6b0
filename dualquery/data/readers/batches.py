"""``arrow`` and ``duckdb``: tables that a library hands on as Arrow batches, from the start."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.python_objects import (
    BLOCK_ROWS,
    ListFrameSource,
    check_names,
    check_width,
    frame_source,
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
    implied_schema: ClassVar[str | None] = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        for frame in _frames(self.open, self.block_rows):
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
        return rows_of_frames(_frames(self.open, self.block_rows), self.label)


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
    a query that joins or aggregates must keep what belongs to one person in one row.

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
    return batch_source(partial(_query, file, query, label), label)


def batch_source(opened: Open, label: str) -> Source:
    """Return a source of the one form or the other, by the columns that a reader states."""
    import polars as pl

    with opened() as reader:
        schema = reader.schema
    check_width(len(schema), label)
    check_names(schema.names, label)
    empty = pl.DataFrame(pl.from_arrow(schema.empty_table()))
    if isinstance(frame_source(empty, label), ListFrameSource):
        return BatchItems(opened, label)
    return BatchTable(opened, tuple(schema.names), label)


def _frames(opened: Open, block_rows: int) -> Iterator[pl.DataFrame]:
    """Yield what a reader gives as tables of at most so many rows."""
    import polars as pl

    with opened() as reader:
        for batch in reader:
            yield from pl.DataFrame(pl.from_arrow(batch)).iter_slices(block_rows)


@contextlib.contextmanager
def _arrow(path: FilePath, label: str) -> Iterator[Any]:
    import pyarrow as pa

    with open_bytes(path, label) as stream:
        magic = stream.read(len(_FILE_MAGIC))
        stream.seek(0)
        try:
            if magic == _FILE_MAGIC:
                file = pa.ipc.open_file(stream)
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
                yield _Batches(file.schema, batches)
            else:
                yield pa.ipc.open_stream(stream)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise BadInputError(f"{label}: damaged file of Arrow batches ({fault})") from None


@dataclass(frozen=True)
class _Batches:
    """Batches with the schema that they have."""

    schema: Any
    batches: Iterator[Any]

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
            yield connection.execute(query).to_arrow_reader(BLOCK_ROWS)
    except duckdb.Error as fault:
        raise BadInputError(f"{label}: DuckDB refuses ({fault})") from None

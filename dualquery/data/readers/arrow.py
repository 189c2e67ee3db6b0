"""``parquet``, ``arrow``, ``duckdb``: tables, or one list of item ids a row, as Arrow gives them.

A file of a few bytes may state, or unpack to, gigabytes: so a block has a limit while it is read,
where the system has one, and once it is read; offsets and texts are checked before Polars sees any.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.source import (
    BLOCK_ROWS,
    ListItems,
    Source,
    TableSource,
    check_columns,
    rows_at_once,
)
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import limited_space, mebibytes

if TYPE_CHECKING:
    import polars as pl

_FILE_MAGIC, _PARQUET_MAGIC = b"ARROW1", b"PAR1"

LARGEST = 1 << 30  # bytes of a block of rows; more only for very many cells
_BYTES_OF_CELL = 32  # the widest number that Arrow has
_WHILE_READING = 4  # times `LARGEST`: address space that a block may take while it is unpacked
_LARGEST_UNZIPPED = 1 << 32  # bytes of a gzipped parquet file's content, which is held whole

_MOST_METADATA = 1 << 26
_MOST_ENTRIES = 1 << 20
"""Bytes of a text, and entries of a list, in what a parquet file says of itself (PyArrow's own
limits are ten times as large): column names, row groups, statistics."""

_COLUMN_BYTES = 1 << 16  # read ahead of a column; without this, all of it within a row group


class Batches(NamedTuple):
    """Batches, the schema that they have, bytes they may have besides `LARGEST`, all rows."""

    schema: Any
    batches: Iterator[Any]
    more: int = 0
    rows: int | None = None


Open = Callable[[Sequence[str] | None, int], AbstractContextManager[Batches]]
"""Opens a table's batches from the start: those columns or more, and about that many rows each."""


@dataclass(frozen=True, eq=False)
class ArrowTable(TableSource):
    """A table with one value a cell; ``steady`` if its rows come in the same order each time."""

    open: Open
    names: tuple[str, ...]
    label: str
    path: FilePath | None = None
    steady: bool = True
    block_rows: int = BLOCK_ROWS
    types: tuple[str, ...] = ()
    row_count: int | None = None
    implied_schema: str | None = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        chosen = None if len(columns) == len(self.names) else list(columns)
        with self.open(chosen, rows_at_once(len(columns), self.block_rows)) as found:
            for frame in _frames(found, self.label, list(columns)):
                yield from frame.iter_slices(rows_at_once(len(columns), self.block_rows))


def open_parquet(path: FilePath, label: str) -> ArrowTable | ListItems:
    """Return the source for a parquet file, read by seeking or, if it is gzipped, in memory."""
    return _source(partial(_parquet, path, label), label, path)


def open_arrow(path: FilePath, label: str) -> Source:
    """Return the source for a file or a stream of Arrow's IPC format."""
    return _source(partial(_arrow, path, label), label, path)


def open_duckdb(file: FilePath, label: str, query: str | None = None) -> Source:
    """Return the source for ``FILE?SELECT ...``: what a query of a DuckDB database returns.

    The database is opened for reading only. A row of the result counts as one row of the table, so
    a query that joins or aggregates must keep what belongs to one person in one row. Neither the
    query nor a view of the database may reach other files or the network.
    """
    if not query or not query.strip():
        raise BadInputError(f"{label}: write duckdb:FILE?SELECT ... (in quotation marks)")
    return _source(partial(_query, str(file), query, label), label, file, steady=False)


def _source(
    opened: Open, label: str, path: FilePath | None = None, *, steady: bool = True
) -> ArrowTable | ListItems:
    """Return the long form if the only column holds lists."""
    import pyarrow as pa

    with opened(None, BLOCK_ROWS) as found:
        names, kinds = found.schema.names, found.schema.types
        check_columns(names, label)
        types = tuple(map(str, kinds))
    table = ArrowTable(opened, (*names,), label, path, steady, types=types, row_count=found.rows)
    lists = [pa.types.is_list(kind) or pa.types.is_large_list(kind) for kind in kinds]
    return ListItems(table) if lists == [True] else table


@contextmanager
def _damage(label: str, what: str) -> Iterator[None]:
    """Turn the faults that PyArrow finds in a file into `BadInputError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as fault:
        raise BadInputError(f"{label}: damaged {what} ({fault})") from None


@contextmanager
def _parquet(
    path: FilePath, label: str, columns: Sequence[str] | None, rows: int
) -> Iterator[Batches]:
    import pyarrow.parquet as pq

    with open_bytes(path, label) as stream:
        if (magic := stream.read(len(_PARQUET_MAGIC))) != _PARQUET_MAGIC:
            raise BadInputError(
                f"{label}: not a parquet file (it starts with {magic!r}); if it is text with a "
                "header, give it as csv:PATH"
            )
        stream.seek(0)
        zipped = isinstance(getattr(stream, "raw", None), gzip.GzipFile)
        with _damage(label, "parquet file"):
            file = pq.ParquetFile(
                io.BytesIO(read_whole(stream, label, _LARGEST_UNZIPPED)) if zipped else stream,
                page_checksum_verification=True,  # of the pages that have a checksum
                # With read-ahead, PyArrow keeps all that it read: in the end, the whole file.
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",  # nanoseconds would wrap beyond 2262
                buffer_size=_COLUMN_BYTES,
                thrift_string_size_limit=_MOST_METADATA,
                thrift_container_size_limit=_MOST_ENTRIES,
            )
            batches = file.iter_batches(rows, columns=columns, use_threads=False)
            more = _BYTES_OF_CELL * rows * file.metadata.num_columns
            yield Batches(file.schema_arrow, batches, more, int(file.metadata.num_rows))


@contextmanager
def _arrow(path: FilePath, label: str, *_: object) -> Iterator[Batches]:
    """Open Arrow batches in either form."""
    import pyarrow as pa

    stored = path.stat().st_size if isinstance(path, Path) else 0
    with open_bytes(path, label) as stream, _damage(label, "file of Arrow batches"):
        magic = stream.read(len(_FILE_MAGIC))
        stream.seek(0)
        file = magic == _FILE_MAGIC
        reader = pa.ipc.open_file(stream) if file else pa.ipc.open_stream(stream)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if file else iter(reader)
        yield Batches(reader.schema, batches, stored)


@contextmanager
def _query(file: str, query: str, label: str, *_: object) -> Iterator[Batches]:
    try:
        import duckdb
    except ImportError:
        raise BadInputError(
            f"{label}: DuckDB is not installed; install it with: pip install 'dualquery[duckdb]'"
        ) from None
    try:
        with _damage(label, "result"), duckdb.connect(file, read_only=True) as connection:
            connection.execute("SET enable_external_access = false; SET TimeZone = 'UTC'")
            connection.execute("SET lock_configuration = true")
            if (found := connection.sql(query)) is None:
                raise BadInputError(f"{label}: the query returns no table; write SELECT ...")
            reader = found.to_arrow_reader(BLOCK_ROWS)
            yield Batches(reader.schema, iter(reader))
    except duckdb.Error as fault:
        raise BadInputError(f"{label}: DuckDB refuses ({fault})") from None


def _frames(found: Batches, label: str, columns: list[str]) -> Iterator[pl.DataFrame]:
    """Yield some columns of Arrow batches as Polars tables, without the file's remarks."""
    from polars.exceptions import PanicException, PolarsError

    largest = LARGEST + found.more
    too_large = BadInputError(
        f"{label}: a block of rows takes more than {mebibytes(largest)}; are texts or lists of "
        "items that long? Write the file in smaller pages or batches, or in another format"
    )
    _read_names(found.schema)
    while True:
        try:
            with limited_space(_WHILE_READING * largest):
                batch = next(found.batches, None)
        except MemoryError:
            raise too_large from None
        if batch is None:
            return
        batch.validate(full=True)  # first: PyArrow itself trusts offsets when it adds up sizes
        if batch.get_total_buffer_size() > largest:
            raise too_large
        try:
            frame = frame_of_arrow(batch.select(columns).replace_schema_metadata(None))
        except (TypeError, ValueError, PolarsError, PanicException) as fault:
            raise BadInputError(f"{label}: a column cannot be read ({fault})") from None
        yield frame


def frame_of_arrow(table: Any) -> pl.DataFrame:
    """Return an Arrow table or batch in Polars; times with an offset by their own clocks."""
    import polars as pl

    try:
        return pl.DataFrame(pl.from_arrow(table))
    except (pl.exceptions.ComputeError, pl.exceptions.PanicException):
        from pyarrow.compute import local_timestamp  # Polars knows offsets of whole hours only

        for at, field in enumerate(table.schema):
            if str(getattr(field.type, "tz", None)).startswith(("+", "-")):
                table = table.set_column(at, field.name, local_timestamp(table.column(at)))
        return pl.DataFrame(pl.from_arrow(table))


def _read_names(fields: Iterable[Any]) -> None:
    """Raise `UnicodeDecodeError` if a name is no UTF-8: of a column, or within its type."""
    for field in fields:
        str(field.name)
        kind = field.type
        _read_names(kind.field(at) for at in range(kind.num_fields))

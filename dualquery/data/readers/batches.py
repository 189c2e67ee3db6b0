"""``arrow`` and ``duckdb``, and blocks of rows as Arrow gives them, from files of unknown origin.

A file of a few bytes may state, or unpack to, gigabytes: so a block has a limit while it is read,
where the system has one, and once it is read. Polars takes offsets and texts of Arrow on trust: so
they are checked before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.python_objects import ListItems, check_columns
from dualquery.data.readers.source import BLOCK_ROWS, Source, TableSource, rows_at_once
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import limited_space, mebibytes

if TYPE_CHECKING:
    import polars as pl

_FILE_MAGIC = b"ARROW1"

LARGEST = 1 << 30
"""Bytes of a block of rows; more only for very many cells."""

_BYTES_OF_CELL = 32
"""The widest number that Arrow has."""

_WHILE_READING = 4
"""Address space that a block may take while it is unpacked, as a multiple of `LARGEST`."""


class Batches(NamedTuple):
    """Batches, the schema that they have, and the bytes that their file has."""

    schema: Any
    batches: Iterator[Any]
    stored: int = 0


Open = Callable[[], contextlib.AbstractContextManager[Batches]]
"""Opens a table's batches, from the start."""


@dataclass(frozen=True, eq=False)
class BatchTable(TableSource):
    """A table with one value a cell; ``steady`` if its rows come in the same order each time."""

    open: Open
    names: tuple[str, ...]
    label: str
    block_rows: int = BLOCK_ROWS
    steady: bool = True
    path: FilePath | None = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        with self.open() as found:
            for batch in frames_of_batches(found.batches, self.label, stored=found.stored):
                for frame in batch.iter_slices(rows_at_once(batch.width, self.block_rows)):
                    yield frame.select([frame.get_column(name) for name in columns])


def open_arrow(path: FilePath, label: str) -> Source:
    """Return the source for a file or a stream of Arrow's IPC format."""
    return _source(partial(_arrow, path, label), label, path=path)


def open_duckdb(file: FilePath, label: str, query: str | None = None) -> Source:
    """Return the source for ``FILE?SELECT ...``: what a query of a DuckDB database returns.

    The database is opened for reading only. A row of the result counts as one row of the table, so
    a query that joins or aggregates must keep what belongs to one person in one row. Neither the
    query nor a view of the database may reach other files or the network.
    """
    if not query or not query.strip():
        raise BadInputError(f"{label}: write duckdb:FILE?SELECT ... (in quotation marks)")
    return _source(partial(_query, str(file), query, label), label, steady=False)


def _source(
    opened: Open, label: str, *, path: FilePath | None = None, steady: bool = True
) -> Source:
    with opened() as found:
        schema = found.schema
        check_columns(schema.names, label)
    table = BatchTable(opened, tuple(schema.names), label, steady=steady, path=path)
    return ListItems(table) if is_list(schema) else table


@contextlib.contextmanager
def _arrow(path: FilePath, label: str) -> Iterator[Batches]:
    """Open Arrow batches in either form."""
    import pyarrow as pa

    stored = path.stat().st_size if isinstance(path, Path) else 0
    with open_bytes(path, label) as stream:
        magic = stream.read(len(_FILE_MAGIC))
        stream.seek(0)
        try:
            if magic == _FILE_MAGIC:
                file = pa.ipc.open_file(stream)
                batches = (file.get_batch(i) for i in range(file.num_record_batches))
                yield Batches(file.schema, batches, stored)
            else:
                reader = pa.ipc.open_stream(stream)
                yield Batches(reader.schema, iter(reader), stored)
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as fault:
            raise BadInputError(f"{label}: damaged file of Arrow batches ({fault})") from None


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


def frames_of_batches(
    batches: Iterator[Any], label: str, *, cells: int = 0, stored: int = 0
) -> Iterator[pl.DataFrame]:
    """Yield Arrow batches as Polars tables, without the file's remarks."""
    import polars as pl

    largest = LARGEST + _BYTES_OF_CELL * cells + stored
    too_large = BadInputError(
        f"{label}: a block of rows takes more than {mebibytes(largest)}; are texts or lists of "
        "items that long? Write the file in smaller pages or batches, or in another format"
    )
    seen = False
    while True:
        try:
            with limited_space(_WHILE_READING * largest):
                batch = next(batches, None)
        except MemoryError:
            raise too_large from None
        if batch is None:
            return
        if not seen:
            _read_names(batch.schema)
            seen = True
        batch.validate(full=True)  # first: PyArrow itself trusts offsets when it adds up sizes
        if batch.get_total_buffer_size() > largest:
            raise too_large
        try:
            frame = pl.DataFrame(pl.from_arrow(batch.replace_schema_metadata(None)))
        except (TypeError, ValueError, pl.exceptions.PolarsError) as fault:
            raise BadInputError(f"{label}: a column cannot be read ({fault})") from None
        except pl.exceptions.PanicException as fault:
            raise BadInputError(f"{label}: damaged ({fault})") from None
        yield frame


def is_list(schema: Any) -> bool:
    """Return whether the only column of an Arrow schema holds lists."""
    import pyarrow as pa

    kind = schema.types[0] if len(schema) == 1 else None
    return kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _read_names(fields: Iterable[Any]) -> None:
    """Raise `UnicodeDecodeError` if a name is no UTF-8: of a column, or within its type."""
    for field in fields:
        str(field.name)
        kind = field.type
        _read_names(kind.field(at) for at in range(kind.num_fields))

"""``parquet``: a table, or in the long form one list of item ids a row; in one file or several."""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.data.opening import FilePath, open_bytes
from dualquery.data.readers.python_objects import BLOCK_ROWS, check_names, rows_of_lists
from dualquery.data.readers.source import ItemRows, ItemSource, TableSource
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_PARQUET_MAGIC = b"PAR1"

_COLUMN_BYTES = 1 << 16
"""So much of a column is read ahead; without this, all of it within a row group."""


def open_parquet(
    path: FilePath, label: str, block_rows: int = BLOCK_ROWS
) -> TableSource | ItemSource:
    """Return the source for a parquet file: the long form if its only column holds lists.

    Raises
    ------
    BadInputError
        If the file is no parquet file, or two of its columns have the same name.
    """
    return _source_of(_arrow_schema(path, label), path, label, block_rows)


def _source_of(
    schema: Any, path: FilePath, label: str, block_rows: int = BLOCK_ROWS
) -> ParquetSource | LongParquetSource:
    """Return the source of a parquet file whose Arrow schema is known."""
    import pyarrow as pa

    if len(schema) == 1 and (
        pa.types.is_list(schema.types[0]) or pa.types.is_large_list(schema.types[0])
    ):
        return LongParquetSource(path, label, block_rows)
    check_names(schema.names, label)
    return ParquetSource(path, label, tuple(schema.names), block_rows)


@dataclass(frozen=True)
class ParquetSource:
    """A parquet file with one value a cell."""

    path: FilePath
    label: str
    names: tuple[str, ...]
    block_rows: int = BLOCK_ROWS

    @property
    def implied_schema(self) -> str | None:
        """None: the columns may mean anything."""
        return None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        import polars as pl

        for batch in _batches(self.path, self.label, self.block_rows, list(columns)):
            yield pl.DataFrame(pl.from_arrow(batch))

    def row_count(self) -> int:
        """Return the number of rows, which the file states."""
        return _row_count(self.path, self.label)


@dataclass(frozen=True)
class LongParquetSource:
    """A parquet file whose rows are lists of item ids."""

    path: FilePath
    label: str
    block_rows: int = BLOCK_ROWS

    def width(self) -> int | None:
        """Return None: the format does not say which items there are."""
        return None

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block; a null list is an empty row."""
        import polars as pl

        first_row = 1
        for batch in _batches(self.path, self.label, self.block_rows, None):
            lists = pl.DataFrame(pl.from_arrow(batch)).to_series()
            yield rows_of_lists(lists, self.label, first_row)
            first_row += len(lists)

    def row_count(self) -> int:
        """Return the number of rows, which the file states."""
        return _row_count(self.path, self.label)


@dataclass(frozen=True)
class PartitionedTable:
    """A table in several parquet files, its rows in the order of the files' names."""

    parts: tuple[ParquetSource, ...]
    label: str

    @property
    def implied_schema(self) -> str | None:
        """None: the columns may mean anything."""
        return None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.parts[0].names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        for part in self.parts:
            yield from part.frames(columns)

    def row_count(self) -> int:
        """Return the number of rows, which the files state."""
        return sum(part.row_count() for part in self.parts)


@dataclass(frozen=True)
class PartitionedItems:
    """Lists of item ids in several parquet files, in the order of the files' names."""

    parts: tuple[LongParquetSource, ...]
    label: str

    def width(self) -> int | None:
        """Return None: the format does not say which items there are."""
        return None

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block."""
        for part in self.parts:
            yield from part.item_rows()

    def row_count(self) -> int:
        """Return the number of rows, which the files state."""
        return sum(part.row_count() for part in self.parts)


def open_partitions(paths: Sequence[Path], label: str) -> PartitionedTable | PartitionedItems:
    """Return the source for several parquet files of the same columns.

    Parameters
    ----------
    paths
        At least one.
    label
        What messages call them together; each alone is called by its own path.

    Raises
    ------
    BadInputError
        If a file is no parquet file, or has other columns or types than the first.
    """
    first: dict[str, str] = {}
    parts: list[ParquetSource | LongParquetSource] = []
    for path in paths:
        schema = _arrow_schema(path, str(path))
        parts.append(_source_of(schema, path, str(path)))
        types = {field.name: str(field.type) for field in schema}
        first = first or types
        if types != first:
            raise BadInputError(
                f"{path}: {_difference(first, types)}, unlike {paths[0]}; the files of one table "
                "must have the same columns"
            )
    tables = tuple(part for part in parts if isinstance(part, ParquetSource))
    if tables:
        return PartitionedTable(tables, label)
    lists = tuple(part for part in parts if isinstance(part, LongParquetSource))
    return PartitionedItems(lists, label)


def _difference(expected: dict[str, str], found: dict[str, str]) -> str:
    """Return the first way in which two lists of columns differ."""
    for name, kind in expected.items():
        if name not in found:
            return f"there is no column {name!r}"
        if found[name] != kind:
            return f"column {name!r} has type {found[name]}, not {kind}"
    return f"there is a column {next(name for name in found if name not in expected)!r}"


def _arrow_schema(path: FilePath, label: str) -> Any:
    with _open(path, label) as file:
        return file.schema_arrow


def _row_count(path: FilePath, label: str) -> int:
    with _open(path, label) as file:
        return int(file.metadata.num_rows)


def _batches(
    path: FilePath, label: str, block_rows: int, columns: list[str] | None
) -> Iterator[Any]:
    with _open(path, label) as file:
        yield from file.iter_batches(block_rows, columns=columns, use_threads=False)


@contextlib.contextmanager
def _open(path: FilePath, label: str) -> Iterator[Any]:
    """Open a parquet file, from disk or, if it is gzipped, from memory: it is read by seeking."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(path, label) as stream:
        magic = stream.read(4)
        if magic != _PARQUET_MAGIC:
            raise BadInputError(f"{label}: not a parquet file (it starts with {magic!r})")
        stream.seek(0)
        zipped = isinstance(getattr(stream, "raw", None), gzip.GzipFile)
        try:
            yield pq.ParquetFile(
                io.BytesIO(stream.read()) if zipped else stream,
                page_checksum_verification=True,  # of the pages that have a checksum
                # With read-ahead, PyArrow keeps all that it has read: in the end, the whole file.
                pre_buffer=False,
                buffer_size=_COLUMN_BYTES,
            )
        except pa.ArrowException as fault:
            raise BadInputError(f"{label}: damaged parquet file ({fault})") from None

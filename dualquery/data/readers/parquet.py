"""``parquet``: a table, or in the long form one list of item ids a row."""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualquery.data.opening import FilePath, open_bytes, read_whole
from dualquery.data.readers.batches import frames_of_batches, is_list
from dualquery.data.readers.python_objects import ListItems, check_columns
from dualquery.data.readers.source import BLOCK_ROWS, TableSource, rows_at_once
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_PARQUET_MAGIC = b"PAR1"

LARGEST = 1 << 32
"""Bytes of a gzipped parquet file's content, which is held whole."""

_MOST_METADATA = 1 << 26
_MOST_ENTRIES = 1 << 20
"""Bytes of a text, and entries of a list, in what a file says of itself (PyArrow's own limits are
ten times as large): column names, row groups, statistics."""

_COLUMN_BYTES = 1 << 16
"""Bytes of a column that are read ahead; without this, all of it within a row group."""


@dataclass(frozen=True)
class ParquetSource(TableSource):
    """A parquet file, on disk or, if it is gzipped, in memory: it is read by seeking."""

    path: FilePath
    label: str
    block_rows: int = BLOCK_ROWS
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    implied_schema: str | None = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.names

    def row_count(self) -> int:
        """Return the number of rows, which the file states."""
        with self.open() as file:
            return int(file.metadata.num_rows)

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, with their types."""
        with self.open() as file:
            rows = rows_at_once(len(columns), self.block_rows)
            some = None if len(columns) == len(self.names) else list(columns)
            batches = file.iter_batches(rows, columns=some, use_threads=False)
            cells = rows * file.metadata.num_columns
            yield from frames_of_batches(batches, self.label, cells=cells)

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """Open the file with PyArrow."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with open_bytes(self.path, self.label) as stream:
            magic = stream.read(4)
            if magic != _PARQUET_MAGIC:
                raise BadInputError(
                    f"{self.label}: not a parquet file (it starts with {magic!r}); if it is text "
                    "with a header, give it as csv:PATH"
                )
            stream.seek(0)
            zipped = isinstance(getattr(stream, "raw", None), gzip.GzipFile)
            try:
                yield pq.ParquetFile(
                    io.BytesIO(read_whole(stream, self.label, LARGEST)) if zipped else stream,
                    page_checksum_verification=True,  # of the pages that have a checksum
                    # With read-ahead, PyArrow keeps all that it read: in the end, the whole file.
                    pre_buffer=False,
                    buffer_size=_COLUMN_BYTES,
                    thrift_string_size_limit=_MOST_METADATA,
                    thrift_container_size_limit=_MOST_ENTRIES,
                )
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                raise BadInputError(f"{self.label}: damaged parquet file ({fault})") from None


def open_parquet(
    path: FilePath, label: str, block_rows: int = BLOCK_ROWS
) -> ParquetSource | ListItems:
    """Return the source for a parquet file: the long form if its only column holds lists."""
    with ParquetSource(path, label).open() as file:
        schema = file.schema_arrow
    check_columns(schema.names, label)
    types = tuple(map(str, schema.types))
    table = ParquetSource(path, label, block_rows, tuple(schema.names), types)
    return ListItems(table) if is_list(schema) else table

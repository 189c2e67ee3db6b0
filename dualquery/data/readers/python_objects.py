"""Objects in memory as sources: NumPy and SciPy matrices, Polars and pandas tables."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.readers.source import (
    BLOCK_ROWS,
    DenseItems,
    ItemRows,
    ItemSource,
    TableSource,
    rows_at_once,
)
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

MOST_COLUMNS = 1 << 15
"""Of a table; each takes a few kilobytes, and half a millisecond a block, while it is read. Wider
data are lists of items."""


@dataclass(frozen=True, eq=False)
class DenseSource(ItemSource):
    """A NumPy matrix of 0s and 1s of any numeric or bool type, rows by items."""

    matrix: NDArray[Any]
    label: str = "array"
    block_rows: int = BLOCK_ROWS

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype.kind not in "buif":
            raise BadInputError(
                f"{self.label}: a matrix of numbers, rows by items, is expected; found shape "
                f"{self.matrix.shape} and type {self.matrix.dtype}"
            )

    def width(self) -> int | None:
        """Return the number of columns."""
        return int(self.matrix.shape[1])

    def item_rows(self) -> Iterator[DenseItems]:
        """Yield the rows block by block."""
        step = rows_at_once(self.matrix.shape[1], self.block_rows)
        for start in range(0, len(self.matrix), step):
            block = self.matrix[start : start + step]
            ones = block == 1
            if not np.array_equal(ones, block):
                row, column = np.argwhere(ones != block)[0]
                raise BadInputError(
                    f"{self.label}: row {start + row + 1}, column {column}: "
                    f"{block[row, column]} found where only 0 and 1 are expected"
                )
            yield DenseItems(ones.view(np.uint8))


@dataclass(frozen=True, eq=False)
class SparseSource(ItemSource):
    """A SciPy sparse matrix or array of 0s and 1s in any format, rows by items."""

    matrix: Any
    label: str = "sparse matrix"
    block_rows: int = BLOCK_ROWS

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2:
            raise BadInputError(
                f"{self.label}: a matrix, rows by items, is expected; found shape "
                f"{self.matrix.shape}"
            )

    def width(self) -> int | None:
        """Return the number of columns."""
        return int(self.matrix.shape[1])

    @cached_property
    def _rows(self) -> Any:
        """The matrix in CSR form, checked, without stored zeros."""
        try:
            if self.matrix.dtype.kind not in "buif":
                raise ValueError(f"its numbers are of type {self.matrix.dtype}")
            rows = _checked(self.matrix).tocsr(copy=True)
        except (ValueError, TypeError, IndexError, OverflowError) as fault:
            raise BadInputError(f"{self.label}: damaged sparse matrix ({fault})") from None
        rows.eliminate_zeros()
        wrong = np.flatnonzero(rows.data != 1)
        if len(wrong):
            at = int(wrong[0])
            row = int(np.searchsorted(rows.indptr, at, side="right"))
            raise BadInputError(
                f"{self.label}: row {row}, column {rows.indices[at]}: {rows.data[at]} found where "
                "only 0 and 1 are expected"
            )
        return rows

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block."""
        rows = self._rows
        for start in range(0, rows.shape[0], self.block_rows):
            indptr = rows.indptr[start : start + self.block_rows + 1].astype(np.int64)
            items = rows.indices[indptr[0] : indptr[-1]].astype(np.int64)
            yield ItemRows(indptr - indptr[0], items)


def _checked(matrix: Any) -> Any:
    """Return a sparse matrix; `ValueError` if it names cells that it has not: SciPy would crash."""
    if matrix.format == "coo":
        return type(matrix)((matrix.data, matrix.coords), shape=matrix.shape)
    if matrix.format in ("csr", "csc", "bsr"):
        if np.any(np.diff(matrix.indptr) < 0):
            raise ValueError("its pointers decrease")
        copy.copy(matrix).check_format()  # which may change the arrays of what it checks
    return matrix


@dataclass(frozen=True, eq=False)
class FrameSource(TableSource):
    """A Polars table."""

    frame: pl.DataFrame
    label: str = "table"
    block_rows: int = BLOCK_ROWS

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the columns' types."""
        return tuple(map(str, self.frame.dtypes))

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.frame.columns

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        import polars as pl

        # Not `select`: it would take a column named "*" for all of them.
        chosen = pl.DataFrame([self.frame.get_column(name) for name in columns])
        yield from chosen.iter_slices(rows_at_once(len(columns), self.block_rows))


@dataclass(frozen=True, eq=False)
class ListItems(ItemSource):
    """A table in the long form: its only column lists the item ids of each row."""

    table: TableSource

    @property
    def label(self) -> str:  # type: ignore[override]
        """What messages call the table."""
        return self.table.label

    @property
    def parts(self) -> Sequence[ListItems]:
        """Its files."""
        return [ListItems(part) for part in self.table.parts if isinstance(part, TableSource)]

    @property
    def path(self) -> object:
        """The file of the table, if it is in one."""
        return getattr(self.table, "path", None)

    def row_count(self) -> int | None:
        """Return the number of rows."""
        return self.table.row_count()

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block; a null list is an empty row."""
        for label, first_row, frame in self.table.numbered_frames(self.table.columns()):
            yield _rows_of_lists(frame.to_series(), label, first_row)


def frame_source(frame: pl.DataFrame, label: str) -> FrameSource | ListItems:
    """Return a Polars table as a source: the long form if its only column holds lists."""
    import polars as pl

    found = FrameSource(frame, label)
    return ListItems(found) if frame.width == 1 and frame.dtypes[0] == pl.List else found


def _rows_of_lists(lists: pl.Series, label: str, first_row: int) -> ItemRows:
    """Return rows given as a series of lists; ``label`` and ``first_row`` say where a fault is."""
    import polars as pl

    lengths = lists.list.len().fill_null(0).to_numpy()
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else None
    if inner is None or not (inner.is_integer() or inner == pl.Null):
        raise BadInputError(
            f"{label}: column {lists.name!r} has type {lists.dtype}; lists of item ids (whole "
            "numbers) are expected"
        )
    items = lists.filter(pl.Series(lengths > 0)).explode().cast(pl.Int64, strict=False)
    wrong = (items < 0).fill_null(True).arg_true()
    if len(wrong):
        at = int(wrong[0])
        row = first_row + int(np.searchsorted(indptr, at, side="right")) - 1
        raise BadInputError(
            f"{label}: row {row}: the item id {items[at]}; ids are whole numbers from 0 up"
        )
    return ItemRows(indptr, items.to_numpy())


def frame_of_pandas(table: Any, label: str) -> FrameSource:
    """Return a pandas table as a source; its index is no column."""
    import polars as pl
    import pyarrow as pa

    names = [str(name) for name in table.columns]
    check_columns(names, label)
    series = []
    for position, name in enumerate(names):
        column = table.iloc[:, position]
        try:
            found = pl.Series(name, pl.from_pandas(column, nan_to_null=True))
        except (TypeError, ValueError, pa.ArrowException, pl.exceptions.ComputeError) as fault:
            raise BadInputError(
                f"{label}: column {name!r} mixes values of several types, or has a type that "
                f"cannot become bits ({fault}); make them all texts, numbers or dates"
            ) from None
        of_objects = column.dtype == object and found.dtype.is_temporal()
        clocks = {
            (isinstance(each, datetime.datetime), str(getattr(each, "tzinfo", None)))
            for each in (column.dropna() if of_objects else ())
        }
        if len(clocks) > 1:
            raise BadInputError(
                f"{label}: column {name!r} mixes dates, times or time zones, and the first of them "
                "would tell how all are read; make them alike, such as by pd.to_datetime(utc=True)"
            )
        series.append(found)
    return FrameSource(pl.DataFrame(series), label)


def frame_of_table(table: Any, label: str) -> FrameSource | ListItems:
    """Return a lazy Polars table or a PyArrow table as a source."""
    import polars as pl

    lazy = isinstance(table, pl.LazyFrame)
    if not lazy:
        check_columns(table.column_names, label)
    try:
        frame = table.collect() if lazy else pl.DataFrame(pl.from_arrow(table))
    except (OSError, TypeError, ValueError, pl.exceptions.PolarsError) as fault:
        raise BadInputError(f"{label}: it cannot be read ({fault})") from None
    return frame_source(frame, label)


def check_columns(names: Sequence[str], label: str) -> None:
    """Refuse too many columns, and names that are empty or repeated."""
    if len(names) > MOST_COLUMNS:
        raise BadInputError(
            f"{label}: {len(names):,} columns; a table has at most {MOST_COLUMNS:,}, rows of more "
            "0s and 1s are given as lists of items (fimi, npz, parquet)"
        )
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name.strip():
            raise BadInputError(
                f"{label}: column {position} (counted from 0) has no name in the header; name it, "
                "write the table without its index, or delete a title above the names"
            )
        if name in seen:
            raise BadInputError(f"{label}: two columns are named {name!r}; rename one")
        seen.add(name)

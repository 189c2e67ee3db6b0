"""Objects in memory as sources: NumPy and SciPy matrices, Polars and pandas tables."""

from __future__ import annotations

import copy
import datetime
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.data.opening import FilePath
from dualquery.data.readers.arrow import frame_of_arrow
from dualquery.data.readers.source import (
    BLOCK_ROWS,
    DenseItems,
    ItemRows,
    ItemSource,
    ListItems,
    TableSource,
    check_columns,
    rows_at_once,
)
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class ArraySource(ItemSource):
    """A NumPy matrix, or a SciPy sparse one in any format, of 0s and 1s, rows by items."""

    matrix: Any
    label: str = "array"
    block_rows: int = BLOCK_ROWS
    path: FilePath | None = None

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.dtype.kind not in "buif" or np.ma.isMA(self.matrix):
            raise BadInputError(
                f"{self.label}: a matrix of numbers, rows by items, is expected; found "
                f"{type(self.matrix).__name__} of shape {self.matrix.shape} and {self.matrix.dtype}"
            )

    @cached_property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return int(self.matrix.shape[1])

    def item_rows(self) -> Iterator[ItemRows | DenseItems]:
        """Yield the rows block by block."""
        if not isinstance(self.matrix, np.ndarray):
            for start in range(0, self._csr.shape[0], self.block_rows):
                indptr = self._csr.indptr[start : start + self.block_rows + 1].astype(np.int64)
                items = self._csr.indices[indptr[0] : indptr[-1]].astype(np.int64)
                yield ItemRows(indptr - indptr[0], items)
            return
        step = rows_at_once(self.width, self.block_rows)
        for start in range(0, len(self.matrix), step):
            block = self.matrix[start : start + step]
            ones = block == 1
            if not np.array_equal(ones, block):
                row, column = np.argwhere(ones != block)[0]
                raise self._fault(start + row, column, block[row, column])
            yield DenseItems(ones.view(np.uint8))

    @cached_property
    def _csr(self) -> Any:
        """The sparse matrix in CSR form, checked, without stored zeros."""
        try:
            rows = _checked(self.matrix).tocsr(copy=True)
        except (ValueError, TypeError, IndexError, OverflowError) as fault:
            raise BadInputError(f"{self.label}: damaged sparse matrix ({fault})") from None
        rows.sum_duplicates()
        rows.eliminate_zeros()
        if len(wrong := np.flatnonzero(rows.data != 1)):
            at = int(wrong[0])
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise self._fault(row, rows.indices[at], rows.data[at])
        return rows

    def _fault(self, row: int, column: int, found: object) -> BadInputError:
        return BadInputError(
            f"{self.label}: row {row + 1}, column {column}: {found} found where only 0 and 1 are "
            "expected"
        )


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
    path: FilePath | None = None
    block_rows: int = BLOCK_ROWS

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self.frame.columns

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        import polars as pl

        # Not `select`: it would take a column named "*" for all of them.
        chosen = pl.DataFrame([self.frame.get_column(name) for name in columns])
        yield from chosen.iter_slices(rows_at_once(len(columns), self.block_rows))


def frame_source(table: Any, label: str, path: FilePath | None = None) -> FrameSource | ListItems:
    """Return a table of Polars or Arrow as a source, the long form if its only column has lists."""
    import polars as pl
    from polars.exceptions import PanicException, PolarsError

    own = isinstance(table, pl.DataFrame | pl.LazyFrame)
    check_columns([] if own else table.column_names, label)
    try:
        frame = table.lazy().collect() if own else frame_of_arrow(table)
    except (OSError, TypeError, ValueError, PolarsError, PanicException) as fault:
        raise BadInputError(f"{label}: it cannot be read ({fault})") from None
    check_columns(frame.columns, label)
    found = FrameSource(frame, label, path)
    return ListItems(found) if frame.width == 1 and frame.dtypes[0] == pl.List else found


def frame_of_pandas(table: Any, label: str) -> FrameSource:
    """Return a pandas table as a source; its index is no column."""
    import polars as pl
    import pyarrow as pa

    names = [str(name) for name in table.columns]
    check_columns(names, label)
    series = []
    for position, name in enumerate(names):
        column = table.iloc[:, position]
        column = column.sparse.to_dense() if hasattr(column, "sparse") else column
        # In these no cell may tell how others are read: by its scale, its precision, its zone.
        of_objects = column.dtype == object or column.dtype.name == "category"
        if getattr(column.dtype, "categories", column).dtype == object:
            # Arrow takes NumPy's values for others of their column: True beside 0 for 1.
            column = type(column)([*map(_plain, column)], dtype=object)
        if (zone := getattr(column.dtype, "tz", None)) is not None and zone.utcoffset(None):
            column = column.dt.tz_localize(None)  # an offset: Polars has but whole hours
        try:
            found = pl.Series(name, pl.from_pandas(column, nan_to_null=True))
            if of_objects and found.dtype.is_numeric():  # one fraction would make all floats
                if not found.dtype.is_float() and (found.abs() >= 2**53).any():
                    raise ValueError("numbers from 2^53 on; as texts they stay exact")
                found = found.cast(pl.Float64)
        except (TypeError, ValueError, OverflowError, pa.ArrowException,
                pl.exceptions.ComputeError, pl.exceptions.PanicException) as fault:  # fmt: skip
            raise BadInputError(
                f"{label}: column {name!r} mixes values of several types, or has a type that "
                f"cannot become bits ({fault}); make them all texts, numbers or dates"
            ) from None
        kinds = {
            (*(isinstance(each, kind) for kind in _KINDS), str(getattr(each, "tzinfo", None)))
            for each in (column.dropna() if of_objects and found.dtype != pl.String else ())
        }
        if len(kinds) > 1:
            raise BadInputError(
                f"{label}: column {name!r} mixes numbers, truth values, dates, times or zones, "
                "and the first of them would tell how all are read; make them alike, such as by "
                "pd.to_datetime(utc=True)"
            )
        series.append(found)
    return FrameSource(pl.DataFrame(series), label)


# Arrow reads a column as the kind of its first cell, and some others' cells as that kind.
_KINDS = (
    bool, numbers.Number, str, np.generic,
    datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip


def _plain(value: Any) -> Any:
    """Return Python's own number, truth value or text in place of NumPy's."""
    kind = value.dtype.kind if isinstance(value, np.generic) else "O"
    return float(value) if kind == "f" else value.item() if kind in "biucU" else value

"""What every reader offers: a source of named columns, or of numbered items.

A reader knows its format, not schemas. It can be read any number of times, holds one block at a
time, and reports what is wrong with its input as `BadInputError`, naming the file and the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema

BLOCK_ROWS = 1 << 16  # most rows of a block, few enough for `_BLOCK_CELLS`
_BLOCK_CELLS = 1 << 25

MOST_COLUMNS = 1 << 15  # of a table; each takes a few kilobytes; wider data are lists of items


def rows_at_once(columns: int, most: int = BLOCK_ROWS) -> int:
    """Return how many rows of a table to hold at a time: whole words of bits, if it is wide."""
    rows = max(1, _BLOCK_CELLS // max(columns, 1))
    return min(most, rows if rows < 64 else rows // 64 * 64)


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Rows of items, in any order and repeated: row ``r`` is ``items[indptr[r]:indptr[r + 1]]``."""

    indptr: NDArray[np.int64]
    items: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True, eq=False)
class DenseItems:
    """A block of rows as 0 and 1, shape ``(rows, items)``: `ItemRows`, if asked for."""

    cells: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.cells)

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """As of `ItemRows`."""
        counts = np.count_nonzero(self.cells, axis=1)
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)

    @cached_property
    def items(self) -> NDArray[np.int64]:
        """As of `ItemRows`."""
        return np.nonzero(self.cells)[1]


class AnySource:
    """What a reader may state without reading a row; what it does not state has the value here."""

    label: str
    """What messages call the source."""

    parts: Sequence[Any] = ()
    """Its files in the order of their rows, each a source, if they are several of one form."""

    row_count: int | None = None


class TableSource(AnySource):
    """A table with named columns."""

    steady: bool = True
    """Whether the rows come in the same order each time."""

    implied_schema: str | None = None
    """Name of the built-in schema that the table has."""

    def columns(self) -> Sequence[str]:
        """Return the names of the columns, all different."""
        raise NotImplementedError

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, texts as they are in the source."""
        raise NotImplementedError

    def numbered_frames(self, columns: Sequence[str]) -> Iterator[tuple[str, int, pl.DataFrame]]:
        """Yield the `frames`, each with the label of its file and the number of its first row."""
        if self.parts:
            for part in self.parts:
                yield from part.numbered_frames(columns)
            return
        row = 1
        for frame in self.frames(columns):
            yield self.label, row, _in_known_years(frame)
            row += frame.height


def _in_known_years(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table without dates that Python has not, such as infinity: these at the ends."""
    first, last = -719_162, 2_932_896  # days from 1970
    steps = {"Date": 1, "ms": 86_400_000, "us": 86_400_000_000}
    dates: list[pl.Series] = []
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        if kind.is_temporal() and (step := steps.get(getattr(kind, "time_unit", str(kind)))):
            zoned = getattr(kind, "time_zone", None) is not None  # it may move a time by a day
            ends = (first + zoned) * step, (last + 1 - zoned) * step - 1
            dates.append(frame[name].to_physical().clip(*ends).cast(kind))
    return frame.with_columns(dates) if dates else frame


class ItemSource(AnySource):
    """Rows of numbered items."""

    width: int | None = None
    """Number of items where the format fixes them as 0 .. width - 1."""

    schema: ItemSchema | None = None
    """The items where it is public which there are."""

    def item_rows(self) -> Iterator[ItemRows | DenseItems]:
        """Yield the rows block by block."""
        raise NotImplementedError


Source: TypeAlias = TableSource | ItemSource


@dataclass(frozen=True, eq=False)
class ListItems(ItemSource):
    """A table in the long form: its only column lists the item ids of each row."""

    table: TableSource

    def __post_init__(self) -> None:
        parts = [ListItems(part) for part in self.table.parts]
        own = {"label": self.table.label, "row_count": self.table.row_count, "parts": parts}
        vars(self).update(own, path=getattr(self.table, "path", None))

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block; a null list is an empty row."""
        import polars as pl

        for label, first_row, frame in self.table.numbered_frames(self.table.columns()):
            lists = frame.to_series()
            lengths = lists.list.len().fill_null(0).to_numpy()
            indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
            inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else None
            if inner is None or not (inner.is_integer() or inner == pl.Null):
                raise BadInputError(
                    f"{label}: column {lists.name!r} has type {lists.dtype}; lists of item ids "
                    "(whole numbers) are expected"
                )
            items = lists.filter(pl.Series(lengths > 0)).explode().cast(pl.Int64, strict=False)
            if len(wrong := (items < 0).fill_null(True).arg_true()):
                at = int(wrong[0])
                row = first_row + int(np.searchsorted(indptr, at, side="right")) - 1
                raise BadInputError(
                    f"{label}: row {row}: the item id {items[at]}; ids are whole numbers from 0 up"
                )
            yield ItemRows(indptr, items.to_numpy())


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

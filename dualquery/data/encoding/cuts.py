"""A table without some of its rows, and without columns that say which rows count and how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualquery.data.given_table import Unit, Weight
from dualquery.data.readers.source import Source, TableSource
from dualquery.runtime.errors import BadInputError, suggest

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class CutTable(TableSource):
    """A table without some of its rows.

    Its frames have all rows; `pieces` says which are ``kept``: bool, one a row, private. Columns
    that are ``hidden`` are not released. The number of ``units``, or of rows where each is one, is
    public where a unit is replaced, else private. ``notes`` are public.
    """

    source: TableSource
    hidden: tuple[str, ...]
    kept: NDArray[np.bool_]
    units: int
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        vars(self).update(label=self.source.label, implied_schema=self.source.implied_schema)

    def columns(self) -> Sequence[str]:
        """Return the names of the columns but the hidden ones."""
        return [name for name in self.source.columns() if name not in self.hidden]

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        return self.source.frames(columns)


class Piece(NamedTuple):
    """A block of a table: its file, the number of its first row there, all rows, which stay."""

    label: str
    first_row: int
    frame: pl.DataFrame
    stay: NDArray[np.bool_] | None = None


def pieces(source: TableSource, columns: Sequence[str]) -> Iterator[Piece]:
    """Yield a table block by block; `BadInputError` if a cut one has other rows than before."""
    if not isinstance(source, CutTable):
        yield from (Piece(*each) for each in source.numbered_frames(columns))
        return
    told = 0
    for piece in pieces(source.source, columns):
        told += piece.frame.height
        if told > len(source.kept):
            break
        yield piece._replace(stay=source.kept[told - piece.frame.height : told])
    if told != len(source.kept):
        raise BadInputError(
            f"{source.label}: the rows were counted first, and now there are other rows; the data "
            "must not change while they are read"
        )


def column_of(source: Source, column: str, option: str) -> TableSource:
    """Return a source as a table that has a column which an option names."""
    if not isinstance(source, TableSource):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, without a column for {option}; leave "
            f"{option} out, or give a table with named columns"
        )
    if column not in (names := list(source.columns())):
        raise BadInputError(
            f"{source.label}: there is no column {column!r}, which {option} names; "
            f"{suggest(column, names)}"
        )
    return source


def in_one_order(table: TableSource) -> TableSource:
    """Return a table whose rows come in one order, as places tell which stay.

    A query's are held and sorted by what is in them: its own order may depend on other rows.
    """
    if table.steady:
        return table
    import polars as pl

    from dualquery.data.readers.python_objects import FrameSource

    names = table.columns()
    frames = list(table.frames(names))
    whole = pl.concat(frames) if frames else pl.DataFrame({name: [] for name in names})
    return FrameSource(whole.to_struct().sort().struct.unnest(), table.label)


def without_counting(source: Source, unit: Unit | None, weight: Weight | None) -> Source:
    """Return a source without the columns of units and weights; of its rows none is looked at."""
    hidden = []
    for name, each in (("--unit", unit), ("--weight", weight)):
        if each is not None:
            source = column_of(source, each.column, name)
            hidden.append(each.column)
    if not isinstance(source, TableSource) or not hidden:
        return source
    return CutTable(source, tuple(hidden), np.zeros(0, np.bool_), 0)

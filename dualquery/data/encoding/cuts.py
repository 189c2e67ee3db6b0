"""A table of which some rows stay, and without columns that tell about rows only.

Columns of units and of weights (`dualquery.data.encoding.units`) say which rows count and how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError, suggest

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.readers.source import Source, TableSource


@dataclass(frozen=True, eq=False)
class CutTable:
    """A table of which some rows stay: a table source.

    Its frames have all rows; encoding leaves out those that are not ``kept``: bool, one a row,
    private. Columns that are ``hidden`` are not released. The number of ``units``, or of rows where
    each is one, is public where a unit is replaced, else private. Sentences for the release are in
    ``notes``, by public choices only.
    """

    source: TableSource
    hidden: tuple[str, ...]
    kept: NDArray[np.bool_]
    units: int
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What messages call the table."""
        return self.source.label

    @property
    def implied_schema(self) -> str | None:
        """Name of the built-in schema that the table has, if any."""
        return self.source.implied_schema

    def columns(self) -> Sequence[str]:
        """Return the names of the columns but the hidden ones."""
        return [name for name in self.source.columns() if name not in self.hidden]

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        return self.source.frames(columns)


class Kept:
    """Which rows stay, told block by block in the order of the table."""

    def __init__(self, table: CutTable) -> None:
        self._table = table
        self._told = 0

    def of_next(self, rows: int) -> NDArray[np.bool_]:
        """Return which of the next rows stay; `BadInputError` if there were not so many before."""
        first, self._told = self._told, self._told + rows
        if self._told > len(self._table.kept):
            raise self._changed()
        return self._table.kept[first : self._told]

    def finish(self) -> None:
        """Raise `BadInputError` if there were more rows before."""
        if self._told != len(self._table.kept):
            raise self._changed()

    def _changed(self) -> BadInputError:
        return BadInputError(
            f"{self._table.label}: the rows were counted first, and now there are other rows; the "
            "data must not change while they are read"
        )


def column_of(source: Source, column: str, option: str) -> TableSource:
    """Return a source as a table that has a column which an option names."""
    from dualquery.data.readers.source import TableSource

    if not isinstance(source, TableSource):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, without a column for {option}; leave "
            f"{option} out, or give a table with named columns"
        )
    names = list(source.columns())
    if column not in names:
        raise BadInputError(
            f"{source.label}: there is no column {column!r}, which {option} names; "
            f"{suggest(column, names)}"
        )
    return source


def in_one_order(table: TableSource) -> TableSource:
    """Return a table whose rows come in the same order in every pass.

    Which rows stay is told by their places. A query may give its rows in another order each time:
    so its result is held in memory.
    """
    if getattr(table, "steady", True):
        return table
    import polars as pl

    from dualquery.data.readers.python_objects import FrameSource

    names = table.columns()
    frames = list(table.frames(names))
    whole = pl.concat(frames) if frames else pl.DataFrame({name: [] for name in names})
    return FrameSource(whole, table.label)

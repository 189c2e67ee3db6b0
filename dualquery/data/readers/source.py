"""What every reader offers: a source of named columns, or of numbered items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema

BLOCK_ROWS = 1 << 16
"""Most rows of a block, few enough for `_BLOCK_CELLS`."""

_BLOCK_CELLS = 1 << 25


def rows_at_once(columns: int, most: int = BLOCK_ROWS) -> int:
    """Return how many rows of a table to hold at a time: whole words of bits, if it is wide."""
    rows = max(1, _BLOCK_CELLS // max(columns, 1))
    return min(most, rows if rows < 64 else rows // 64 * 64)


@dataclass(frozen=True, eq=False)
class ItemRows:
    """A block of rows, each a set of items: row ``r`` has ``items[indptr[r]:indptr[r + 1]]``.

    Items are in any order; repeats within a row are harmless.
    """

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

    @property
    def parts(self) -> Sequence[Source]:
        """Its files in the order of their rows, each a source, if they are several of one form."""
        return ()

    def row_count(self) -> int | None:
        """Return the number of rows."""
        return None


class TableSource(AnySource):
    """A table with named columns."""

    @property
    def implied_schema(self) -> str | None:
        """Name of the built-in schema that the table has."""
        return None

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the columns' types."""
        return ()

    @property
    def written_as(self) -> str | None:
        """How CSV is written, as ``--csv`` says it; None for standard CSV and other tables."""
        return None

    @property
    def steady(self) -> bool:
        """Whether the rows come in the same order each time."""
        return True

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
                assert isinstance(part, TableSource)
                yield from part.numbered_frames(columns)
            return
        row = 1
        for frame in self.frames(columns):
            yield self.label, row, frame
            row += frame.height


class ItemSource(AnySource):
    """Rows of numbered items."""

    def width(self) -> int | None:
        """Return the number of items where the format fixes them as 0 .. width - 1, else None."""
        return None

    def schema(self) -> ItemSchema | None:
        """Return the items where it is public which there are, else None."""
        return None

    def item_rows(self) -> Iterator[ItemRows | DenseItems]:
        """Yield the rows block by block."""
        raise NotImplementedError


Source: TypeAlias = TableSource | ItemSource

"""What every reader offers: a source of named columns, or of numbered items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema


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


BIT_TEXTS = ("0", "1")


@dataclass(frozen=True, eq=False)
class TextBits:
    """Rows of a table whose texts are all ``0`` or ``1``: ``cells`` by column and row."""

    names: tuple[str, ...]
    cells: NDArray[np.uint8]

    @property
    def height(self) -> int:
        """Number of rows."""
        return int(self.cells.shape[1])

    def of(self, names: Sequence[str]) -> NDArray[np.uint8]:
        """Return the cells of some columns."""
        if tuple(names) == self.names:
            return self.cells
        places = {name: place for place, name in enumerate(self.names)}
        return self.cells[[places[name] for name in names]]

    def get_column(self, name: str) -> pl.Series:
        """Return a column as texts."""
        import polars as pl

        return pl.Series(name, BIT_TEXTS).gather(self.of([name])[0])

    def iter_slices(self, rows: int) -> Iterator[TextBits]:
        """Yield pieces with at most that number of rows."""
        for start in range(0, self.height, rows):
            yield TextBits(self.names, self.cells[:, start : start + rows])


@runtime_checkable
class TableSource(Protocol):
    """A table with named columns."""

    @property
    def label(self) -> str:
        """What messages call the source."""
        ...

    @property
    def implied_schema(self) -> str | None:
        """Name of the built-in schema that the source has, if any."""
        ...

    def columns(self) -> Sequence[str]:
        """Return the names of the columns, all different."""
        ...

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, texts as they are in the source."""
        ...


@runtime_checkable
class ItemSource(Protocol):
    """Rows of numbered items."""

    @property
    def label(self) -> str:
        """What messages call the source."""
        ...

    def width(self) -> int | None:
        """Return the number of items where the format fixes them as 0 .. width - 1, else None."""
        ...

    def item_rows(self) -> Iterator[ItemRows | DenseItems]:
        """Yield the rows block by block."""
        ...


class AnyItems:
    """The base of item sources whose form does not say which items there are."""

    def width(self) -> int | None:
        """Return None."""
        return None


@runtime_checkable
class DeclaredItemSource(ItemSource, Protocol):
    """Numbered items; which ones there are is public."""

    def schema(self) -> ItemSchema:
        """Return the items."""
        ...


@runtime_checkable
class SizedSource(Protocol):
    """A source that knows its number of rows without reading them."""

    def row_count(self) -> int:
        """Return the number of rows."""
        ...


@runtime_checkable
class PartitionedSource(Protocol):
    """A source in several files of one form, in the order of their rows; each is a source."""

    @property
    def parts(self) -> Sequence[TableSource | ItemSource]:
        """The files."""
        ...


Source: TypeAlias = TableSource | ItemSource


def blocks_of(source: TableSource, columns: Sequence[str]) -> Iterator[pl.DataFrame | TextBits]:
    """Yield the frames of a table; blocks of ``0`` and ``1`` alone as `TextBits` if it can."""
    blocks: Iterator[pl.DataFrame | TextBits] = getattr(source, "blocks", source.frames)(columns)
    return blocks

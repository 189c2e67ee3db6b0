"""What every reader offers: a source of named columns, or of numbered items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema


@dataclass(frozen=True, eq=False)
class ItemRows:
    """A block of rows, each a set of items.

    Parameters
    ----------
    indptr
        int64, shape ``(rows + 1,)``, starting at 0: row ``r`` has the items
        ``items[indptr[r]:indptr[r + 1]]``.
    items
        int64 item ids, in any order; repeats within a row are harmless.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @staticmethod
    def of_dense(rows: NDArray[np.uint8]) -> ItemRows:
        """Return rows given as 0/1, shape ``(rows, items)``."""
        row, item = np.nonzero(rows)
        counts = np.bincount(row, minlength=len(rows))
        return ItemRows(np.concatenate(([0], np.cumsum(counts))).astype(np.int64), item)


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

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows block by block."""
        ...


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
    """A source in several files of one form. Each file is a source of its own."""

    @property
    def parts(self) -> Sequence[TableSource | ItemSource]:
        """The parts, in the order of their rows."""
        ...


Source: TypeAlias = TableSource | ItemSource

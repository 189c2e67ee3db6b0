"""Rows that can be passed over, wherever they are: in memory, in files, made up, on a cluster.

Private rows enter the private room as `Rows`, and leave it only as the total of a statistic: an
array of whole numbers that adds up over the rows, so that it is the same however the rows are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

BLOCK_ROWS = 4096
BLOCK_WORDS = BLOCK_ROWS // 64


class Block(Protocol):
    """Up to `BLOCK_ROWS` records; the rows that are missing at its end are zero records."""

    @property
    def nbytes(self) -> int:
        """Memory of the block in bytes."""
        ...

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``: new, ``(attributes, 64)``."""
        ...

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out`` (zeroed) as 0/1."""
        ...

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each bit to ``counts``."""
        ...


class BlockRows(Protocol):
    """Rows that this process reads itself, block by block, as often as asked."""

    @property
    def n(self) -> int:
        """Number of rows, public."""
        ...

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        ...

    def stream(self) -> Iterator[Block]:
        """Yield the blocks in order: all full but the last, which zero records fill."""
        ...


class RowSum(Protocol):
    """A sum over rows. It may be sent to another process, so it can be pickled."""

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Return the sum over some rows, exactly; the shape does not depend on them."""
        ...


@runtime_checkable
class ConjunctionSum(RowSum, Protocol):
    """A row sum that counts conjunctions, one number each, so that some may be known already."""

    @property
    def literals(self) -> NDArray[np.int32]:
        """Literal codes ``2 * bit + negated``, shape ``(m, k)``, rows padded with -1."""
        ...

    def of_literals(self, literals: NDArray[np.int32], /) -> ConjunctionSum:
        """Return the counts of other conjunctions."""
        ...


class LocalRowSum:
    """A statistic that draws random numbers, so that it stays in the process of the private room.

    Copies of one source of randomness on several machines would draw the same numbers. Rows that
    other processes read refuse such a statistic.
    """

    def __reduce__(self) -> NoReturn:
        """Refuse to be sent to another process."""
        raise TypeError(f"{type(self).__name__} stays in its process")


class Rows(Protocol):
    """Rows as the private room sees them."""

    @property
    def n(self) -> int:
        """Number of rows; public where neighbours replace one, else private."""
        ...

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        ...

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows, exactly: the same whatever the engine and the threads."""
        ...

"""Rows that can be passed over, wherever they are: in memory, in files, made up, on a cluster.

Private rows enter the private room as `Rows`, and leave it only as the total of a statistic: an
array of whole numbers that adds up over the rows, so that it is the same however the rows are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dualquery.data.records import Block


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
        """Yield the blocks in order: all full but the last, which zero records fill.

        Raises
        ------
        BadInputError
            If the source turns out to be damaged, or has changed.
        """
        ...


class Statistic(Protocol):
    """A sum over rows. It may be sent to another process, so it can be pickled."""

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Return the sum over some rows, exactly; the shape does not depend on them."""
        ...


class LocalStatistic:
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

    def total(self, statistic: Statistic, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows, exactly: the same whatever the engine and the threads.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end.
        """
        ...

"""Cells that do not fit their column, counted while a table is read: told to its holder alone.

A schema may let a cell that cannot be read count as missing, and a number beyond the edges fall in
the outermost bucket. Where that happens to many cells, the table was read in a wrong way, and a
whole column may be lost without a fault. The counts are exact, hence private. They go into the
operator's log, which is their terminal; no result, file or exit code depends on them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encoding.encode import ABOVE, BELOW, CODES, MISSING, UNPARSABLE, shown
from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates

_log = logging.getLogger(__name__)

FOR_YOU = "NOT PRIVATE, for the operator only"
"""How each line begins."""

CLIPPED = 0.1
"""Part of a column's cells that may lie beyond one edge without a word. Nothing is lost there, and
open ends such as "75 and older" are meant so; they hold a few percent. Where a tenth lies beyond an
edge, the edges may be in another unit."""

_LOST = 0.5
"""From this part on, a column is called lost."""

UNREAD = 0.02
"""Part of a column's cells that may be unreadable without a word: the most by which they can move
a share."""


@dataclass
class OddCells:
    """Cells of a column that are no bit as they stand: how many of each kind, and the first.

    Parameters
    ----------
    rows
        Cells in all.
    counts
        int64, shape ``(CODES,)``: cells of each code that is no bit, at place ``-code``.
    first
        For each such code, the first cell as a text.
    """

    rows: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CODES, np.int64))
    first: dict[int, str] = field(default_factory=dict)

    def see(self, values: pl.Series, codes: NDArray[np.int32], odd: NDArray[np.int64]) -> None:
        """Take in a block of the column (`dualquery.data.encoding.encode.Watch`)."""
        found = codes[odd]
        counts = np.bincount(-found, minlength=CODES)
        self.rows += len(codes)
        self.counts += counts
        for code in (-np.flatnonzero(counts)).tolist():
            if code not in self.first:
                self.first[code] = str(values[int(odd[found == code][0])])

    def count(self, code: int) -> int:
        """Return the number of cells with a code that is no bit."""
        return int(self.counts[-code])

    @property
    def filled(self) -> int:
        """Number of cells that hold something."""
        return self.rows - self.count(MISSING)

    @property
    def many_unread(self) -> bool:
        """Whether enough cells that hold something cannot be read to warn of it."""
        return self.count(UNPARSABLE) > UNREAD * self.filled


class Misfits:
    """Counts the cells of a table that do not fit their columns, in one pass over it.

    Parameters
    ----------
    label
        What messages call the table.
    silent
        Whether nothing is counted and told: the operator knows already.
    """

    def __init__(self, label: str, *, silent: bool = False) -> None:
        self._label = label
        self._seen: dict[Column, OddCells] = {}
        self._told = silent
        self._lock = threading.Lock()

    def see(
        self,
        column: Column,
        values: pl.Series,
        codes: NDArray[np.int32],
        odd: NDArray[np.int64],
    ) -> None:
        """Take in a block of a column (`dualquery.data.encoding.encode.Watch`)."""
        if self._told or not isinstance(column, Numeric | Dates):
            return
        with self._lock:
            self._seen.setdefault(column, OddCells()).see(values, codes, odd)

    def tell(self) -> None:
        """Log one line for each column where much does not fit; later passes say nothing."""
        if self._told:
            return
        self._told = True
        for column, seen in self._seen.items():
            for line in _lines(column, seen):
                _log.warning(f"{FOR_YOU}: {self._label}: {line}")


def _lines(column: Column, seen: OddCells) -> Iterator[str]:
    """Say what of a column was not read as it stands, where that is much."""
    if not seen.filled:
        return
    if seen.many_unread:
        unread, first = seen.count(UNPARSABLE), seen.first[UNPARSABLE]
        lost = "MOST OF THE COLUMN IS LOST: " if unread >= _LOST * seen.filled else ""
        kind = "dates" if isinstance(column, Dates) else "numbers"
        yield (
            f"column {column.name!r}: {lost}{unread:,} of {seen.filled:,} cells cannot be read as "
            f"{kind} and count as missing, such as {shown(first)}; correct the cells or the schema"
            + ("" if kind == "dates" else ", or say --csv decimal=, of decimal commas")
        )
    if not isinstance(column, Numeric):
        return
    for code, place, edge in (
        (BELOW, "below the first edge", column.edges[0]),
        (ABOVE, "above the last edge", column.bounds[-1][1]),
    ):
        clipped = seen.count(code)
        if clipped > CLIPPED * seen.filled:
            yield (
                f"column {column.name!r}: {clipped:,} of {seen.filled:,} numbers lie {place}, "
                f"{edge:g}, and fall in the bucket beside it; are the edges in the same unit?"
            )

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

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encode import ABOVE, BELOW, UNPARSABLE, shown
from dualquery.data.odd_cells import OddCells
from dualquery.data.readers.dialect import has_decimal_comma
from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.seen_dates import SeenMoments

_log = logging.getLogger(__name__)

FOR_YOU = "NOT PRIVATE, for the operator only"
"""How each line begins."""

CLIPPED = 0.1
"""Part of a column's cells that may lie beyond one edge without a word. Nothing is lost there, and
open ends such as "75 and older" are meant so; they hold a few percent. Where a tenth lies beyond an
edge, the edges may be in another unit."""

_LOST = 0.5
"""From this part on, a column is called lost."""


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
        """Take in a block of a column (`dualquery.data.encode.Watch`)."""
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
            f"{kind} and count as missing, such as {shown(first[0])}; "
            f"{cause(column, first)}"
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


def cause(column: Column, unread: list[str]) -> str:
    """Return why cells cannot be read, as far as they show it, and what to do."""
    if isinstance(column, Dates):
        says = "ISO 8601, such as 2014-01-31" if column.format is None else column.format
        moments = SeenMoments()
        moments.add(pl.Series(unread, dtype=pl.String))
        found = moments.found()
        if found is None:
            return f"does the schema's format fit them ({says})?"
        fits = "ISO 8601 (leave format out)" if found[0] is None else found[0]
        return f"the schema's format is {says}, but they are written as {fits}"
    commas = has_decimal_comma(pl.Series(unread, dtype=pl.String))
    if 2 * int(commas.sum()) >= len(unread):
        return "they have decimal commas: give --csv decimal=,"
    if isinstance(column, Numeric) and column.integer:
        return "the schema says whole numbers; correct the cells or the schema"
    return "correct the cells or the schema"

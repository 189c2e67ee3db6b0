"""Cells that do not fit their column, counted while a table is read: told to its holder alone.

Where many cells cannot be read, or lie beyond an edge, the table was read in a wrong way, and a
column may be lost without a fault. The counts are exact, hence private: they go to the operator's
terminal, and no result, file or exit code depends on them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

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
"""Part of a column's cells that may lie beyond an edge without a word: open ends such as "75 and
older" hold a few percent."""

_LOST = 0.5
"""From this part on, a column is called lost."""

UNREAD = 0.02
"""Part of a column's cells that may be unreadable without a word: the most by which they can move
a share."""


class Misfits:
    """Counts the cells of a table that do not fit their columns, in one pass over it.

    ``label`` is what messages call the table. If ``silent``, nothing is counted and told: the
    operator knows already.
    """

    def __init__(self, label: str, *, silent: bool = False) -> None:
        self._label = label
        # Of a column: cells of each code that is no bit, at place -code, and of all at place 0;
        # and the first cell of each such code.
        self._seen: dict[Column, tuple[NDArray[np.int64], dict[int, str]]] = {}
        self._told = silent
        self._lock = threading.Lock()

    def see(
        self, column: Column, values: pl.Series, codes: NDArray[np.int32], odd: NDArray[np.int64]
    ) -> None:
        """Take in a block of a column (`dualquery.data.encoding.encode.Watch`)."""
        if self._told:
            return
        with self._lock:
            counts, first = self._seen.setdefault(column, (np.zeros(CODES, np.int64), {}))
            counts += np.bincount(-codes[odd], minlength=CODES)
            counts[0] += len(codes)
            for place in odd[np.unique(codes[odd], return_index=True)[1]].tolist():
                first.setdefault(int(codes[place]), str(values[place]))

    def tell(self) -> None:
        """Log one line for each column where much does not fit; later passes say nothing."""
        if not self._told:
            for column, (counts, first) in self._seen.items():
                for line in _lines(column, counts, first):
                    _log.warning(f"{FOR_YOU}: {self._label}: {line}")
        self._told = True


def _lines(column: Column, counts: NDArray[np.int64], first: dict[int, str]) -> Iterator[str]:
    """Say what of a column was not read as it stands, where that is much."""
    filled, unread = int(counts[0] - counts[-MISSING]), int(counts[-UNPARSABLE])
    if unread > UNREAD * filled:
        lost = "MOST OF THE COLUMN IS LOST: " if unread >= _LOST * filled else ""
        dates = isinstance(column, Dates)
        yield (
            f"column {column.name!r}: {lost}{unread:,} of {filled:,} cells cannot be read as "
            f"{'dates' if dates else 'numbers'} and count as missing, such as "
            f"{shown(first[UNPARSABLE])}; correct the cells or the schema"
            + ("" if dates else ", or say --csv decimal=, of decimal commas")
        )
    for code, place in ((BELOW, "below the first"), (ABOVE, "above the last")):
        clipped = int(counts[-code])
        if isinstance(column, Numeric) and clipped > CLIPPED * filled:
            edge = column.edges[0] if code == BELOW else column.bounds[-1][1]
            yield (
                f"column {column.name!r}: {clipped:,} of {filled:,} numbers lie {place} edge, "
                f"{edge:g}, and fall in the bucket beside it; are the edges in the same unit?"
            )

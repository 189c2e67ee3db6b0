"""Cells that do not fit their column, counted while a table is read: told to its holder alone.

Where many cells cannot be read, or lie beyond an edge, the table was read in a wrong way, and a
column may be lost without a fault. The counts are exact, hence private: they go to the operator's
terminal, and no result, file or exit code depends on them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import TypeAlias

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

_Seen: TypeAlias = tuple[NDArray[np.int64], dict[int, str]]
"""Of a column: how many cells have each code that is no bit, at place ``-code``, and at place 0 how
many there are; for each such code, the first cell."""


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
        self._seen: dict[Column, _Seen] = {}
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
        if self._told:
            return
        with self._lock:
            counts, first = self._seen.setdefault(column, (np.zeros(CODES, np.int64), {}))
            counts[0] += len(codes)
            found = codes[odd]
            counts += np.bincount(-found, minlength=CODES)
            for code in {*found.tolist()} - first.keys():
                first[code] = str(values[int(odd[found == code][0])])

    def tell(self) -> None:
        """Log one line for each column where much does not fit; later passes say nothing."""
        if self._told:
            return
        self._told = True
        for column, (counts, first) in self._seen.items():
            for line in _lines(column, counts, first):
                _log.warning(f"{FOR_YOU}: {self._label}: {line}")


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

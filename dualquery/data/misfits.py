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

from dualquery.data.encode import ABOVE, BELOW, CODES, MISSING, UNPARSABLE
from dualquery.data.readers.dialect import has_decimal_comma
from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.seen_dates import SeenMoments

_log = logging.getLogger(__name__)

FOR_YOU = "NOT PRIVATE, for the operator only"
"""How each line begins."""

UNREAD = 0.02
"""Part of a column's cells that may be unreadable without a word: as many as a draft takes for
slips where all others are dates (`dualquery.data.seen_dates`). It is also the most by which they
can move a share."""

CLIPPED = 0.1
"""Part of a column's cells that may lie beyond one edge without a word. Nothing is lost there, and
open ends such as "75 and older" are meant so; they hold a few percent. Where a tenth lies beyond an
edge, the edges may be in another unit."""

_LOST = 0.5
"""From this part on, a column is called lost."""

_EXAMPLES = 20
_LONGEST = 40


@dataclass
class _Seen:
    """What has been seen of a column."""

    rows: int = 0
    codes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CODES, np.int64))
    """How many cells have each code that is no bit, at place ``-code``."""
    unread: list[str] = field(default_factory=list)
    """The first cells that could not be read."""

    @property
    def filled(self) -> int:
        """Number of cells that hold something."""
        return self.rows - int(self.codes[-MISSING])


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
        """Take in a block of a column (`dualquery.data.encode.Watch`)."""
        if self._told or not isinstance(column, Numeric | Dates):
            return
        found = codes[odd]
        counts = np.bincount(-found, minlength=CODES)
        unread = odd[found == UNPARSABLE][:_EXAMPLES]
        with self._lock:
            seen = self._seen.setdefault(column, _Seen())
            seen.rows += len(codes)
            seen.codes += counts
            if len(unread) and len(seen.unread) < _EXAMPLES:
                seen.unread += map(str, values.gather(unread).to_list())

    def tell(self) -> None:
        """Log one line for each column where much does not fit; later passes say nothing."""
        if self._told:
            return
        self._told = True
        for column, seen in self._seen.items():
            for line in _lines(column, seen):
                _log.warning(f"{FOR_YOU}: {self._label}: {line}")


def _lines(column: Column, seen: _Seen) -> Iterator[str]:
    """Say what of a column was not read as it stands, where that is much."""
    if not seen.filled:
        return
    unread = int(seen.codes[-UNPARSABLE])
    if unread > UNREAD * seen.filled:
        lost = "MOST OF THE COLUMN IS LOST: " if unread >= _LOST * seen.filled else ""
        kind = "dates" if isinstance(column, Dates) else "numbers"
        yield (
            f"column {column.name!r}: {lost}{unread:,} of {seen.filled:,} cells cannot be read as "
            f"{kind} and count as missing, such as {shown(seen.unread[0])}; "
            f"{cause(column, seen.unread)}"
        )
    if not isinstance(column, Numeric):
        return
    for code, place, edge in (
        (BELOW, "below the first edge", column.edges[0]),
        (ABOVE, "above the last edge", column.edges[-1]),
    ):
        clipped = int(seen.codes[-code])
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


def shown(cell: str) -> str:
    """Return a cell as messages quote it, cut short."""
    return repr(cell if len(cell) <= _LONGEST else f"{cell[:_LONGEST]}...")

"""Cells of a column that are no bit as they stand: how many of each kind, and the first of them.

The counts are exact, hence private: they are for messages to the table's holder alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.encode import CODES, MISSING, UNPARSABLE

UNREAD = 0.02
"""Part of a column's cells that may be unreadable without a word: as many as a draft takes for
slips where all others are dates (`dualquery.data.seen_dates`). It is also the most by which they
can move a share."""

_EXAMPLES = 20


@dataclass
class OddCells:
    """What has been seen of a column.

    Parameters
    ----------
    rows
        Cells in all.
    counts
        int64, shape ``(CODES,)``: cells of each code that is no bit, at place ``-code``.
    first
        For each such code, the first cells as texts.
    """

    rows: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CODES, np.int64))
    first: dict[int, list[str]] = field(default_factory=dict)

    def see(self, values: pl.Series, codes: NDArray[np.int32], odd: NDArray[np.int64]) -> None:
        """Take in a block of the column (`dualquery.data.encode.Watch`)."""
        found = codes[odd]
        counts = np.bincount(-found, minlength=CODES)
        self.rows += len(codes)
        self.counts += counts
        for code in (-np.flatnonzero(counts)).tolist():
            some = self.first.setdefault(code, [])
            if len(some) < _EXAMPLES:
                some += map(str, values.gather(odd[found == code][:_EXAMPLES]).to_list())

    def count(self, code: int) -> int:
        """Return the number of cells with a code that is no bit."""
        return int(self.counts[-code])

    @property
    def filled(self) -> int:
        """Number of cells that hold something."""
        return self.rows - self.count(MISSING)

    @property
    def many_unread(self) -> bool:
        """Whether so many of the cells that hold something cannot be read that it must be said."""
        return self.count(UNPARSABLE) > UNREAD * self.filled

"""Rows that are passed over once for all that is asked of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.data.histogram import Histogram
from dualquery.data.rows import Rows, Statistic
from dualquery.queries.planner import ConjunctionCounts


class GatheredRows:
    """Rows whose totals are kept: what was counted once is handed out from then on.

    For whoever may hold exact counts beside the private room, such as an evaluation.

    Parameters
    ----------
    rows
        The rows themselves.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._known: list[tuple[Statistic, NDArray[np.int64]]] = []

    @property
    def n(self) -> int:
        """Number of rows, public."""
        return self._rows.n

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self._rows.bits

    def count_together(self, lists: Sequence[NDArray[np.int32]], threads: int) -> None:
        """Count several lists of conjunctions in one pass.

        Parameters
        ----------
        lists
            int32 literals, each of shape ``(m, k)`` as for `ConjunctionCounts`.
        threads
            Threads for the pass.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end.
        """
        way = max(literals.shape[1] for literals in lists)
        padded = [
            np.pad(literals, ((0, 0), (0, way - literals.shape[1])), constant_values=-1)
            for literals in lists
        ]
        counts = self._rows.total(ConjunctionCounts(np.concatenate(padded)), threads)
        ends = np.cumsum([len(literals) for literals in lists])
        for literals, part in zip(lists, np.split(counts, ends[:-1]), strict=True):
            self._known.append((ConjunctionCounts(literals), part))

    def total(self, statistic: Statistic, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows, from what is known or by a pass.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end.
        """
        for known, counts in self._known:
            if _same(known, statistic):
                return counts.copy()
        counts = self._rows.total(statistic, threads)
        if _same(statistic, statistic):
            self._known.append((statistic, counts.copy()))
        return counts


def _same(one: Statistic, other: Statistic) -> bool:
    """Return whether two statistics are known to be equal; random ones never are."""
    if isinstance(one, ConjunctionCounts) and isinstance(other, ConjunctionCounts):
        return np.array_equal(one.literals, other.literals)
    if isinstance(one, Histogram) and isinstance(other, Histogram):
        return np.array_equal(one.domain.offsets, other.domain.offsets)
    return False

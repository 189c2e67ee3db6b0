"""Rows that are passed over once for all that is asked of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.histogram import Histogram
from dualquery.rows.protocol import ConjunctionSum, Rows, RowSum


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
        self._known: list[tuple[RowSum, NDArray[np.int64]]] = []

    @property
    def n(self) -> int:
        """Number of rows, public."""
        return self._rows.n

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self._rows.bits

    def count_together(self, sums: Sequence[ConjunctionSum], threads: int) -> None:
        """Count several lists of conjunctions in one pass.

        Parameters
        ----------
        sums
            Counts of conjunctions, one list each; at least one.
        threads
            Threads for the pass.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end.
        """
        way = max(each.literals.shape[1] for each in sums)
        padded = [
            np.pad(each.literals, ((0, 0), (0, way - each.literals.shape[1])), constant_values=-1)
            for each in sums
        ]
        counts = self._rows.total(sums[0].of_literals(np.concatenate(padded)), threads)
        ends = np.cumsum([len(each.literals) for each in sums])
        self._known += zip(sums, np.split(counts, ends[:-1]), strict=True)

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
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


def _same(one: RowSum, other: RowSum) -> bool:
    """Return whether two statistics are known to be equal; random ones never are."""
    if isinstance(one, ConjunctionSum) and isinstance(other, ConjunctionSum):
        return np.array_equal(one.literals, other.literals)
    if isinstance(one, Histogram) and isinstance(other, Histogram):
        return np.array_equal(one.domain.offsets, other.domain.offsets)
    return False

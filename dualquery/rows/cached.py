"""Rows that are counted once: totals that are known are not computed again.

The known totals are exact, hence private. They live in memory, for as long as the rows do.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.histogram import Histogram
from dualquery.rows.repeats import side_by_side
from dualquery.rows.row_sums import ConjunctionSum, Rows, RowSum


@dataclass(frozen=True, eq=False)
class CachedRows:
    """Rows whose counts of conjunctions and histograms are computed once."""

    rows: Rows
    _known: dict[bytes, NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False)

    @property
    def n(self) -> int:
        """Number of rows: public where neighbours replace one, else private."""
        return self.rows.n

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.rows.bits

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a row sum over all rows (see `Rows`), from known counts or by a pass."""
        if (key := _key(statistic)) is None:
            return self.rows.total(statistic, threads)
        if key not in self._known:
            self._known[key] = self.rows.total(statistic, threads)
        return self._known[key].copy()

    def count_together(self, sums: Sequence[ConjunctionSum], threads: int) -> None:
        """Count several lists of conjunctions in one pass, so that each is known from then on.

        No lists, or known ones only, need no pass.
        """
        keyed = ((_key(each), each) for each in sums)
        lists = {key: each for key, each in keyed if key is not None and key not in self._known}
        if not lists:
            return
        literals = [each.literals for each in lists.values()]
        together = next(iter(lists.values())).of_literals(side_by_side(*literals))
        ends = np.cumsum([len(each) for each in literals])
        counts = np.split(self.rows.total(together, threads), ends[:-1])
        self._known.update(zip(lists, counts, strict=True))


def _key(statistic: RowSum) -> bytes | None:
    """Return what equal statistics share; None for one that is not known to have equals."""
    if isinstance(statistic, ConjunctionSum):
        content: NDArray[np.int32] | NDArray[np.int64] = statistic.literals
    elif isinstance(statistic, Histogram):
        content = statistic.domain.offsets
    else:
        return None
    kind = f"{type(statistic).__name__} {content.dtype} {content.shape} "
    return hashlib.sha256(kind.encode() + np.ascontiguousarray(content).tobytes()).digest()

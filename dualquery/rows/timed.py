"""Report to the operator how long each pass over the rows took (``--explain``).

Reports go to the log ``dualquery.explain`` only: times of passes over private rows are not public.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.protocol import ConjunctionSum, Rows, RowSum
from dualquery.runtime.explaining import explain_log
from dualquery.runtime.resources import mebibytes


@dataclass(eq=False)
class TimedRows:
    """Rows whose passes are reported.

    Parameters
    ----------
    rows
        The rows themselves.
    read
        Bytes that one pass reads.
    place
        Where it reads them: the end of "1 MiB read from ...".
    """

    rows: Rows
    read: int
    place: str
    _passes: int = 0
    _seconds: float = 0.0

    @property
    def n(self) -> int:
        """Number of rows, public."""
        return self.rows.n

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.rows.bits

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows (see `Rows`), and report the pass."""
        start = time.perf_counter()
        found = self.rows.total(statistic, threads)
        seconds = time.perf_counter() - start
        self._passes += 1
        self._seconds += seconds
        counted = self._counted(statistic, seconds)
        read = f"{mebibytes(self.read)} read from {self.place}"
        explain_log.info(f"pass {self._passes}: {counted} in {seconds:.2f} s; {read}")
        return found

    def report(self) -> None:
        """Report all passes together."""
        read = f"{mebibytes(self._passes * self.read)} read from {self.place}"
        explain_log.info(
            f"passes over the rows: {self._passes}, {self._seconds:.2f} s in all; {read}"
        )

    def _counted(self, statistic: RowSum, seconds: float) -> str:
        if not isinstance(statistic, ConjunctionSum):
            return f"{type(statistic).__name__} of {self.n:,} rows"
        literals = int(np.count_nonzero(statistic.literals >= 0))
        return (
            f"{len(statistic.literals):,} queries on {self.n:,} rows at "
            f"{literals * self.n / 8 / seconds / 1e9:.1f} GB/s effective (a bit for each literal "
            "and row)"
        )

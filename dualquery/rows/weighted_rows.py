"""Rows that count several times each, by the binary digits of how often."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.row_sums import Rows, RowSum


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows as if each stood there as often as it counts (`dualquery.rows.units`).

    A sum over them is the sum over the rows of digit 0, twice that over the rows of digit 1, and so
    on: exact, by as many passes as there are digits.
    """

    digits: tuple[Rows, ...]
    """The rows whose number of copies has the binary digit 2^b, for each b from 0 on."""

    @property
    def n(self) -> int:
        """Number of copies: private."""
        return sum(rows.n << b for b, rows in enumerate(self.digits))

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.digits[0].bits

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all copies, exactly."""
        found = self.digits[0].total(statistic, threads)
        for b, rows in enumerate(self.digits[1:], start=1):
            found = found + (rows.total(statistic, threads) << b)
        return found

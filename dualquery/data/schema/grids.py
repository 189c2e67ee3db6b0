"""Numbers of a column as whole numbers of steps on a public grid, so that sums of them are exact.

A row carries its number as binary digits beside its bits: counts of these give the column's sum.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Column
from dualquery.data.schema.numeric import Numeric
from dualquery.runtime.errors import BadInputError

MOST_STEPS = 1 << 20  # whole numbers in a smaller range are exact, others off by 2^-21 of it


@dataclass(frozen=True)
class Grid:
    """The points ``low + step * 0, 1, .. steps`` on which the numbers of a column lie.

    A grid is ``exact`` if every number that the schema allows lies on it; ``typical`` is the size
    of a number in the middle one of the column's buckets.
    """

    column: str
    low: float
    high: float
    steps: int
    exact: bool
    typical: float = 1.0

    @staticmethod
    def of(column: Column) -> Grid:
        """Return the grid of a column."""
        if not isinstance(column, Numeric):
            raise BadInputError(
                f"--means: column {column.name!r} is not declared numeric; name columns that the "
                "schema declares so"
            )
        if column.missing_bit is not None:
            name = column.name.replace('"', '""')
            raise BadInputError(
                f"--means: rows may lack a number in column {column.name!r}, and the mean of the "
                f'others is a ratio; ask mean("{name}") of the release instead, without --means'
            )
        low, high = column.bounds[0][0], column.bounds[-1][1]
        if not 1e-100 < high - low < 1e100:  # else no square of its noise is a number above 0
            raise BadInputError(
                f"--means: column {column.name!r} is from {low:g} to {high:g}, and a range has to "
                "be 1e-100 to 1e100 wide; declare its edges, and give its numbers, in another unit"
            )
        whole = column.integer and high - low <= MOST_STEPS
        steps = int(high - low) if whole else MOST_STEPS
        sizes = np.abs(column.bounds).max(axis=1)
        return Grid(column.name, low, high, steps, whole, float(np.median(sizes)))

    @property
    def step(self) -> float:
        """Distance of two points."""
        return (self.high - self.low) / self.steps

    @property
    def need(self) -> float:
        """Its range over its typical size; at least 1, which matters far from 0."""
        return max((self.high - self.low) / self.typical, 1.0)

    @property
    def digits(self) -> int:
        """Binary digits of `steps`."""
        return self.steps.bit_length()

    @property
    def rounding(self) -> float:
        """How far a number may be from its point."""
        return 0.0 if self.exact else self.step / 2.0

    def encode(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the digits of the points next to numbers: bool, ``(r, digits)``, lowest first."""
        points = np.rint((np.clip(numbers, self.low, self.high) - self.low) / self.step)
        whole = np.clip(points, 0, self.steps).astype(np.int64)
        return (whole[:, None] >> np.arange(self.digits) & 1).astype(np.bool_)

    def centred(self, ones: NDArray[np.int64], rows: int) -> int:
        """Return twice the sum of the rows' steps, less ``steps`` a row.

        ``ones``, int64 of shape ``(digits,)``, has the number of rows in which each digit is 1.
        """
        total = sum(int(count) << place for place, count in enumerate(ones.tolist()))
        return 2 * total - self.steps * rows

    def mean(self, centred: float, rows: int) -> float:
        """Return the mean of a column whose `centred` sum over ``rows`` rows is given."""
        return (self.low + self.high) / 2.0 + self.step * centred / (2.0 * rows)


def digit_offsets(grids: tuple[Grid, ...], bits: int) -> list[int]:
    """Return where the digits of each grid start in rows of ``bits`` bits, and where they end."""
    return list(itertools.accumulate((grid.digits for grid in grids), initial=bits))

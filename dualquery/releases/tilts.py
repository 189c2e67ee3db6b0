"""How numbers lie in a column's buckets if they lie denser towards one end than the schema says.

A number x of the column is ``exp(t x)`` times as frequent in its bucket, with one t for all
buckets. Of all ways to bring a mean about with given shares of the buckets, this has the least
information relative to the schema's word (Csiszár, "I-divergence geometry of probability
distributions and minimization problems", Annals of Probability 3, 1975). Narrow buckets hardly
notice it; of wide ones, such as the last one of incomes, the schema cannot know much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Numeric
from dualquery.data.schema.within import Sample, quantile_between, shortened

Float64 = NDArray[np.float64]

_NUMBERS = 1_000
"""Of a bucket, from which records then draw."""

_MOST = 100.0
"""The numbers of the widest bucket are at most so much nearer to one end than to the other: their
distance from it is a hundredth of the bucket's length on average.
"""


@dataclass(frozen=True, eq=False)
class Tilt:
    """A column, and the numbers of its buckets as its schema says they lie.

    Parameters
    ----------
    column
        The column.
    levels
        float64, shape ``(_NUMBERS,)``: shares of a bucket's numbers, in [0, 1].
    numbers
        float64, shape ``(buckets, _NUMBERS)``: below which these shares lie, increasing.
    """

    column: Numeric
    levels: Float64
    numbers: Float64

    @staticmethod
    def of(column: Numeric) -> Tilt:
        """Return the numbers of a column."""
        levels = (np.arange(_NUMBERS) + 0.5) / _NUMBERS
        numbers = np.array(
            [
                [quantile_between(rule, column.integer, *ends, level) for level in levels]
                for rule, ends in zip(column.rules, column.bounds, strict=True)
            ]
        )
        return Tilt(column, levels, numbers)

    def means(self, tilt: float = 0.0) -> Float64:
        """Return the mean of each bucket: float64, shape ``(buckets,)``."""
        found: Float64 = (self._weights(tilt) * self.numbers).sum(axis=1)
        return found

    @property
    def least(self) -> Float64:
        """The means of the buckets if numbers lie as low as they may."""
        return self.means(-_MOST)

    @property
    def largest(self) -> Float64:
        """The same if they lie as high as they may."""
        return self.means(_MOST)

    def to(self, shares: Float64, mean: float) -> Numeric:
        """Return the column whose numbers, with these shares of its buckets, have a mean.

        As near to it as they may be, that is.
        """
        from scipy.optimize import brentq

        column = self.column
        if self._widest == 0:
            return column

        def excess(tilt: float) -> float:
            return float(shares @ self.means(tilt)) - mean

        if excess(-_MOST) >= 0:
            tilt = -_MOST
        elif excess(_MOST) <= 0:
            tilt = _MOST
        else:
            tilt = float(brentq(excess, -_MOST, _MOST))
        drawn: list[tuple[float, ...]] = []
        lines = zip(column.rules, column.bounds, self.numbers, self._weights(tilt), strict=True)
        for rule, ends, own, parts in lines:
            reached = parts.cumsum()
            if isinstance(rule, str):
                found = np.interp(self.levels, reached - parts / 2.0, own)
                if column.integer:
                    found = np.rint(found)
                else:
                    found = shortened(found, ends, column.decimals)
                drawn.append(Sample(found.tolist()))
                continue
            found = own[np.searchsorted(reached, self.levels).clip(max=_NUMBERS - 1)]
            if isinstance(rule, Sample):
                drawn.append(Sample(found.tolist()))
                continue
            # An order may need a listed number that is drawn less than once in a thousand times.
            drawn.append((*found.tolist(), *np.setdiff1d(own, found).tolist()))
        return replace(column, within=tuple(drawn))

    @property
    def _widest(self) -> float:
        return float(np.ptp(self.numbers, axis=1).max())

    def _weights(self, tilt: float) -> Float64:
        """Return how the numbers of each bucket count: float64, shape ``(buckets, _NUMBERS)``."""
        highest = self.numbers.max(axis=1, keepdims=True)
        parts = np.exp(tilt * (self.numbers - highest) / max(self._widest, 1e-300))
        found: Float64 = parts / parts.sum(axis=1, keepdims=True)
        return found

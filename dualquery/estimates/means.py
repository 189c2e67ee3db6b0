"""Means of numeric columns that were bought: their noise, and where the true means lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.data.schema.grids import Grid
from dualquery.estimates.intervals import LEVEL, Intervals, clipped_interval, gaussian_half_width
from dualquery.estimates.measurements import NoiseKind

if TYPE_CHECKING:
    from dualquery.estimates.intervals import Total

SURELY = 1e-6  # a chance that is neglected


@dataclass(frozen=True)
class BoughtMean:
    """A mean with noise: public."""

    column: str
    mean: float  # unbiased but for rounding; it may lie outside the range
    scale: float  # of the noise, in the column's unit: the deviation if Gaussian
    noise: NoiseKind
    low: float
    high: float  # the column's declared range, to which its numbers were clipped
    rounding: float  # the largest distance of a number from what was summed

    @staticmethod
    def of(grid: Grid, centred: float, scale: float, noise: NoiseKind, rows: int) -> BoughtMean:
        """Return the mean of a centred sum over rows, with noise of a scale in the grid's steps."""
        scale = scale * (grid.high - grid.low) / (2.0 * rows)
        mean = grid.mean(centred, rows)
        return BoughtMean(grid.column, mean, scale, noise, grid.low, grid.high, grid.rounding)

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> BoughtMean:
        """Return the mean with these fields; `ValueError` or `TypeError` of others."""
        found = BoughtMean(**stored)
        numbers = (found.mean, found.scale, found.low, found.high, found.rounding)
        if (
            not isinstance(found.column, str)
            or found.noise not in ("gaussian", "discrete laplace")
            or not all(isinstance(number, int | float) for number in numbers)
            or not (found.scale > 0 and found.low < found.high and found.rounding >= 0)
        ):
            raise ValueError("a bought mean is not as a release writes it")
        return found

    def interval(self, total: Total, level: float = LEVEL) -> Intervals:
        """Return an interval of the true mean; an absent row counts as the range's middle."""
        half, mean = self._off(level) + self.rounding, np.array([self.mean])
        basis = "from the noise of the column's own sum, which was bought"
        ends = clipped_interval(mean, half, self.low, self.high)
        return Intervals(*ends, basis, level, self._middle).for_total(total, self.low, self.high)

    def sum_limits(self, total: Total, level: float = LEVEL) -> tuple[float, float]:
        """Return limits of the column's sum over all rows, or by weight.

        Distances from the middle of the range were summed, so the total multiplies the middle only.
        """
        found = self._middle * total.estimate + (self.mean - self._middle) * total.copies
        noise = abs(self._middle) * total.off(1.0 - level)
        off = math.hypot(self._off(level) * total.copies, noise) + self.rounding * total.copies
        ends = [end * rows for end in (self.low, self.high) for rows in total.limits(SURELY)]
        middle, off = np.array([found * total.of_copy]), off * total.of_copy
        (low,), (high,) = clipped_interval(middle, off, min(ends), max(ends))
        return float(low), float(high)

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2.0

    def _off(self, level: float) -> float:
        """Return a distance that the noise exceeds with a chance of 1 - ``level`` at most."""
        if self.noise == "gaussian":
            return gaussian_half_width(self.scale, 1.0 - level)
        # 2 p^(floor(x) + 1) / (1 + p), with p = exp(-1 / s), is below 2 exp(-x / s).
        return math.log(2.0 / (1.0 - level)) * self.scale


def combined(bought: BoughtMean, by_buckets: float, deviation: float) -> float:
    """Return the mean that a bought one and one from buckets give together.

    The second one, with a deviation of at least 0, rests on the schema's means of the buckets: the
    part of the squared distance of the two that noise does not explain is added to its variance
    (DerSimonian and Laird 1986).
    """
    distance = by_buckets - bought.mean
    own = bought.scale**2 * (1.0 if bought.noise == "gaussian" else 2.0)
    other = max(distance**2 - own, deviation**2)
    return bought.mean + distance * own / (own + other)

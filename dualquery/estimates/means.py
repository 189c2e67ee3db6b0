"""Means of numeric columns that were bought: their noise, and where the true means lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dualquery.data.schema.grids import Grid
from dualquery.estimates.bounded import LEVEL, gaussian_half_width
from dualquery.estimates.intervals import Intervals

if TYPE_CHECKING:
    from dualquery.estimates.total import Total

Noise = Literal["gaussian", "discrete laplace"]

_BASIS = "from the noise of the column's own sum, which was bought"

_SURELY = 1e-6
"""A chance that is neglected."""


@dataclass(frozen=True)
class BoughtMean:
    """A mean with noise: public.

    Parameters
    ----------
    column
        Name of the column.
    mean
        The noisy mean, unbiased but for rounding; it may lie outside the range.
    scale
        Of the noise, in the column's unit: the deviation if Gaussian.
    noise
        Its kind.
    low, high
        The column's declared range, to which its numbers were clipped.
    rounding
        How far a number may be from what was summed, at most.
    """

    column: str
    mean: float
    scale: float
    noise: Noise
    low: float
    high: float
    rounding: float

    @staticmethod
    def of(grid: Grid, centred: float, scale: float, noise: Noise, rows: int) -> BoughtMean:
        """Return the mean that a noisy centred sum over ``rows`` rows gives.

        ``scale`` is that of the sum's noise over the grid's steps.
        """
        return BoughtMean(
            column=grid.column,
            mean=grid.mean(centred, rows),
            scale=scale * (grid.high - grid.low) / (2.0 * rows),
            noise=noise,
            low=grid.low,
            high=grid.high,
            rounding=grid.rounding,
        )

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> BoughtMean:
        """Return what `to_dict` gave; `ValueError` or `TypeError` if it is something else."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-able."""
        return asdict(self)

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.scale**2 * (1.0 if self.noise == "gaussian" else 2.0)

    def interval(self, total: Total, level: float = LEVEL) -> Intervals:
        """Return an interval of the true mean; an absent row counts as the range's middle."""
        half = self._off(level) + self.rounding
        mean = np.array([self.mean])
        around = Intervals.around(mean, half, self.low, self.high, _BASIS, self._middle)
        return replace(around, level=level).for_total(total, self.low, self.high)

    def sum_limits(self, total: Total, level: float = LEVEL) -> tuple[float, float]:
        """Return limits of the column's sum over all rows, or by weight.

        Distances from the middle of the range were summed, so the total multiplies the middle only.
        """
        apart, half = self.mean - self._middle, self._off(level) + self.rounding
        middle, noise = self._middle * total.estimate, abs(self._middle) * total.off(1.0 - level)
        gaussian = self.noise == total.noise == "gaussian"
        off = math.hypot(half * total.copies, noise) if gaussian else half * total.copies + noise
        found = middle + apart * total.copies
        fewest, most = total.limits(_SURELY)
        ends = [bound * rows for bound in (self.low, self.high) for rows in (fewest, most)]
        least, largest = min(ends), max(ends)
        low, high = (found - off) * total.of_copy, (found + off) * total.of_copy
        return max(low, least), min(high, largest)

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

    The second one rests on how numbers lie in the buckets: the part of the squared distance of the
    two that noise does not explain is added to its variance (DerSimonian and Laird 1986).

    Parameters
    ----------
    by_buckets
        Shares of buckets times the means that the schema states for them.
    deviation
        Standard deviation of its noise, at least 0.
    """
    distance = by_buckets - bought.mean
    own, other = bought.variance, deviation**2
    other += max(distance**2 - own - other, 0.0)
    return bought.mean + distance * own / (own + other)

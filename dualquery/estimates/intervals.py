"""Intervals of true answers, from the noise of a measurement.

They are of the truth, not of a fitted answer, which may lie outside its own; what was not measured
has none. They cover for the first measurement of a query, also if a look at the data chose it.
Where the number of rows n is private a measurement is divided by a public N, so that it counts N -
n rows more, with some answer t in the queries' range: its mean is ``m = (n x + (N - n) t) / N`` for
the true answer x. So an interval of m that is longer by ``|N - n| / N`` ranges at both ends has x;
where t is known, an end e need not move by more than ``|e - t| |N / n - 1|``. Variances of Gaussian
noise in N add up; of other noise a chance is taken off the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.bounded import LEVEL
from dualquery.runtime.escaping import share

if TYPE_CHECKING:
    from dualquery.data.encoding.units import Unit
    from dualquery.estimates.total import Total

Float64: TypeAlias = NDArray[np.float64]

ROWS_MISS = 0.01
"""Chance that a noisy number of rows is further off than is allowed for; taken off the level."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """One interval a query: shape ``(m,)``, in the queries' range; NaN where none was measured."""

    lower: Float64
    upper: Float64
    basis: str  # what the intervals rest on: a sentence for the reader
    level: float = LEVEL  # chance, over the noise, that one of them covers
    absent_row_answer: Float64 | float | None = None  # t of the module, ``(m,)`` or one for all

    def of(self, query: int) -> tuple[float, float] | None:
        """Return the interval of a query of the workload, None if it was not measured."""
        low, high = float(self.lower[query]), float(self.upper[query])
        return None if math.isnan(low) else (low, high)

    def nearest(self, answers: Float64) -> Float64:
        """Return the points of the intervals that lie nearest to answers: float64, ``(m,)``."""
        found = np.fmin(np.fmax(answers, self.lower), self.upper)
        return np.where(np.isnan(self.lower), answers, found)

    def text(self, query: int) -> str:
        """Return the interval for a person, a dash if there is none."""
        found = self.of(query)
        return "-" if found is None else f"{share(found[0])} to {share(found[1])}"

    def describe(self) -> dict[str, Any]:
        """Return what a release says about its intervals, JSON-able."""
        known = int(np.count_nonzero(~np.isnan(self.lower)))
        return {"level": self.level, "answers": known, "basis": self.basis}

    def for_total(self, total: Total, low: float, high: float) -> Intervals:
        """Return intervals of shares of the true rows; ``low .. high`` is the queries' range."""
        if total.known == "exact":
            return self
        if total.known == "stated":
            of = "number of rows" if total.what == "rows" else "total weight"
            return replace(self, basis=f"{self.basis}; if the {of} is {total.text}, as was stated")
        gaussian, n = total.noise == "gaussian", total.copies
        level = self.level if gaussian else self.level - ROWS_MISS
        off = total.off(1.0 - level if gaussian else ROWS_MISS)
        below = above = np.full_like(self.lower, (max(high, 0.0) - min(low, 0.0)) * off / n)
        if self.absent_row_answer is not None and n > 2 * off:
            below, above = (
                np.abs(ends - self.absent_row_answer) * off / (n - off)
                for ends in (self.lower, self.upper)
            )
            if gaussian:  # variances of independent noise add up
                half = (self.upper - self.lower) / 2.0
                below, above = np.hypot(half, below) - half, np.hypot(half, above) - half
        basis = f"{self.basis}; longer by what the noise in the number of rows may make"
        if not gaussian:
            basis += f"; the level is {100.0 * level:.4g}%, not {100.0 * self.level:.4g}%"
        lower, upper = np.clip((self.lower - below, self.upper + above), low, high)
        return Intervals(lower, upper, basis, level)

    def for_cut(self, most: int | None, unit: Unit | None = None) -> Intervals:
        """Say that these are of the rows as cut to ``most`` ones each, or to those of a unit."""
        cut = "" if most is None else f"; of the rows as cut to {most:,} ones each"
        cut += "" if unit is None else f"; of at most {unit.max_rows:,} rows a unit"
        return replace(self, basis=self.basis + cut)

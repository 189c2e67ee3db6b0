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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.bounded import LEVEL, bounded_interval, gaussian_half_width
from dualquery.estimates.guessed import Guesses, guessed_interval
from dualquery.runtime.escaping import share

if TYPE_CHECKING:
    from dualquery.data.encoding.units import Unit
    from dualquery.estimates.total import Total

ROWS_MISS = 0.01
"""Chance that a noisy number of rows is further off than is allowed for; taken off the level."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """One interval a query: shape ``(m,)``, in the queries' range; NaN where none was measured."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    basis: str
    """A sentence for the reader: what the intervals rest on."""
    level: float = LEVEL
    """Chance, over the noise, that one of them covers."""
    absent_row_answer: NDArray[np.float64] | float | None = None
    """t of the module, ``(m,)`` or one for all; None where unknown. Used by `for_total` only."""

    def of(self, query: int) -> tuple[float, float] | None:
        """Return the interval of a query of the workload, None if it was not measured."""
        low, high = float(self.lower[query]), float(self.upper[query])
        return None if math.isnan(low) else (low, high)

    def nearest(self, answers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the points of the intervals that lie nearest to answers: float64, ``(m,)``."""
        found = np.fmin(np.fmax(answers, self.lower), self.upper)
        return np.where(np.isnan(self.lower), answers, found)

    def text(self, query: int) -> str:
        """Return the interval for a person, a dash if there is none."""
        found = self.of(query)
        return "-" if found is None else f"{share(found[0])} to {share(found[1])}"

    def describe(self) -> dict[str, Any]:
        """Return what a release says about its intervals, JSON-able."""
        return {
            "level": self.level,
            "answers": int(np.count_nonzero(~np.isnan(self.lower))),
            "basis": self.basis,
        }

    @staticmethod
    def around(
        measured: NDArray[np.float64],
        half_width: NDArray[np.float64] | float,
        low: float,
        high: float,
        basis: str,
        absent_row_answer: NDArray[np.float64] | float | None = None,
    ) -> Intervals:
        """Return intervals around measurements, cut to the range of the queries.

        ``measured`` is float64, shape ``(m,)``: noisy answers, NaN for none. One beyond the range
        is brought to its end first, so that no interval is a single point.
        """
        within = np.clip(measured, low, high)
        return Intervals(
            np.clip(within - half_width, low, high),
            np.clip(within + half_width, low, high),
            basis,
            absent_row_answer=absent_row_answer,
        )

    @staticmethod
    def of_gaussian(
        measured: NDArray[np.float64],
        deviations: NDArray[np.float64] | float,
        low: float,
        high: float,
        basis: str,
        absent_row_answer: NDArray[np.float64] | float | None = None,
        guesses: Guesses | None = None,
    ) -> Intervals:
        """Return the same for Gaussian noise with ``deviations``, float64 ``(m,)`` or one.

        ``guesses`` are of the answers, for shares only.
        """
        spread = np.broadcast_to(np.asarray(deviations, np.float64), measured.shape)
        critical = gaussian_half_width(1.0)
        if guesses is None:
            lower, upper = bounded_interval(measured, spread, critical, low, high)
        else:
            lower, upper = guessed_interval(measured, spread, critical, guesses)
        return Intervals(lower, upper, basis, absent_row_answer=absent_row_answer)

    def for_total(self, total: Total, low: float, high: float) -> Intervals:
        """Return the intervals of shares of the true rows, where ``total`` stands in for them.

        ``low .. high`` is the range of the queries.
        """
        if total.known == "exact":
            return self
        if total.known == "stated":
            of = "number of rows" if total.what == "rows" else "total weight"
            return replace(self, basis=f"{self.basis}; if the {of} is {total.text}, as was stated")
        gaussian, level = total.noise == "gaussian", self.level
        if not gaussian:
            level -= ROWS_MISS
        off, n = total.off(1.0 - level if gaussian else ROWS_MISS), total.copies
        below: NDArray[np.float64] | float
        above: NDArray[np.float64] | float
        if self.absent_row_answer is None or n <= 2 * off:
            below = above = (max(high, 0.0) - min(low, 0.0)) * off / n
        else:
            below = np.abs(self.lower - self.absent_row_answer) * off / (n - off)
            above = np.abs(self.upper - self.absent_row_answer) * off / (n - off)
            if gaussian:  # variances of independent noise add up
                half = (self.upper - self.lower) / 2.0
                below, above = np.hypot(half, below) - half, np.hypot(half, above) - half
        basis = f"{self.basis}; longer by what the noise in the number of rows may make"
        if not gaussian:
            basis += f"; the level is {100.0 * level:.4g}%, not {100.0 * self.level:.4g}%"
        return Intervals(
            np.clip(self.lower - below, low, high),
            np.clip(self.upper + above, low, high),
            basis,
            level,
        )

    def for_cut(self, most: int | None, unit: Unit | None = None) -> Intervals:
        """Say that these are of the rows as cut to ``most`` ones each, or to those of a unit."""
        basis = self.basis
        if most is not None:
            basis += f"; of the rows as cut to {most:,} ones each"
        if unit is not None:
            basis += f"; of at most {unit.max_rows:,} rows a unit"
        return replace(self, basis=basis)

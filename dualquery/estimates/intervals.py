"""Intervals of true answers, from the noise of a measurement.

The noise of a measurement is drawn anew, whatever was drawn before, so an interval around the
measured number covers the true answer with its stated chance, also when the query was chosen by a
look at the data. That holds for the first measurement of a query only: whether there is another may
depend on how the first came out. Near the ends of the range that answers have, intervals from
Gaussian noise are those of `dualquery.estimates.bounded`. A fitted answer does not have the noise's
deviation, so intervals are of the truth and not of the fit: the released answer may lie outside its
own. What was not measured has no interval; none is invented.

**Where the number of rows n is private** a measurement is divided by a public N. It counts the n
rows, and N - n more, as if each of these had some answer t in the queries' range: 0 for a count, 1
where the complement was counted, the same share for all cells that are brought to add up to N. With
the true answer x, its mean is ``m = (n x + (N - n) t) / N``, so ``x - m = (x - t) (N - n) / N``,
and an interval of m that is made longer by ``|N - n| / N`` ranges at both ends has x, too. Where t
is known, ``x = t + (m - t) N / n``: an end e need not move by more than ``|e - t| |N / n - 1|``.
With n above N, m may lie beyond the range: then the end of the interval on that side is no nearer
than the range's own but as rarely as where m is that end.
How far a bought N is from n is known by its noise, up to a chance that is taken off the level; of a
stated N nothing is known, and that is said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.bounded import bounded_interval
from dualquery.estimates.guessed import Guesses, guessed_interval
from dualquery.runtime.figures import share

if TYPE_CHECKING:
    from dualquery.data.units import Unit
    from dualquery.room.row_count import RowCount

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""

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
    """t of the module, ``(m,)`` or one for all; None where unknown. Used by `for_rows` only."""

    def of(self, query: int) -> tuple[float, float] | None:
        """Return the interval of a query of the workload, None if it was not measured."""
        low, high = float(self.lower[query]), float(self.upper[query])
        return None if math.isnan(low) else (low, high)

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

        ``measured`` is float64, shape ``(m,)``: noisy answers, not yet cut; NaN for none. One
        beyond the range is brought to its end first. The interval then holds all that it would
        hold otherwise, so it covers no more rarely, and it never shrinks to a single point.
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
        """Return intervals around measurements with Gaussian noise, in the range of the queries.

        ``measured`` as of `around`; ``deviations``: of the noise, float64, shape ``(m,)``, or one;
        ``guesses``: of the answers, for shares only.
        """
        spread = np.broadcast_to(np.asarray(deviations, np.float64), measured.shape)
        critical = gaussian_half_width(1.0)
        if guesses is None:
            lower, upper = bounded_interval(measured, spread, critical, low, high)
        else:
            lower, upper = guessed_interval(measured, spread, critical, guesses)
        return Intervals(lower, upper, basis, absent_row_answer=absent_row_answer)

    def for_rows(self, rows: RowCount, low: float, high: float) -> Intervals:
        """Return the intervals of shares of the true rows, where ``rows.n`` stands in for them.

        ``low .. high`` is the range of the queries.
        """
        if rows.neighbours.rows_public:
            return self
        if rows.epsilon == 0:
            basis = f"{self.basis}; if the number of rows is {rows.n:,}, as was stated"
            return replace(self, basis=basis)
        off, level = laplace_half_width(rows.noise_scale, ROWS_MISS), self.level - ROWS_MISS
        below: NDArray[np.float64] | float
        above: NDArray[np.float64] | float
        if self.absent_row_answer is None or rows.n <= 2 * off:
            below = above = (max(high, 0.0) - min(low, 0.0)) * off / rows.n
        else:
            below = np.abs(self.lower - self.absent_row_answer) * off / (rows.n - off)
            above = np.abs(self.upper - self.absent_row_answer) * off / (rows.n - off)
        return Intervals(
            np.clip(self.lower - below, low, high),
            np.clip(self.upper + above, low, high),
            f"{self.basis}; longer by what the noise in the number of rows may make; as it may "
            f"make more in {ROWS_MISS:.0%} of all releases, the level is {_per_cent(level)}, not "
            f"{_per_cent(self.level)}",
            level,
        )

    def for_cut(self, most: int | None, unit: Unit | None = None) -> Intervals:
        """Say that these are of the rows as cut to ``most`` ones each, or to so many of a unit.

        None where none is cut.
        """
        basis = self.basis
        if most is not None:
            basis += f"; of the rows as cut to {most:,} ones each"
        if unit is not None:
            basis += f"; of at most {unit.max_rows:,} rows a unit"
        return replace(self, basis=basis)


def _per_cent(level: float) -> str:
    return f"{100.0 * level:.4g}%"


def gaussian_half_width(scale: float, miss: float = 1.0 - LEVEL) -> float:
    """Return a distance that Gaussian noise leaves with chance ``miss`` at most.

    The continuous Gaussian's quantile, and a little for the grid that the noise is drawn on, of
    2^-39 of its scale or less (see `dualquery.room.noise.gaussian`).

    Parameters
    ----------
    scale
        Standard deviation, in steps; > 0.
    """
    return NormalDist().inv_cdf(1.0 - miss / 2.0) * scale * (1.0 + 1e-9)


def laplace_half_width(scale: float, miss: float = 1.0 - LEVEL) -> int:
    """Return a distance that discrete Laplace noise of a scale leaves with chance ``miss`` at most.

    With p = exp(-1 / scale) its tail beyond k is 2 p^(k + 1) / (1 + p), at most p^k.
    Scale and distance are in whole steps.
    """
    return math.ceil(math.log(1.0 / miss) * scale)

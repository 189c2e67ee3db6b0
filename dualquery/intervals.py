"""Where a true answer lies, as far as the noise of a measurement tells.

The noise of a measurement is drawn anew, whatever was drawn before, so an interval around the
measured number covers the true answer with its stated chance, also when the query was chosen by a
look at the data. That holds for the first measurement of a query only: whether there is another may
depend on how the first came out. A fitted answer does not have the noise's deviation, so intervals
are of the truth and not of the fit: the released answer may lie outside its own. What was not
measured has no interval; none is invented.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """One interval a query.

    Parameters
    ----------
    lower, upper
        float64, shape ``(m,)``, in the range of the queries; NaN where nothing was measured.
    basis
        A sentence for the reader: what the intervals rest on.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    basis: str

    def of(self, query: int) -> tuple[float, float] | None:
        """Return the interval of a query of the workload, None if it was not measured."""
        low, high = float(self.lower[query]), float(self.upper[query])
        return None if math.isnan(low) else (low, high)

    def text(self, query: int) -> str:
        """Return the interval for a person, a dash if there is none."""
        found = self.of(query)
        return "-" if found is None else f"{found[0]:.4f} to {found[1]:.4f}"

    def describe(self) -> dict[str, Any]:
        """Return what a release says of its intervals, JSON-able."""
        return {
            "level": LEVEL,
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
    ) -> Intervals:
        """Return intervals around measurements, cut to the range of the queries.

        Parameters
        ----------
        measured
            float64, shape ``(m,)``: noisy answers, not yet cut to their range; NaN for none.
        half_width
            In the same units.
        low, high
            Range of the queries.
        basis
            As of the class.
        """
        return Intervals(
            np.clip(measured - half_width, low, high),
            np.clip(measured + half_width, low, high),
            basis,
        )


def gaussian_half_width(scale: float) -> float:
    """Return a distance that Gaussian noise leaves with chance 1 - `LEVEL` at most.

    The continuous Gaussian's quantile, and a little for the grid that the noise is drawn on, of
    2^-39 of its scale or less (see `dualquery.privacy.gaussian`).

    Parameters
    ----------
    scale
        Standard deviation, in steps; > 0.
    """
    return NormalDist().inv_cdf((1.0 + LEVEL) / 2.0) * scale * (1.0 + 1e-9)


def laplace_half_width(scale: float) -> int:
    """Return the same for the discrete Laplace distribution of a scale in steps, in whole steps.

    With p = exp(-1 / scale) its tail beyond k is 2 p^(k + 1) / (1 + p), at most p^k.
    """
    return math.ceil(math.log(1.0 / (1.0 - LEVEL)) * scale)

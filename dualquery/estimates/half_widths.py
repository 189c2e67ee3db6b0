"""How far noise is off: the half-widths of intervals."""

from __future__ import annotations

import math
from statistics import NormalDist

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""


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

"""Intervals of numbers that are known to lie in a range, from estimates with Gaussian noise.

An interval of two sides, cut to the range, covers a number at the end of the range too often: it
can miss on one side only. These are the intervals of Feldman and Cousins ("Unified approach to the
classical statistical analysis of small signals", Physical Review D 57, 1998, section IV B), which
cover every number of the range with the stated chance, and are shorter near its ends. An estimate x
(in standard deviations from the lower end) is *accepted* for a number m if its likelihood under m,
over that under the best number of the range, ``max(x, 0)``, is large:

- for m of at least z, the two-sided quantile, where ``|x - m| <= z``;
- below, where ``(m^2 - t^2) / 2m <= x <= m + t``, with t such that this has the stated chance.

The interval of x holds the numbers for which x is accepted. At the upper end all is mirrored.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Float64: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""

_POINTS, _NEAREST, _HALVINGS = 1_000, 1e-4, 60
"""Numbers m for which t is found, the least of them, and steps of the search."""

_EXACT = 1e-12
"""Deviations below this part of the range are none."""


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


def bounded_interval(
    estimates: Float64, deviations: Float64, critical: float, low: float, high: float
) -> tuple[Float64, Float64]:
    """Return the ends of intervals of numbers between ``low`` and ``high``.

    Where the noise is so large that both ends of the range matter at once, an estimate beyond the
    range is brought to its end, and the interval of two sides cut: it covers more often.

    Parameters
    ----------
    estimates, deviations
        float64, shape ``(m,)``: unbiased, and the standard deviations of their noise, at least 0;
        NaN for none.
    critical
        Two-sided quantile of the noise, in standard deviations: 1.96 for 95%.
    low, high
        The range.
    """
    within, half = np.clip(estimates, low, high), critical * deviations
    below, above = within - half, within + half
    spread = np.maximum(deviations, _EXACT * (high - low))
    near_low, far_low = _from_end((estimates - low) / spread, critical)
    near_high, far_high = _from_end((high - estimates) / spread, critical)
    first = np.where(estimates > high, high - far_high * spread, low + near_low * spread)
    last = np.where(estimates < low, low + far_low * spread, high - near_high * spread)
    one_end = (2.0 * half <= high - low) & (deviations >= spread)
    return (
        np.clip(np.where(one_end, first, below), low, high),
        np.clip(np.where(one_end, last, above), low, high),
    )


def _from_end(distance: Float64, critical: float) -> tuple[Float64, Float64]:
    """Return the interval's ends, from the end of the range inwards, in standard deviations."""
    numbers, accepted_below, accepted_above = _accepted(critical)
    nearer = np.interp(distance, accepted_above, numbers, left=0.0)
    further = np.interp(distance, accepted_below, numbers)
    return (
        np.where(distance > accepted_above[-1], distance - critical, nearer),
        np.where(distance > 0.0, distance + critical, further),
    )


@lru_cache(maxsize=256)
def _accepted(critical: float) -> tuple[Float64, Float64, Float64]:
    """Return numbers up to z, and between which estimates each is accepted; all increasing."""
    chance = 2.0 * ndtr(critical) - 1.0
    numbers = np.geomspace(_NEAREST, critical, _POINTS)
    low, high = np.zeros(_POINTS), np.full(_POINTS, critical)
    for _ in range(_HALVINGS):
        t = (low + high) / 2.0
        enough = ndtr(t) - ndtr(-(numbers + t**2 / numbers) / 2.0) >= chance
        low, high = np.where(enough, low, t), np.where(enough, t, high)
    return numbers, (numbers**2 - high**2) / (2.0 * numbers), numbers + high

"""Intervals of numbers that are known to lie in a range, from estimates with Gaussian noise.

An interval of two sides, cut to the range, covers a number at the end of the range too often: it
can miss on one side only. The interval here holds the numbers m that *accept* the estimate, each by
a set of estimates that has the stated chance. The sets make the mean length least if numbers are
drawn from a *prior* (Pratt, JASA 56, 1961; Yu and Hoff, Biometrika 105, 2018): uniform on the range
or, with a *guess* of the number from independent noise, normal around the guess with chance ``1 -
UNTOLD``. A wrong guess costs length, never coverage. Let f be the density of estimates under the
prior. Accepted for m are the estimates x with the largest ``phi(x - m) / f(x)``, in standard
deviations: an interval from a to b, as the second derivative of its logarithm is minus the variance
of m given x (Tweedie's formula). If the mass above x under m is below ``miss``, let a be the
estimate below which the rest of it lies: x is accepted if and only if its ratio is at least that of
a. As f is at least `UNTOLD` times the deviation at b, ``(b - m)^2 <= z^2 + 2 log(1 / (deviation
UNTOLD))``. The upper end is the mirrored lower one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

if TYPE_CHECKING:
    from dualquery.estimates.guessed import Guesses

Float64: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
"""Chance, over the noise, that one interval covers its true answer. Not of all at once."""

UNTOLD = 0.1
"""Chance that a guess is useless: a number far from it has an interval of the usual length."""

_FURTHEST, _HALVINGS = 12.0, 30  # the search: standard deviations that it covers, and its steps
_LEAST = 0.01  # least spread of a guess, in standard deviations of the noise
_EXACT = 1e-9  # noise that is too small to matter, in lengths of the range
_BEYOND, _RARE = 8.0, 1e-12  # furthest estimate out of the range; the least mass of a tail


def gaussian_half_width(scale: float, miss: float = 1.0 - LEVEL) -> float:
    """Return a distance that Gaussian noise exceeds with chance ``miss`` at most.

    The continuous Gaussian's quantile, and a little for the grid that the noise is drawn on, of
    2^-39 of its scale or less (see `dualquery.room.noise.gaussian`).
    """
    return NormalDist().inv_cdf(1.0 - miss / 2.0) * scale * (1.0 + 1e-9)


def laplace_half_width(scale: float, miss: float = 1.0 - LEVEL) -> int:
    """Return a distance that discrete Laplace noise exceeds with chance ``miss`` at most.

    With p = exp(-1 / scale) its tail beyond k is 2 p^(k + 1) / (1 + p), at most p^k.
    Scale and distance are in whole steps.
    """
    return math.ceil(math.log(1.0 / miss) * scale)


def clipped_interval(
    measured: Float64, half_width: Float64 | float, low: float, high: float
) -> tuple[Float64, Float64]:
    """Return the ends of intervals around measurements, float64 ``(m,)``, cut to a range.

    One beyond the range is brought to its end first, so that no interval is a single point.
    """
    within = np.clip(measured, low, high)
    return np.clip(within - half_width, low, high), np.clip(within + half_width, low, high)


def bounded_interval(
    estimates: Float64,
    deviations: Float64 | float,
    low: float,
    high: float,
    critical: float | None = None,
    guesses: Guesses | None = None,
) -> tuple[Float64, Float64]:
    """Return the ends of intervals of numbers between ``low`` and ``high``.

    Parameters
    ----------
    estimates, deviations
        float64, shape ``(m,)``: unbiased, and the standard deviations of their noise, at least 0;
        NaN for none.
    critical
        Two-sided quantile of the noise, in standard deviations; None for that of `LEVEL`.
    guesses
        Of the numbers.
    """
    critical, range = critical or gaussian_half_width(1.0), high - low
    deviations = np.broadcast_to(np.asarray(deviations, np.float64), estimates.shape)
    lower, upper = clipped_interval(estimates, critical * deviations, low, high)
    some = (deviations > _EXACT * range) & (deviations < range / _EXACT)
    if guesses is None:  # only near an end are intervals others than those of two sides
        reach = (critical + _BEYOND) * deviations
        some &= (estimates < low + reach) | (estimates > high - reach)
    at = np.flatnonzero(some)
    unit, miss = deviations[at], 2.0 * float(ndtr(-critical))
    length, shown = range / unit, (estimates[at] - low) / unit
    if guesses is None:
        prior = _Prior(np.full(len(at), np.nan), np.ones(len(at)), length)
    else:
        spread = np.maximum(guesses.spreads[at] / unit, _LEAST)
        prior = _Prior((guesses.values[at] - low) / unit, spread, length)
    lower[at] = low + unit * _lowest(shown, prior, miss)
    upper[at] = high - unit * _lowest(length - shown, prior.mirrored(), miss)
    return np.clip(lower, low, high), np.clip(upper, low, high)


@dataclass(frozen=True, eq=False)
class _Prior:
    """The numbers' prior, in standard deviations from the range's end: float64, ``(m,)``."""

    guess: Float64
    spread: Float64
    length: Float64

    def mirrored(self) -> _Prior:
        """Return it as seen from the other end."""
        return _Prior(self.length - self.guess, self.spread, self.length)

    def log_density(self, estimates: Float64) -> Float64:
        """Return the logarithm of f of the module."""
        anywhere: Float64 = _between(estimates, 1.0, self.length) / self.length
        known = ~np.isnan(self.guess)
        if not known.any():
            return np.log(anywhere)
        variance = 1.0 + self.spread**2
        mean = (self.guess + self.spread**2 * estimates) / variance
        near = _between(mean, self.spread / np.sqrt(variance), self.length)
        near *= np.exp(-((estimates - self.guess) ** 2) / (2.0 * variance))
        near /= np.sqrt(2.0 * np.pi * variance) * _between(self.guess, self.spread, self.length)
        mixed = (1.0 - UNTOLD) * near + UNTOLD * anywhere
        return np.log(np.where(known, mixed, anywhere))


def _between(mean: Float64, deviation: Float64 | float, length: Float64) -> Float64:
    """Return the mass that normal distributions give to the range from 0 to ``length``."""
    # By the nearer end: far from both, the masses below them differ by less than their rounding.
    mean = np.where(mean > length / 2.0, length - mean, mean)
    mass: Float64 = ndtr(mean / deviation) - ndtr((mean - length) / deviation)
    return mass


def _lowest(estimates: Float64, prior: _Prior, miss: float) -> Float64:
    """Return the lowest numbers that accept the estimates, all in standard deviations."""
    estimates = np.clip(estimates, -_BEYOND, prior.length + _BEYOND)
    own = prior.log_density(estimates)
    accepted = np.clip(estimates, 0.0, prior.length)
    refused = np.maximum(accepted - _FURTHEST, 0.0)
    for _ in range(_HALVINGS):
        number = (accepted + refused) / 2.0
        above = ndtr(number - estimates)
        # The other end, if this estimate were the upper one; of no use where too much lies above.
        other = number + ndtri(np.clip(miss - above, _RARE, 1.0))
        more_likely = prior.log_density(other) - (estimates - number) ** 2 / 2.0 >= (
            own - (other - number) ** 2 / 2.0
        )
        holds = (above >= miss) | more_likely
        accepted, refused = np.where(holds, number, accepted), np.where(holds, refused, number)
    return refused

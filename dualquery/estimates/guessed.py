"""Intervals of shares that are shortest where a share is near what was expected of it.

An interval holds the shares m that *accept* the estimate, whatever sets of estimates they accept,
as long as these have the stated chance. Here a *guess* of the share, from numbers with independent
noise, decides: the sets make the mean length least if shares scatter around their guesses (Pratt,
JASA 56, 1961; Yu and Hoff, Biometrika 105, 2018). A wrong guess costs length, never coverage. Let f
be the density of estimates if shares are drawn from the *prior*: normal around the guess, within 0
to 1, or, with chance `UNTOLD`, uniform. Accepted for m are the estimates x with the largest ``phi(x
- m) / f(x)``, in standard deviations. The second derivative of its logarithm is minus the variance
of m given x (Tweedie's formula), so they are an interval from a to b. With the mass above x under m
below ``miss``, let a be the estimate below which lies the rest of it: x is accepted if and only if
its ratio is at least that of a. As f is at least `UNTOLD` times the deviation at b, ``(b - m)^2 <=
z^2 + 2 log(1 / (deviation UNTOLD))``. The upper end is the mirrored lower one.

The guess of a conjunction is the product of its literals' shares, as if columns were independent.
How far its share may be from that is a public assumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dualquery.estimates.bounded import bounded_interval

Float64: TypeAlias = NDArray[np.float64]

CORRELATION = 0.1
"""Standard deviation of the correlation of two columns, before anything is measured; half as much
for every further column of a product."""

_REPETITIONS = 12
"""Of the guess, which the shares without the estimate's noise depend on a little."""

UNTOLD = 0.1
"""Chance that a guess is useless: a share far from it has an interval of the usual length."""

_FURTHEST, _HALVINGS = 12.0, 30
"""Standard deviations within which ends are sought, and the steps of the search."""

_LEAST, _EXACT = 0.01, 1e-9
"""Least spread of a guess, in standard deviations of the noise; noise that is too small for any."""

_BEYOND, _RARE = 8.0, 1e-12
"""Estimates further out of the range count as this far; a tail that is not told from none."""


@dataclass(frozen=True, eq=False)
class Guesses:
    """What is expected of ``m`` shares, by numbers whose noise is independent of theirs.

    Parameters
    ----------
    values
        float64, shape ``(m,)``, in 0 to 1; NaN for none.
    spreads
        float64, shape ``(m,)``, at least 0: how far shares may be from them, in standard
        deviations.
    """

    values: Float64
    spreads: Float64


def guessed_interval(
    estimates: Float64, deviations: Float64, critical: float, guesses: Guesses
) -> tuple[Float64, Float64]:
    """Return the ends of intervals of shares.

    Parameters
    ----------
    estimates, deviations
        float64, shape ``(m,)``: unbiased, and the standard deviations of their Gaussian noise, at
        least 0; NaN for none.
    critical
        Two-sided quantile of the noise, in standard deviations: 1.96 for 95%.
    guesses
        Of the shares. Where there is none the interval is `bounded_interval`'s.
    """
    low, high = bounded_interval(estimates, deviations, critical, 0.0, 1.0)
    at = np.flatnonzero((deviations > _EXACT) & ~np.isnan(estimates + guesses.values))
    unit, miss = deviations[at], 2.0 * float(ndtr(-critical))
    length, shown = 1.0 / unit, estimates[at] / unit
    prior = _Prior(
        guesses.values[at] / unit, np.maximum(guesses.spreads[at] / unit, _LEAST), length
    )
    low[at] = np.clip(unit * _lowest(shown, prior, miss), 0.0, 1.0)
    high[at] = np.clip(1.0 - unit * _lowest(length - shown, prior.mirrored(), miss), 0.0, 1.0)
    return low, high


@dataclass(frozen=True, eq=False)
class _Prior:
    """Where shares are expected, in standard deviations of the noise from 0: float64, ``(m,)``."""

    guess: Float64
    spread: Float64
    length: Float64

    def mirrored(self) -> _Prior:
        """Return it as seen from 1."""
        return _Prior(self.length - self.guess, self.spread, self.length)

    def log_density(self, estimates: Float64) -> Float64:
        """Return the logarithm of f of the module."""
        variance = 1.0 + self.spread**2
        mean = (self.guess + self.spread**2 * estimates) / variance
        near = _between(mean, self.spread / np.sqrt(variance), self.length)
        near *= np.exp(-((estimates - self.guess) ** 2) / (2.0 * variance))
        near /= np.sqrt(2.0 * np.pi * variance) * _between(self.guess, self.spread, self.length)
        anywhere = _between(estimates, 1.0, self.length) / self.length
        density: Float64 = np.log((1.0 - UNTOLD) * near + UNTOLD * anywhere)
        return density


def _between(mean: Float64, deviation: Float64 | float, length: Float64) -> Float64:
    """Return the mass that normal distributions give to the range from 0 to ``length``."""
    # By the nearer end: far from both, the masses below them differ by less than their rounding.
    mean = np.where(mean > length / 2.0, length - mean, mean)
    mass: Float64 = ndtr(mean / deviation) - ndtr((mean - length) / deviation)
    return mass


def _lowest(estimates: Float64, prior: _Prior, miss: float) -> Float64:
    """Return the lowest shares for which the estimates are accepted, all in standard deviations."""
    estimates = np.clip(estimates, -_BEYOND, prior.length + _BEYOND)
    own = prior.log_density(estimates)
    accepted = np.clip(estimates, 0.0, prior.length)
    refused = np.maximum(accepted - _FURTHEST, 0.0)
    for _ in range(_HALVINGS):
        share = (accepted + refused) / 2.0
        above = ndtr(share - estimates)
        # The other end, if this estimate were the upper one; of no use where too much lies above.
        other = share + ndtri(np.clip(miss - above, _RARE, 1.0))
        more_likely = prior.log_density(other) - (estimates - share) ** 2 / 2.0 >= (
            own - (other - share) ** 2 / 2.0
        )
        holds = (above >= miss) | more_likely
        accepted, refused = np.where(holds, share, accepted), np.where(holds, refused, share)
    return refused


def departures(chances: Float64) -> Float64:
    """Return the prior standard deviation of conjunctions around independent columns.

    A standard deviation: each pair of literals departs by `CORRELATION` times their standard
    deviations, on the rows where the others hold; each further literal halves it.

    Parameters
    ----------
    chances
        float64, shape ``(m, k)``, from 0 to 1: the shares of each one's literals; 1 for none.

    Returns
    -------
    float64, shape ``(m,)``.
    """
    # By how many of the literals so far are among the ones that depart together.
    none, one, more = np.ones(len(chances)), np.zeros(len(chances)), np.zeros(len(chances))
    for chance in chances.T:
        holds, tied = chance**2, chance * (1.0 - chance) / 4.0
        none, one, more = (
            none * holds,
            one * holds + none * tied,
            more * (holds + tied) + one * tied,
        )
    return 4.0 * CORRELATION * np.sqrt(more)


def guesses_of(
    estimates: Float64, variances: Float64, shares: Float64, covariances: Float64
) -> Guesses:
    """Return the product of literals' shares, less their regression on a conjunction's estimate.

    These are independent of its Gaussian noise. Their means lack the regression times the true
    share of the conjunction, in whose place the guess itself is put.

    Parameters
    ----------
    estimates, variances
        float64, shape ``(m,)``: of the conjunctions, and those of their noise.
    shares, covariances
        float64, shape ``(m, k)``: estimates of the shares of each one's literals, NaN for none, and
        the covariances of their noise with that of the conjunction's.

    Returns
    -------
    Guesses
        None for a conjunction of fewer than two literals, or without noise.
    """
    present = ~np.isnan(shares)
    known = (present.sum(axis=1) > 1) & (variances > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        regression = covariances / variances[:, None]
    free = shares - regression * estimates[:, None]
    values = np.zeros(len(estimates))
    for _ in range(_REPETITIONS):
        chances = np.where(present, np.clip(free + regression * values[:, None], 0.0, 1.0), 1.0)
        values = chances.prod(axis=1)
    return Guesses(np.where(known, values, np.nan), departures(chances))

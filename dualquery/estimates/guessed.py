"""Guesses of conjunctions: the products of their literals' shares, as if columns were independent.

The distance of a share from its guess is a public assumption. Intervals use them
(`dualquery.estimates.bounded`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float64: TypeAlias = NDArray[np.float64]

CORRELATION = 0.1
"""Prior standard deviation of two columns' correlation; half as much for each further column."""

_REPETITIONS = 12  # fixed-point steps of a guess


@dataclass(frozen=True, eq=False)
class Guesses:
    """What is expected of ``m`` shares, by numbers whose noise is independent of theirs.

    float64, shape ``(m,)``: the values, in 0 to 1, NaN for none; the standard deviations of the
    shares around them, at least 0.
    """

    values: Float64
    spreads: Float64


def departures(chances: Float64) -> Float64:
    """Return the prior standard deviation of conjunctions around independent columns: ``(m,)``.

    Each pair of literals departs by `CORRELATION` times their standard deviations, on the rows
    where the others hold; each further literal halves it. ``chances``, float64 ``(m, k)`` from 0
    to 1, are the shares of each one's literals; 1 for none.
    """
    # By the number of the literals so far among those that depart together: none, one, or more.
    none, one, more = np.ones(len(chances)), np.zeros(len(chances)), np.zeros(len(chances))
    for chance in chances.T:
        holds, tied = chance**2, chance * (1.0 - chance) / 4.0
        more = more * (holds + tied) + one * tied
        one = one * holds + none * tied
        none = none * holds
    return 4.0 * CORRELATION * np.sqrt(more)


def guesses_of(
    estimates: Float64, variances: Float64, shares: Float64, covariances: Float64
) -> Guesses:
    """Return the product of literals' shares, less their regression on a conjunction's estimate.

    These are independent of its Gaussian noise. Their means lack the regression times the true
    share of the conjunction, in whose place the guess itself is put. A conjunction of fewer than
    two literals, or without noise, has no guess.

    Parameters
    ----------
    estimates, variances
        float64, shape ``(m,)``: of the conjunctions, and those of their noise.
    shares, covariances
        float64, shape ``(m, k)``: estimates of the shares of each one's literals, NaN for none, and
        the covariances of their noise with that of the conjunction's.
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

"""Prior guesses of conjunctions from the shares of single columns.

Were columns independent, the share of a conjunction would be the product of its literals' shares.
How far it may be from that is a public assumption. Intervals are valid whether or not it holds
(`dualquery.estimates.guessed`).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.guessed import Guesses

Float64: TypeAlias = NDArray[np.float64]

CORRELATION = 0.1
"""Standard deviation of the correlation of two columns, before anything is measured; half as much
for every further column of a product."""

_REPETITIONS = 12
"""Of the guess, which the shares without the estimate's noise depend on a little."""


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

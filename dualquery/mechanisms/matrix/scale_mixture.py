"""What noisy departures from independence are worth, by a prior that they tell themselves.

The prior is a mixture of normal distributions around 0 whose standard deviations are multiples of
the expected ones (Stephens, "False discovery rates: a new deal", Biostatistics 18, 2017). Where
departures are smaller than expected, noise stays out. Post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

SCALES = np.array([0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Standard deviations that departures may have, in units of the expected ones: up to those of
columns that are nearly the same. Nothing but its own noisy number tells of one that is far off, so
that is believed."""

AS_EXPECTED = np.where(SCALES == 1.0, 8.0, 0.0)
"""How many departures of each scale count beside those that were measured."""

_ROUNDS = 500
"""Of expectation and maximisation. Fewer leave part of the equal chances that they start from, and
so let in noise where 200,000 departures are measured and none is there."""


def shrunk(
    noisy: Float64,
    expected: Float64,
    variances: Float64 | float,
    prior: Float64,
    certain: Float64 | float = 0.0,
) -> tuple[Float64, Float64]:
    """Return posterior means and variances of departures: float64, shape ``(c,)`` each.

    Parameters
    ----------
    noisy, expected
        float64, shape ``(c,)``: departures with noise, and their expected sizes.
    variances
        float64, shape ``(c,)`` or one for all: of the noise, Gaussian and independent.
    prior
        float64, shape ``(s,)``: the chances of `SCALES`.
    certain
        float64, shape ``(c,)`` or one for all: variances of what is there besides, of known size.
    """
    signal = np.outer(SCALES**2, expected**2) + certain
    weights = prior[:, None] * likelihood_of(logarithms(noisy, signal + variances))
    weights /= weights.sum(axis=0)
    trust = signal / (signal + variances)
    means: Float64 = (weights * trust).sum(axis=0) * noisy
    left = (weights * (trust * variances + (trust * noisy - means) ** 2)).sum(axis=0)
    return means, left


def chances_of_scales(
    noisy: Float64,
    expected: Float64,
    variances: Float64 | float,
    before: Float64 = AS_EXPECTED,
) -> Float64:
    """Return the chances of `SCALES` that noisy departures tell: float64, shape ``(s,)``.

    Parameters
    ----------
    noisy, expected, variances
        As of `shrunk`; the variances of all that is not in these departures.
    before
        float64, shape ``(s,)``: how many departures of each scale count beside these.
    """
    likelihood = likelihood_of(logarithms(noisy, np.outer(SCALES**2, expected**2) + variances))
    prior = np.full(len(SCALES), 1.0 / len(SCALES))
    for _ in range(_ROUNDS):
        own = prior[:, None] * likelihood
        prior = (before + (own / own.sum(axis=0)).sum(axis=1)) / (before.sum() + len(noisy))
    # No chance is 0: what is far off would have none of any scale that is left.
    chances: Float64 = np.maximum(prior, np.finfo(np.float64).tiny)
    return chances


def logarithms(noisy: Float64, variances: Float64) -> Float64:
    """Return the logarithms of the likelihoods of numbers around 0, up to a constant: ``(s, c)``.

    Parameters
    ----------
    noisy, variances
        float64, shape ``(c,)`` and ``(s, c)``: the numbers, and the variances they may have.
    """
    logs: Float64 = -0.5 * (np.log(variances) + noisy**2 / variances)
    return logs


def likelihood_of(logs: Float64) -> Float64:
    """Return likelihoods, up to a factor of each number's own; ``(s, c)``, as `logarithms`."""
    likelihood: Float64 = np.exp(logs - logs.max(axis=0))
    return likelihood

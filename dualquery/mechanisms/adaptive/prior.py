"""Empirical Bayes: priors estimated from the noisy numbers themselves, and posterior means.

Each number has Gaussian noise and one of a few laws; expectation and maximisation finds how often
each law holds (Kiefer and Wolfowitz 1956; Efron, Statistical Science 29, 2014). Of main effects the
laws are points of [0, 1] (Jiang and Zhang, Annals of Statistics 37, 2009); of interactions, normal
laws around 0 of multiples of their expected size (Stephens, Biostatistics 18, 2017).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

_MOST_LIKELIHOODS = 1 << 25
"""Of all shares at all points of their grid: a limit on memory."""

_EARLY, _ROUNDS = 30, 100
"""Rounds of expectation and maximisation: of shares they end early, and leave the simple start only
as far as noise allows (sparse tables err a tenth more with 100); of interactions, the most."""

_OPEN = 0.01
"""Part of the start that is spread over all laws: a larger one finds in noise what it allows."""

_BELL = np.linspace(-3.0, 3.0, 61)
"""Points of a normal distribution, in its standard deviations."""

SCALES = np.append(0.0, np.exp2(np.arange(-3.0, 4.0)))
"""Standard deviations of interactions over the expected ones: up to columns nearly the same."""

_PRIOR = 1.0 / (1.0 + SCALES**2)
_PRIOR /= _PRIOR.sum()
"""Chances of these before anything is measured, falling as in a half-Cauchy law (Polson and Scott,
Bayesian Analysis 7, 2012): most columns hardly depend on others. Above 0 the mean square is 1."""

_TOLD = 1 << 15
"""Numbers that determine how often each scale holds, at most: a limit on time."""


def maximise(likelihood: NDArray[Any], start: NDArray[Any], rounds: int) -> NDArray[Any]:
    """Return how often each law holds, by expectation and maximisation: ``(laws,)``."""
    prior = start.astype(likelihood.dtype)
    number = likelihood.dtype.type(len(likelihood))
    for _ in range(rounds):
        prior = prior * ((1.0 / (likelihood @ prior)) @ likelihood) / number
    return prior


def posterior_shares(noisy: Float64, deviations: Float64, empty: float) -> tuple[Float64, Float64]:
    """Return the posterior means and standard deviations of shares.

    The prior of a column is what the others determine, or any point: how often which, they say too.
    At the start a share is 0 with the chance ``empty``, else of a normal law like all.
    """
    sizes = np.unique(deviations)
    most = max(_MOST_LIKELIHOODS // (len(noisy) * len(sizes)), 1)
    variance = max(float(noisy.var() - (deviations**2).mean()), 0.0)
    likely = np.clip(noisy.mean() + math.sqrt(variance) * _BELL, 0.0, 1.0)
    grids = [_grid(noisy[deviations == one], float(one), most) for one in sizes]
    grid = np.unique(np.concatenate([*grids, likely]))
    start = np.full(len(grid), _OPEN / len(grid))
    start[0] += (1.0 - _OPEN) * empty
    bell = np.exp(-0.5 * _BELL**2)
    bell *= (1.0 - _OPEN) * (1.0 - empty) / bell.sum()
    np.add.at(start, np.searchsorted(grid, likely), bell)
    squared = (((noisy[:, None] - grid) / deviations[:, None]) ** 2).astype(np.float32)
    squared -= squared.min(axis=1, keepdims=True)
    likelihood = np.exp(np.float32(-0.5) * squared)
    prior = maximise(likelihood, start, _EARLY)
    own = likelihood * prior
    own /= own.sum(axis=1, keepdims=True)
    others = np.maximum(len(noisy) * prior - own, 0.0) / max(len(noisy) - 1, 1)
    left_out = np.stack((np.einsum("ij,ij->i", likelihood, others), likelihood.mean(axis=1)), 1)
    as_others, anywhere = maximise(left_out, np.full(2, 0.5), _ROUNDS)
    weights = likelihood * (as_others * others + anywhere / len(grid))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights @ grid).astype(np.float64)
    squares = (weights * (grid - means[:, None]) ** 2).sum(axis=1, dtype=np.float64)
    return means, np.sqrt(squares)


def left_of(interactions: Float64, precisions: Float64 | float, others: Float64 | float) -> Float64:
    """Return the variances that measuring leaves, a mean over the strengths above 0: ``(p,)``.

    ``interactions`` are the variances at strength 1; ``others`` have no strength.
    """
    variances = (scale**2 * interactions + others for scale in SCALES[1:])
    chances = _PRIOR[1:] / _PRIOR[1:].sum()
    left = (p * v / (1.0 + v * precisions) for p, v in zip(chances, variances, strict=True))
    return sum(left, np.zeros(len(interactions)))


def _grid(noisy: Float64, deviation: float, most: int) -> Float64:
    """Return 0, and points of [0, 1] within two deviations of noisy shares, half of one apart."""
    places = np.unique(np.floor(np.clip(noisy, 0.0, 1.0) * (2.0 / deviation)))
    places = np.unique(np.maximum((places[:, None] + np.arange(-4, 5)).ravel(), 0.0))
    grid = np.unique(np.minimum(np.append(places, 0.0) * (deviation / 2.0), 1.0))
    return grid[:: -(-len(grid) // most)]


def posterior_interactions(
    noisy: Float64, expected: Float64, variances: Float64, sets: Int64 | None = None, price: int = 0
) -> tuple[Float64, Float64]:
    """Return the posterior means of interactions, and those of their squares: ``(p,)`` each.

    The prior is a mixture of normal laws around 0, in units of the ``expected`` standard
    deviations; the search for how often each holds starts near one strength of all, and what it
    finds must be worth ``price`` laws of two parameters (Schwarz, Annals of Statistics 6, 1978).
    Each set of numbers (``sets``, ``(p,)``) has a strength, a factor of all scales, found alike.
    """
    signal = np.outer(SCALES**2, expected**2)
    total = signal + variances
    logs = -0.5 * (np.log(total) + noisy**2 / total)
    logs -= logs.max(axis=0, initial=-np.inf)
    likelihood = np.exp(logs)
    some = slice(None, None, -(-len(noisy) // _TOLD) or 1)
    told, of_all = likelihood[:, some].T.astype(np.float32), logs[:, some].sum(axis=1)
    strength: Float64 = _PRIOR * np.exp(of_all - of_all.max())
    one, strength = math.log(strength.sum()) + of_all.max(), strength / strength.sum()
    prior = maximise(told, (1.0 - _OPEN) * strength + _OPEN * _PRIOR, _ROUNDS)
    if price and np.log(told @ prior).sum() - one < price * math.log(len(told)):
        prior = strength
    laws = prior[None, :]
    if sets is None or sets.max(initial=0) + 1 == len(sets):
        sets = np.zeros(len(noisy), np.int64)
    else:
        last = len(prior) - 1
        moved = np.clip(np.arange(1, last + 1) + np.arange(-last, last)[:, None], 0, last)
        laws = np.stack([np.bincount(np.append(0, each), prior, last + 1) for each in moved])
    # No chance is 0: what is far off would have none of any law that remains.
    laws = np.maximum(laws, np.finfo(np.float64).tiny)
    mixed = laws @ likelihood
    of_sets = np.stack([np.bincount(sets, each) for each in np.log(mixed)])
    of_sets = np.exp(of_sets - of_sets.max(axis=0, initial=-np.inf))
    start = np.full(len(laws), _OPEN / len(laws))
    start[len(laws) // 2] += 1.0 - _OPEN
    of_sets *= maximise(of_sets.T, start, _EARLY)[:, None]
    of_sets /= of_sets.sum(axis=0)
    weights = likelihood * (laws.T @ (of_sets[:, sets] / mixed))
    kept = signal / total
    squares: Float64 = (weights * (kept * variances + (kept * noisy) ** 2)).sum(axis=0)
    return (weights * kept).sum(axis=0) * noisy, squares

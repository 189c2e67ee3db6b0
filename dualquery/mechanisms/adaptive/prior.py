"""Empirical Bayes: priors estimated from the noisy numbers themselves, and posterior means.

Each number has Gaussian noise and, before it is measured, one of a few laws; expectation and
maximisation finds how often each law holds (Kiefer and Wolfowitz 1956; Efron, "Two modeling
strategies for empirical Bayes estimation", Statistical Science 29, 2014). Of main effects the laws
are points of [0, 1] (Jiang and Zhang, Annals of Statistics 37, 2009); of interactions, normal laws
around 0 of multiples of their expected size (Stephens, Biostatistics 18, 2017). Post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

_CELLS = 2
"""Points of the grid in a standard deviation of the noise."""

_MOST_POINTS, _MOST_LIKELIHOODS = 1500, 1 << 23
"""Points of the grid for shares, at most: as many, or more while this number of likelihoods holds
them all. A grid coarser than the noise would round shares."""

_EMPTY, _SHARE_ROUNDS = 0.99, 30
"""Chance of the share 0 at the start of expectation and maximisation, and its rounds. It starts
near the answer "all columns are empty" and stops early, so shares leave 0 only as far as the noisy
ones demand."""

_BELL = np.linspace(-3.0, 3.0, 61)
"""Points of a normal distribution, in its standard deviations."""

SCALES = np.append(0.0, np.exp2(np.arange(-3.0, 4.0)))
"""Standard deviations of interactions, in units of the expected ones: up to columns that are nearly
the same."""

_PRIOR = 1.0 / (1.0 + (4.0 * SCALES) ** 2)
_PRIOR /= _PRIOR.sum()
"""Chances of these before anything is measured: most columns hardly depend on each other."""

_APART, _SCALE_ROUNDS, _TOLD = 0.1, 100, 1 << 15
"""Part of `_PRIOR` that the search starts from, the rest being one strength of all; its rounds, and
how many numbers determine it at most. A larger part would find in weak noise whatever it allows."""


def maximise(likelihood: NDArray[Any], start: NDArray[Any], rounds: int) -> NDArray[Any]:
    """Return how often each law holds, by expectation and maximisation: ``(laws,)``.

    ``likelihood`` has shape ``(numbers, laws)``, each number's up to a factor; ``start`` the
    chances to begin with, of the same type.
    """
    prior, number = start, likelihood.dtype.type(len(likelihood))
    for _ in range(rounds):
        prior = prior * ((1.0 / (likelihood @ prior)) @ likelihood) / number
    return prior


def posterior_shares(
    noisy: Float64, deviations: Float64, around: tuple[float, float] | None = None
) -> tuple[Float64, Float64]:
    """Return the posterior means and standard deviations of shares, most of which are likely 0.

    The prior of a column is what the others determine, and one more column that may lie anywhere: a
    share at a distance from all others is believed as it was measured.

    Parameters
    ----------
    noisy, deviations
        float64, shape ``(d,)``: shares plus independent Gaussian noise, and its standard
        deviations.
    around
        Mean and standard deviation of shares that are as likely as 0; none if not given.
    """
    sizes = np.unique(deviations)
    most = max(_MOST_POINTS, _MOST_LIKELIHOODS // (len(noisy) * len(sizes)))
    grid = np.unique(
        np.concatenate([_grid(noisy[deviations == one], float(one), most) for one in sizes])
    )
    if around is None:
        start = np.full(len(grid), (1.0 - _EMPTY) / len(grid))
        start[0] += _EMPTY
    else:
        likely = np.clip(around[0] + around[1] * _BELL, 0.0, 1.0)
        grid = np.union1d(grid, likely)
        start = np.full(len(grid), (1.0 - _EMPTY) / len(grid))
        bell = np.exp(-0.5 * _BELL**2)
        start[0] += _EMPTY / 2.0
        np.add.at(start, np.searchsorted(grid, likely), _EMPTY / 2.0 * bell / bell.sum())
    squared = (((noisy[:, None] - grid) / deviations[:, None]) ** 2).astype(np.float32)
    squared -= squared.min(axis=1, keepdims=True)
    likelihood = np.exp(np.float32(-0.5) * squared)
    prior = maximise(likelihood, start.astype(np.float32), _SHARE_ROUNDS)
    own = likelihood * prior
    own /= own.sum(axis=1, keepdims=True)
    others = np.maximum(len(noisy) * prior - own, 0.0)
    weights = likelihood * (others + np.float32(1.0 / len(grid)))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights @ grid).astype(np.float64)
    squares = (weights * (grid - means[:, None]) ** 2).sum(axis=1, dtype=np.float64)
    return means, np.sqrt(squares)


def _grid(noisy: Float64, deviation: float, most: int) -> Float64:
    """Return 0, and points of [0, 1] around noisy shares with noise of one size, increasing."""
    places = np.unique(np.floor(np.clip(noisy, 0.0, 1.0) * (_CELLS / deviation)))
    near = np.arange(-2 * _CELLS, 2 * _CELLS + 1)
    places = np.unique(np.maximum((places[:, None] + near).ravel(), 0.0))
    grid = np.unique(np.minimum(np.append(places, 0.0) * (deviation / _CELLS), 1.0))
    return grid[:: -(-len(grid) // most)]


def posterior_interactions(
    noisy: Float64, expected: Float64, variances: Float64
) -> tuple[Float64, Float64]:
    """Return the posterior means of interactions, and those of their squares.

    The prior is a mixture of normal laws around 0.

    The search for how often each law holds starts near one strength of all.

    Parameters
    ----------
    noisy, expected, variances
        float64, shape ``(p,)``: noisy interactions, how large each is expected to be, as a standard
        deviation, and the variance of its noise.
    """
    signal = np.outer(SCALES**2, expected**2)
    total = signal + variances
    logs = -0.5 * (np.log(total) + noisy**2 / total)
    likelihood = np.exp(logs - logs.max(axis=0, initial=-np.inf))
    some = slice(None, None, -(-len(noisy) // _TOLD) or 1)
    of_all = logs[:, some].sum(axis=1)
    strength: Float64 = _PRIOR * np.exp(of_all - of_all.max())
    start = (1.0 - _APART) * strength / strength.sum() + _APART * _PRIOR
    prior = maximise(likelihood[:, some].T, start, _SCALE_ROUNDS)
    # No chance is 0: what is far off would have none of any law that remains.
    weights = np.maximum(prior, np.finfo(np.float64).tiny)[:, None] * likelihood
    weights /= weights.sum(axis=0)
    kept = signal / total
    squares: Float64 = (weights * (kept * variances + (kept * noisy) ** 2)).sum(axis=0)
    return (weights * kept).sum(axis=0) * noisy, squares

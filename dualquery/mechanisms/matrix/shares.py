"""Shares of many columns from noisy ones, by a prior that the noisy shares themselves tell.

Of thousands of columns most hold nearly nothing, and a noisy share is mostly noise. The prior of
the shares that makes the noisy ones most likely is found on a grid (Kiefer and Wolfowitz 1956), and
each column's share is its posterior mean (Jiang and Zhang, "General maximum likelihood empirical
Bayes estimation of normal means", Annals of Statistics 37, 2009). All shares 0, all alike, and the
noisy shares as they are: each is what a certain prior gives, and the likelihood chooses.
Post-processing of noisy numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

_CELLS = 2
"""Points of the grid in a standard deviation of the noise."""

_MOST_POINTS = 1500
"""Points of the grid for shares of equal noise."""

_EMPTY, _ROUNDS = 0.99, 30
"""Chance of the share 0 at the start of expectation and maximisation, and its rounds. It starts
near the answer "all columns are empty" and stops early, so shares leave 0 only as far as the noisy
ones demand: where these are noise alone, a start from alike chances would find a little everywhere.
"""


def posterior(noisy: Float64, deviations: Float64) -> tuple[Float64, Float64]:
    """Return the posterior means and standard deviations of shares.

    The prior of a column is what the others tell, and one more column that may lie anywhere: a
    share that lies apart from all others is believed as it was measured.

    Parameters
    ----------
    noisy, deviations
        float64, shape ``(d,)``: shares plus noise, Gaussian and independent, and its standard
        deviations.
    """
    grids = [_grid(noisy[deviations == one], float(one)) for one in np.unique(deviations)]
    grid = np.unique(np.concatenate(grids))
    off = ((noisy[:, None] - grid) / deviations[:, None]).astype(np.float32) ** 2
    likelihood = np.exp(np.float32(-0.5) * (off - off.min(axis=1, keepdims=True)))
    prior = np.full(len(grid), (1.0 - _EMPTY) / len(grid), np.float32)
    prior[0] += np.float32(_EMPTY)
    for _ in range(_ROUNDS):
        prior *= (1.0 / (likelihood @ prior)) @ likelihood / np.float32(len(noisy))
    own = likelihood * prior
    own /= own.sum(axis=1, keepdims=True)
    others = np.maximum(len(noisy) * prior - own, 0.0) + np.float32(1.0 / len(grid))
    weights = likelihood * others
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights @ grid).astype(np.float64)
    squares = (weights * (grid - means[:, None]) ** 2).sum(axis=1, dtype=np.float64)
    return means, np.sqrt(squares)


def _grid(noisy: Float64, deviation: float) -> Float64:
    """Return 0, and points of [0, 1] around all noisy shares, increasing."""
    places = np.unique(np.floor(np.clip(noisy, 0.0, 1.0) * (_CELLS / deviation)))
    near = np.arange(-2 * _CELLS, 2 * _CELLS + 1)
    places = np.unique(np.maximum((places[:, None] + near).ravel(), 0.0))
    grid = np.unique(np.minimum(np.append(places, 0.0) * (deviation / _CELLS), 1.0))
    step = -(-len(grid) // _MOST_POINTS)
    return grid[::step]

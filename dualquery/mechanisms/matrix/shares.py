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
from scipy.sparse import csr_array

Float64 = NDArray[np.float64]

_CELLS = 2
"""Points of the grid in a standard deviation of the noise."""

_MOST_POINTS, _MOST_LIKELIHOODS = 1500, 1 << 23
"""Points of the grid for shares of equal noise, at most: so many, or more where columns are few, as
long as all shares have so many likelihoods. A grid coarser than the noise would round shares."""

_EMPTY, _ROUNDS = 0.99, 30
"""Chance of the share 0 at the start of expectation and maximisation, and its rounds. It starts
near the answer "all columns are empty" and stops early, so shares leave 0 only as far as the noisy
ones demand: where these are noise alone, a start from alike chances would find a little everywhere.
"""

_BLUR, _FEW = 1.5, 5.0
"""Standard deviation of the bell by which the places of others are blurred, in those of the noise,
and how many others lie around a place where half of them are. Where others are few their places are
noise as well. On generated shares with long tails (Zipf's law, gamma) shares above twice the noise
erred by up to 1.9 times what they were said to; blurred, by 1.1 to 1.5 times. All shares together
erred by as much as before or up to 1% less."""

_REACH = 3.0
"""Standard deviations beyond which a bell is taken as nothing."""

_STEPS = np.linspace(-_REACH, _REACH, 61)
_BELL = np.exp(-0.5 * _STEPS**2) / np.exp(-0.5 * _STEPS**2).sum()
"""A normal distribution: its points, in standard deviations, and their chances."""

_EITHER = 0.49
"""Chance, at the start, of empty columns, and of columns around a centre, where either may be so;
the rest may lie anywhere."""


def posterior(noisy: Float64, deviations: Float64) -> tuple[Float64, Float64]:
    """Return the posterior means and standard deviations of shares, most of which are likely 0.

    The prior of a column is what the others tell, and one more column that may lie anywhere: a
    share that lies apart from all others is believed as it was measured.

    Parameters
    ----------
    noisy, deviations
        float64, shape ``(d,)``: shares plus noise, Gaussian and independent, and its standard
        deviations.
    """
    grid = _grid_around(noisy, deviations)
    start = np.full(len(grid), (1.0 - _EMPTY) / len(grid), np.float32)
    start[0] += np.float32(_EMPTY)
    return _posterior(noisy, deviations, grid, start)


def posterior_around(
    noisy: Float64, deviations: Float64, centre: float, apart: float
) -> tuple[Float64, Float64]:
    """Return the same of shares that are as likely to lie around a centre as to be 0.

    Parameters
    ----------
    noisy, deviations
        As of `posterior`.
    centre, apart
        Where most shares lie if they are not 0, and by how much they differ: a mean, and a standard
        deviation.
    """
    likely = np.clip(centre + apart * _STEPS, 0.0, 1.0)
    grid = np.union1d(_grid_around(noisy, deviations), likely)
    start = np.full(len(grid), (1.0 - 2.0 * _EITHER) / len(grid))
    start[0] += _EITHER
    np.add.at(start, np.searchsorted(grid, likely), _EITHER * _BELL)
    return _posterior(noisy, deviations, grid, start.astype(np.float32))


def _posterior(
    noisy: Float64, deviations: Float64, grid: Float64, prior: NDArray[np.float32]
) -> tuple[Float64, Float64]:
    """Return posterior means and standard deviations by the prior that a search from one finds."""
    apart = noisy[:, None] - grid
    apart /= deviations[:, None]
    off = apart.astype(np.float32) ** 2
    del apart  # twice as large as what is kept
    likelihood = np.exp(np.float32(-0.5) * (off - off.min(axis=1, keepdims=True)))
    for _ in range(_ROUNDS):
        prior = prior * ((1.0 / (likelihood @ prior)) @ likelihood / np.float32(len(noisy)))
    own = likelihood * prior
    own /= own.sum(axis=1, keepdims=True)
    others = np.maximum(len(noisy) * prior - own, 0.0)
    for one in np.unique(deviations):
        at = deviations == one
        others[at] = _blurred(others[at], grid, float(one))
    weights = likelihood * (others + np.float32(1.0 / len(grid)))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights @ grid).astype(np.float64)
    squares = (weights * (grid - means[:, None]) ** 2).sum(axis=1, dtype=np.float64)
    return means, np.sqrt(squares)


def _blurred(others: NDArray[np.float32], grid: Float64, deviation: float) -> NDArray[np.float32]:
    """Return where the others of each share lie, blurred where they are few.

    Others that are empty stay so, and none is blurred to below 0.

    Parameters
    ----------
    others
        float32, shape ``(d, g)``: how many lie at each point of the grid.
    grid, deviation
        float64, shape ``(g,)``, increasing from 0, and the standard deviation of the noise.
    """
    most = others.max(axis=0).astype(np.float64)
    ends = np.append(0.0, np.cumsum(most))
    high = np.searchsorted(grid, grid + deviation, side="right")
    around = ends[high] - ends[np.searchsorted(grid, grid - deviation)]
    few: NDArray[np.float32] = others * (_FEW / (_FEW + around)).astype(np.float32)
    blurred: NDArray[np.float32] = few @ _blur(grid, deviation)
    return others - few + blurred


def _blur(grid: Float64, deviation: float) -> csr_array:
    """Return what each point of a grid is blurred to: float32, shape ``(g, g)``, rows sum to 1."""
    width = np.minimum(_BLUR * deviation, grid / 2.0)
    low = np.searchsorted(grid, grid - _REACH * width)
    high = np.searchsorted(grid, grid + _REACH * width, side="right")
    counts = high - low
    rows = np.repeat(np.arange(len(grid)), counts)
    columns = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - low, counts)
    apart = np.divide(
        grid[columns] - grid[rows], width[rows], out=np.zeros(len(rows)), where=rows > 0
    )
    bell = np.exp(-0.5 * apart**2) * np.gradient(grid)[columns]
    bell /= np.bincount(rows, bell)[rows]
    return csr_array((bell.astype(np.float32), (rows, columns)), shape=(len(grid), len(grid)))


def _grid_around(noisy: Float64, deviations: Float64) -> Float64:
    """Return 0, and points of [0, 1] around all noisy shares, increasing."""
    sizes = np.unique(deviations)
    most = max(_MOST_POINTS, _MOST_LIKELIHOODS // (len(noisy) * len(sizes)))
    grids = [_grid(noisy[deviations == one], float(one), most) for one in sizes]
    return np.unique(np.concatenate(grids))


def _grid(noisy: Float64, deviation: float, most: int) -> Float64:
    """Return the same of noisy shares with noise of one size."""
    places = np.unique(np.floor(np.clip(noisy, 0.0, 1.0) * (_CELLS / deviation)))
    near = np.arange(-2 * _CELLS, 2 * _CELLS + 1)
    places = np.unique(np.maximum((places[:, None] + near).ravel(), 0.0))
    grid = np.unique(np.minimum(np.append(places, 0.0) * (deviation / _CELLS), 1.0))
    step = -(-len(grid) // most)
    return grid[::step]

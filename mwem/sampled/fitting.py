"""The recipe that keeps a sampled family in step with its measurements.

The factors move towards the maximum-likelihood member of the family, as in iterative proportional
fitting, but a little at a time, with sweeps of the population in between (a stochastic
approximation, as in persistent contrastive divergence: Tieleman 2008). Such a run can get worse as
well as better. The residuals on the measured cells are public, so it is known when it does: a run
that has got much worse goes back and takes shorter steps, and the best state seen is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mwem.sampled.family import SampledFamily

_LARGEST_STEP = 0.7
"""Log-factors move by at most this in a step: an empty cell says little about how far to go."""

_WORSE = 1.5
"""Times the best residual at which a step was too long."""

_LARGEST_FACTOR = 14.0
"""Beyond this a cell is as good as certain, and Gibbs sweeps no longer enter or leave it."""


@dataclass(frozen=True)
class Recipe:
    """How hard to fit.

    Parameters
    ----------
    steps
        Steps at most; after each, one sweep.
    gain
        Part of a cell's log-ratio (target to population) by which its factor moves in a step; it
        is halved whenever the fit goes back.
    decay
        Part by which all factors shrink in a step. Noisy tables contradict each other; without it
        their factors would drift apart for ever.
    tolerance
        Largest residual, as a share of the rows, at which nothing remains to be fitted.
    """

    steps: int
    gain: float
    decay: float
    tolerance: float


@dataclass(frozen=True)
class Fit:
    """What came of it: the largest residual on a measured cell, and the steps taken."""

    residual: float
    steps: int


def fit(family: SampledFamily, recipe: Recipe) -> Fit:
    """Move the factors until the population meets the targets, and keep the best state seen.

    Parameters
    ----------
    family
        Its factors and its population are updated.
    recipe
        How hard to try.
    """
    records = len(family.population)
    gain = recipe.gain
    tally = family.count()
    residual = _residual(family, tally)
    best = _State(family.factors, family.population.copy(), tally, residual)
    step = 0
    while best.residual > recipe.tolerance and step < recipe.steps:
        step += 1
        expected = np.rint(family.targets * records).astype(np.int64)
        for table, cell in np.argwhere((tally == 0) & (expected > 0)).tolist():
            # No factor can raise a cell that no record is near: some are put there.
            family.force(table, cell, int(expected[table, cell]))
        move = gain * np.log((family.targets + 1 / records) / ((tally + 1) / records))
        factors = (1.0 - recipe.decay) * family.factors
        factors += np.clip(move, -_LARGEST_STEP, _LARGEST_STEP)
        factors -= factors.mean(axis=1, keepdims=True)
        family.factors = np.clip(factors, -_LARGEST_FACTOR, _LARGEST_FACTOR)
        tally = family.sweep()
        residual = _residual(family, tally)
        if residual < best.residual:
            best = _State(family.factors, family.population.copy(), tally, residual)
        elif residual > _WORSE * best.residual:
            # Tables that overlap have moved too far together.
            gain *= 0.5
            family.factors, family.population = best.factors, best.population.copy()
            tally = best.tally
    family.factors, family.population = best.factors, best.population
    return Fit(best.residual, step)


@dataclass(frozen=True, eq=False)
class _State:
    """The best state so far."""

    factors: NDArray[np.float64]
    population: NDArray[np.uint16]
    tally: NDArray[np.int64]
    residual: float


def _residual(family: SampledFamily, tally: NDArray[np.int64]) -> float:
    """Return the largest difference on a cell between population and target."""
    return float(np.abs(tally / len(family.population) - family.targets).max())

"""The recipe that keeps a sampled family in step with its measurements.

A step reweights the population until it meets the targets (`SampledFamily.rake`, iterative
proportional fitting); the factors move by as much as the log-weights, so that family and weighted
population stay one distribution. The population is drawn anew by weight, and Gibbs sweeps let its
records forget that they were copies: the resample-move scheme of sequential Monte Carlo (Gilks and
Berzuini 2001). What the sweeps then take away from the targets shows how well the family, not only
the population, meets them. Residuals on measured cells are public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mwem.sampled.family import SampledFamily


@dataclass(frozen=True)
class Recipe:
    """How hard to fit.

    Parameters
    ----------
    steps
        Steps at most.
    tolerance
        Largest residual, as a share of the rows, at which no further step is worth its while.
    """

    steps: int
    tolerance: float


@dataclass(frozen=True)
class Fit:
    """What came of it: the largest residual on a measured cell, and the steps taken."""

    residual: float
    steps: int


def fit(family: SampledFamily, recipe: Recipe) -> Fit:
    """Move the factors until the population keeps to the targets by itself.

    Parameters
    ----------
    family
        Its factors and its population are updated.
    recipe
        How hard to try.
    """
    records = len(family.population)
    tally = family.count()
    residual, step = np.inf, 0
    while residual > recipe.tolerance and step < recipe.steps:
        step += 1
        _fill_empty_cells(family, tally)
        family.resample(family.rake(), records)
        tally = family.sweep()
        residual = float(np.abs(tally / records - family.targets).max())
    return Fit(residual, step)


def _fill_empty_cells(family: SampledFamily, tally: NDArray[np.int64]) -> None:
    """Put records where some should be: no weight can raise a cell that no record is in."""
    expected = np.rint(family.targets * len(family.population)).astype(np.int64)
    for table, cell in np.argwhere((tally == 0) & (expected > 0)).tolist():
        family.force(table, cell, int(expected[table, cell]))

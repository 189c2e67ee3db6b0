"""Moves a sampled family and its population towards the measurements.

A step reweights the population until it meets the targets (`SampledFamily.rake`); the factors move
by the log-weights. Then the population is drawn anew by weight, and Gibbs sweeps let its records
forget that they were copies (resample-move: Gilks and Berzuini 2001). Residuals are public.
"""

import numpy as np
from numpy.typing import NDArray

from mwem.sampled.family import SampledFamily


def fit(family: SampledFamily, steps: int, tolerance: float) -> tuple[float, int]:
    """Move the factors until the population keeps to the targets by itself.

    Parameters
    ----------
    family
        Its factors and its population are updated.
    steps
        Most steps.
    tolerance
        Residual, as a share of the rows, at or below which no further step is made.

    Returns
    -------
    The largest residual on a measured cell, and the steps taken.
    """
    records = len(family.population)
    tally = family.count()
    residual, step = np.inf, 0
    while residual > tolerance and step < steps:
        step += 1
        _fill_empty_cells(family, tally)
        family.resample(family.rake(), records)
        tally = family.sweep()
        residual = float(np.abs(tally / records - family.targets).max())
    return residual, step


def _fill_empty_cells(family: SampledFamily, tally: NDArray[np.int64]) -> None:
    """Move records into empty cells that should hold some: no weight can raise an empty cell."""
    expected = np.rint(family.targets * len(family.population)).astype(np.int64)
    for table, cell in np.argwhere((tally == 0) & (expected > 0)).tolist():
        family.force(table, cell, int(expected[table, cell]))

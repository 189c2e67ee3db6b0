"""How MWEM spends its budget: from public options to noise scales and a schedule of events."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.errors import BadInputError
from dualquery.mechanism import Budget
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.curator import Curator
from dualquery.privacy.events import (
    RANGE_SLACK,
    DiscreteGaussianNoise,
    Event,
    LaplaceNoise,
    SampledQueries,
)
from dualquery.privacy.zcdp import rho_for
from mwem.options import MwemOptions

_MARGIN = 1e-9
"""Relative part of the budget left for the rounding of sums and conversions."""


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run. All draws of a kind are alike.

    Parameters
    ----------
    gaussian
        Discrete Gaussian noise (zero-concentrated differential privacy), or discrete Laplace noise.
    select
        Range of a selection: log-weights are ``select / 2`` a row of error.
    measure_scale
        Scale of a measurement's noise, in rows.
    cells_scale
        Scale of the noise on every cell's count, in rows; None without a noisy start.
    iterations
        Number of selections, and of measurements.
    """

    gaussian: bool
    select: float
    measure_scale: float
    cells_scale: float | None
    iterations: int

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        start: tuple[Event, ...] = ()
        if self.cells_scale is not None:
            start = (_noise(self.gaussian, 2, self.cells_scale),)
        iteration = (
            SampledQueries(self.select + RANGE_SLACK, 1),
            _noise(self.gaussian, 1, self.measure_scale),
        )
        return start + iteration * self.iterations

    def measure(self, curator: Curator, query: int) -> int:
        """Measure one count with the planned noise, in rows."""
        if self.gaussian:
            return curator.measure_one_gaussian(query, self.measure_scale)
        return curator.measure_one_laplace(query, self.measure_scale)

    def measure_cells(self, curator: Curator) -> NDArray[np.int64] | None:
        """Measure the count of every cell with the planned noise, if it is planned."""
        if self.cells_scale is None:
            return None
        if self.gaussian:
            return curator.measure_cells_gaussian(self.cells_scale)
        return curator.measure_cells_laplace(self.cells_scale)


def spend(options: MwemOptions, budget: Budget) -> Spending:
    """Split a budget: the noisy start, then equal iterations, each in two parts.

    With delta 0 epsilons add up (Theorem 2.1). With delta above 0 the shares are those of rho, the
    budget of zero-concentrated differential privacy: a selection of range r costs r^2 / 8, Gaussian
    noise 1 / (2 scale^2) a unit of squared sensitivity. When one record is replaced, one count
    moves by 1, and two cells of a histogram by 1 each.

    Raises
    ------
    BadInputError
        If so many iterations leave nothing for one of them.
    """
    init = options.init_budget if options.noisy_init else 0.0
    share = options.noisy_max_budget
    cells_scale = None
    if budget.delta > 0:
        rho = rho_for(budget.epsilon, budget.delta) * (1.0 - _MARGIN)
        each = rho * (1.0 - init) / options.iterations
        select = math.sqrt(8.0 * share * each) - RANGE_SLACK
        measure_scale = 1.0 / math.sqrt(2.0 * (1.0 - share) * each)
        if options.noisy_init:
            cells_scale = 1.0 / math.sqrt(rho * init)
    else:
        epsilon = budget.epsilon * (1.0 - _MARGIN)
        each = epsilon * (1.0 - init) / options.iterations
        select = share * each - RANGE_SLACK
        measure_scale = laplace_scale((1.0 - share) * each, 1)
        if options.noisy_init:
            cells_scale = laplace_scale(epsilon * init, 2)
    if select <= 0:
        raise BadInputError(
            f"epsilon {budget.epsilon:g} over {options.iterations} iterations leaves "
            f"{each:.3g} for each, too little to select a query; use fewer iterations"
        )
    return Spending(budget.delta > 0, select, measure_scale, cells_scale, options.iterations)


def _noise(gaussian: bool, l1: int, scale: float) -> Event:
    """Return noise on integers that move by ``l1`` in all, each by at most 1."""
    return DiscreteGaussianNoise(math.sqrt(l1), scale) if gaussian else LaplaceNoise(l1 / scale)

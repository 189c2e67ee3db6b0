"""How MWEM spends its budget: from public options to noise scales and a schedule of events."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.calibrate import laplace_scale
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import (
    RANGE_SLACK,
    Event,
    GaussianNoise,
    LaplaceNoise,
    SampledQueries,
)
from dualquery.room.curator import Curator
from dualquery.room.sensitivity.moves import Moves, table_moves
from dualquery.runtime.errors import BadInputError
from mwem.options import MwemOptions

_MARGIN = 1e-9
"""Relative part of the budget left for the rounding of sums and conversions."""


@dataclass(frozen=True)
class Sensitivity:
    """How far what an iteration measures moves between neighbours, in steps.

    Parameters
    ----------
    l1
        In all.
    l2
        In Euclidean distance.
    """

    l1: float
    l2: float

    def noise(self, gaussian: bool, scale: float) -> Event:
        """Return the event of noise of a scale, in steps, on every number."""
        return GaussianNoise(self.l2, scale) if gaussian else LaplaceNoise(self.l1 / scale)

    @staticmethod
    def of(moves: Moves) -> Sensitivity:
        """Return the sensitivity of a vector that moves so far."""
        return Sensitivity(moves.l1, moves.l2)


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run. All draws of a kind are alike.

    Parameters
    ----------
    gaussian
        Gaussian noise, or discrete Laplace noise.
    select
        Range of a selection: log-weights are ``select / 2`` for as much error as one record makes.
    measure_scale
        Scale of a measurement's noise, in steps of the queries (rows, for conjunctions).
    cells_scale
        Scale of the noise on every cell's count, in rows; None without a noisy start.
    iterations
        Number of selections, and of measurements.
    l1, l2
        `Sensitivity` of a measurement.
    cells_l1, cells_l2
        `Sensitivity` of the counts of all cells.
    """

    gaussian: bool
    select: float
    measure_scale: float
    cells_scale: float | None
    iterations: int
    l1: float
    l2: float
    cells_l1: float
    cells_l2: float

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        start: tuple[Event, ...] = ()
        if self.cells_scale is not None:
            cells = Sensitivity(self.cells_l1, self.cells_l2)
            start = (cells.noise(self.gaussian, self.cells_scale),)
        iteration = (
            SampledQueries(self.select + RANGE_SLACK, 1),
            Sensitivity(self.l1, self.l2).noise(self.gaussian, self.measure_scale),
        )
        return start + iteration * self.iterations

    def measure_cells(self, curator: Curator) -> NDArray[np.int64] | NDArray[np.float64] | None:
        """Measure the count of every cell with the planned noise, if it is planned."""
        if self.cells_scale is None:
            return None
        if self.gaussian:
            return curator.measure_cells_gaussian(self.cells_scale)
        return curator.measure_cells_laplace(self.cells_scale)


def spend(options: MwemOptions, budget: Budget, sensitivity: Sensitivity) -> Spending:
    """Split a budget: the noisy start, then equal iterations, each in two parts.

    With delta 0 epsilons add up (Theorem 2.1). With delta above 0 the shares are those of rho, the
    budget of zero-concentrated differential privacy: a selection of range r costs r^2 / 8, Gaussian
    noise 1 / (2 scale^2) a unit of squared sensitivity; how large a rho fits is for the accountant
    to say.

    Raises
    ------
    BadInputError
        If so many iterations leave nothing for one of them.
    """
    if budget.delta > 0:

        def of_rho(rho: float) -> Spending:
            return _split_rho(options, budget, rho, sensitivity)

        rho = calibrate_rho(
            lambda rho: of_rho(rho).schedule(), budget.epsilon, budget.delta, budget.accountant
        )
        return of_rho(rho)
    init = options.init_budget if options.noisy_init else 0.0
    share = options.noisy_max_budget
    cells = table_moves(budget.neighbours)
    epsilon = budget.epsilon * (1.0 - _MARGIN)
    each = epsilon * (1.0 - init) / options.iterations
    return Spending(
        gaussian=False,
        select=_selection(share * each, each, options, budget),
        measure_scale=laplace_scale((1.0 - share) * each, sensitivity.l1),
        cells_scale=laplace_scale(epsilon * init, cells.l1) if options.noisy_init else None,
        iterations=options.iterations,
        l1=sensitivity.l1,
        l2=sensitivity.l2,
        cells_l1=cells.l1,
        cells_l2=cells.l2,
    )


def _split_rho(
    options: MwemOptions, budget: Budget, rho: float, sensitivity: Sensitivity
) -> Spending:
    init = options.init_budget if options.noisy_init else 0.0
    share = options.noisy_max_budget
    cells = table_moves(budget.neighbours)
    each = rho * (1.0 - init) / options.iterations
    return Spending(
        gaussian=True,
        select=_selection(math.sqrt(8.0 * share * each), each, options, budget),
        measure_scale=sensitivity.l2 / math.sqrt(2.0 * (1.0 - share) * each),
        cells_scale=cells.l2 / math.sqrt(2.0 * rho * init) if options.noisy_init else None,
        iterations=options.iterations,
        l1=sensitivity.l1,
        l2=sensitivity.l2,
        cells_l1=cells.l1,
        cells_l2=cells.l2,
    )


def _selection(width: float, each: float, options: MwemOptions, budget: Budget) -> float:
    """Return the range of a selection that is charged ``width``."""
    if width <= RANGE_SLACK:
        raise BadInputError(
            f"epsilon {budget.epsilon:g} over {options.iterations} iterations leaves "
            f"{each:.3g} for each, too little to select a query; use fewer iterations"
        )
    return width - RANGE_SLACK

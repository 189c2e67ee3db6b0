"""How MWEM spends its budget: from public options to noise scales and a schedule of events."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualquery.mechanisms.baselines.noise import Noise
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
from dualquery.room.draws.exponential import Exponential
from dualquery.room.draws.noisy_max import NoisyMax
from dualquery.room.exact import Numbers
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import EveryCell, SomeQueries
from dualquery.runtime.errors import BadInputError
from mwem.options import MwemOptions, Selection

CHOICES: dict[Selection, type[Exponential | NoisyMax]] = {
    "exponential": Exponential,
    "noisy-max": NoisyMax,
}
"""How a question may be selected."""

_MARGIN = 1e-9
"""Relative part of the budget left for the rounding of sums and conversions."""


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run. All draws of a kind are alike.

    Parameters
    ----------
    gaussian
        Gaussian noise, or discrete Laplace noise.
    select
        Parameter epsilon of a selection, by `selection`.
    measure_scale
        Scale of a measurement's noise, in steps of the queries (rows, for conjunctions).
    start_scale
        Scale of the noise on the counts of the start, in rows; None if nothing is measured.
    iterations
        Number of selections, and of measurements.
    l1, l2
        How far what an iteration measures moves between neighbours, in steps: in all, and in
        Euclidean distance.
    start_l1, start_l2
        The same of the counts of the start: of all cells, or of single bits.
    selection
        How a question is selected.
    """

    gaussian: bool
    select: float
    measure_scale: float
    start_scale: float | None
    iterations: int
    l1: float
    l2: float
    start_l1: float
    start_l2: float
    selection: Selection = "exponential"

    @property
    def choice(self) -> Exponential | NoisyMax:
        """The selection of each iteration."""
        return CHOICES[self.selection](self.select)

    def noise(self, scale: float) -> Noise:
        """Return the run's kind of noise, of a scale in steps."""
        return Noise("gaussian" if self.gaussian else "discrete laplace", scale)

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        start: tuple[Event, ...] = ()
        if self.start_scale is not None:
            start = (self._measured(self.start_l1, self.start_l2, self.start_scale),)
        iteration = (
            _selected(self.selection, self.select),
            self._measured(self.l1, self.l2, self.measure_scale),
        )
        return start + iteration * self.iterations

    def _measured(self, l1: float, l2: float, scale: float) -> Event:
        return GaussianNoise(l2, scale) if self.gaussian else LaplaceNoise(l1 / scale)

    def measure_start(self, curator: Curator, counted: EveryCell | SomeQueries) -> Numbers:
        """Measure what the start counts, with the planned noise."""
        assert self.start_scale is not None
        return self.noise(self.start_scale).measure(curator, counted)


def _selected(selection: Selection, epsilon: float) -> Event:
    """Return the event that a selection is charged as."""
    if selection == "exponential":
        return SampledQueries(epsilon + RANGE_SLACK, 1)
    return LaplaceNoise(epsilon)


def spend(options: MwemOptions, budget: Budget, moves: Moves, start: Moves) -> Spending:
    """Split a budget: the start, then equal iterations, each in two parts.

    Numbers of an iteration move as ``moves`` says, those of the start as ``start`` does.

    With delta 0 epsilons add up (Theorem 2.1). With delta above 0 the shares are those of rho, the
    budget of zero-concentrated differential privacy: a draw of range r costs r^2 / 8, a report at
    epsilon e costs e^2 / 2, Gaussian noise 1 / (2 scale^2) a unit of squared sensitivity; how large
    a rho fits is for the accountant to say.

    Raises
    ------
    BadInputError
        If so many iterations leave nothing for one of them.
    """
    if budget.delta > 0:

        def of_rho(rho: float) -> Spending:
            return _split_rho(options, budget, rho, moves, start)

        rho = calibrate_rho(
            lambda rho: of_rho(rho).schedule(), budget.epsilon, budget.delta, budget.accountant
        )
        return of_rho(rho)
    init, share = options.start_share, options.noisy_max_budget
    epsilon = budget.epsilon * (1.0 - _MARGIN)
    each = epsilon * (1.0 - init) / options.iterations
    return Spending(
        gaussian=False,
        select=_selection(share * each, each, options, budget),
        measure_scale=laplace_scale((1.0 - share) * each, moves.l1),
        start_scale=laplace_scale(epsilon * init, start.l1) if init else None,
        iterations=options.iterations,
        l1=moves.l1,
        l2=moves.l2,
        start_l1=start.l1,
        start_l2=start.l2,
        selection=options.select,
    )


def _split_rho(
    options: MwemOptions, budget: Budget, rho: float, moves: Moves, start: Moves
) -> Spending:
    init, share = options.start_share, options.noisy_max_budget
    each = rho * (1.0 - init) / options.iterations
    cost = 8.0 if options.select == "exponential" else 2.0
    return Spending(
        gaussian=True,
        select=_selection(math.sqrt(cost * share * each), each, options, budget),
        measure_scale=moves.l2 / math.sqrt(2.0 * (1.0 - share) * each),
        start_scale=start.l2 / math.sqrt(2.0 * rho * init) if init else None,
        iterations=options.iterations,
        l1=moves.l1,
        l2=moves.l2,
        start_l1=start.l1,
        start_l2=start.l2,
        selection=options.select,
    )


def _selection(width: float, each: float, options: MwemOptions, budget: Budget) -> float:
    """Return the parameter of a selection that is charged ``width``."""
    slack = RANGE_SLACK if options.select == "exponential" else 0.0
    if width <= RANGE_SLACK:
        raise BadInputError(
            f"epsilon {budget.epsilon:g} over {options.iterations} iterations leaves "
            f"{each:.3g} for each, too little to select a query; use fewer iterations"
        )
    return width - slack

"""How MWEM spends its budget: from public options to noise scales and a schedule of events."""

import math
from dataclasses import dataclass
from typing import Literal

from dualquery.mechanisms.baselines.noise import Noise
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.calibrate import calibrate_rho, laplace_scale
from dualquery.privacy.events import RANGE_SLACK, Event, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.room.curator import Curator
from dualquery.room.draws.exponential import Exponential
from dualquery.room.draws.noisy_max import NoisyMax
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import EveryCell, Numbers, SomeQueries
from dualquery.runtime.errors import BadInputError

Selection = Literal["exponential", "noisy-max"]

CHOICES: dict[Selection, type[Exponential | NoisyMax]] = {
    "exponential": Exponential,
    "noisy-max": NoisyMax,
}
"""How a question may be selected."""

_MARGIN = 1e-9  # relative part of the budget left for the rounding of sums and conversions


@dataclass(frozen=True)
class Shares:
    """How a budget is shared out.

    ``select`` is the share of an iteration that selects (the rest measures), ``start`` that of the
    whole for what the start counts, ``growth`` the power of an iteration's number to which its part
    is proportional.
    """

    iterations: int
    select: float
    start: float = 0.0
    growth: float = 0.0
    selection: Selection = "exponential"


@dataclass(frozen=True)
class Spending:
    """Noise of every private draw of a run: Gaussian, or discrete Laplace.

    ``select`` is the parameter of the first selection, ``measure_scale`` the scale of the first
    measurement's noise, in steps of the queries (rows, for conjunctions), ``start_scale`` that of
    the counts of the start, in rows (None if nothing is measured). ``l1`` and ``l2`` are how far
    what an iteration measures moves between neighbours, in steps, ``start_l1`` and ``start_l2`` the
    same of the start. ``growth`` is the power of an iteration's number to which its cost in zCDP is
    proportional; 0 for equal ones.
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
    growth: float = 0.0

    @property
    def choice(self) -> Exponential | NoisyMax:
        """The selection of each iteration, where all are alike."""
        return CHOICES[self.selection](self.select)

    def of_round(self, number: int) -> tuple[float, float]:
        """Return a selection's parameter and the scale of a measurement's noise, from 1 on."""
        ratio = number ** (0.5 * self.growth)
        return self.select * ratio, self.measure_scale / ratio

    def noise(self, scale: float) -> Noise:
        """Return the run's kind of noise, of a scale in steps."""
        return Noise("gaussian" if self.gaussian else "discrete laplace", scale)

    def schedule(self) -> tuple[Event, ...]:
        """Return the events of the run in their order."""
        events: list[Event] = []
        if self.start_scale is not None:
            events.append(self._measured(self.start_l1, self.start_l2, self.start_scale))
        for number in range(1, self.iterations + 1):
            select, scale = self.of_round(number)
            exponential = self.selection == "exponential"
            events.append(
                SampledQueries(select + RANGE_SLACK, 1) if exponential else LaplaceNoise(select)
            )
            events.append(self._measured(self.l1, self.l2, scale))
        return tuple(events)

    def _measured(self, l1: float, l2: float, scale: float) -> Event:
        return GaussianNoise(l2, scale) if self.gaussian else LaplaceNoise(l1 / scale)

    def measure_start(self, curator: Curator, counted: EveryCell | SomeQueries) -> Numbers:
        """Measure what the start counts, with the planned noise."""
        assert self.start_scale is not None
        return self.noise(self.start_scale).measure(curator, counted)


def spend(shares: Shares, budget: Budget, moves: Moves, start: Moves) -> Spending:
    """Split a budget: the start, then iterations, each in two parts.

    Numbers of an iteration move as ``moves`` says, those of the start as ``start`` does. With delta
    0 epsilons add up (Theorem 2.1), and all iterations are alike. With delta above 0 the shares are
    those of rho (`split_rho`); how large a rho fits is for the accountant to say.

    Raises
    ------
    BadInputError
        If the iterations are too many to leave something for each.
    """
    if budget.delta > 0:
        rho = calibrate_rho(
            lambda rho: split_rho(shares, rho, moves, start).schedule(),
            budget.epsilon,
            budget.delta,
            budget.accountant,
        )
        return split_rho(shares, rho, moves, start)
    epsilon = budget.epsilon * (1.0 - _MARGIN)
    each = epsilon * (1.0 - shares.start) / shares.iterations
    return _spending(
        shares,
        moves,
        start,
        gaussian=False,
        select=_selection(shares.select * each, each, shares),
        measure_scale=laplace_scale((1.0 - shares.select) * each, moves.l1),
        start_scale=laplace_scale(epsilon * shares.start, start.l1) if shares.start else None,
    )


def split_rho(shares: Shares, rho: float, moves: Moves, start: Moves) -> Spending:
    """Split a budget of zero-concentrated differential privacy.

    A draw of range r costs r^2 / 8, a report at epsilon e costs e^2 / 2, Gaussian noise
    1 / (2 scale^2) a unit of squared sensitivity. Parameters as of `spend`.
    """
    sizes = math.fsum(number**shares.growth for number in range(1, shares.iterations + 1))
    first = rho * (1.0 - shares.start) / sizes
    cost = 8.0 if shares.selection == "exponential" else 2.0
    return _spending(
        shares,
        moves,
        start,
        gaussian=True,
        select=_selection(math.sqrt(cost * shares.select * first), first, shares),
        measure_scale=moves.l2 / math.sqrt(2.0 * (1.0 - shares.select) * first),
        start_scale=start.l2 / math.sqrt(2.0 * rho * shares.start) if shares.start else None,
    )


def _spending(
    shares: Shares,
    moves: Moves,
    start: Moves,
    *,
    gaussian: bool,
    select: float,
    measure_scale: float,
    start_scale: float | None,
) -> Spending:
    return Spending(
        gaussian, select, measure_scale, start_scale, shares.iterations, moves.l1, moves.l2,
        start.l1, start.l2, shares.selection, shares.growth,
    )  # fmt: skip


def _selection(width: float, first: float, shares: Shares) -> float:
    """Return the parameter of a selection that is charged ``width``."""
    if width <= RANGE_SLACK:
        raise BadInputError(
            f"{shares.iterations} iterations leave {first:.3g} of the budget for the first, too "
            "little to select a query; use fewer iterations or a larger epsilon"
        )
    return width - (RANGE_SLACK if shares.selection == "exponential" else 0.0)

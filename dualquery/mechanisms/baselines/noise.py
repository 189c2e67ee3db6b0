"""One noisy measurement of a whole workload: the plan and the draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import (
    Intervals,
    bounded_interval,
    clipped_interval,
    laplace_half_width,
)
from dualquery.estimates.measurements import NoiseKind
from dualquery.mechanisms.protocol import Budget, Details, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import calibrate_gaussian_scale, laplace_scale
from dualquery.privacy.events import GaussianNoise, LaplaceNoise, Schedule
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Statistic
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace, laplace_deviation
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import AllQueries, Numbers, PrivateStatistic

Float64 = NDArray[np.float64]

_COUNTS = AllQueries()
_HEADROOM = 1.0 + 1e-11  # of the scale: accountants round up by 1e-12, and the noise must fit


@dataclass(frozen=True)
class Noise:
    """The noise of a measurement: its kind, and its scale in rows."""

    kind: NoiseKind
    scale: float

    def intervals(
        self,
        measured: Float64,
        unit: float,
        low: float,
        high: float,
        basis: str,
        absent: Float64 | float | None,
    ) -> Intervals:
        """Return intervals of answers, float64 ``(m,)``; ``unit`` is what a step is of them."""
        if self.kind == "gaussian":
            ends = bounded_interval(measured, self.scale * unit, low, high)
        else:
            ends = clipped_interval(measured, laplace_half_width(self.scale) * unit, low, high)
        return Intervals(*ends, basis, absent_row_answer=absent)

    @property
    def deviation(self) -> float:
        """Standard deviation, in steps."""
        return self.scale if self.kind == "gaussian" else laplace_deviation(self.scale)

    def measure(self, curator: Curator, statistic: PrivateStatistic = _COUNTS) -> Numbers:
        """Draw the planned measurement, by default of all queries' counts; charged."""
        noise = Gaussian(self.scale) if self.kind == "gaussian" else Laplace(self.scale)
        return curator.measure(statistic, noise)


@dataclass(frozen=True)
class PricedNoise:
    """Noise that spends a budget on one measurement, and the accountant that priced it."""

    noise: Noise
    schedule: Schedule
    accountant: str


@dataclass(frozen=True)
class NoisyCounts(Details):
    """One noisy measurement of the queries' counts, and how far these move between neighbours."""

    noise: Noise
    neighbours: Neighbours
    moves: Moves

    def parameters(self) -> Mapping[str, Any]:
        """Return the sensitivity, with its proof, and the noise."""
        replaced = self.neighbours.replaces
        return {
            "differing_queries" if replaced else "contributing_queries": self.moves.entries,
            "bound": self.moves.proof,
            "noise": self.noise.kind,
            "scale": self.noise.scale,
        }


def plan_noisy_counts(statistics: Statistic, budget: Budget) -> Plan[NoisyCounts]:
    """Spend a budget on one measurement of the queries' counts, at the proven sensitivity."""
    moves = _COUNTS.moves(statistics, budget.neighbours)
    priced = price_noise(moves, budget)
    details = NoisyCounts(priced.noise, budget.neighbours, moves)
    return Plan(priced.schedule, priced.accountant, details)


def price_noise(moves: Moves, budget: Budget) -> PricedNoise:
    """Return the least noise that fits: Gaussian noise when delta > 0, else Laplace."""
    kind: NoiseKind = "gaussian" if budget.delta > 0 else "discrete laplace"
    if kind == "gaussian":
        scale = calibrate_gaussian_scale(budget.epsilon, budget.delta, moves.l2, budget.accountant)
        schedule: Schedule = (GaussianNoise(moves.l2, scale),)
    else:
        scale = laplace_scale(budget.epsilon, moves.l1) * _HEADROOM
        schedule = (LaplaceNoise(moves.l1 / scale),)
    accountant, _ = best(schedule, budget.delta, budget.accountant)
    return PricedNoise(Noise(kind, scale), schedule, accountant.name)

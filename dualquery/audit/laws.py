"""The laws of draws on one table, and the privacy loss between two tables.

The *loss* of a result is the logarithm of the ratio of its chances on two neighbouring tables. A
draw on a pair of tables has a `Loss`: finitely many values with their chances, and the shift of
Gaussian noise. Losses of draws that follow each other add up. The accountants' code is not used.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from dualquery.room.draws import weighted_kernels as kernels

Float64 = NDArray[np.float64]

GRID, _MOST_VALUES = 1e-7, 4096
"""Losses are rounded down to multiples of the first where laws are added, never to a larger delta;
above the second number of values the grid is coarsened, still downwards."""


@dataclass(frozen=True, eq=False)
class Loss:
    """The law of a loss on the first of two tables."""

    values: Float64  # (v,), infinite where the second table cannot give the result
    chances: Float64  # (v,), adding up to 1
    shift: float = 0.0  # of Gaussian noise besides: distance of the exact numbers over the scale

    def and_then(self, other: Loss) -> Loss:
        """Return the law of the sum of two independent losses."""
        values = np.add.outer(self.values, other.values).ravel()
        chances = np.multiply.outer(self.chances, other.chances).ravel()
        return _merged(values, chances, math.hypot(self.shift, other.shift))

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that goes with ``epsilon`` on this pair, in this order."""
        return float(self.chances @ hockey_stick(epsilon - self.values, self.shift))


NOTHING = Loss(np.zeros(1), np.ones(1))


def hockey_stick(epsilons: Float64, shift: float) -> Float64:
    """Return ``E (1 - exp(e - L))_+`` of Gaussian noise of a shift, for each e of any sign.

    L is normal with mean ``shift^2 / 2`` and deviation ``shift`` (Balle and Wang 2018, Theorem 8).
    """
    if shift == 0.0:
        return np.asarray(-np.expm1(np.minimum(epsilons, 0.0)))
    upper = log_ndtr(shift / 2.0 - epsilons / shift)
    lower = epsilons + log_ndtr(-shift / 2.0 - epsilons / shift)
    return np.asarray(np.exp(upper) - np.exp(lower))


def _merged(values: Float64, chances: Float64, shift: float, grid: float = GRID) -> Loss:
    """Add up the chances of values that are the same when rounded down to a grid."""
    # What lies just below a point of the grid by its own rounding belongs to it.
    rounded = np.where(np.isfinite(values), np.floor(values / grid + 1e-6) * grid, values)
    kept, place = np.unique(rounded, return_inverse=True)
    if len(kept) > _MOST_VALUES:
        span = float(np.ptp(kept[np.isfinite(kept)]))
        return _merged(values, chances, shift, 2.0 * span / _MOST_VALUES)
    return Loss(kept, np.bincount(place, chances, len(kept)).astype(np.float64), shift)


@dataclass(frozen=True, eq=False)
class Draws:
    """Independent draws of outcomes, with the logarithms of their chances."""

    logs: Float64
    draws: int = 1

    def log_chance(self, shown: tuple[int, ...]) -> float:
        """Return the log-chance of outcomes in any order."""
        orders = math.factorial(self.draws)
        for repeats in Counter(shown).values():
            orders //= math.factorial(repeats)
        return math.log(orders) + float(self.logs[list(shown)].sum())

    def loss_to(self, other: Draws) -> Loss:
        """Return the loss, this table being the first."""
        likely = np.isfinite(self.logs)
        one = _merged(self.logs[likely] - other.logs[likely], np.exp(self.logs[likely]), 0.0)
        return reduce(Loss.and_then, [one] * self.draws)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Noise on numbers, each on its own."""

    numbers: Float64
    scales: Float64  # of the noise on each number, in the numbers' unit
    integers: bool  # whether it is discrete Laplace noise, and not Gaussian

    def log_chance(self, shown: tuple[int, int]) -> float:
        """Return the log-chance of an integer; with an end 1 or -1, of all beyond it as well."""
        value, end = shown
        ratio = math.exp(-1.0 / self.scales[0])
        away = value - float(self.numbers[0])
        if end:
            away *= end
            if away <= 0:  # the chance of -away or less on the other side
                return math.log1p(-(ratio ** (1.0 - away)) / (1.0 + ratio))
            return away * math.log(ratio) - math.log1p(ratio)
        return math.log((1.0 - ratio) / (1.0 + ratio)) + abs(away) * math.log(ratio)

    def loss_to(self, other: Noisy) -> Loss:
        """Return the loss, this table being the first; scales that differ would be private."""
        if not np.array_equal(self.scales, other.scales):
            raise ValueError("the scale of the noise depends on the table")
        if not self.integers:  # what is drawn is discrete: closer to this than is looked for here
            apart = self.numbers - other.numbers
            with np.errstate(divide="ignore"):  # without noise a move is infinite
                moves = apart / np.where(apart == 0.0, 1.0, self.scales)
            return Loss(np.zeros(1), np.ones(1), float(np.linalg.norm(moves)))
        each = zip(self.numbers, other.numbers, self.scales, strict=True)
        return reduce(Loss.and_then, (_integer_loss(*one) for one in each), NOTHING)


Law = Draws | Noisy


@cache
def _integer_loss(one: float, other: float, scale: float) -> Loss:
    """Return the loss of discrete Laplace noise on one number: constant beyond the two numbers."""
    if one == other:
        return NOTHING
    low, high = sorted((round(one), round(other)))
    shown = [(low, -1), *((value, 0) for value in range(low + 1, high)), (high, 1)]
    laws = (Noisy(np.array([number]), np.array([scale]), integers=True) for number in (one, other))
    logs = [np.array([law.log_chance(each) for each in shown]) for law in laws]
    return Draws(logs[0]).loss_to(Draws(logs[1]))


def weights_law(law: kernels.Law, draws: int) -> Draws:
    """Return the law of draws by integer weights: outcome ``sides * query + side``, exactly."""
    limbs = [
        kernels.weight(sign * kernels.score_of(law.scores, query), law.largest, law.unit)
        for query in range(len(law.scores.counts))
        for sign in (1, -1)[: law.sides]
    ]
    weights = [(int(high) << kernels.LOW_BITS) + int(low) for high, low in limbs]
    total = math.log(sum(weights))
    return Draws(np.array([math.log(weight) - total for weight in weights]), draws)


@cache
def noisy_max_law(scores: tuple[int, ...], scale: float) -> Draws:
    """Return the law of report noisy max with discrete Laplace noise, the first of equals.

    Sums over one score's noisy values the chance that all others stay below.
    """
    ratio = math.exp(-1.0 / scale)
    reach = int(32 * scale)  # what lies beyond has a chance below e^-32
    span = max(scores) - min(scores)
    values = np.arange(min(scores) - reach, max(scores) + reach)
    # The chance of noise of at most -1 - span - reach, and of every number up to span + reach.
    steps = np.arange(-1 - span - reach, span + reach + 1)
    tail = ratio ** np.abs(steps + (steps >= 0)) / (1 + ratio)
    at_most = np.where(steps < 0, tail, 1 - tail)

    chances = []
    for i, score in enumerate(scores):
        product = (1 - ratio) / (1 + ratio) * ratio ** np.abs(values - score)
        for j, other in enumerate(scores):
            if j != i:
                first = values[0] - other - (j < i) - steps[0]
                product *= at_most[first : first + len(values)]
        chances.append(product.sum())
    return Draws(np.log(np.array(chances) / sum(chances)))


def reports_law(chances: list[Float64]) -> Draws:
    """Return the law of the reports of all rows, their order aside: each row's chances given."""
    reports = range(len(chances[0]))
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for row in chances:
        longer: dict[tuple[int, ...], float] = defaultdict(float)
        for (before, chance), report in itertools.product(found.items(), reports):
            longer[tuple(sorted((*before, report)))] += chance * row[report]
        found = longer
    every = itertools.combinations_with_replacement(reports, len(chances))
    return Draws(np.log(np.array([found[each] for each in every])))

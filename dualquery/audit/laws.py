"""The laws of draws on one table: how likely what was shown is, and the loss to another table."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dualquery.audit.losses import Loss, choice_loss, gaussian_loss, laplace_loss
from dualquery.room.draws import weighted_kernels as kernels

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Choice:
    """Independent draws of outcomes."""

    logs: Float64
    """Logarithm of each outcome's chance; shape ``(outcomes,)``."""
    draws: int = 1

    def log_chance(self, shown: tuple[int, ...]) -> float:
        """Return the log-chance of outcomes in any order."""
        orders = math.factorial(self.draws)
        for repeats in Counter(shown).values():
            orders //= math.factorial(repeats)
        return math.log(orders) + float(self.logs[list(shown)].sum())

    def loss_to(self, other: Choice) -> Loss:
        """Return the loss, this table being the first."""
        return choice_loss(self.logs, other.logs).times(self.draws)


@dataclass(frozen=True, eq=False)
class Noise:
    """Noise on numbers, each on its own."""

    numbers: Float64
    scales: Float64
    """Of the noise on each number, in the numbers' unit."""
    integers: bool
    """Whether it is discrete Laplace noise, and not Gaussian."""

    def log_chance(self, shown: tuple[int, int]) -> float:
        """Return the log-chance of one integer, or of it and all beyond.

        ``shown`` is the integer, and 1 or -1 where all above or below it are meant, too.
        """
        value, end = shown
        ratio = math.exp(-1.0 / self.scales[0])
        away = value - float(self.numbers[0])
        if end:
            away *= end
            if away <= 0:  # the chance of -away or less on the other side
                return math.log1p(-(ratio ** (1.0 - away)) / (1.0 + ratio))
            return away * math.log(ratio) - math.log1p(ratio)
        return math.log((1.0 - ratio) / (1.0 + ratio)) + abs(away) * math.log(ratio)

    def loss_to(self, other: Noise) -> Loss:
        """Return the loss, this table being the first.

        Raises
        ------
        ValueError
            If the scales are not the same on both tables: they would be private.
        """
        if not np.array_equal(self.scales, other.scales):
            raise ValueError("the scale of the noise depends on the table")
        moves = self.numbers - other.numbers
        if not self.integers:
            return gaussian_loss(moves, self.scales)
        if len(np.unique(self.scales)) > 1:
            raise ValueError("integer noise of several scales is not known here")
        return laplace_loss(moves, float(self.scales[0]))


Law = Choice | Noise


def weights_law(law: kernels.Law, draws: int) -> Choice:
    """Return the law of draws by integer weights: outcome ``sides * query + side``, exactly."""
    weights = []
    for query in range(kernels.count_of(law.scores)):
        score = int(kernels.score_of(law.scores, query))
        for side in range(law.sides):
            high, low = kernels.weight((1 - 2 * side) * score, law.largest, law.unit)
            weights.append((int(high) << kernels.LOW_BITS) + int(low))
    total = math.log(sum(weights))
    return Choice(np.array([math.log(weight) - total for weight in weights]), draws)


def noisy_max_law(scores: NDArray[np.int64], scale: float) -> Choice:
    """Return the law of report noisy max with discrete Laplace noise, the first of equals."""
    return Choice(_noisy_max_logs(tuple(scores.tolist()), scale))


@cache
def _noisy_max_logs(scores: tuple[int, ...], scale: float) -> Float64:
    """Sum over one score's noisy values the chance that all others stay below."""
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
    return np.asarray(np.log(np.array(chances) / sum(chances)))


def reports_law(chances: list[Float64]) -> Choice:
    """Return the law of the reports of all rows, their order aside.

    Parameters
    ----------
    chances
        For each row the chance of every report: shape ``(reports,)``.
    """
    reports = len(chances[0])
    found: dict[tuple[int, ...], float] = dict.fromkeys(
        itertools.combinations_with_replacement(range(reports), len(chances)), 0.0
    )
    for each in itertools.product(range(reports), repeat=len(chances)):
        chance = math.prod(row[report] for row, report in zip(chances, each, strict=True))
        found[tuple(sorted(each))] += float(chance)
    return Choice(np.log(np.array([*found.values()])))

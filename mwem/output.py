"""What a run gives out: the last distribution, or the average of those before each update."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mwem.representations import Representation


class Output:
    """Collects answers and synthetic records while a run goes on.

    The average of A_0 .. A_{T-1} (Theorem 2.2) is never built as a distribution: its answers are
    averaged as they appear, and each record comes from one of the distributions, chosen at random
    in advance. ``low`` and ``high`` are the queries' range; the seed is that of public randomness.
    """

    def __init__(
        self,
        *,
        n: int,
        iterations: int,
        average: bool,
        records: int,
        seed: int | None,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        self.n = n
        self._bounds = (low, high)
        self._average = average
        self._iterations = iterations
        self._generator = np.random.default_rng(seed)
        shares = np.full(iterations, 1.0 / iterations)
        self._counts = self._generator.multinomial(records, shares).tolist()
        self._records = records
        self._sum: NDArray[np.float64] | float = 0.0
        self._values: list[NDArray[Any]] = []

    def before_update(self, answers: NDArray[np.float64], distribution: Representation) -> None:
        """Take in the distribution that the next selection looks at."""
        if self._average:
            self._sum = self._sum + answers
            self._values.append(distribution.sample(self._counts.pop(0), self._generator))

    def after_last(self, answers: NDArray[np.float64], distribution: Representation) -> None:
        """Take in the distribution after the last update."""
        played = len(self._values)
        if played == 0:
            self._sum = answers * self._iterations
            self._values.append(distribution.sample(self._records, self._generator))
        elif played < self._iterations:  # some were lost, or had no candidates
            self._sum = self._sum * (self._iterations / played)
            self._values.append(distribution.sample(sum(self._counts), self._generator))

    @property
    def answers(self) -> NDArray[np.float64]:
        """Released answers, in the range of the queries: float64, shape ``(m,)``."""
        return np.clip(self._sum / self._iterations, *self._bounds)

    @property
    def values(self) -> NDArray[Any]:
        """Column values of the records, in random order: integers, ``(records, columns)``."""
        values = np.concatenate(self._values)
        self._generator.shuffle(values)
        return values

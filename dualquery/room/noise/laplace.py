"""Discrete Laplace noise on integers (Ghosh, Roughgarden and Sundararajan 2009).

**Lemma.** Whole numbers that move by at most ``l1`` in all between neighbours, plus independent
integers with ``P(k) ~ exp(-|k| / s)``, are ``l1 / s``-differentially private: the log-ratio of two
probabilities of an outcome is a sum of ``(|k_j| - |k'_j|) / s``, at most ``l1 / s`` by the triangle
inequality. Both noise and numbers are integers, and the draw is exact
(`dualquery.room.randomness`): no rounding shows the numbers.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import LaplaceNoise
from dualquery.room.ground import laplace_deviation as laplace_deviation
from dualquery.room.ledger import Ledger
from dualquery.room.randomness import Randomness, check_scale, positive
from dualquery.room.statistics import Exact, Numbers


@dataclass(frozen=True, slots=True)
class Laplace:
    """Independent discrete Laplace noise on every number."""

    scale: float  # s, in the unit of the numbers; finite, > 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def measure(self, exact: Exact, ledger: Ledger, source: Randomness) -> Numbers:
        """Charge for the noise, draw it, and return the noisy numbers: int64."""
        moves = exact.moves

        def add(numbers: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
            return numbers + source.discrete_laplace(scale, numbers.size).reshape(numbers.shape)

        # What cannot be drawn is refused before it is charged.
        for scale in exact.noise_scales(self.scale):
            check_scale(scale)
        event = LaplaceNoise(moves.l1 / self.scale)
        ground = exact.ground(__name__, moves.l1, self.scale, laplace_deviation)
        noisy = partial(exact.noisy, self.scale, add)
        return ledger.draw(event, ground, noisy, exact.numbers.shape)

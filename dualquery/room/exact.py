"""Exact numbers on their way to the noise, and the check of a noise's parameter. Private."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.room.ground import Ground
from dualquery.room.sensitivity.moves import Moves

Numbers = NDArray[np.int64] | NDArray[np.float64]
"""Noisy numbers: int64 with Laplace noise (or halves, float64), float64 with Gaussian noise."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What a statistic is on the private rows. Never leaves the room."""

    statistic: str  # its name
    numbers: NDArray[np.int64]
    moves: Moves  # how far ``numbers / scales`` moves between neighbours
    scales: float | NDArray[np.float64] = 1.0  # of the noise, multiplied: for all, or one a number
    unit: float = 1.0  # what one of ``numbers`` is worth, in answers times rows

    def ground(
        self, lemma: str, sensitivity: float, scale: float, deviation: Callable[[float], float]
    ) -> Ground:
        """Return why noise of ``scale`` covers the numbers, with what noise each then has.

        ``deviation`` returns the standard deviation of noise of a scale. Public.
        """
        own, counts = np.unique(self.scales, return_counts=True)
        if isinstance(self.scales, float):
            counts = np.array([self.numbers.size])
        variances = [(self.unit * deviation(scale * each)) ** 2 for each in own.tolist()]
        return Ground(
            lemma,
            self.statistic,
            sensitivity,
            scale,
            self.moves.proof,
            self.numbers.size,
            math.fsum(counts * variances),
            math.fsum(counts / variances),
        )

    def noise_scales(self, scale: float) -> list[float]:
        """Return the different scales that noise of ``scale * scales`` is drawn with."""
        return [scale * own for own in np.unique(self.scales).tolist()]

    def noisy(
        self, scale: float, draw: Callable[[NDArray[np.int64], float], NDArray[Any]]
    ) -> Numbers:
        """Return the numbers with noise of ``scale * scales``, drawn for equal scales together."""
        if isinstance(self.scales, float):
            return draw(self.numbers, scale * self.scales)
        noisy = np.empty(self.numbers.shape)
        for own in np.unique(self.scales):
            chosen = self.scales == own
            noisy[chosen] = draw(self.numbers[chosen], scale * own)
        return noisy


def positive(name: str, value: float) -> float:
    """Return a parameter as a float; `ValueError` if it is not finite and above 0."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} is {number}; a finite number above 0 is needed")
    return number

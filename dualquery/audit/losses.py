"""The privacy loss between two tables: its law for every kind of draw, and the delta it costs.

The *loss* of a result is the logarithm of how many times as likely it is on one table as on a
neighbouring one. A draw on a pair of tables has a `Loss`: finitely many values with their chances,
and the shift of Gaussian noise. Losses of draws that follow each other add up.

Written for the audit from the definitions, without the accountants' code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Float64 = NDArray[np.float64]

GRID = 1e-7
"""Losses are rounded down to multiples of this where laws are added: never a larger delta."""

_MOST_VALUES = 4096
"""Above so many values of a loss the grid is coarsened; still downwards."""


@dataclass(frozen=True, eq=False)
class Loss:
    """The law of a loss on the first of two tables."""

    values: Float64
    """Shape ``(v,)``; infinite where the second table cannot give the result."""
    chances: Float64
    """Shape ``(v,)``, adding up to 1."""
    shift: float = 0.0
    """Of Gaussian noise besides: Euclidean distance of the exact numbers, over the scale."""

    def and_then(self, other: Loss) -> Loss:
        """Return the law of the sum of two independent losses."""
        values = np.add.outer(self.values, other.values).ravel()
        chances = np.multiply.outer(self.chances, other.chances).ravel()
        return _merged(values, chances, math.hypot(self.shift, other.shift))

    def times(self, count: int) -> Loss:
        """Return the law of ``count`` independent draws alike."""
        if count == 1:
            return self
        half = self.times(count // 2)
        return half.and_then(half).and_then(self) if count % 2 else half.and_then(half)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that goes with ``epsilon`` on this pair, in this order."""
        return float(self.chances @ hockey_stick(epsilon - self.values, self.shift))

    def largest(self) -> float:
        """Return the largest loss; infinite with Gaussian noise that sees a difference."""
        return math.inf if self.shift > 0 else float(self.values[self.chances > 0].max())


NOTHING = Loss(np.zeros(1), np.ones(1))
"""Nothing is drawn."""


def hockey_stick(epsilons: Float64, shift: float) -> Float64:
    """Return ``E (1 - exp(e - L))_+`` of Gaussian noise of a shift, for each e of any sign.

    L is normal with mean ``shift^2 / 2`` and deviation ``shift`` (Balle and Wang 2018, Theorem 8).
    """
    if shift == 0.0:
        return np.asarray(-np.expm1(np.minimum(epsilons, 0.0)))
    upper = log_ndtr(shift / 2.0 - epsilons / shift)
    lower = epsilons + log_ndtr(-shift / 2.0 - epsilons / shift)
    return np.asarray(np.exp(upper) - np.exp(lower))


def choice_loss(one: Float64, other: Float64) -> Loss:
    """Return the loss of a draw by the log-chances of its outcomes on the two tables."""
    likely = np.isfinite(one)
    return _merged(one[likely] - other[likely], np.exp(one[likely]), 0.0)


def laplace_loss(moves: Float64, scale: float) -> Loss:
    """Return the loss of discrete Laplace noise on numbers that differ by whole ``moves``.

    With a difference k > 0 and noise z the loss is ``(|z - k| - |z|) / scale``.
    """
    total = NOTHING
    ratio = math.exp(-1.0 / scale)
    for move in np.abs(moves[moves != 0]).astype(np.int64).tolist():
        between = np.arange(1.0, move)
        values = np.concatenate(([move], move - 2.0 * between, [-move])) / scale
        inside = (1.0 - ratio) / (1.0 + ratio) * ratio**between
        ends = 1.0 / (1.0 + ratio), ratio**move / (1.0 + ratio)
        chances = np.concatenate((ends[:1], inside, ends[1:])).astype(np.float64)
        total = total.and_then(Loss(values, chances))
    return total


def gaussian_loss(moves: Float64, scales: Float64) -> Loss:
    """Return the loss of Gaussian noise on numbers that differ by ``moves``.

    The noise that is drawn is discrete, on a grid of 2^-39 scales: its distance from the continuous
    one is proven in `dualquery.room.noise.gaussian`, and far below what is looked for here.
    """
    return Loss(np.zeros(1), np.ones(1), float(np.linalg.norm(moves / scales)))


def _merged(values: Float64, chances: Float64, shift: float) -> Loss:
    """Add up the chances of equal values, rounded down to a grid: coarser if they are too many."""
    loss = _rounded(values, chances, shift, GRID)
    if len(loss.values) > _MOST_VALUES:
        span = float(np.ptp(loss.values[np.isfinite(loss.values)]))
        loss = _rounded(values, chances, shift, span / _MOST_VALUES)
    return loss


def _rounded(values: Float64, chances: Float64, shift: float, grid: float) -> Loss:
    """Add up the chances of values that are the same when rounded down to a grid."""
    # What lies just below a point of the grid by its own rounding belongs to it.
    rounded = np.where(np.isfinite(values), np.floor(values / grid + 1e-6) * grid, values)
    kept, place = np.unique(rounded, return_inverse=True)
    return Loss(kept, np.bincount(place, chances, len(kept)).astype(np.float64), shift)

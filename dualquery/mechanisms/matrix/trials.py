"""How much structure a noisy measurement can tell from its noise, asked of the measurement itself.

Gaussian noise can be split after the fact. With y of variance ``s^2`` and independent z of the same
variance, ``y + g z`` and ``y - z / g`` are independent measurements of the same mean, of variances
``(1 + g^2) s^2`` and ``(1 + 1 / g^2) s^2`` (Rasines and Young, "Splitting strategies for
post-selection inference", Biometrika 110, 2023). A fit to the first is judged by the second, to
which it was not fitted. All of it is post-processing of what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

_HELD_BACK = 0.25
"""g^2: trials have (1 + g^2) times the noise variance."""

_NEARER = 0.7
"""A later trial is chosen if it is nearer to what was held back by more than this part of the mean
square between the two trials' answers."""


@dataclass(frozen=True, eq=False)
class Halves:
    """Two measurements of the same, with independent noise, made of one.

    Parameters
    ----------
    shown, held_back
        float64, shape ``(f,)``: their means. The second has far more noise.
    noise
        Standard deviation of the first one's noise, in those of the noise that was split.
    """

    shown: Float64
    held_back: Float64
    noise: float

    @staticmethod
    def of(noisy: Float64, deviations: Float64, generator: np.random.Generator) -> Halves:
        """Split a measurement; parameters as of `split`."""
        return Halves(*split(noisy, deviations, generator), (1.0 + _HELD_BACK) ** 0.5)


@dataclass(frozen=True, eq=False)
class Trial:
    """Answers that were estimated from a part of what was measured.

    Parameters
    ----------
    answers
        float64, shape ``(m,)``.
    shown, held_back
        float64, shape ``(m,)``: the unbiased answers of what they were estimated from, and those of
        what was held back. The same arrays in all trials.
    """

    answers: Float64
    shown: Float64
    held_back: Float64

    @cached_property
    def error(self) -> float:
        """Mean square of differences from what was held back. Most of it is noise, shared by all
        trials.
        """
        return _mean_square(self.answers - self.held_back)

    def optimism(self, deviations: Float64) -> Float64:
        """Return by how much less each answer seems to err than it does, judged by what it was
        fitted to.

        In mean squares: the error that is told by what was held back, less the one that is told by
        what was shown, each without its noise (Efron, "The estimation of prediction error:
        covariance penalties and cross-validation", JASA 99, 2004, Section 2). Of single answers it
        is mostly noise; means over many tell.

        Parameters
        ----------
        deviations
            float64, shape ``(m,)``: standard deviations of the answers' noise before it was split.
        """
        noise = (1.0 + 1.0 / _HELD_BACK) - (1.0 + _HELD_BACK)
        told = (self.answers - self.held_back) ** 2 - (self.answers - self.shown) ** 2
        optimism: Float64 = told - noise * deviations**2
        return optimism


def choose_trial(trials: Sequence[Trial]) -> int:
    """Return the place of the first trial, or of a later one that is clearly nearer to what was
    held back.

    The differences of errors are free of the noise they have in common. Were one of two trials the
    truth, the errors would differ by the whole mean square between them.
    """
    chosen = 0
    for place, trial in enumerate(trials):
        nearer = trials[chosen].error - trial.error
        if nearer > _NEARER * _mean_square(trials[chosen].answers - trial.answers):
            chosen = place
    return chosen


def trust_in(estimate: Float64, other: Float64, held_back: Float64) -> float:
    """Return where between two estimates of answers the answers lie: 0 at the other, 1 at the one.

    By least squares (stacking: Wolpert, "Stacked generalization", Neural Networks 5, 1992). All
    answers tell one number, so hardly any noise is in it.

    Parameters
    ----------
    estimate, other
        float64, shape ``(m,)``: both from the half that was shown.
    held_back
        float64, shape ``(m,)``: unbiased answers of the other half.
    """
    apart = estimate - other
    square = float(apart @ apart)
    if square == 0.0:
        return 1.0
    return min(max(float(apart @ (held_back - other)) / square, 0.0), 1.0)


def _mean_square(values: Float64) -> float:
    return float(np.mean(values**2))


def split(
    noisy: Float64, deviations: Float64, generator: np.random.Generator
) -> tuple[Float64, Float64]:
    """Return two measurements with independent noise, the second with far more of it.

    Parameters
    ----------
    noisy, deviations
        float64, shape ``(f,)``: the measurement, and the standard deviations of its noise.
    """
    noise = deviations * generator.standard_normal(len(noisy))
    part = _HELD_BACK**0.5
    return noisy + part * noise, noisy - noise / part

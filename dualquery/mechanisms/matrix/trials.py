"""How much structure a noisy measurement can tell from its noise, asked of the measurement itself.

Gaussian noise can be split after the fact. With y of variance ``s^2`` and independent z of the same
variance, ``y + g z`` and ``y - z / g`` are independent measurements of the same mean, of variances
``(1 + g^2) s^2`` and ``(1 + 1 / g^2) s^2`` (Rasines and Young, "Splitting strategies for
post-selection inference", Biometrika 110, 2023). A fit to the first is judged by the second, to
which it was not fitted. All of it is post-processing of what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.mixture import MixtureFit
from dualquery.runtime.progress import part_of

Float64 = NDArray[np.float64]

_HELD_BACK = 0.25
"""g^2: trials have (1 + g^2) times the noise variance."""

_STEPS = 600
"""Most gradient steps of a trial. After half as many, pulls cannot be told apart."""

_FACTORS = (1.0, 2.0, 8.0)
"""Pulls tried, in units of the first. Eight times the usual one leaves hardly more than independent
columns."""

_NEARER = 0.7
"""The larger pull is chosen if its fit is nearer to what was held back by more than this part of
the mean square between the two fits' answers. Of two fits about as good, the one with less pull has
the smaller largest error, as was seen on msweb."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A pull, and the answers of a short fit with it.

    Parameters
    ----------
    pull
        The pull.
    answers
        float64, shape ``(m,)``.
    shown, held_back
        float64, shape ``(m,)``: the unbiased answers of what the trial was fitted to, and those of
        what was held back from it. The same arrays in all trials.
    """

    pull: float
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


@dataclass(frozen=True, eq=False)
class Trials:
    """Short fits of a mixture whose components are drawn together more or less.

    Parameters
    ----------
    fit
        The fit to be made in the end.
    answers
        Linear function from the means of what was measured to the answers of the queries.
    pulls
        The pulls to try, the least first.
    """

    fit: MixtureFit
    answers: Callable[[Float64], Float64]
    pulls: Sequence[float]

    @property
    def steps(self) -> int:
        """Gradient steps of all trials."""
        return len(self.pulls) * self._steps

    @property
    def _steps(self) -> int:
        return min(_STEPS, self.fit.steps)

    def run(
        self, generator: np.random.Generator, threads: int, progress: Callable[[int, int], None]
    ) -> tuple[Trial, ...]:
        """Make the trials, if any; ``progress`` counts the steps of all."""
        if not self.pulls:
            return ()
        shown, held_back = split(self.fit.targets, self.fit.deviations, generator)
        unbiased = self.answers(shown), self.answers(held_back)
        start = int(generator.integers(2**63))  # the same disturbance for all
        trials = []
        for number, pull in enumerate(self.pulls):
            trial = replace(self.fit, targets=shown, pull=pull, steps=self._steps)
            told = part_of(progress, number * self._steps, self.steps)
            mixture = trial.run(np.random.default_rng(start), threads, told)
            answers = self.answers(mixture.means(self.fit.products))
            trials.append(Trial(pull, answers, *unbiased))
        return tuple(trials)


def with_larger(pull: float) -> Sequence[float]:
    """Return a pull and larger ones to try, or none if it is the largest already."""
    pulls = sorted({min(factor * pull, 1.0) for factor in _FACTORS})
    return pulls if len(pulls) > 1 else ()


def choose_trial(trials: Sequence[Trial]) -> Trial:
    """Return the first trial, or a later one that is clearly nearer to what was held back.

    The differences of errors are free of the noise they have in common. Were one of two fits the
    truth, the errors would differ by the whole mean square between them.
    """
    chosen = trials[0]
    for trial in trials[1:]:
        if chosen.error - trial.error > _NEARER * _mean_square(chosen.answers - trial.answers):
            chosen = trial
    return chosen


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

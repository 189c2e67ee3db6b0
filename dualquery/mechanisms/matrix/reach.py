"""How far a fit's answers may be from the noisy ones before the fit is at fault, not the noise.

Single answers tell it where they are too far away for noise. And a fit errs where there is much to
err about, answers near 0 or 1 hardly, others by more than the noise at large budgets: answers of
about the same size tell it together. Post-processing, all of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.outliers import BY_NOISE, expected_beyond
from dualquery.mechanisms.matrix.trials import Trial

Float64 = NDArray[np.float64]

_FURTHEST = 4.0
"""Standard deviations of its noise by which an answer may differ from the noisy one, at most, where
single answers show that the fit is at fault."""

_FALSE = 0.5
"""Share of moved answers (`by_outliers`) that may be expected to owe their distance to noise."""

_GROUP = 2000
"""Answers to a group. Of so many, a mean square error above two fifths of the noise's is seen."""


def move_near(
    fitted: Float64, unbiased: Float64, deviations: Float64, trial: Trial | None = None
) -> Float64:
    """Return a fit's answers, moved to within reach of unbiased ones, and into [0, 1].

    A fit's answer at distance d of the noisy one, in standard deviations of the noise, is believed
    up to a reach r, and beyond it moved to the distance ``r^2 / d``: the further away it is, the
    less it is believed (the non-negative garrote: Breiman, "Better subset regression using the
    nonnegative garrote", Technometrics 37, 1995; for thresholds Gao, "Wavelet shrinkage denoising
    using the non-negative garrote", JCGS 7, 1998). To stay at the distance r, as soft thresholding
    does, had 1.0 to 1.3 times the largest error on whole marginals of Adult and KDD99, and 1.0 to
    1.04 times the mean one.

    Parameters
    ----------
    fitted, unbiased, deviations
        float64, shape ``(m,)``: the fit's answers; noisy ones, and their standard deviations.
    trial
        Of the same fit, where there is one.
    """
    distances = np.divide(
        np.abs(fitted - unbiased), deviations, out=np.zeros_like(fitted), where=deviations > 0
    )
    reach = np.full(len(fitted), by_outliers(distances))
    if trial is not None:
        group = _groups(np.minimum(fitted, 1.0 - fitted))
        reach = np.minimum(reach, by_mean_square(distances, deviations, trial, group)[group])
    apart, furthest = fitted - unbiased, reach * deviations
    beyond = np.abs(apart) > furthest
    moved = fitted.copy()
    moved[beyond] = unbiased[beyond] + furthest[beyond] ** 2 / apart[beyond]
    answers: Float64 = np.clip(moved, 0.0, 1.0)
    return answers


def by_outliers(distances: Float64) -> float:
    """Return the reach that single answers tell, in standard deviations of the noise.

    Moving an answer that is far away by chance only brings the noise back. So none is moved unless
    noise alone would leave the distances so with a chance of `BY_NOISE` at most (Simes, "An
    improved Bonferroni procedure for multiple tests of significance", Biometrika 73, 1986). Then
    the reach is the smallest distance beyond which noise would leave at most `_FALSE` as many
    answers as there are (Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57,
    1995), and `_FURTHEST` if that is smaller.

    `_FURTHEST` and `_FALSE` were chosen by the errors of single runs on Adult, plants, mushroom and
    KDD99: 3 has larger maxima at small epsilon (Adult, mushroom), none at all has a larger one on
    KDD99. Without `BY_NOISE` every other run of little budget had an answer that was moved to the
    largest noise of all (groceries, epsilon .1: 4.6 deviations of .23 each).

    Parameters
    ----------
    distances
        float64, shape ``(m,)``, at least 0: of the fit from the noisy answers, in standard
        deviations of the noise. Groups would each have false outliers of their own, so all answers
        are judged at once.
    """
    falling = np.sort(distances)[::-1]
    by_chance = expected_beyond(falling)
    if by_chance.min() > BY_NOISE:
        return float(falling[0])
    return min(float(falling[np.flatnonzero(by_chance <= _FALSE)[-1]]), _FURTHEST)


def by_mean_square(
    distances: Float64, deviations: Float64, trial: Trial, group: NDArray[np.int64]
) -> Float64:
    """Return the reach that all answers of a group tell together: float64, one a group.

    A fit's mean square error, in variances of the noise, is its mean square distance from the noisy
    answers, less 1, and more by what a trial of the fit owes to having seen them
    (`Trial.optimism`). If its errors follow Laplace's distribution with this mean square ``f^2``,
    the fitted answer is the likeliest where it is within ``sqrt(2) / f`` standard deviations of the
    noisy one (Park and Casella, "The Bayesian lasso", JASA 103, 2008). A standard error is taken
    off first: in doubt the fit is believed. And a group errs no less than one whose answers are
    nearer to 0 or 1.

    Parameters
    ----------
    distances
        As of `by_outliers`.
    deviations
        float64, shape ``(m,)``: standard deviations of the noise.
    trial
        Of the same fit.
    group
        int64, shape ``(m,)``: each answer's group; those nearest to 0 or 1 are in the first.
    """
    from scipy.optimize import isotonic_regression

    noisy = deviations > 0
    optimism = trial.optimism(deviations)
    squared = distances**2 - noisy
    squared += np.divide(optimism, deviations**2, out=np.zeros_like(optimism), where=noisy)
    sizes = np.bincount(group)
    means = np.bincount(group, squared) / sizes
    off = np.sqrt(np.bincount(group, (squared - means[group]) ** 2)) / sizes
    errors = np.sqrt(np.maximum(isotonic_regression(means - off, weights=sizes).x, 0.0))
    reach: Float64 = np.divide(
        math.sqrt(2.0), errors, out=np.full(len(errors), np.inf), where=errors > 0
    )
    return reach


def _groups(sizes: Float64) -> NDArray[np.int64]:
    """Return the group of each answer: as many in each, or one more, the smallest in the first."""
    count = max(len(sizes) // _GROUP, 1)
    group = np.empty(len(sizes), np.int64)
    group[np.argsort(sizes, kind="stable")] = np.arange(len(sizes)) * count // len(sizes)
    return group

"""Answers from evidence: two estimates, stacked by noise that is held back.

The answers of a mixture fitted to the noisy means, and those of the hierarchical model, are made
once more from a part of the evidence; the rest determines where between the two the answers lie
(stacking: Wolpert, Neural Networks 5, 1992). An answer at a larger distance from the measured one
than this and the noise explain is moved towards it. Post-processing, all of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.adaptive.evidence import HELD_BACK, Evidence
from dualquery.mechanisms.adaptive.interactions import Interactions
from dualquery.mechanisms.adaptive.labels import with_labels
from dualquery.mechanisms.adaptive.mixture import Mixture, MixtureFit
from dualquery.mechanisms.protocol import Session
from dualquery.models.labelled import LabelledMixture
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from dualquery.runtime.progress import part_of

Float64 = NDArray[np.float64]

_COMPONENTS, _PULL = 100.0, 0.03
"""Components and pull of `MixtureFit` where signal over noise is 1. They and the powers by which
they change with it were chosen by errors on seven tables of 8,000 to 500,000 rows at epsilon 0.1 to
5; four times the pull costs up to a fifth of the mean error there."""

_ROWS = 11_000.0
"""Rows times sensitivity over scale at which signal over noise is 1: thirty thousand at epsilon 1,
or so."""

_VECTOR = 16
"""Components come in multiples of this: one vector of numbers."""

_MOST, _MOST_VALUES = 256, 1 << 22
"""Components, and bits times components, beyond which fits take minutes."""

_TRUSTED = 0.5
"""Records are drawn from the mixture that is fitted to the noisy means if it is trusted by this
much or more; else from one that is fitted to the hierarchical model's means."""

STEPS = 2100
"""Gradient steps of a fit, at most."""

_GROUP = 2000
"""Answers to a group. Of this many, a mean square error above two fifths of the noise's is seen."""


@dataclass(frozen=True)
class Fitting:
    """How a mixture is fitted: components, steps and pull of `MixtureFit`.

    ``tried`` says whether a trial on the evidence says how far to trust the fit; else all of it is.
    """

    components: int
    steps: int
    pull: float
    tried: bool = True

    @staticmethod
    def suited(
        n: int,
        precision: float,
        bits: int,
        components: int | None = None,
        steps: int = STEPS,
        pull: float | None = None,
    ) -> Fitting:
        """Return what suits a number of rows, a sensitivity over scale, and a number of bits.

        Few components leave out structure, many fit noise. What is given stays as it is; a trial is
        made where no pull is.
        """
        signal = (n * precision / _ROWS) ** (1 / 3)
        if components is None:
            most = min(_MOST, _MOST_VALUES // bits, _COMPONENTS * signal)
            components = max(round(most / _VECTOR), 1) * _VECTOR
        suited = min(_PULL / signal**2, 1.0) if pull is None else pull
        return Fitting(components, steps, suited, pull is None)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit gives: answers in [0, 1], the mixture, and how far it was trusted (the trace)."""

    answers: Float64
    model: ProductMixture | LabelledMixture
    trace: tuple[Mapping[str, Any], ...]


def fit_mixture(
    evidence: Evidence,
    fitting: Fitting,
    workload: Workload,
    n: int,
    generator: np.random.Generator,
    session: Session,
) -> Fitted:
    """Fit a mixture to the evidence of all stages, and answer.

    Parameters
    ----------
    evidence, fitting
        What to fit to, and how.
    workload, n
        The queries, and the number of rows.
    generator, session
        Source of the fit's random choices; threads and progress.
    """
    products, parts = evidence.source.products, 3 if fitting.tried else 1

    def fitted_to(means: Float64, source: np.random.Generator, part: int) -> Mixture:
        fit = MixtureFit(
            products, means, evidence.deviations, fitting.components, fitting.steps, fitting.pull
        )
        told = part_of(session.progress, part * fit.steps, parts * fit.steps)
        return fit.run(source, session.threads, told)

    # The fit draws the same numbers whether there is a trial or not.
    (apart,) = generator.spawn(1)
    mixture = fitted_to(evidence.means, generator, 0)
    answers, trust = evidence.source.answers(mixture.means(products)), 1.0
    if fitting.tried:
        shown, held_back = evidence.split(apart)
        drawn = _by_interactions(evidence)
        by_mixture = _Estimate.of(
            evidence, shown, held_back, fitted_to(shown.means, apart, 1).means(products), answers
        )
        by_interactions = _Estimate.of(
            evidence, shown, held_back, _by_interactions(shown), evidence.source.answers(drawn)
        )
        between = by_mixture.tried - by_interactions.tried
        square = float(between @ between)
        if square:
            told = float(between @ (held_back.unbiased - by_interactions.tried))
            trust = min(max(told / square, 0.0), 1.0)
        answers = by_interactions.answers + trust * (by_mixture.answers - by_interactions.answers)
        if trust < _TRUSTED:
            mixture = fitted_to(drawn, generator, 2)
        session.progress(parts * fitting.steps, parts * fitting.steps)
    model = with_labels(mixture.model(), workload, evidence.unbiased, evidence.spread, n, generator)
    trace = ({"trust": trust},) if fitting.tried else ()
    return Fitted(np.clip(answers, 0.0, 1.0), model, trace)


def _by_interactions(evidence: Evidence) -> Float64:
    """Return the posterior means of the hierarchical model."""
    products = evidence.source.products
    return Interactions.from_products(products, evidence.means, evidence.deviations).fitted


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Answers of one estimator: from what is shown, and from all evidence."""

    tried: Float64
    answers: Float64

    @staticmethod
    def of(
        evidence: Evidence, shown: Evidence, held_back: Evidence, means: Float64, answers: Float64
    ) -> _Estimate:
        """Limit the deviation of answers from the unbiased ones, as a trial says."""
        tried = evidence.source.answers(means)
        # Optimism: the error by what was held back, less the one by what was shown, each without
        # its noise (Efron, JASA 99, 2004, Section 2).
        optimism = (tried - held_back.unbiased) ** 2 - (tried - shown.unbiased) ** 2
        optimism -= (1.0 / HELD_BACK - HELD_BACK) * evidence.spread**2
        limited = limit_deviation(answers, evidence.unbiased, evidence.spread, optimism)
        return _Estimate(np.clip(tried, 0.0, 1.0), limited)


def limit_deviation(
    fitted: Float64, unbiased: Float64, deviations: Float64, optimism: Float64
) -> Float64:
    """Return a fit's answers, moved towards unbiased ones where they are too far, and into [0, 1].

    A fit's answer at distance d of the unbiased one, in standard deviations of the noise, is
    believed up to a reach r, and beyond it moved to the distance ``r^2 / d`` (the non-negative
    garrote: Breiman, Technometrics 37, 1995; Gao, JCGS 7, 1998). Answers of about the same size
    determine r together: a fit's mean square error is its mean square distance, less 1, plus its
    optimism. If its errors follow Laplace's distribution with the mean square ``f^2``, the fitted
    answer is the likeliest within ``r = sqrt(2) / f`` (Park and Casella, JASA 103, 2008). A
    standard error is taken off first. A group errs no less than one nearer to 0 or 1.

    Parameters
    ----------
    fitted, unbiased, deviations
        float64, shape ``(m,)``: the fit's answers; unbiased ones, and their standard deviations.
    optimism
        float64, shape ``(m,)``: what each answer's square error seems too small by, because it was
        fitted to the unbiased ones. Means over many determine it.
    """
    from scipy.optimize import isotonic_regression

    noisy = deviations > 0
    units = np.where(noisy, deviations, 1.0)
    apart = fitted - unbiased
    squared = np.where(noisy, (apart**2 + optimism) / units**2 - 1.0, 0.0)
    sizes = np.minimum(fitted, 1.0 - fitted)
    count = max(len(sizes) // _GROUP, 1)
    group = np.empty(len(sizes), np.int64)
    group[np.argsort(sizes, kind="stable")] = np.arange(len(sizes)) * count // len(sizes)
    held = np.bincount(group)
    means = np.bincount(group, squared) / held
    off = np.sqrt(np.bincount(group, (squared - means[group]) ** 2)) / held
    errors = np.sqrt(np.maximum(isotonic_regression(means - off, weights=held).x, 0.0))
    reach = np.divide(math.sqrt(2.0), errors, out=np.full(count, np.inf), where=errors > 0)
    furthest = reach[group] * deviations
    beyond = np.abs(apart) > furthest
    moved = fitted.copy()
    moved[beyond] = unbiased[beyond] + furthest[beyond] ** 2 / apart[beyond]
    answers: Float64 = np.clip(moved, 0.0, 1.0)
    return answers

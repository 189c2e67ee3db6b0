"""Answers from evidence: two estimates, stacked by noise that is held back.

The answers of a mixture fitted to the noisy means, and those of the hierarchical model, are made
once more from a part of the evidence; the rest determines where between the two the answers lie
(stacking: Wolpert, Neural Networks 5, 1992). Records are drawn from a mixture that is fitted to the
stacked means, cross-moments of ordered columns being kept. Post-processing, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.adaptive.evidence import Evidence
from dualquery.mechanisms.adaptive.interactions import Interactions
from dualquery.mechanisms.adaptive.labels import with_labels
from dualquery.mechanisms.adaptive.mixture import Mixture, MixtureFit
from dualquery.mechanisms.adaptive.moments import fit_records
from dualquery.mechanisms.protocol import Session
from dualquery.models.labelled import LabelledMixture
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]

_COMPONENTS, _PULL = 4.5, 14.8
"""Components over the cube root of rows times sensitivity over scale, and pull times its square.
They and the powers were chosen by errors on seven tables of 8,000 to 500,000 rows at epsilon 0.1 to
5; four times the pull costs up to a fifth of the mean error there."""

_VECTOR = 16
"""Components come in multiples of this: one vector of numbers."""

_MOST, _MOST_VALUES = 256, 1 << 22
"""Components, and bits times components, beyond which fits take minutes."""

STEPS = 2100
"""Gradient steps of a fit to noisy means, at most."""


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
        n: int, precision: float, bits: int, components: int | None, steps: int, pull: float | None
    ) -> Fitting:
        """Return what suits a number of rows, a sensitivity over scale, and a number of bits.

        What is given stays as it is; a trial is made where no pull is.
        """
        signal = float(np.cbrt(n * precision))
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
    scores: Float64 | None,
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
    scores
        float64, shape ``(bits,)``: the numbers that bits stand for, NaN for none; None if none has.
    generator, session
        Source of the fit's random choices; threads and progress.
    """
    products = evidence.source.products

    def fitted_to(means: Float64, source: np.random.Generator) -> Mixture:
        fit = MixtureFit(
            products, means, evidence.deviations, fitting.components, fitting.steps, fitting.pull
        )
        return fit.run(source, session.threads, session.progress)

    # The fit draws the same numbers whether there is a trial or not.
    (apart,) = generator.spawn(1)
    mixture = fitted_to(evidence.means, generator)
    answer, trust = evidence.source.answers, 1.0
    means = mixture.means(products)
    answers = np.clip(answer(means), 0.0, 1.0)
    if fitting.tried:
        shown, held_back = evidence.split(apart)
        found = _interactions(evidence)
        other = np.clip(answer(_interactions(shown).fitted), 0.0, 1.0)
        tried = np.clip(answer(fitted_to(shown.means, apart).means(products)), 0.0, 1.0)
        between = tried - other
        square = float(between @ between)
        if square:
            trust = min(max(float(between @ (held_back.unbiased - other)) / square, 0.0), 1.0)
        answers = trust * answers + (1.0 - trust) * np.clip(answer(found.fitted), 0.0, 1.0)
        means = trust * means + (1.0 - trust) * found.fitted
        fit = MixtureFit(
            products, means, evidence.deviations, fitting.components, pull=fitting.pull
        )
        mixture = fit_records(fit, evidence.means, found.chances, scores, generator, session)
    model = with_labels(
        mixture.model(),
        workload,
        evidence.unbiased,
        evidence.spread,
        n,
        generator,
        session.progress,
    )
    trace = ({"trust": trust},) if fitting.tried else ()
    return Fitted(answers, model, trace)


def _interactions(evidence: Evidence) -> Interactions:
    """Return the posterior of the hierarchical model."""
    products = evidence.source.products
    return Interactions.from_products(products, evidence.means, evidence.deviations)

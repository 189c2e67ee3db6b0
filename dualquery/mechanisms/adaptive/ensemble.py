"""Answers from evidence: two estimates, stacked by noise that is held back.

The answers of a mixture fitted to the noisy means, and those of the hierarchical model, are made
once more from a part of the evidence; the rest determines where between the two the answers lie
(stacking: Wolpert, Neural Networks 5, 1992). Post-processing, all of it.
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
from dualquery.mechanisms.adaptive.mixture import Fitting, Mixture, MixtureFit
from dualquery.mechanisms.protocol import Session
from dualquery.models.labelled import LabelledMixture
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


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
    products = evidence.source.products

    def fitted_to(means: Float64, source: np.random.Generator) -> Mixture:
        fit = MixtureFit(products, means, evidence.deviations, fitting)
        return fit.run(source, session.threads, session.progress)

    # The fit draws the same numbers whether there is a trial or not.
    (apart,) = generator.spawn(1)
    mixture = fitted_to(evidence.means, generator)
    answer, trust = evidence.source.answers, 1.0
    answers = answer(mixture.means(products))
    if fitting.tried:
        shown, held_back = evidence.split(apart)
        drawn = _by_interactions(evidence)
        other = np.clip(answer(_by_interactions(shown)), 0.0, 1.0)
        tried = np.clip(answer(fitted_to(shown.means, apart).means(products)), 0.0, 1.0)
        between = tried - other
        square = float(between @ between)
        if square:
            trust = min(max(float(between @ (held_back.unbiased - other)) / square, 0.0), 1.0)
        answers = np.clip(answers, 0.0, 1.0)
        answers = trust * answers + (1.0 - trust) * np.clip(answer(drawn), 0.0, 1.0)
        if trust < 0.5:  # records follow the estimate that is trusted more
            mixture = fitted_to(drawn, generator)
    model = with_labels(
        mixture.model(), workload, evidence.unbiased, evidence.spread, n, generator,
        session.progress,
    )  # fmt: skip
    trace = ({"trust": trust},) if fitting.tried else ()
    return Fitted(np.clip(answers, 0.0, 1.0), model, trace)


def _by_interactions(evidence: Evidence) -> Float64:
    """Return the posterior means of the hierarchical model."""
    products = evidence.source.products
    return Interactions.from_products(products, evidence.means, evidence.deviations).fitted

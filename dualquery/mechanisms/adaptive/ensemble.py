"""Answers from evidence: two estimates, stacked by noise that is held back.

A fitted mixture and the hierarchical model are estimated once more from a part of the evidence; the
rest determines where between the two the answers lie (stacking: Wolpert, Neural Networks 5, 1992).
Records are drawn from a mixture fitted to the stacked means. Post-processing, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.estimates.intervals import CORRELATION
from dualquery.mechanisms.adaptive.evidence import Evidence
from dualquery.mechanisms.adaptive.interactions import Interactions, expected_interactions
from dualquery.mechanisms.adaptive.labels import with_labels
from dualquery.mechanisms.adaptive.mixture_fit import LEG, Fitting, Mixture, MixtureFit
from dualquery.mechanisms.adaptive.prior import posterior_interactions
from dualquery.mechanisms.protocol import Session, Task
from dualquery.models.labelled import LabelledMixture
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload

Float64 = NDArray[np.float64]


def fit_mixture(
    evidence: Evidence,
    workload: Workload,
    task: Task,
    fitting: Fitting,
    generator: np.random.Generator,
    session: Session,
) -> tuple[Float64, ProductMixture | LabelledMixture, tuple[Mapping[str, Any], ...]]:
    """Return answers in [0, 1], a mixture, and for the trace the trust in mended means."""
    products = evidence.source.products
    fit = MixtureFit(products, evidence.means, evidence.deviations, fitting)

    def estimates(seen: Evidence, fitted: Float64) -> tuple[Interactions, Float64]:
        """Return the model, and a fit's means, mended by the posterior means of what they miss."""
        model = Interactions.from_products(products, seen.means, seen.deviations)
        expected = expected_interactions(products, model.chances)
        at, mended = expected > 0.0, fitted.copy()
        if at.any():
            missed = (seen.means - fitted)[at], expected[at], seen.deviations[at] ** 2
            mended[at] += posterior_interactions(*missed)[0]
        return model, mended

    # The fit draws the same numbers whether there is a trial or not.
    (apart,) = generator.spawn(1)
    mixture = fit.run(generator, session)
    answer, trust = evidence.source.answers, 1.0
    means = mixture.means(products)
    if fitting.tried:
        shown, held_back = evidence.split(apart)
        found, mended = estimates(evidence, means)
        trial = replace(fit, targets=shown.means, deviations=shown.deviations)
        tried = trial.run(apart, session).means(products)
        shrunk, repaired = estimates(shown, tried)
        other = np.clip(answer(shrunk.fitted), 0.0, 1.0)

        def trust_in(estimate: Float64) -> float:
            between = np.clip(answer(estimate), 0.0, 1.0) - other
            told, square = between @ (held_back.unbiased - other), between @ between
            return min(max(float(told / square), 0.0), 1.0) if square else 1.0

        trust = trust_in(repaired)
        # The mixture weakens correlations less than the stacked means do.
        around = replace(found, fitted=means)
        means = trust * mended + (1.0 - trust) * found.fitted
        # What noise does not explain shows that the estimate is wrong.
        wrong = np.abs(means - evidence.means) > fit.extreme * evidence.deviations
        means = np.where(wrong, evidence.means, means)
        fit = replace(fit, targets=means, how=fitting.brief(workload.domain, trust_in(tried)))
        mixture = fit_records(fit, evidence.means, around, task, generator, session)
    answers, noisy = np.clip(answer(means), 0.0, 1.0), (evidence.unbiased, evidence.spread)
    if evidence.source.of_queries:  # those that the fit left out have their own answers
        answers = np.where((products.bits < 0).all(axis=1), np.clip(noisy[0], 0.0, 1.0), answers)
    model = with_labels(mixture.model(), workload, *noisy, task.n, generator, session.progress)
    return answers, model, ({"trust": trust},) if fitting.tried else ()


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Correlations of pairs of ordered columns, and the products of two that determine them.

    Each is one number, given to cells as linear-by-linear association (Agresti 2013, Section 10.5).
    ``places`` are the products, ``owner`` their pairs, int64. ``weights`` are the changes of a
    moment with its products' means, ``slopes`` those of the means with the moment, and ``goal`` is
    what the moments are to be, up to a constant each: float64.
    """

    places: NDArray[np.int64]
    owner: NDArray[np.int64]
    weights: Float64
    slopes: Float64
    goal: Float64

    @staticmethod
    def of(
        fit: MixtureFit, noisy: Float64, around: Interactions, scores: Float64
    ) -> CrossMoments | None:
        """Return the moments' posterior means, around those of an estimate.

        None if no two ordered columns were measured together. ``noisy``, float64 ``(f,)``, are the
        products' noisy means; ``scores``, ``(bits,)``, the bits' numbers, NaN for none.
        """
        chances, centre, products = around.chances, around.fitted, fit.products
        standard = _standardised(products.domain, chances, scores)
        column, present = products.domain.column_of_bit, products.bits >= 0
        means, factors = products.factors(chances)
        factors = np.where(present, factors, 1.0)
        shares = np.where(present, chances[products.bits], 1.0)
        numbers = np.where(present, standard[products.bits], 1.0)
        weights = (numbers / factors).prod(axis=1)
        slopes = (shares * numbers * factors).prod(axis=1)
        if not len(places := np.flatnonzero((present.sum(axis=1) == 2) & (slopes != 0.0))):
            return None
        weights, slopes, noises = weights[places], slopes[places], fit.deviations[places]
        pairs = np.sort(np.where(present, column[products.bits], -1)[places], axis=1)[:, -2:]
        _, owner = np.unique(pairs, axis=0, return_inverse=True)
        # Cells that were not measured are taken to have the same association as those that were.
        weights /= np.bincount(owner, weights * slopes)[owner]
        precise = slopes / noises**2
        precise /= np.bincount(owner, precise * slopes)[owner]
        residuals = (noisy - centre)[places]
        # The fit is taken to follow noise as posterior means do (Tweedie's formula: Efron 2011).
        apart = noises * np.maximum(np.abs(1.0 - around.left[places] / noises**2), 1e-6)

        def of_pairs(numbers: Float64) -> Float64:
            return np.bincount(owner, numbers).astype(np.float64)

        # Least squares have less noise, but are too small where the association is not linear by
        # linear: all moments by one factor, whose prior is 1, with a standard deviation of 1.
        least, noise = of_pairs(precise * residuals), of_pairs((precise * apart) ** 2)
        moment, more = of_pairs(weights * residuals), of_pairs((weights * noises) ** 2)
        # Few pairs, whose noise may be above 1: without a price they find in it what it allows.
        moved, _ = posterior_interactions(least, np.full(len(least), CORRELATION), noise, price=2)
        # Cells move by the part of their expected size, a deviation, that noise leaves unknown.
        expected = expected_interactions(products, chances)[places]
        moves = slopes / np.sqrt(1.0 + (expected / noises) ** 2)
        moves /= np.bincount(owner, weights * moves)[owner]
        found = CrossMoments(places, owner, weights, moves, moved)
        now = found.sizes(centre)
        correlation = now - found.sizes(means.prod(axis=1))
        size = correlation + moved
        shared = (size * (correlation + moment) / more).sum()
        factor = (1.0 + shared) / (1.0 + (size**2 / more).sum())
        return replace(found, goal=now - correlation + factor * size)

    def sizes(self, means: Float64) -> Float64:
        """Return the moments, given the means of all products."""
        return np.bincount(self.owner, self.weights * means[self.places]).astype(np.float64)

    def kept(self, means: Float64) -> Float64:
        """Return means of all products that have the moments."""
        moved = means.copy()
        moved[self.places] += self.slopes * (self.goal - self.sizes(means))[self.owner]
        return moved


def fit_records(
    fit: MixtureFit,
    noisy: Float64,
    around: Interactions,
    task: Task,
    generator: np.random.Generator,
    session: Session,
) -> Mixture:
    """Return the mixture that records are drawn from, as in `CrossMoments.of`."""
    moments = None if task.scores is None else CrossMoments.of(fit, noisy, around, task.scores)
    if moments is None:
        return fit.with_rules(task, around.chances).run(generator, session)

    def fitted(aim: CrossMoments, start: Mixture | None = None) -> Mixture:
        aimed = replace(fit, targets=aim.kept(fit.targets), how=replace(fit.how, steps=LEG))
        return aimed.with_rules(task, around.chances).run(generator, session, start)

    mixture = fitted(moments)
    # The pull takes a part of the moments; of its aim the second fit reaches a half to all.
    missed = moments.goal - moments.sizes(mixture.means(fit.products))
    return fitted(replace(moments, goal=moments.goal + 1.5 * missed), mixture)


def _standardised(domain: Domain, chances: Float64, scores: Float64) -> Float64:
    """Return columns' numbers less their mean, over their deviation; 0 for none, or of two."""
    column, numbers = domain.column_of_bit, np.nan_to_num(scores)
    largest = np.zeros(domain.columns)
    np.maximum.at(largest, column, np.abs(numbers))
    numbers /= np.maximum(largest, 1e-300)[column]
    held = np.where(np.isnan(scores), 0.0, chances)
    total = np.maximum(np.bincount(column, held), 1e-300)
    numbers -= (np.bincount(column, held * numbers) / total)[column]
    spread = np.sqrt(np.bincount(column, held * numbers**2))
    usable = ~np.isnan(scores) & (spread > 0.0)[column]
    usable &= (np.bincount(column, ~np.isnan(scores)) > 2)[column]  # cells of two are clear alone
    return np.divide(numbers, spread[column], out=np.zeros(len(scores)), where=usable)

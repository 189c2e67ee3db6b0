"""Cross-moments of ordered columns: what shrinks and clips single cells makes them no smaller.

Of two columns a, b whose values are numbers, with z the standardised ones, the sum of ``z_i z_j
P(a = i, b = j)`` is their correlation. It exceeds its noise where no single cell does, so it is
estimated as one number, and given to the cells as their linear-by-linear association
``g p_i p_j z_i z_j`` (Agresti, "Categorical Data Analysis", 2013, section 10.5). Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.estimates.guessed import CORRELATION
from dualquery.mechanisms.adaptive.mixture import Mixture, MixtureFit
from dualquery.mechanisms.adaptive.prior import posterior_interactions
from dualquery.mechanisms.protocol import Session

Float64 = NDArray[np.float64]

_FEWEST = 3
"""Numbers that a column has at least: of two values, a pair's interaction is its moment."""


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Moments of pairs of ordered columns, and the products of two that determine them.

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
        fit: MixtureFit, noisy: Float64, chances: Float64, scores: Float64
    ) -> CrossMoments | None:
        """Return the moments' posterior means, around what they are in what a mixture is fitted to.

        None if no two ordered columns were measured together.

        Parameters
        ----------
        fit
            Products, estimates of their means, and the standard deviations of the noise.
        noisy
            float64, shape ``(f,)``: the products' noisy means.
        chances, scores
            float64, shape ``(bits,)``: shares of 1s, and the numbers that bits stand for; NaN for
            none.
        """
        products, standard = fit.products, _standardised(fit.products.domain, chances, scores)
        column = products.domain.column_of_bit
        present = products.bits >= 0
        means, factors = products.factors(chances)
        factors = np.where(present, factors, 1.0)
        shares, numbers = (
            np.where(present, each[products.bits], 1.0) for each in (chances, standard)
        )
        weights, slopes = (
            (numbers / factors).prod(axis=1),
            (shares * numbers * factors).prod(axis=1),
        )
        places = np.flatnonzero((present.sum(axis=1) == 2) & (slopes != 0.0))
        if not len(places):
            return None
        weights, slopes = weights[places], slopes[places]
        pairs = np.sort(np.where(present, column[products.bits], -1)[places], axis=1)[:, -2:]
        _, owner = np.unique(pairs, axis=0, return_inverse=True)
        # Cells that were not measured are taken to have the same association as those that were.
        weights /= np.bincount(owner, weights * slopes)[owner]
        precise = slopes / fit.deviations[places] ** 2
        precise /= np.bincount(owner, precise * slopes)[owner]
        residuals = (noisy - fit.targets)[places]

        def estimate(by: Float64) -> tuple[Float64, Float64]:
            of_product = by * residuals, (by * fit.deviations[places]) ** 2
            size, variance = (np.bincount(owner, each) for each in of_product)
            return size.astype(np.float64), variance.astype(np.float64)

        # Least squares have less noise, but err where the association is not linear by linear: all
        # by one factor, its prior being 1 with a standard deviation of 1, and each by a difference
        # that has the difference of the variances (Hausman, Econometrica 46, 1978).
        (least, noise), (moment, more) = estimate(precise), estimate(weights)
        expected = np.full(len(least), CORRELATION)
        moved, _ = posterior_interactions(least, expected, noise)
        found = CrossMoments(places, owner, weights, slopes, moved)
        now = found.sizes(fit.targets)
        correlation = now - found.sizes(means.prod(axis=1))
        size = correlation + moved
        shared = (size * (correlation + moment) / more).sum()
        factor = (1.0 + shared) / (1.0 + (size**2 / more).sum())
        moved = factor * size - correlation
        further, _ = posterior_interactions(
            moment - moved, expected, np.maximum(more - noise, noise)
        )
        return replace(found, goal=now + moved + further)

    def sizes(self, means: Float64) -> Float64:
        """Return the moments, given the means of all products."""
        return np.bincount(self.owner, self.weights * means[self.places]).astype(np.float64)

    def kept(self, means: Float64) -> Float64:
        """Return means of all products that have the moments."""
        moved = means.copy()
        moved[self.places] += self.slopes * (self.goal - self.sizes(means))[self.owner]
        return moved

    def beyond(self, means: Float64) -> CrossMoments:
        """Return moments to aim at where a fit that aimed at these has reached ``means``."""
        return replace(self, goal=2.0 * self.goal - self.sizes(means))


def fit_records(
    fit: MixtureFit,
    noisy: Float64,
    chances: Float64,
    scores: Float64 | None,
    generator: np.random.Generator,
    session: Session,
) -> Mixture:
    """Return the mixture that records are drawn from: a fit to estimated means, moments being kept.

    Parameters are those of `CrossMoments.of`; ``scores`` is None if no bit stands for a number.
    """
    moments = None if scores is None else CrossMoments.of(fit, noisy, chances, scores)
    if moments is not None:
        first = replace(fit, targets=moments.kept(fit.targets))
        means = first.run(generator, session.threads, session.progress).means(fit.products)
        fit = replace(fit, targets=moments.beyond(means).kept(means))  # the pull takes a part
    return fit.run(generator, session.threads, session.progress)


def _standardised(domain: Domain, chances: Float64, scores: Float64) -> Float64:
    """Return each column's numbers less their mean, over their standard deviation; 0 for none."""
    column = domain.column_of_bit
    many = (np.bincount(column, ~np.isnan(scores)) >= _FEWEST)[column]
    numbers = np.where(many, np.nan_to_num(scores), 0.0)
    largest = np.zeros(domain.columns)
    np.maximum.at(largest, column, np.abs(numbers))
    numbers /= np.maximum(largest, 1e-300)[column]
    held = np.where(np.isnan(scores), 0.0, chances)
    total = np.maximum(np.bincount(column, held), 1e-300)
    numbers -= (np.bincount(column, held * numbers) / total)[column]
    spread = np.sqrt(np.bincount(column, held * numbers**2))
    usable = ~np.isnan(scores) & (spread > 0.0)[column]
    return np.divide(numbers, spread[column], out=np.zeros(len(scores)), where=usable)

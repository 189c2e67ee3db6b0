"""The hierarchical model: main effects, interactions by order, and what all pairs have in common.

The model (`mechanisms/README.md`) is the start of Bahadur's expansion (1961). What is measured of
products also determines main effects and c, linearly, each product's own interaction being a
random effect (best linear unbiased prediction: Henderson, Biometrics 31, 1975; robust weights:
Lange, Little and Taylor, JASA 84, 1989). `prior` shrinks interactions. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.intervals import CORRELATION
from dualquery.mechanisms.adaptive.evidence import Shares
from dualquery.mechanisms.adaptive.expansion import ProductTerms, pairs_and_more, products_of_others
from dualquery.mechanisms.adaptive.prior import posterior_interactions
from dualquery.mechanisms.baselines.independent import to_distributions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dualquery.models.mixture import ProductMixture

Float64 = NDArray[np.float64]

_ROUNDS, _SETTLED, _HALVINGS = 12, 0.1, 24
"""Linearisations of products in the main effects, at most; the last one moves each by less than
this part of its standard error. Halvings of the trust in products, at most."""

_CERTAIN = 1e-12
"""A share with a smaller standard error is taken as known."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """Posterior means of the model.

    ``chances`` and ``uncertain``, ``(bits,)``, are shares of 1s and their standard errors;
    ``common`` is c. ``covariances`` are those of the ``pairs`` of bits, ``(p, 2)``, that were
    measured. In units of the expected ones ``own`` is the typical size of pairs' own interactions,
    ``unknown`` the mean square of what their posterior means leave, and ``whole`` that of all.
    ``fitted`` are the means of the products that were measured, ``left`` their variances.
    """

    chances: Float64
    uncertain: Float64
    common: float = 0.0
    own: float = 0.0
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), np.int64))
    covariances: Float64 = field(default_factory=lambda: np.empty(0))
    unknown: float = 0.0
    whole: float = 0.0
    fitted: Float64 = field(default_factory=lambda: np.empty(0))
    left: Float64 = field(default_factory=lambda: np.empty(0))

    @staticmethod
    def from_products(products: ProductTerms, noisy: Float64, deviations: Float64) -> Interactions:
        """Return the posterior, given noisy means of products, single factors among them."""
        singles = Shares.of(products, noisy, deviations)
        chances, uncertain = singles.posterior(products.domain)
        # Of a bit that stands in longer products only, nothing is known before.
        others = np.setdiff1d(products.bits[products.bits >= 0], singles.bits)
        uncertain[others] = np.sqrt(chances * (1.0 - chances))[others]
        return Interactions.fit(products, noisy, deviations, chances, uncertain)

    @staticmethod
    def fit(
        products: ProductTerms,
        noisy: Float64,
        deviations: Float64,
        chances: Float64,
        uncertain: Float64,
        groups: int = 0,
    ) -> Interactions:
        """Return the posterior, given noisy means of products, and of shares by single factors.

        With a product stand all pairs of its factors, or none of them; but for the last ``groups``.
        """
        model = _main_effects(products, noisy, deviations, Interactions(chances, uncertain), groups)
        factors, slopes = products.factors(model.chances)
        left = _variances(factors, slopes, model.uncertain[products.bits])
        variances = deviations**2 + left
        expected = expected_interactions(products, model.chances)
        order, fitted = (products.bits >= 0).sum(axis=1), model.means(products)
        for size in range(2, products.bits.shape[1] + 1):
            at = order == size
            if not at.any():
                continue
            if size > 2:
                fitted[at] = model.means(products.part(at))
            residual = noisy[at] - fitted[at]
            sets = products.part(at).sets
            means, squares = posterior_interactions(residual, expected[at], variances[at], sets)
            fitted[at] += means
            left[at] = np.maximum(squares - means**2, 0.0)
            if size == 2:
                weights = np.where(slopes[at] == 0.0, 1.0, slopes[at]).prod(axis=1)
                total = float(((expected[at] / weights) ** 2).sum()) or math.inf
                model = replace(
                    model,
                    pairs=np.sort(products.bits[at].astype(np.int64), axis=1)[:, -2:],
                    covariances=(fitted[at] - factors[at].prod(axis=1)) / weights,
                    unknown=float((left[at] / weights**2).sum()) / total,
                    whole=float((squares / weights**2).sum()) / total,
                )
        return replace(model, fitted=fitted, left=left)

    def means(self, products: ProductTerms) -> Float64:
        """Return the means of products by main effects and pairs: float64, one each."""
        factors, slopes = products.factors(self.chances)
        means: Float64 = factors.prod(axis=1)
        if not self.common and not len(self.pairs):
            return means
        count = self.chances.size + 1
        keys = self.pairs[:, 0] * count + self.pairs[:, 1]
        order = np.argsort(keys)
        keys, covariances = np.append(keys[order], -1), np.append(self.covariances[order], 0.0)
        for at, ends, change in _pairs_of(products, factors, slopes):
            wanted = ends.min(axis=1) * count + ends.max(axis=1)
            place = np.searchsorted(keys[:-1], wanted)
            shared = self._shared(ends) * products.domain.has_two_values[ends].all(axis=1)
            means[at] += change * np.where(keys[place] == wanted, covariances[place], shared)
        return means

    def _shared(self, ends: NDArray[np.int64]) -> Float64:
        """Return the covariances of pairs of bits that were not measured."""
        product = (self.chances * (1.0 - self.chances))[ends].prod(axis=1)
        shared = self.common * product
        typical = shared**2 + (self.own * CORRELATION) ** 2 * product
        trust = np.divide(shared**2, typical, out=np.zeros_like(typical), where=typical > 0.0)
        return np.asarray(shared * trust)


def beyond_pairs(model: ProductMixture, products: ProductTerms, deviations: Float64) -> Float64:
    """Return what a model adds to products of three factors or more, beyond pairs: ``(f,)``."""
    varied = np.append(np.ptp(model.chances, axis=1) > 0.0, False)  # the last is that of no factor
    at = np.flatnonzero(varied[products.bits].sum(axis=1) > 2)
    told, moments = products.part(at), np.zeros(len(products.bits))
    means = np.minimum(model.chances @ model.weights, 1.0)  # weights add up to 1 but for rounding
    centre, slopes = told.factors(means)
    for weight, chances in zip(model.weights, model.chances.T, strict=True):
        moments[at] += weight * pairs_and_more(centre, told.factors(chances)[0] - centre)[1]
    if len(at):  # a fit leaves about half of the noise of what it was fitted to
        # What `expected_interactions` expects, of all orders above two together.
        squares = slopes**2 * (means * (1.0 - means))[told.bits] / 4.0
        usual = 4.0 * CORRELATION * np.sqrt(pairs_and_more(centre**2, squares)[1])
        noise = np.full(len(at), deviations.max() ** 2 / 4.0)
        moments[at], _ = posterior_interactions(moments[at], usual, noise)
    return moments


def expected_interactions(products: ProductTerms, chances: Float64) -> Float64:
    """Return standard deviations of products' interactions before they are measured: ``(f,)``."""
    _, slopes = products.linear()
    spread = np.sqrt(chances * (1.0 - chances))[products.bits] * np.abs(slopes)
    order = (products.bits >= 0).sum(axis=1)
    expected = CORRELATION * 0.5 ** (order - 2.0)
    expected *= np.where(products.bits >= 0, spread, 1.0).prod(axis=1)
    return np.where(order > 1, np.maximum(expected, _CERTAIN), 0.0)


def _main_effects(
    products: ProductTerms, noisy: Float64, deviations: Float64, before: Interactions, groups: int
) -> Interactions:
    """Return main effects and what pairs have in common, as products determine them too."""
    from scipy.sparse import csr_array, diags_array, hstack
    from scipy.sparse.linalg import cg

    order = (products.bits >= 0).sum(axis=1)
    longer = order > 1
    if not longer.any():
        return before
    told, order, start = products.part(longer), order[longer], before.chances
    noisy, deviations = noisy[longer], deviations[longer]
    row, place = np.nonzero(told.bits >= 0)
    chances, left, common, own, widest = start, before.uncertain, np.zeros(2), 0.0, 1.0
    # Groups have a c of their own: where rows differ much in size, it is smaller than pairs'.
    kind = np.repeat((0, 1), (len(noisy) - groups, groups))
    for _ in range(_ROUNDS):
        factors, slopes = told.factors(chances)
        changes = (products_of_others(factors) * slopes)[row, place]
        of_columns = csr_array((changes, (row, told.bits[row, place])), (len(noisy), len(chances)))
        unit, inside = np.zeros((len(noisy), 2)), np.zeros(len(noisy))
        variance = chances * (1.0 - chances)
        for at, ends, change in _pairs_of(told, factors, slopes):
            of_pair = change * variance[ends].prod(axis=1)
            inside[at] += CORRELATION**2 * change * of_pair
            unit[at, kind[at]] += of_pair * told.domain.has_two_values[ends].all(axis=1)
        effects = hstack((of_columns, unit), format="csr")
        variances = deviations**2 + _variances(factors, slopes, before.uncertain[told.bits])
        expected = expected_interactions(told, chances)
        apart = noisy - factors.prod(axis=1)
        squares = np.empty(len(noisy))
        for size in np.unique(order):
            at = order == size
            residual = apart[at] - unit[at] @ common
            _, squares[at] = posterior_interactions(residual, expected[at], variances[at])
            squares[at] += own**2 * inside[at] * kind[at]
            if size == 2:
                usual = expected[at] ** 2
                own = math.sqrt(float(squares[at].sum() / usual.sum()))
                # What pairs have in common is expected to be no larger than their own interactions.
                if shared := float((unit[at] ** 2).sum()):
                    widest = min(1.0, math.sqrt(float(usual[unit[at, 0] != 0].sum()) / shared))
        moved, equations = _predicted(
            effects,
            1.0 / (deviations**2 + squares),
            apart + of_columns @ (chances - start),
            np.append(before.uncertain, (widest, widest)),
        )
        last = chances
        chances = to_distributions(told.domain, np.clip(start + moved[:-2], 0.0, 1.0))
        left, common = equations.diagonal()[:-2] ** -0.5, moved[-2:]
        if (np.abs(chances - last) <= _SETTLED * left)[before.uncertain > _CERTAIN].all():
            break
    c, near = np.eye(1, len(moved), len(moved) - 2)[0], diags_array(1.0 / equations.diagonal())
    # What pairs have in common moves them all: by the James-Stein factor of one number, in whose
    # variance counts that all shares together move a product as c does.
    trust = 1.0 - c @ cg(equations, c, rtol=1e-4, M=near)[0] / common[0] ** 2 if common[0] else 0.0
    return Interactions(chances, left, max(trust, 0.0) * float(common[0]), own)


def _predicted(
    effects: csr_array, precisions: Float64, apart: Float64, uncertain: Float64
) -> tuple[Float64, csr_array]:
    """Return the random effects' predictions, and the matrix of their equations."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    before = np.maximum(uncertain, _CERTAIN) ** -2
    trusted = effects.T @ diags_array(precisions)
    told, right = (trusted @ effects).tocsr(), trusted @ apart
    for part in 0.5 ** np.arange(_HALVINGS):
        equations = part * told + diags_array(before, format="csr")
        diagonal = equations.diagonal()
        moved, _ = cg(equations, part * right, rtol=1e-6, M=diags_array(1.0 / diagonal))
        expected = (1.0 - before / diagonal)[:-2]
        most = expected.sum() + 2.0 * math.sqrt(2.0 * float(expected @ expected))
        if (moved[:-2] ** 2 * before[:-2]).sum() <= most:
            break
    return moved, equations


def _pairs_of(
    products: ProductTerms, factors: Float64, slopes: Float64
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Float64]]:
    """Yield products with a pair of factors, its bits, and the change with their covariance."""
    column = products.domain.column_of_bit
    for pair in combinations(range(products.bits.shape[1]), 2):
        one, other = products.bits[:, pair].T
        at = np.flatnonzero((one >= 0) & (other >= 0) & (column[one] != column[other]))
        rest = np.delete(factors[at], pair, axis=1).prod(axis=1)
        ends = products.bits[at][:, pair].astype(np.int64)
        yield at, ends, slopes[at][:, pair].prod(axis=1) * rest


def _variances(factors: Float64, slopes: Float64, uncertain: Float64) -> Float64:
    off = products_of_others(factors) * slopes * uncertain
    return np.asarray((off**2).sum(axis=1) + _CERTAIN**2)

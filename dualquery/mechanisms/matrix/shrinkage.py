"""Noisy products, each drawn towards independent columns as far as noise may be what sets it apart.

Most columns hardly depend on each other, and what a noisy product of them differs by from that of
independent columns is mostly noise. The departures of all products of so many factors tell how
large they are; each is believed by as much as it stands out (`dependence.posterior`). Where few
pairs of many columns are tied, this is far nearer than a fit of a few components to all of them,
which follows noise everywhere; where all columns are tied to something hidden, the fit is nearer.

A product's mean is that of independent columns, moved by the departures of its pairs as in
`departures`, and by what is left for its own. Post-processing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.independence import CORRELATION
from dualquery.mechanisms.baselines.independent import to_distributions
from dualquery.mechanisms.matrix.columns import learned
from dualquery.mechanisms.matrix.departures import products_of_others
from dualquery.mechanisms.matrix.dependence import factors_of, moved_by_pairs, posterior
from dualquery.mechanisms.matrix.looks import Shares
from dualquery.mechanisms.matrix.product_terms import ProductTerms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Float64 = NDArray[np.float64]

_ROUNDS, _SETTLED = 12, 0.1
"""Of the shares, around which products are taken to be linear, at most; and the part of what they
may be off by which they move in the last one."""

_HALVINGS = 24
"""Of the trust in products, at most."""

_CERTAIN = 1e-12
"""A share that is off by less is taken as known."""


def drawn_to_independence(products: ProductTerms, noisy: Float64, deviations: Float64) -> Float64:
    """Return the products' means as their noisy ones tell them: float64, shape ``(f,)``.

    Parameters
    ----------
    products
        What was measured, single factors among them. With a product stand all pairs of its factors,
        or none of them.
    noisy, deviations
        float64, shape ``(f,)``: the noisy means, and the standard deviations of their noise.
    """
    chances, uncertain = learned_from_products(
        products, noisy, deviations, _single(products, noisy, deviations)
    )
    factors, slopes = factors_of(products, chances)
    means: Float64 = factors.prod(axis=1)
    variances = deviations**2 + _variances(products, factors, slopes, uncertain)
    expected = _expected(products, chances, slopes)
    present = products.bits >= 0
    order = present.sum(axis=1)
    moved: Float64 = means.copy()

    def move(own: NDArray[np.bool_]) -> None:
        moved[own] += posterior(noisy[own] - moved[own], expected[own], variances[own])[0]

    both = order == 2
    move(both)
    pairs = np.sort(products.bits[both].astype(np.int64), axis=1)[:, -2:]
    changes = np.where(present, slopes, 1.0)[both].prod(axis=1)
    covariances = (moved - means)[both] / changes
    for size in range(3, products.bits.shape[1] + 1):
        own = order == size
        bits = products.bits[own]
        moved[own] += moved_by_pairs(bits, factors[own], slopes[own], pairs, covariances)
        move(own)
    return moved


def learned_from_products(
    products: ProductTerms, noisy: Float64, deviations: Float64, known: Shares
) -> tuple[Float64, Float64]:
    """Return the shares of all bits, and what they may be off: float64, shape ``(bits,)`` each.

    Noisy shares tell them, and so do products, to first order: each is off by its own departure too
    (a random effect: Henderson, "Best linear unbiased estimation and prediction under a selection
    model", Biometrics 31, 1975). Of a bit that stands in products only nothing is known before: its
    share may be off by as much as it can.

    Parameters
    ----------
    products, noisy, deviations
        As of `drawn_to_independence`; single factors among them are left to ``known``.
    known
        Noisy shares of single bits.
    """
    from scipy.sparse import csr_array

    domain = products.domain
    start, uncertain = learned(known, domain)
    others = np.setdiff1d(products.bits[products.bits >= 0], known.bits)
    uncertain[others] = np.sqrt(start * (1.0 - start))[others]
    longer = (products.bits >= 0).sum(axis=1) > 1
    if not longer.any():
        return start, uncertain
    told = ProductTerms(domain, products.bits[longer], products.second[longer], products.literals)
    noisy, deviations = noisy[longer], deviations[longer]
    row, place = np.nonzero(told.bits >= 0)
    chances = start
    for _ in range(_ROUNDS):
        factors, slopes = factors_of(told, chances)
        effects = csr_array(
            ((products_of_others(factors) * slopes)[row, place], (row, told.bits[row, place])),
            (len(noisy), domain.bits),
        )
        apart = noisy - factors.prod(axis=1)
        variances = deviations**2 + _variances(told, factors, slopes, uncertain)
        own = _departing(told, apart, _expected(told, chances, slopes), variances)
        moved, left = _moved(
            effects, 1.0 / (deviations**2 + own), apart + effects @ (chances - start), uncertain
        )
        before, chances = chances, to_distributions(domain, np.clip(start + moved, 0.0, 1.0))
        if (np.abs(chances - before) <= _SETTLED * left).all():
            break
    return chances, left


def _single(products: ProductTerms, noisy: Float64, deviations: Float64) -> Shares:
    """Return the shares that single factors tell, each bit's once."""
    alone = (products.bits >= 0).sum(axis=1) == 1
    bits, shares = products.single_chances(noisy)
    _, slopes = factors_of(products, np.zeros(products.domain.bits))
    bits, first = np.unique(bits, return_index=True)
    off = deviations[alone] / np.abs(slopes[alone].sum(axis=1))
    return Shares(bits, shares[first], off[first])


def _moved(
    effects: csr_array, weights: Float64, apart: Float64, uncertain: Float64
) -> tuple[Float64, Float64]:
    """Return by how much products move the shares, and what these may be off then.

    Where columns are tied to something hidden, products depart all to one side, and would move the
    shares along. So products are trusted less, by half each time, until they move the shares no
    further than noise explains, by two standard errors.

    Parameters
    ----------
    effects
        By how much each product changes with each share: ``(p, bits)``.
    weights, apart
        float64, shape ``(p,)``: the inverses of the products' variances, and by how much they
        differ from what the shares say.
    uncertain
        float64, shape ``(bits,)``: what the shares may be off before, as standard deviations.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    off = np.maximum(uncertain, _CERTAIN)
    trusted = effects.T @ diags_array(weights)
    told, right = (trusted @ effects).tocsr(), trusted @ apart
    for halving in range(_HALVINGS):
        part = 0.5**halving
        equations = part * told + diags_array(off**-2)
        diagonal = equations.diagonal()
        moved, _ = cg(equations, part * right, rtol=1e-6, M=diags_array(1.0 / diagonal))
        expected = 1.0 - off**-2 / diagonal
        most = expected.sum() + 2.0 * math.sqrt(2.0 * float(expected @ expected))
        if ((moved / off) ** 2).sum() <= most:
            break
    return moved, diagonal**-0.5


def _departing(
    products: ProductTerms, apart: Float64, expected: Float64, variances: Float64
) -> Float64:
    """Return the mean squares of the departures of products of so many factors, each."""
    order = (products.bits >= 0).sum(axis=1)
    departing = np.zeros(len(apart))
    for size in np.unique(order):
        own = order == size
        _, squares = posterior(apart[own], expected[own], variances[own])
        departing[own] = expected[own] ** 2 * (squares.sum() / (expected[own] ** 2).sum())
    return departing


def _variances(
    products: ProductTerms, factors: Float64, slopes: Float64, uncertain: Float64
) -> Float64:
    """Return by how much products may be off as their columns' shares are, as variances."""
    off = products_of_others(factors) * slopes * uncertain[products.bits]
    variances: Float64 = (off**2).sum(axis=1) + _CERTAIN**2
    return variances


def _expected(products: ProductTerms, chances: Float64, slopes: Float64) -> Float64:
    """Return by how much products are expected to depart: as `estimates.independence` has it."""
    spread = np.sqrt(chances * (1.0 - chances))[products.bits] * np.abs(slopes)
    present = products.bits >= 0
    further = np.maximum(present.sum(axis=1) - 2, 0)
    expected: Float64 = CORRELATION * 0.5**further * np.where(present, spread, 1.0).prod(axis=1)
    return np.maximum(expected, _CERTAIN)

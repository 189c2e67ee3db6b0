"""Noisy products drawn towards independent columns."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.matrix import shrinkage
from dualquery.mechanisms.matrix.expansion import Expansion, literals_of
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.matrix.shrinkage import drawn_to_independence
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals
from dualquery.queries.generate.random import random_conjunctions
from tests.mechanisms.matrix.test_factorization import packed, values_on

Float64 = NDArray[np.float64]

MIXED = Domain(np.array([0, 1, 2, 3, 4, 5, 8, 11, 15, 19, 24]))
"""Five binary columns, and five of three to five values."""


def independent(domain: Domain, n: int, seed: int) -> NDArray[np.uint8]:
    """Return records of independent columns with skewed values."""
    generator = np.random.default_rng(seed)
    records = np.zeros((n, domain.bits), np.uint8)
    for start, size in zip(domain.offsets[:-1], domain.sizes, strict=True):
        shares = generator.dirichlet(np.full(max(size, 2), 2.0))
        drawn = generator.choice(len(shares), size=n, p=shares)
        if size == 1:
            records[:, start] = drawn
        else:
            records[np.arange(n), start + drawn] = 1
    return records


def measured(
    work: Workload, records: NDArray[np.uint8], noise: float, seed: int
) -> tuple[ProductTerms, Float64, Float64, Float64]:
    """Return the products of a workload: exact and noisy means, and deviations."""
    features = Expansion.of(work).in_blocks().features
    exact = values_on(features, records).mean(axis=0)
    deviations = np.full(len(exact), noise)
    noisy = exact + noise * np.random.default_rng(seed).standard_normal(len(exact))
    return ProductTerms.of_features(features), exact, noisy, deviations


@pytest.mark.parametrize("domain", [MIXED, Domain.binary(30)], ids=["mixed", "binary"])
def test_independent_columns_keep_hardly_any_noise(domain: Domain) -> None:
    work = random_conjunctions(domain, 1_500, 3, signed=True)
    records = independent(domain, 100_000, 1)
    products, exact, noisy, deviations = measured(work, records, 0.05, 2)
    found = drawn_to_independence(products, noisy, deviations)
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.25 * 0.05
    # Products tell the shares, too: with singles alone these would have all of their noise.
    alone = (products.bits >= 0).sum(axis=1) == 1
    assert np.sqrt(np.mean((found - exact)[alone] ** 2)) < 0.6 * 0.05


def test_few_tied_pairs_stand_out() -> None:
    """Three pairs of thirty columns: each departs by ten deviations, all others by none."""
    records = independent(Domain.binary(30), 100_000, 3)
    ties = ((0, 7), (3, 9), (11, 20))
    for first, second in ties:
        records[:, second] = records[:, first]
    work = all_marginals(Domain.binary(30), 2)
    products, exact, noisy, deviations = measured(work, records, 0.05, 4)
    found = drawn_to_independence(products, noisy, deviations)
    tied = [(products.bits == pair).all(axis=1) for pair in ties]
    which = np.any(tied, axis=0)
    assert which.sum() == 3
    pairs = (products.bits >= 0).sum(axis=1) == 2
    assert np.abs(found - exact)[which].max() < 4 * 0.05
    assert np.sqrt(np.mean((found - exact)[pairs & ~which] ** 2)) < 0.4 * 0.05


def test_columns_tied_to_something_hidden_keep_their_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All products depart to one side; believed as independent ones, they move the shares along."""
    generator = np.random.default_rng(5)
    chances = np.where(generator.random(20_000) < 0.3, 0.6, 0.05)[:, None]
    records = (generator.random((20_000, 40)) < chances).astype(np.uint8)
    work = random_conjunctions(Domain.binary(40), 3_000, 3)
    products, exact, noisy, deviations = measured(work, records, 0.01, 6)
    alone = (products.bits >= 0).sum(axis=1) == 1

    def error() -> float:
        found = drawn_to_independence(products, noisy, deviations)
        return float(np.sqrt(np.mean((found - exact)[alone] ** 2)))

    assert error() < 0.7 * 0.01
    monkeypatch.setattr(shrinkage, "_HALVINGS", 1)
    assert error() > 0.9 * 0.01


def test_without_noise_nothing_moves() -> None:
    records = independent(MIXED, 3_000, 7)
    records[:, 1] = records[:, 0]
    work = random_conjunctions(MIXED, 400, 3, signed=True)
    products, exact, _, deviations = measured(work, records, 1e-9, 8)
    np.testing.assert_allclose(drawn_to_independence(products, exact, deviations), exact, atol=1e-7)


def test_shares_are_found_where_only_products_were_measured() -> None:
    """Queries measured themselves: no single column among them."""
    domain = Domain.binary(12)
    records = independent(domain, 100_000, 9)
    work = all_marginals(domain, 2)
    bits, negated, _ = literals_of(work)
    products = ProductTerms(domain, bits, negated, literals=True)
    truth = work.counts(packed(records), threads=1) / len(records)
    noisy = truth + 0.02 * np.random.default_rng(10).standard_normal(len(truth))
    found = drawn_to_independence(products, noisy, np.full(len(truth), 0.02))
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.35 * 0.02


def test_the_places_of_factors_do_not_matter() -> None:
    """Literals that repeat others leave padding between the rest; bits come in any order."""
    domain = Domain.binary(5)
    tidy = np.array(
        [[0, 3, -1], [3, 4, -1], [1, 2, -1], [0, 1, 3], [1, 3, 4], [0, 2, 4], [2, 3, 4]], np.int32
    )
    moved = np.array(
        [[3, -1, 0], [-1, 4, 3], [1, -1, 2], [3, 0, 1], [4, 3, 1], [0, 4, 2], [4, 2, 3]], np.int32
    )
    noisy = np.random.default_rng(11).uniform(0.05, 0.4, len(tidy))
    found = [
        drawn_to_independence(
            ProductTerms(domain, bits, np.zeros(bits.shape, np.bool_), literals=True),
            noisy,
            np.full(len(tidy), 0.02),
        )
        for bits in (tidy, moved)
    ]
    assert np.isfinite(found[0]).all()
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)

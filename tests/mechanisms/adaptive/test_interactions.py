"""The hierarchical model: main effects, interactions by order, and what pairs have in common."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive.evidence import Evidence, Shares
from dualquery.mechanisms.adaptive.expansion import Expansion, ProductTerms
from dualquery.mechanisms.adaptive.interactions import Interactions, beyond_pairs
from dualquery.mechanisms.adaptive.prior import posterior_interactions, posterior_shares
from dualquery.models.mixture import ProductMixture
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.features import Features
from tests.cases import all_records, values_on
from tests.tables import random_records

Float64 = NDArray[np.float64]

MIXED = Domain(np.array([0, 1, 2, 3, 4, 5, 8, 11, 15, 19, 24]))
"""Five binary columns, and five of three to five values."""


def measured(
    work: Workload, records: NDArray[np.generic], noise: float, seed: int
) -> tuple[ProductTerms, Float64, Float64, Float64]:
    """Return the products of a workload: exact and noisy means, and deviations."""
    features = Expansion.of(work).in_blocks().features
    exact = values_on(features, records).mean(axis=0)
    noisy = exact + noise * np.random.default_rng(seed).standard_normal(len(exact))
    return ProductTerms.of_features(features), exact, noisy, np.full(len(exact), noise)


@pytest.mark.parametrize("domain", [MIXED, Domain.binary(30)], ids=["mixed", "binary"])
def test_independent_columns_keep_hardly_any_noise(domain: Domain) -> None:
    work = random_conjunctions(domain, 1_500, 3, signed=True)
    generator = np.random.default_rng(1)
    columns = [generator.dirichlet(np.full(max(size, 2), 2.0))[-size:] for size in domain.sizes]
    products, exact, noisy, deviations = measured(work, np.concatenate(columns)[None], 0.05, 2)
    found = Interactions.from_products(products, noisy, deviations).fitted
    assert np.sqrt(np.mean((found - exact) ** 2)) < 0.25 * 0.05
    # Products determine the shares, too: with singles alone these would have all of their noise.
    alone = (products.bits >= 0).sum(axis=1) == 1
    assert np.sqrt(np.mean((found - exact)[alone] ** 2)) < 0.6 * 0.05


def test_answers_of_several_literals_on_a_column_follow_from_pairs() -> None:
    """The pairs' covariances are exact, so answers are."""
    domain, table = Domain(np.array([0, 3, 7])), [[4, 3, 2, 1], [1, 2, 5, 0], [2, 2, 1, 1]]
    records, weights = all_records(domain), np.ravel(table) / np.sum(table)
    chances, pairs = weights @ records, np.array(list(product(range(3), range(3, 7))))
    together = weights @ (records[:, pairs[:, 0]] * records[:, pairs[:, 1]])
    covariances = together - chances[pairs].prod(axis=1)
    model = Interactions(chances, np.zeros(7), pairs=pairs, covariances=covariances)
    codes = [[1, 3, 6], [1, 3, 7], [0, 3, 6], [1, 7, 9], [2, 6, -1]]
    work = Workload(np.array(codes, np.int32), domain)
    truth = weights @ np.array([work.on_record(record) for record in records])
    expansion = Expansion.of(work)
    means = model.means(ProductTerms.of_features(expansion.features))
    assert expansion.answers(means) == pytest.approx(truth)


@pytest.mark.filterwarnings("error")
def test_what_is_beyond_pairs_is_that_of_the_model() -> None:
    """Of three factors it is their third moment; of four, those of its triples, too."""
    domain, weights = Domain.binary(5), np.array([0.2, 0.3, 0.5]) * (1.0 + 1e-15)  # as rounding may
    chances = np.random.default_rng(1).random((5, 3), np.float32)
    chances[4] = 1.0  # alike in all components
    records, kept = all_records(domain)[..., None], chances.astype(np.float64)
    chance = np.where(records == 1, kept, 1.0 - kept).prod(axis=1) @ weights
    listed = ((0, 1, 2), (1, 2, 3), (0, 3), (1, 2, 4), (0, 1, 2, 3), (0, 1, 2, 4))
    rows = np.array([bits + (-1,) * (4 - len(bits)) for bits in listed], np.int32)
    signs = values_on(Features(np.arange(5, dtype=np.int32)[:, None], domain), records[..., 0])
    means = chance @ signs
    apart, truth = signs - means, np.zeros(6)
    for row, bits in enumerate(listed):
        for some in (each for size in (3, 4) for each in combinations(bits, size)):
            others = means[list(set(bits) - set(some))].prod()
            truth[row] += chance @ apart[:, some].prod(axis=1) * others
    fit = ProductMixture(domain, weights, chances), ProductTerms.of_features(Features(rows, domain))
    found, noisy = (beyond_pairs(*fit, np.full(6, noise)) for noise in (1e-9, 1.0))
    assert found == pytest.approx(truth, abs=1e-7)
    varied = [0, 1, 4, 5]
    assert (found[varied] != 0).all()
    assert (np.abs(noisy) < 0.1 * np.abs(found))[varied].all()


def test_what_pairs_have_in_common_is_found_and_used_for_others() -> None:
    """Rows that differ in how much they hold: a third of the pairs determines the rest."""
    generator = np.random.default_rng(2)
    domain, size = Domain.binary(40), generator.gamma(2.0, 0.5, 40_000)[:, None]
    records = (generator.random((40_000, 40)) < np.minimum(0.2 * size, 0.95)).astype(np.uint8)
    rows = np.array(list(combinations(range(40), 2)), np.int32)
    every = ProductTerms.of_features(Features(rows, domain))
    exact = values_on(Features(rows, domain), records).mean(axis=0)
    shares, some = records.mean(axis=0), np.arange(0, len(rows), 3)
    noisy = exact + 0.02 * generator.standard_normal(len(exact))
    found = Interactions.fit(
        every.part(some), noisy[some], np.full(len(some), 0.02), shares, np.full(40, 1e-3)
    )
    off, without = (
        np.sqrt(np.mean(np.delete(means - exact, some) ** 2))
        for means in (found.means(every), every.factors(shares)[0].prod(axis=1))
    )
    assert off < 0.7 * without


def test_without_noise_nothing_moves() -> None:
    records = random_records(MIXED, 3_000, np.random.default_rng(7))
    records[:, 1] = records[:, 0]
    work = random_conjunctions(MIXED, 400, 3, signed=True)
    products, exact, _, deviations = measured(work, records, 1e-9, 8)
    found = Interactions.from_products(products, exact, deviations).fitted
    np.testing.assert_allclose(found, exact, atol=1e-7)


def test_exact_pairs_give_triples_up_to_their_own_interaction() -> None:
    """Bahadur's expansion on four columns, of a distribution drawn at random."""
    domain = Domain.binary(4)
    rows = [(*row, -1)[:3] for size in (2, 3) for row in combinations(range(4), size)]
    features = Features(np.array(rows, np.int32), domain)
    records = all_records(domain)
    weights = np.random.default_rng(2).dirichlet(np.ones(len(records)))
    truth, shares = weights @ values_on(features, records), weights @ records
    products = ProductTerms.of_features(features)
    found = Interactions.fit(
        products.part(np.arange(6)), truth[:6], np.full(6, 1e-9), shares, np.zeros(4)
    ).means(products)
    a, b, c = 1.0 - 2.0 * shares[:3]
    ab, ac, bc = (truth[rows.index((*pair, -1))] for pair in ((0, 1), (0, 2), (1, 2)))
    expected = a * b * c + (ab - a * b) * c + (ac - a * c) * b + (bc - b * c) * a
    np.testing.assert_allclose(found[:6], truth[:6], atol=1e-6)
    assert found[rows.index((0, 1, 2))] == pytest.approx(expected, abs=1e-6)


def test_the_strength_of_interactions_is_found_in_noise() -> None:
    """Pairs of which each is below its noise determine their mean square together."""
    generator = np.random.default_rng(0)
    count, noise = 20_000, 0.15
    found = []
    for strength in (0.0, 0.25, 1.0):
        apart = 0.1 * strength * generator.standard_normal(count)
        noisy = apart + noise * generator.standard_normal(count)
        _, squares = posterior_interactions(noisy, np.full(count, 0.1), np.full(count, noise**2))
        found.append(squares.mean() ** 0.5 / 0.1)
    assert found[0] < 0.2
    assert found[1:] == pytest.approx([0.25, 1.0], abs=0.06)


def test_a_set_of_numbers_determines_the_law_of_each() -> None:
    """Of fifty sets, two are strong; sets of one number are as if there were none."""
    generator, sets = np.random.default_rng(0), np.repeat(np.arange(50), 200)
    truth = 0.2 * (sets < 2) * generator.standard_normal(len(sets))
    noisy = truth + 0.1 * generator.standard_normal(len(sets))
    given = noisy, np.full(len(sets), 0.1), np.full(len(sets), 0.01)
    alone, _ = posterior_interactions(*given)
    found, _ = posterior_interactions(*given, sets)
    assert ((found - truth) ** 2).mean() < 0.8 * ((alone - truth) ** 2).mean()
    np.testing.assert_allclose(posterior_interactions(*given, np.arange(len(sets)))[0], alone)
    one = np.eye(1, 40_000, 1)[0]  # it is not among those that determine the laws
    few = posterior_interactions(one, np.full(40_000, 0.025), one * 0 + 1e-12, np.arange(40_000))
    assert np.isfinite(few).all()


def test_shares_are_shrunk_where_noise_hides_them_and_believed_where_it_does_not() -> None:
    truth = np.concatenate((np.zeros(4_000), np.full(200, 0.05), [0.4, 0.9]))
    noisy = truth + 0.01 * np.random.default_rng(1).standard_normal(len(truth))
    shares, uncertain = posterior_shares(noisy, np.full(len(noisy), 0.01), 1.0)
    off = np.abs(shares - truth)
    # Noise alone is off by 0.008 in the mean.
    assert off[:4_000].mean() < 0.0005
    assert off[4_000:4_200].mean() < 0.008
    # A share at a distance from the others is as uncertain as its noise.
    np.testing.assert_allclose(shares[-2:], noisy[-2:], atol=0.004)
    np.testing.assert_allclose(uncertain[-2:], 0.01, rtol=0.25)
    assert np.median(uncertain[:4_000]) < 0.002
    alone, _ = posterior_shares(np.array([0.3]), np.array([0.01]), 1.0)
    assert alone == pytest.approx([0.3], abs=0.01)


def test_values_that_nobody_asks_about_share_the_rest_of_their_column() -> None:
    shares = Shares(np.array([0, 3], np.int32), np.array([0.3, 0.5]), np.full(2, 1e-9))
    chances, uncertain = shares.posterior(Domain(np.array([0, 1, 2, 3, 6])))
    np.testing.assert_allclose(chances, [0.3, 0.5, 0.5, 0.5, 0.25, 0.25])
    assert (uncertain[[1, 2, 4, 5]] == 0).all()


def test_split_evidence_is_unbiased_and_independent() -> None:
    """Variances (1 + g^2) s^2 and (1 + 1 / g^2) s^2 with g^2 = 1/4, and no correlation."""
    deviations = np.repeat([0.5, 2.0], 100_000)
    noisy = 3.0 + deviations * np.random.default_rng(1).standard_normal(200_000)
    split = Evidence(None, noisy, deviations).split(np.random.default_rng(2))  # type: ignore[arg-type]
    parts = [(part.means - 3.0) / deviations for part in split]
    for part, variance in zip(parts, (1.25, 5.0), strict=True):
        # Standard errors: 0.005 or less of the mean, 0.0032 of the variance, relatively.
        assert abs(part.mean()) < 0.025
        assert np.var(part) == pytest.approx(variance, rel=0.016)
    # A correlation of nothing has a standard error of 0.0022.
    assert abs(np.corrcoef(*parts)[0, 1]) < 0.011

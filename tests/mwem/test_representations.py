"""Every representation holds MWEM's distribution: against enumeration, and each other."""

import numpy as np
import pytest
from scipy import stats

from dualquery.data.domain import Domain, rows_of_values
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError
from mwem.columns import Columns
from mwem.representations import Factored, Histogram, JunctionTree, choose, make
from tests.cases import MEMORY, domain_of, random_case, truth_table

KINDS = (Histogram, Factored, JunctionTree)
STARTS = ("uniform", "independent")


def columns_of(queries: Products, start: str, seed: int) -> Columns:
    """Return uniform columns, or some of random shares and some that stay uniform."""
    columns = Columns.uniform(queries.sizes)
    if start == "independent":
        generator = np.random.default_rng([seed, 2])
        for column in np.flatnonzero(generator.random(len(queries.sizes)) < 0.8).tolist():
            columns.of(column)[:] = generator.dirichlet(np.full(queries.sizes[column], 0.7))
    return columns


def cells_of(columns: Columns) -> np.ndarray:
    """Return the share of every cell, one after another."""
    shares = np.ones(1)
    for column in range(len(columns.sizes)):
        shares = np.outer(shares, columns.of(column)).ravel()
    return shares


def naive_mwem(truth, updates, repetitions, shares):
    """Run multiplicative weights cell by cell, as Figure 1 and section 2.3.2 say."""
    history = []
    for query, target in updates:
        history.append((query, target))
        for j, m in [history[-1], *(history * (repetitions - 1))]:
            shares = shares * np.exp(truth[j] * (m - truth[j] @ shares) / 2)
            shares = shares / shares.sum()
    return shares


ALONE = np.ones(100, np.int64)  # each query is measured by itself


def update(one, query: int, target: float) -> None:
    one.update(np.array([query]), np.array([target]))


def measured(queries, updates, repetitions, *representations):
    for query, target in updates:
        for one in representations:
            update(one, query, target)
            one.repeat(repetitions - 1)


def random_updates(seed: int, m: int, count: int):
    generator = np.random.default_rng([seed, 1])
    return [(int(generator.integers(m)), float(generator.random())) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_figure_1(kind, start: str, seed: int) -> None:
    workload = random_case(seed, most_columns=5)
    queries, truth = Products.of_conjunctions(workload), truth_table(workload)
    updates = random_updates(seed, len(workload), 5)
    columns = columns_of(queries, start, seed)
    representation = kind(queries, MEMORY, start=columns)
    np.testing.assert_allclose(representation.answers(), truth @ cells_of(columns), atol=1e-12)
    measured(queries, updates, 3, representation)
    expected = truth @ naive_mwem(truth, updates, 3, cells_of(columns))
    np.testing.assert_allclose(representation.answers(), expected, atol=1e-12)


@pytest.mark.parametrize("way", [2, 3, 4, 5])
def test_marginals_across_a_chain_of_cliques(way: int) -> None:
    """Only neighbours are measured, so most queries lie in no clique."""
    domain = domain_of(1, 3, 1, 1, 4, 1, 1)
    asked = random_conjunctions(domain, 40, way, True, way)
    chain = np.full((6, asked.way), -1, np.int32)
    chain[:, 0], chain[:, 1] = 2 * domain.offsets[:-2], 2 * domain.offsets[1:-1]
    workload = Workload(np.vstack((chain, asked.literals)), domain, {}, True)
    queries = Products.of_conjunctions(workload)
    updates = [
        (q, t) for (_, t), q in zip(random_updates(way, 1, 6), [3, 0, 5, 1, 4, 2], strict=True)
    ]
    tree = JunctionTree(queries, MEMORY, threads=2)
    measured(queries, updates, 4, tree)
    truth = truth_table(workload)
    expected = truth @ naive_mwem(truth, updates, 4, np.full(truth.shape[1], 1 / truth.shape[1]))
    np.testing.assert_allclose(tree.answers(), expected, atol=1e-12)
    assert tree.describe()["largest"] <= 12


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_targets_overflow_nothing(kind) -> None:
    """A thousand passes towards contradictory targets drive log-weights hundreds apart."""
    workload = Workload(np.array([[0, 2], [0, 3], [0, -1], [1, -1]], np.int32), domain_of(1, 1, 1))
    queries = Products.of_conjunctions(workload)
    representation = kind(queries, MEMORY)
    measured(queries, [(0, 1.0), (1, 1.0), (2, 0.0)], 1000, representation)
    answers = representation.answers()
    assert np.isfinite(answers).all()
    assert answers[0] + answers[1] == pytest.approx(answers[2], abs=1e-12)
    # Towards targets that are too small together, the total of the weights falls.
    falling, truth, targets = kind(queries, MEMORY), truth_table(workload), [(2, 0.1), (3, 0.2)]
    measured(queries, targets, 300, falling)
    expected = truth @ naive_mwem(truth, targets, 300, np.full(8, 1 / 8))
    np.testing.assert_allclose(falling.answers(), expected, atol=1e-12)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_samples_follow_the_distribution(kind, start: str) -> None:
    """Chi-square over all cells at level 1e-4, one fixed seed."""
    domain = domain_of(1, 3, 1, 1, 1)
    workload = Workload(np.array([[0, 2], [4, 8], [8, 10], [10, 12], [1, 13]], np.int32), domain)
    queries, truth = Products.of_conjunctions(workload), truth_table(workload)
    updates = [(0, 0.5), (1, 0.4), (2, 0.02), (3, 0.6)]
    columns = columns_of(queries, start, seed=1)
    representation = kind(queries, MEMORY, start=columns)
    measured(queries, updates, 5, representation)
    shares = naive_mwem(truth, updates, 5, cells_of(columns))
    draws = 100_000
    values = representation.sample(draws, np.random.default_rng(1))
    cells = np.ravel_multi_index(tuple(values.T.astype(int)), tuple(queries.sizes))
    assert stats.chisquare(np.bincount(cells, minlength=len(shares)), shares * draws).pvalue > 1e-4
    assert rows_of_values(values[:3], domain).shape == (3, domain.bits)


@pytest.mark.parametrize("kind", [Factored, JunctionTree])
def test_threads_change_nothing(kind) -> None:
    queries = Products.of_conjunctions(random_conjunctions(Domain.binary(12), 1500, 3, True, 0))
    one, two = kind(queries, MEMORY, threads=1), kind(queries, MEMORY, threads=2)
    measured(queries, random_updates(0, 1500, 6), 3, one, two)
    assert np.array_equal(one.answers(), two.answers())


def test_a_component_that_does_not_fit_is_refused_before_it_is_built() -> None:
    chain = np.array([[2 * i, 2 * i + 2] for i in range(30)], np.int32)
    queries = Products.of_conjunctions(Workload(chain, Domain.binary(31)))
    factored = Factored(queries, memory=9 << 20)
    with pytest.raises(BadInputError, match=r"13 measured queries has up to 3.28e\+04 cells"):
        measured(queries, [(q, 0.5) for q in range(30)], 1, factored)
    before = factored.answers()
    assert not factored.admits(ALONE[:30])[12]
    assert factored.admits(ALONE[:30])[[20, 29]].all()
    assert np.array_equal(before, factored.answers())
    tree = JunctionTree(queries, memory=1 << 20)
    measured(queries, [(q, 0.5) for q in range(12)], 1, tree)
    np.testing.assert_allclose(tree.answers(), before, atol=1e-12)
    measured(queries, [(q, 0.5) for q in range(12, 30)], 1, tree)
    assert tree.describe()["largest"] == 4


def test_a_clique_that_does_not_fit_is_refused_before_it_is_built() -> None:
    pairs = np.array([[2 * i, 2 * j] for i in range(12) for j in range(i)], np.int32)
    queries = Products.of_conjunctions(Workload(pairs, Domain.binary(12)))
    tree = JunctionTree(queries, memory=64 * 5000)
    admitted = 0
    for query in range(len(queries)):
        if tree.admits(ALONE[: len(queries)])[query]:
            update(tree, query, 0.5)  # what the rule admits must fit
            admitted += 1
        else:
            with pytest.raises(BadInputError, match="above the limit"):
                update(tree, query, 0.5)
    assert 12 < admitted < len(queries)


def test_values_that_no_measurement_tells_apart_are_taken_together() -> None:
    """Three columns of 60 values: 216,000 cells, but two classes of each are enough."""
    literals = np.array([[14, 122, 240], [14, 123, -1], [20, 241, -1], [16, 220, 340]], np.int32)
    queries = Products.of_conjunctions(Workload(literals, domain_of(60, 60, 60)))
    tree = JunctionTree(queries, MEMORY)
    update(tree, 0, 0.25)
    assert tree.describe()["cells"] == 8
    update(tree, 1, 0.125)
    assert tree.describe()["cells"] == 8
    histogram = Histogram(queries, MEMORY)
    measured(queries, [(0, 0.25), (1, 0.125)], 1, histogram)
    np.testing.assert_allclose(tree.answers(), histogram.answers(), rtol=1e-9, atol=1e-15)
    values = tree.sample(2000, np.random.default_rng(0))
    assert len(np.unique(values[:, 0])) > 50  # the rest of a column stays uniform


def test_a_histogram_too_large_for_memory_says_how_large_and_what_would_do() -> None:
    queries = Products.of_conjunctions(Workload(np.array([[0]], np.int32), Domain.binary(5000)))
    with pytest.raises(BadInputError, match=r"10\^1505 cells .* representation=junction-tree"):
        Histogram(queries, MEMORY)


def test_the_default_representation() -> None:
    small = Products.of_conjunctions(Workload(np.array([[0]], np.int32), Domain.binary(8)))
    large = Products.of_conjunctions(Workload(np.array([[0]], np.int32), Domain.binary(40)))
    assert choose("auto", small, 5, MEMORY, False) == "histogram"
    assert choose("auto", large, 5, MEMORY, False) == "junction-tree"
    assert choose("auto", small, 5, MEMORY, True) == "histogram"
    assert choose("factored", small, 5, MEMORY, False) == "factored"
    with pytest.raises(BadInputError, match="a histogram of 40 columns"):
        choose("auto", large, 5, MEMORY, True)
    with pytest.raises(BadInputError, match="noisy_init counts every cell"):
        choose("factored", small, 5, MEMORY, True)
    kinds = {"histogram": Histogram, "factored": Factored, "junction-tree": JunctionTree}
    assert all(type(make(name, small, MEMORY, 1)) is kind for name, kind in kinds.items())

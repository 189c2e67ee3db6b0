"""The bounds are privacy constants: each is compared with the truth over all pairs of records."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals, random_conjunctions
from dualquery.room.sensitivity import combinatorial, moves, spectral
from dualquery.room.sensitivity.combinatorial import Conjunctions, column_set_bound, pairwise_bound
from tests.cases import all_records, domain_of, truth


def most_differing(workload: Workload) -> int:
    answers = truth(workload.literals, all_records(workload.domain)).T
    return max(int((answers != row).sum(axis=1).max()) for row in answers)


@st.composite
def workloads(draw: st.DrawFn, sizes: tuple[int, ...] = (1, 1, 2, 3, 4)) -> Workload:
    """Small domains; queries of any signs, several literals on one column included."""
    domain = domain_of(*draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=5)))
    k = draw(st.integers(1, min(5, domain.bits)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    positive_chance = draw(st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    rows = []
    for _ in range(draw(st.integers(1, 40))):
        size = draw(st.integers(1, k))
        bits = rng.choice(domain.bits, size, replace=False)
        codes = 2 * bits + (rng.random(size) >= positive_chance)
        rows.append(np.pad(codes, (0, k - size), constant_values=-1))
    return Workload(np.array(rows, np.int32), domain, repeats=True)


@settings(max_examples=300, deadline=None)
@given(workloads())
def test_no_record_contributes_to_more_counts_than_any_of_the_bounds(workload: Workload) -> None:
    answers = truth(workload.literals, all_records(workload.domain)).T
    most = int((answers ^ moves.complemented(workload)).sum(axis=1).max())
    found = moves.contributing_queries(workload).count
    assert most <= found <= moves.differing_queries(workload).count
    if len(conjunctions := Conjunctions.of_workload(workload)):
        assert most <= column_set_bound(conjunctions, 1) <= column_set_bound(conjunctions)
        assert most <= pairwise_bound(conjunctions, 1) <= pairwise_bound(conjunctions)


def test_a_whole_marginal_moves_in_one_cell() -> None:
    workload = all_marginals(domain_of(2, 3, 1, 4), 2)
    assert moves.contributing_queries(workload).count == 6
    assert moves.differing_queries(workload).count == 12
    assert not moves.complemented(workload).any()


@settings(max_examples=300, deadline=None)
@given(workloads())
def test_no_pair_of_records_differs_on_more_than_any_of_the_bounds(workload: Workload) -> None:
    most = most_differing(workload)
    assert most <= moves.differing_queries(workload).count <= len(workload)
    if len(conjunctions := Conjunctions.of_workload(workload)):
        assert most <= column_set_bound(conjunctions)
        assert most <= pairwise_bound(conjunctions)


def held_values(conjunctions: Conjunctions) -> np.ndarray:
    """Return all choices of one value a column, shape (choices, columns)."""
    sizes = np.diff(conjunctions.offsets)
    choices = [range(a, a + s) for a, s in zip(conjunctions.offsets, sizes, strict=False)]
    records = list(product(*choices))
    return np.array(records, int).reshape(len(records), len(sizes))


def answers_of(conjunctions: Conjunctions) -> np.ndarray:
    """Return whether each query holds for each choice of one value a column."""
    held = held_values(conjunctions)[:, None, None, :]
    positive, negative = conjunctions.positive[..., None], conjunctions.negative[..., None]
    satisfied = ((positive < 0) | (held == positive).any(axis=3, keepdims=True)).all(axis=(2, 3))
    return satisfied & ~(held == negative).any(axis=(2, 3))


@settings(max_examples=150, deadline=None)
@given(workloads())
def test_rewriting_over_values_keeps_all_patterns_of_answers(workload: Workload) -> None:
    answers = answers_of(Conjunctions.of_workload(workload))
    expected = truth(workload.literals, all_records(workload.domain)).T
    # Only queries that are false on all records may be left out.
    answers, expected = answers[:, answers.any(axis=0)], expected[:, expected.any(axis=0)]
    assert {row.tobytes() for row in answers} == {row.tobytes() for row in expected}


@settings(max_examples=300, deadline=None)
@given(workloads())
def test_the_pairwise_model_is_at_least_the_queries_it_covers(workload: Workload) -> None:
    if not len(conjunctions := Conjunctions.of_workload(workload)):
        return
    model = combinatorial.PairwiseModel.of_conjunctions(conjunctions)
    answers = answers_of(conjunctions)
    differs_from_reference = answers ^ (conjunctions.positives == 0)
    total = combinatorial.UNIT * differs_from_reference[:, model.modelled].sum(axis=1)
    held = held_values(conjunctions)
    doubled = model.pairwise[held[:, :, None], held[:, None, :]].sum(axis=(1, 2))
    assert (2 * total <= 2 * model.unary[held].sum(axis=1) + doubled).all()
    others = answers[:, ~model.modelled]
    assert max(int((others != row).sum(axis=1).max()) for row in others) <= model.left_out


@settings(max_examples=200, deadline=None)
@given(workloads(sizes=(1, 1, 1, 2, 3)))
def test_no_pair_of_records_differs_on_more_than_the_spectral_bound(workload: Workload) -> None:
    conjunctions = Conjunctions.of_workload(workload)
    if len(covered := conjunctions.subset(conjunctions.on_binary_columns)):
        answers, bound = answers_of(covered), spectral.spectral_bound(covered)
        assert max(int((answers != row).sum(axis=1).max()) for row in answers) <= bound


def marginals(domain: Domain, sets: list[tuple[int, ...]]) -> Workload:
    """Every cell of the marginals on the given sets of columns."""
    rows = []
    for columns in sets:
        codes = []
        for column in columns:
            first, size = int(domain.offsets[column]), int(domain.sizes[column])
            cells = range(2 * first, 2 * (first + size), 2)
            codes.append(list(cells) if size > 1 else [2 * first, 2 * first + 1])
        rows += list(product(*codes))
    return Workload(np.array(rows, np.int32), domain)


@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ((4, 3, 5, 6), [(0, 1, 2)]),
        ((4, 3, 5, 6), [(0, 1, 2), (0, 1, 3), (1, 2, 3)]),
        ((4, 1, 1, 6), [(0, 1, 2), (0, 2, 3)]),
        ((1, 1, 1, 1), [(0, 1, 2), (1, 2, 3)]),
        ((2, 2, 3, 1), [(0, 1, 2, 3)]),
        ((7, 1, 3), [(0,), (1,), (2,)]),
        ((7, 1, 3), [(0, 1), (1, 2)]),
    ],
)
def test_whole_marginals_differ_in_two_cells_each(sizes, sets) -> None:
    workload = marginals(domain_of(*sizes), sets)
    assert moves.differing_queries(workload).count == 2 * len(sets) == most_differing(workload)


@pytest.mark.parametrize(
    ("sizes", "literals"),
    [
        ((3, 3, 3), [[1, 7, 13]]),
        ((3, 3, 3), [[0, 6, 12]]),
        ((1, 1, 1), [[0, 3, 5]]),
        ((1,) * 6, [[0, 3], [4, 6], [9, 11]]),
        ((3, 3, 3, 3), [[0, 7], [12, 19]]),
        ((3, 3, 3), [[0, -1], [6, -1], [12, -1]]),
    ],
)
def test_single_and_disjoint_queries_all_differ(sizes, literals) -> None:
    workload = Workload(np.array(literals, np.int32), domain_of(*sizes))
    assert moves.differing_queries(workload).count == len(literals) == most_differing(workload)


def test_queries_that_no_legal_record_satisfies_do_not_count() -> None:
    workload = Workload(np.array([[0, 2], [1, 3]], np.int32), domain_of(2))
    assert moves.differing_queries(workload).count == 0


def random_workload(domain: Domain, queries: int, seed: int) -> Workload:
    """Signed 3-way conjunctions, bits uniform, on distinct columns."""
    rng = np.random.default_rng(seed)
    bits = np.sort(rng.integers(0, domain.bits, (3 * queries, 3)), axis=1)
    bits = bits[(np.diff(domain.column_of_bit[bits], axis=1) != 0).all(axis=1)][:queries]
    assert len(bits) == queries
    literals = (2 * bits + rng.integers(0, 2, bits.shape)).astype(np.int32)
    return Workload(literals, domain, repeats=True)


ADULT_PAPER = (20, 8, 20, 16, 10, 7, 14, 60, 5, 2, 10, 10, 10, 41, 2)


@pytest.mark.parametrize(
    ("sizes", "queries", "method", "most"),
    [(ADULT_PAPER, 100_000, "pairwise", 11_529), ((1,) * 20, 20_000, "spectral", 5_579)],
)
def test_bounds_of_random_workloads_are_tight(sizes, queries, method, most) -> None:
    """Coordinate ascent finds two records that differ on 1 / 1.3 and 1 / 1.2 of these numbers."""
    bound = moves.differing_queries(random_workload(domain_of(*sizes), queries, seed=5))
    assert bound.method == method
    assert bound.count <= most


def test_queries_on_binary_columns_are_bounded_apart_from_the_rest() -> None:
    wide, narrow = domain_of(*(10,) * 8), Domain.binary(20)
    first, second = random_workload(wide, 5_000, 1), random_workload(narrow, 20_000, 2)
    both = Workload(
        np.concatenate([first.literals, second.literals + 2 * wide.bits]),
        domain_of(*(10,) * 8, *(1,) * 20),
        repeats=True,
    )
    bound = moves.differing_queries(both)
    assert bound.method == "spectral + pairwise"
    assert bound.count == sum(moves.differing_queries(each).count for each in (first, second))


def test_the_spectral_bound_counts_sets_of_four_literals() -> None:
    # The cells of even parity: all coefficients of one to three columns cancel.
    rows = [[2 * i + s for i, s in enumerate(signs)] for signs in product((0, 1), repeat=4)
            if sum(signs) % 2 == 0]  # fmt: skip
    workload = Workload(np.array(rows, np.int32), Domain.binary(4))
    bound = spectral.spectral_bound(Conjunctions.of_workload(workload))
    assert bound == 2 == most_differing(workload)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32))
def test_quadratic_and_cubic_bounds_hold_on_all_sign_vectors(n: int, seed: int) -> None:
    rng, signs = np.random.default_rng(seed), np.array(list(product((-1, 1), repeat=n)))
    linear = rng.integers(-9, 10, n).astype(float)
    quadratic = np.triu(rng.integers(-9, 10, (n, n)), 1).astype(float)
    values = signs @ linear + np.einsum("yi,ij,yj->y", signs, quadratic, signs)
    assert values.max() <= spectral.quadratic_bound(linear, quadratic) + 1e-9
    if n < 3:
        return
    triple = np.array([t for t in product(range(n), repeat=3) if t[0] < t[1] < t[2]]).T
    amount = rng.integers(-4, 5, triple.shape[1]).astype(float)
    triple, amount = triple[:, amount != 0], amount[amount != 0]
    values = signs[:, triple].prod(axis=1) @ amount
    assert values.max() <= spectral.cubic_bound(triple, amount, n) + 1e-9
    assert values.max() <= spectral.quartic_bound(triple, amount, n) + 1e-9


@pytest.mark.parametrize("size", [1, 2, 30, 200])
def test_eigenvalue_bounds_are_just_above_the_eigenvalue(size: int) -> None:
    basis = np.linalg.qr(np.random.default_rng(size).standard_normal((size, size)))[0]
    matrix = (basis * np.append(np.linspace(-1000, 2, size - 1), 7.0)) @ basis.T
    assert 7 - 1e-9 <= spectral.largest_eigenvalue_bound((matrix + matrix.T) / 2) <= 7 + 1e-4


@settings(max_examples=60, deadline=None)
@given(workloads(sizes=(1,)), st.integers(1, 4))
def test_records_of_few_ones_differ_by_the_bound_at_most(workload: Workload, most: int) -> None:
    domain = replace(workload.domain, max_ones=most)
    records = all_records(domain)
    answers = truth(workload.literals, records[records.sum(axis=1) <= most]).T
    differing = max(int((answers != row).sum(axis=1).max()) for row in answers)
    assert differing <= moves.few_ones_bound(workload, most)
    assert differing <= moves.differing_queries(replace(workload, domain=domain)).count


def test_positive_queries_differ_on_at_most_twice_the_sets_of_a_record() -> None:
    workload = random_conjunctions(Domain.binary(12), 200, 3, False, 0, None)
    assert moves.few_ones_bound(workload, 5) == 2 * 10
    assert moves.few_ones_bound(workload, 12) == 200

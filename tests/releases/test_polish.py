"""Polished records: legal, nearer to the answers, and every step what brute force says."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.releases.polish import _Search, check_polish, polished
from dualquery.releases.polish_kernels import Asked, Terms, change_columns, swap_columns
from dualquery.releases.polish_terms import MultipliedOut, on_asked_columns
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, domain_of
from tests.tables import SCHEMA, legal, people, random_records

DOMAIN = domain_of(1, 3, 1, 2, 4)


def workload(seed: int, way: int = 3, signed: bool = True) -> Workload:
    """Return 40 queries, and one that has two literals on a column."""
    made = random_conjunctions(DOMAIN, 20 if way < 2 else 40, way, signed, seed)
    if way < 2:
        return made
    twice = np.full((1, made.way), -1, np.int32)
    twice[0, :2] = [3, 5]
    return Workload(np.concatenate((made.literals, twice)), DOMAIN, made.description)


def looked_at(queries: Workload) -> np.ndarray:
    """Return which queries the search looks at: those of one literal a column."""
    columns = np.where(queries.literals >= 0, DOMAIN.column_of_bit[queries.literals >> 1], -1)
    return ~((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)


def excess_of(queries: Workload, records: np.ndarray, answers: np.ndarray) -> np.ndarray:
    return (queries.answers_on(records) - answers) * len(records)


def weighed(queries: Workload, weights: np.ndarray, excess: np.ndarray) -> tuple[Terms, Asked]:
    """Return what the kernels read."""
    made_of = MultipliedOut.of(queries)
    made_of.weigh(weights, excess)
    return made_of.terms, made_of.asked


@pytest.mark.parametrize(("way", "signed"), [(1, True), (2, True), (3, True), (3, False)])
def test_a_change_is_the_best_that_brute_force_finds(way: int, signed: bool) -> None:
    generator = np.random.default_rng(way)
    queries = workload(way, way, signed)
    chosen = looked_at(queries)
    records = random_records(DOMAIN, 30, generator)
    answers = generator.random(len(queries)) * 0.5
    weights = generator.uniform(1.0, 5.0, len(queries))
    excess = excess_of(queries, records, answers)
    terms, asked = weighed(queries, weights, excess)

    def error(of: np.ndarray) -> float:
        return float(weights[chosen] @ excess_of(queries, of, answers)[chosen] ** 2)

    for which in range(len(records)):
        best = error(records)
        for legal_record in all_records(DOMAIN):
            columns = np.unique(DOMAIN.column_of_bit[legal_record != records[which]])
            if len(columns) == 1:
                tried = records.copy()
                tried[which] = legal_record
                best = min(best, error(tried))
        change_columns(records, DOMAIN.offsets, terms, asked, np.array([which]), 1, excess)
        assert error(records) == pytest.approx(best)
        now = excess_of(queries, records, answers)
        np.testing.assert_allclose(excess[chosen], now[chosen], atol=1e-9)
    assert legal(DOMAIN, records)


def test_what_was_kept_up_to_date_is_what_weighing_again_gives() -> None:
    generator = np.random.default_rng(4)
    queries = workload(6)
    records = random_records(DOMAIN, 50, generator)
    excess = excess_of(queries, records, generator.random(len(queries)))
    weights = generator.uniform(1.0, 5.0, len(queries))
    terms, asked = weighed(queries, weights, excess)
    assert change_columns(records, DOMAIN.offsets, terms, asked, np.arange(50), 3, excess) > 0
    again, _ = weighed(queries, weights, excess)
    np.testing.assert_allclose(terms.slopes, again.slopes, atol=1e-9)


def test_columns_that_nobody_asks_about_are_left_out() -> None:
    generator = np.random.default_rng(12)
    records = random_records(DOMAIN, 40, generator)
    literals = np.array([[2, 5], [4, 19], [3, -1]], np.int32)  # columns 1 and 4
    queries = Workload(literals, DOMAIN, {})
    bits, narrow = on_asked_columns(queries)
    np.testing.assert_array_equal(bits, [1, 2, 3, 7, 8, 9, 10])
    np.testing.assert_array_equal(narrow.domain.offsets, [0, 3, 7])
    np.testing.assert_array_equal(narrow.answers_on(records[:, bits]), queries.answers_on(records))
    better = polished(records, queries, np.array([0.0, 0.2, 0.5]), 5.0, generator)
    others = np.setdiff1d(np.arange(DOMAIN.bits), bits)
    np.testing.assert_array_equal(better[:, others], records[:, others])
    assert (better[:, bits] != records[:, bits]).any()
    assert legal(DOMAIN, better)


def test_one_query_far_off_is_mended_at_the_cost_of_many_near_ones() -> None:
    """By plain squares the one would stay off by 10, as mending it moves 25 others."""
    domain = Domain.binary(51)
    shared = np.stack((np.zeros(25), np.arange(2, 52, 2)), axis=1)
    literals = np.concatenate((shared, [[0, -1]])).astype(np.int32)
    queries = Workload(literals, domain, {})
    records = np.ones((200, 51), np.uint8)
    excess = np.append(np.zeros(25), 10.0)
    search = _Search(records, queries, MultipliedOut.of(queries), excess, np.random.default_rng(0))
    search.made_of.weigh(np.ones(26), excess)
    assert search.visit_any(200) == (200, 0)
    search.weigh()
    assert search.visit_any(200)[1] > 0
    assert abs(excess[25]) < 10


def test_records_near_the_worst_queries_may_mend_them() -> None:
    """A query that holds too often is mended on records where it holds; else it misses one."""
    generator = np.random.default_rng(11)
    queries = workload(3)
    records = random_records(DOMAIN, 500, generator)
    answers = queries.answers_on(records)
    off = np.flatnonzero(looked_at(queries))[:2]
    answers[off] += [-20.5 / 500, 3.5 / 500]
    literals = queries.literals[off]
    missing = (records[:, literals >> 1] == (literals & 1)).sum(axis=2)
    search = _Search.of(records, queries, answers, generator)
    near = search.near_worst()
    assert len(np.unique(near)) == len(near)
    mends = np.stack((missing[near, 0] == 0, missing[near, 1] == 1))
    assert mends.any(axis=0).all()
    # As many as are needed of each, or all there are.
    assert mends[0].sum() >= min(20, (missing[:, 0] == 0).sum()) > 0
    assert mends[1].sum() >= 3
    assert len(near) <= 20 + 3
    before = search.error
    visited, changes = search.visit_for_worst(500)
    assert visited == len(near)
    assert changes > 0
    assert search.error < before


def test_a_swap_keeps_columns_and_never_makes_it_worse() -> None:
    generator = np.random.default_rng(8)
    queries = workload(2)
    chosen = looked_at(queries)
    records = random_records(DOMAIN, 60, generator)
    ones = records.sum(axis=0)
    answers = queries.answers_on(random_records(DOMAIN, 60, generator))
    weights = generator.uniform(1.0, 5.0, len(queries))
    excess = excess_of(queries, records, answers)
    terms, asked = weighed(queries, weights, excess)
    swaps = 0
    for _ in range(200):
        before = weights[chosen] @ excess_of(queries, records, answers)[chosen] ** 2
        pair = generator.choice(60, (2, 1), replace=False)
        found = swap_columns(records, DOMAIN.offsets, terms, asked, pair[0], pair[1], excess)
        now = excess_of(queries, records, answers)[chosen]
        after = weights[chosen] @ now**2
        assert after < before if found else after == pytest.approx(before)
        np.testing.assert_allclose(excess[chosen], now, atol=1e-9)
        swaps += found
    assert swaps > 10
    assert legal(DOMAIN, records)
    np.testing.assert_array_equal(records.sum(axis=0), ones)


def test_polished_records_are_much_nearer_and_the_given_ones_are_left_alone() -> None:
    generator = np.random.default_rng(0)
    queries = random_conjunctions(DOMAIN, 60, 3, True, 0)
    given = random_records(DOMAIN, 500, generator)
    answers = queries.answers_on(random_records(DOMAIN, 501, generator))
    copy = given.copy()
    better = polished(given, queries, answers, 30.0, generator)  # it ends long before
    np.testing.assert_array_equal(given, copy)
    assert legal(DOMAIN, better)
    before, after = (np.abs(queries.answers_on(r) - answers).mean() for r in (given, better))
    assert after < 0.1 * before


def test_wide_tables_and_no_records_are_no_trouble() -> None:
    domain = Domain.binary(3000)
    queries = random_conjunctions(domain, 50, 2, True, 0)
    given = np.zeros((20, 3000), np.uint8)
    better = polished(given, queries, np.full(50, 0.3), 5.0, np.random.default_rng(0))
    assert np.abs(queries.answers_on(better) - 0.3).mean() < 0.1
    nothing = polished(given[:0], queries, np.full(50, 0.3), 5.0, np.random.default_rng(0))
    assert nothing.shape == (0, 3000)


def test_a_release_polishes_its_records() -> None:
    options = {"schema": SCHEMA, "queries": 60, "way": 2, "mechanism": "independent", "seed": 3}
    plain, better = (
        dualquery.release(people(), **options, polish=polish) for polish in (None, 20.0)
    )
    np.testing.assert_array_equal(plain.answers, better.answers)
    errors = [
        np.abs(made.workload.answers_on(made.records) - made.answers).mean()
        for made in (plain, better)
    ]
    assert errors[1] < 0.5 * errors[0]
    assert (plain.options["polish"], better.options["polish"]) == (None, 20.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_times_that_cannot_be_are_refused(seconds: float) -> None:
    with pytest.raises(BadInputError, match="--polish is"):
        check_polish(workload(0), seconds)


def test_what_cannot_be_polished_is_refused_before_anything_is_drawn() -> None:
    with pytest.raises(BadInputError, match="at most 3 literals"):
        check_polish(Parities(4, 2), 1.0)
    with pytest.raises(BadInputError, match="at most 3 literals"):
        check_polish(random_conjunctions(DOMAIN, 5, 4, True, 0), 1.0)
    with pytest.raises(BadInputError, match="makes no synthetic records; leave --polish"):
        dualquery.release(people(), schema=SCHEMA, queries=5, mechanism="gaussian", polish=1.0)

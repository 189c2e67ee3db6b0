"""Polished records: legal, nearer to the answers, and every step what brute force says."""

from __future__ import annotations

import numpy as np
import pytest

import dualquery
from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.queries.parities import Parities
from dualquery.releases.polish import _multiplied_out, _Search, check_polish, polished
from dualquery.releases.polish_kernels import change_columns, swap_columns
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


@pytest.mark.parametrize(("way", "signed"), [(1, True), (2, True), (3, True), (3, False)])
def test_a_change_is_the_best_that_brute_force_finds(way: int, signed: bool) -> None:
    generator = np.random.default_rng(way)
    queries = workload(way, way, signed)
    chosen = looked_at(queries)
    records = random_records(DOMAIN, 30, generator)
    answers = generator.random(len(queries)) * 0.5
    excess = excess_of(queries, records, answers)
    terms, asked = _multiplied_out(queries, excess)
    for which in range(len(records)):
        before = (excess_of(queries, records, answers)[chosen] ** 2).sum()
        best = before
        for legal_record in all_records(DOMAIN):
            columns = np.unique(DOMAIN.column_of_bit[legal_record != records[which]])
            if len(columns) == 1:
                tried = records.copy()
                tried[which] = legal_record
                best = min(best, (excess_of(queries, tried, answers)[chosen] ** 2).sum())
        change_columns(records, DOMAIN.offsets, terms, asked, np.array([which]), 1, excess)
        now = excess_of(queries, records, answers)[chosen]
        assert (now**2).sum() == pytest.approx(best)
        np.testing.assert_allclose(excess[chosen], now, atol=1e-9)
    assert legal(DOMAIN, records)


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
    excess = excess_of(queries, records, answers)
    terms, asked = _multiplied_out(queries, excess)
    swaps = 0
    for _ in range(200):
        before = (excess_of(queries, records, answers)[chosen] ** 2).sum()
        pair = generator.choice(60, (2, 1), replace=False)
        found = swap_columns(records, DOMAIN.offsets, terms, asked, pair[0], pair[1], excess)
        now = excess_of(queries, records, answers)[chosen]
        assert (now**2).sum() < before if found else (now**2).sum() == pytest.approx(before)
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

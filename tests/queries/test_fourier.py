"""Fourier coefficients against the records themselves."""

import numpy as np
import pytest

from dualquery.queries.conjunctions import Workload
from dualquery.queries.derived_queries import Subqueries, answers_of, asked_sets, odd_counts
from dualquery.queries.generate.workloads import all_marginals
from dualquery.room.sensitivity.moves import parities_apart
from tests.cases import all_records, domain_of, random_case, records_of
from tests.tables import random_records


def parity(sets: Workload, rows: np.ndarray) -> np.ndarray:
    """Return the parity of every set on every row, by the definition: 0 or 1, (sets, rows)."""
    return np.array([rows[:, s[s >= 0] >> 1].sum(axis=1) % 2 for s in sets.literals])


@pytest.mark.parametrize("seed", range(12))
def test_odd_counts_and_answers_are_exact(seed) -> None:
    workload = random_case(seed)
    rows = random_records(workload.domain, 70, np.random.default_rng(seed))
    records, sets = records_of(rows), asked_sets(workload)
    odd = odd_counts(sets.workload, sets.workload.counts(records, threads=1))
    np.testing.assert_array_equal(odd, parity(sets.workload, rows).sum(axis=1))
    answers = answers_of(workload, sets, 1 - 2 * odd / 70)
    np.testing.assert_allclose(answers, workload.counts(records, threads=1) / 70, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_parities_apart_is_what_two_records_show(seed) -> None:
    workload = random_case(seed, most_columns=4)
    sets, rows = asked_sets(workload).workload, all_records(workload.domain)
    odd = parity(sets, rows)
    shown = max((odd[:, i] != odd[:, j]).sum() for i in range(len(rows)) for j in range(len(rows)))
    assert parities_apart(sets) == shown


def test_a_whole_closure_costs_less_than_its_size() -> None:
    """All sets of up to 3 of 16 bits: the worst records differ in every bit, or in none of 3."""
    sets = asked_sets(all_marginals(domain_of(*[1] * 16), 3)).workload
    assert len(sets) == 16 + 120 + 560
    assert parities_apart(sets) == 16 + 560


def test_subqueries_are_all_and_in_their_places() -> None:
    workload = random_case(3)
    inside = Subqueries.of(workload)
    for query, row in enumerate(workload.literals.tolist()):
        for pattern in range(1 << workload.way):
            wanted = [c for j, c in enumerate(row) if pattern >> j & 1 and c >= 0]
            place = inside.place[query, pattern]
            found = inside.workload.literals[place] if place < len(inside.workload) else np.empty(0)
            assert [c for c in found.tolist() if c >= 0] == wanted
    listed = [tuple(row) for row in inside.workload.literals.tolist()]
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("literals", [[[1, -1]], [[0, 2]], [[0, -1], [0, 2]]])
def test_what_is_not_closed_or_not_positive_is_refused(literals) -> None:
    sets = Workload(np.array(literals, np.int32), domain_of(1, 1))
    with pytest.raises(ValueError, match="all their subsets"):
        odd_counts(sets, np.zeros(len(sets), np.int64))

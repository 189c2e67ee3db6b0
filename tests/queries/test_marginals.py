"""Whole marginals: their cells partition the records."""

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate import workloads
from dualquery.queries.generate.workloads import all_marginals, random_marginals, target_marginals
from dualquery.runtime.errors import BadInputError
from tests.cases import records_of
from tests.tables import random_records

DOMAIN = Domain(np.array([0, 1, 4, 6, 7, 12]))
CELLS = [2, 3, 2, 2, 5]
ROWS = random_records(DOMAIN, 777, np.random.default_rng(0))


def column_sets(workload: Workload) -> NDArray[np.int32]:
    return DOMAIN.column_of_bit[workload.literals >> 1]


@pytest.mark.parametrize("way", [1, 2, 3, 5, "target"])
def test_counts_of_each_marginal_add_up_to_n(way: int | str) -> None:
    if way == "target":
        workload = target_marginals(DOMAIN, 2)
        expected = sorted(sorted((2, *pair)) for pair in itertools.combinations((0, 1, 3, 4), 2))
    else:
        workload = all_marginals(DOMAIN, way)
        expected = [list(c) for c in itertools.combinations(range(5), way)]
    counts = workload.counts(records_of(ROWS), 1)
    sets, marginal = np.unique(column_sets(workload), axis=0, return_inverse=True)
    assert sets.tolist() == expected
    cells = [np.prod([CELLS[j] for j in s]) for s in sets]
    np.testing.assert_array_equal(np.bincount(marginal), cells)
    np.testing.assert_array_equal(np.bincount(marginal, counts), np.full(len(sets), 777))


def test_marginals_beyond_the_memory_limit_are_refused_before_they_are_made() -> None:
    cells = math.comb(256_000, 3) * 8
    with pytest.raises(BadInputError, match=f"have {cells:,} cells.*limit of 2,147,483,648"):
        all_marginals(Domain.binary(256_000), 3)


@pytest.mark.parametrize("listed", [10**6, 0])
def test_random_marginals_are_whole_and_small(listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_LISTED_SETS", listed)
    workload = random_marginals(DOMAIN, 4, 2, max_cells=6, seed=3)
    sets, cells = np.unique(column_sets(workload), axis=0, return_counts=True)
    assert len(sets) == 4
    np.testing.assert_array_equal(cells, np.array(CELLS)[sets].prod(axis=1))
    assert cells.max() <= 6
    assert workload.counts(records_of(ROWS[:500]), 1).sum() == 4 * 500
    again = random_marginals(DOMAIN, 4, 2, max_cells=6, seed=3)
    np.testing.assert_array_equal(again.literals, workload.literals)


@pytest.mark.parametrize("listed", [10**6, 0])
def test_random_marginals_are_drawn_alike(listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fixed seeds; it would fail for one in 10,000 choices of them if all is well.
    monkeypatch.setattr(workloads, "_LISTED_SETS", listed)
    small = [s for s in itertools.combinations(range(5), 2) if CELLS[s[0]] * CELLS[s[1]] <= 6]
    found = dict.fromkeys(small, 0)
    for seed in range(600):
        sets = column_sets(random_marginals(DOMAIN, 1, 2, max_cells=6, seed=seed))
        found[tuple(sets[0].tolist())] += 1
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


@pytest.mark.parametrize("listed", [10**6, 0])
def test_too_few_small_marginals_are_refused(listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "_LISTED_SETS", listed)
    with pytest.raises(
        BadInputError, match=r"100 random 2-way marginals of at most 6 cells.*only 6"
    ):
        random_marginals(DOMAIN, 100, 2, max_cells=6)
    with pytest.raises(BadInputError, match="only 0 were found"):
        random_marginals(DOMAIN, 1, 2, max_cells=3)
    with pytest.raises(BadInputError, match="not 1 marginals, 0 cells, seed 0"):
        random_marginals(DOMAIN, 1, 2, max_cells=0)

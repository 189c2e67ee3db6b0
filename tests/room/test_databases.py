"""Small databases on tiny universes: what a draw can show, on every pair of neighbours, exactly."""

import itertools
import math

import numpy as np
import pytest

from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.databases import SmallDatabases, count_databases
from tests.cases import all_records, domain_of, records_of

DOMAIN = domain_of(1, 1)
WORKLOAD = Workload(np.array([[0, -1], [2, -1], [0, 2], [1, 2]], np.int32), DOMAIN)
N, SIZE, EPSILON = 3, 2, 2.0


def log_probabilities(counts: np.ndarray, databases: SmallDatabases, epsilon: float, n: int = N):
    """Return the exact log-probability of every database, from the integer weights."""
    scores, unit = databases.scores(counts, n), epsilon / (2 * databases.size)
    weights = []
    for score in scores.tolist():
        high, low = kernels.weight(score, int(scores.max()), unit)
        weights.append((int(high) << kernels.LOW_BITS) + int(low))
    return np.array([math.log(w) - math.log(sum(weights)) for w in weights])


def tables(n: int = N) -> dict[tuple[int, ...], np.ndarray]:
    """Return the counts of every table of n records, by its sorted cells."""
    rows = all_records(DOMAIN)
    return {
        cells: WORKLOAD.counts(records_of(rows[list(cells)]), threads=1)
        for cells in itertools.combinations_with_replacement(range(4), n)
    }


def test_weights_are_those_of_the_exponential_mechanism() -> None:
    databases = SmallDatabases(WORKLOAD, SIZE)
    for cells, counts in tables().items():
        errors = np.array(
            [
                np.abs(counts / N - WORKLOAD.answers_on(databases.records(y))).max()
                for y in range(len(databases))
            ]
        )
        # The score moves by 1/n; the slides' weight is exp(epsilon u / (2 du)).
        expected = np.exp(-EPSILON * N * errors / 2)
        found = np.exp(log_probabilities(counts, databases, EPSILON))
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-9, err_msg=str(cells))


def test_large_tables_do_not_overflow() -> None:
    databases, n = SmallDatabases(WORKLOAD, 3), 2**40
    scores = databases.scores(np.array([n, n, n, 0], np.int64), n)
    assert scores.max() == 0
    assert scores.min() == -3 * n


@pytest.mark.parametrize(("bits", "size"), [((1, 1), 1), ((1, 1), 4), ((3, 1), 3), ((1,), 6)])
def test_databases_are_all_multisets_in_order(bits, size) -> None:
    domain = domain_of(*bits)
    workload = random_conjunctions(domain, 2, 1, seed=1)
    databases, rows = SmallDatabases(workload, size), all_records(domain)
    expected = list(itertools.combinations_with_replacement(range(len(rows)), size))
    assert len(databases) == len(expected) == count_databases(len(rows), size)
    counts = np.array([3, 1])
    scores = databases.scores(counts, 4)
    for number, cells in enumerate(expected):
        records = databases.records(number)
        np.testing.assert_array_equal(records, rows[list(cells)])
        hits = workload.counts(records_of(records), threads=1)
        assert scores[number] == -np.abs(size * counts - 4 * hits).max()

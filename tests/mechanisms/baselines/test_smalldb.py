"""SmallDB on tiny universes: everything it can show, on every pair of neighbours, exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.baselines.smalldb import (
    SmallDB,
    best_error_bound,
    best_size,
    error_bound,
    sampling_size,
)
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.events import RANGE_SLACK, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.releases.making import run
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.databases import SmallDatabases, count_databases, largest_size
from dualquery.runtime.errors import BadInputError
from tests.mwem.cases import all_records, domain_of, records_of
from tests.neighbouring import both_relations, pairs
from tests.tables import SCHEMA, dataset

DOMAIN = domain_of(1, 1)
WORKLOAD = Workload(np.array([[0, -1], [2, -1], [0, 2], [1, 2]], np.int32), DOMAIN)
N, SIZE, EPSILON = 3, 2, 2.0


def log_probabilities(counts: np.ndarray, databases: SmallDatabases, epsilon: float, n: int = N):
    """Return the exact log-probability of every database, from the integer weights."""
    scores = databases.scores(counts, n)
    unit = epsilon / (2 * databases.size)
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


@both_relations
def test_no_database_is_more_than_e_to_the_epsilon_times_as_likely(relation) -> None:
    budget = Budget(EPSILON, 0.0, neighbours=relation)
    plan = SmallDB(size=SIZE).plan(Task(WORKLOAD, N), budget)
    (event,) = plan.schedule
    epsilon = plan.parameters["draw_epsilon"]
    assert event.range == epsilon + RANGE_SLACK <= EPSILON
    databases = SmallDatabases(WORKLOAD, SIZE)
    counts = tables() | (tables(N + 1) if relation is Neighbours.ADD_REMOVE else {})
    logs = {cells: log_probabilities(c, databases, epsilon) for cells, c in counts.items()}
    worst, widest = 0.0, 0.0
    for one, other in pairs(4, N, relation):
        ratios = logs[one] - logs[other]
        worst = max(worst, float(ratios.max()))
        widest = max(widest, float(np.ptp(ratios)))
    assert worst <= EPSILON
    assert widest <= EPSILON  # the bounded range that is charged
    assert widest > 0.9 * EPSILON  # the test looks at what matters


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


@pytest.mark.parametrize(("bits", "size"), [((1, 1), 1), ((1, 1), 4), ((3, 1), 3), ((1,), 6)])
def test_databases_are_all_multisets_in_order(bits, size) -> None:
    domain = domain_of(*bits)
    workload = random_conjunctions(domain, 2, 1, seed=1)
    databases = SmallDatabases(workload, size)
    rows = all_records(domain)
    expected = list(itertools.combinations_with_replacement(range(len(rows)), size))
    assert len(databases) == len(expected) == count_databases(len(rows), size)
    counts = np.array([3, 1])
    scores = databases.scores(counts, 4)
    for number, cells in enumerate(expected):
        records = databases.records(number)
        np.testing.assert_array_equal(records, rows[list(cells)])
        hits = workload.counts(records_of(records), threads=1)
        assert scores[number] == -np.abs(size * counts - 4 * hits).max()


def test_large_tables_do_not_overflow() -> None:
    databases = SmallDatabases(WORKLOAD, 3)
    n = 2**40
    counts = np.array([n, n, n, 0], np.int64)
    scores = databases.scores(counts, n)
    assert scores.max() == 0
    assert scores.min() == -3 * n


def test_draws_follow_the_weights() -> None:
    """Chi-square at fixed seeds (false alarm 1e-4)."""
    rows = all_records(DOMAIN)[[3, 3, 3]]
    data = dataset(ItemSchema.numbered(2, "bits"), rows)
    work = Task(WORKLOAD, N)
    mechanism = SmallDB(size=1)
    plan = mechanism.plan(work, Budget(EPSILON, 0.0))
    found = np.zeros(4)
    for seed in range(400):
        (record,) = run(data, work, mechanism, plan, seed, 1).records
        found[2 * record[0] + record[1]] += 1
    databases = SmallDatabases(WORKLOAD, 1)
    counts = WORKLOAD.counts(data.records, threads=1)
    chances = np.exp(log_probabilities(counts, databases, plan.parameters["draw_epsilon"]))
    assert stats.chisquare(found, 400 * chances).pvalue > 1e-4
    assert stats.chisquare(found, np.full(4, 100.0)).pvalue < 1e-4  # it can fail


def test_the_bound_holds_exactly() -> None:
    """The chance of an error above Proposition 4.4's bound, by enumeration, is at most beta."""
    rows = all_records(DOMAIN)
    n, beta = 400, 0.2
    counts = WORKLOAD.counts(records_of(rows[np.arange(n) % 3]), threads=1)
    for size in (1, 2, 4, 8):
        databases = SmallDatabases(WORKLOAD, size)
        chances = np.exp(log_probabilities(counts, databases, 1.0, n))
        errors = -databases.scores(counts, n) / (n * size)
        bound = error_bound(
            n=n, log_universe=math.log(4), queries=4, epsilon=1.0, size=size, beta=beta
        )
        assert chances[errors > bound].sum() <= beta


def test_bounds_are_those_of_the_slides() -> None:
    task = {"n": 10_000, "log_universe": math.log(256), "queries": 500, "epsilon": 0.5}
    size = math.ceil(math.log(500) / 0.1**2)
    assert sampling_size(500, 0.1) == size
    bound = error_bound(**task, size=size, beta=0.05)
    alpha = math.sqrt(math.log(500) / size)
    assert bound == pytest.approx(
        alpha + 2 * (math.log(256) * math.log(500) / alpha**2 + math.log(20)) / (0.5 * 10_000)
    )
    best = best_error_bound(**task, beta=0.05)
    assert best == pytest.approx(
        ((16 * math.log(256) * math.log(500) + 4 * math.log(20)) / 5_000) ** (1 / 3)
    )
    # Theorem 4.5 follows from Proposition 4.4 at alpha / 2.
    half = math.log(500) / (best / 2) ** 2
    assert error_bound(**task, size=math.ceil(half), beta=0.05) <= best * (1 + 1e-3)


def test_default_size_has_the_smallest_bound_and_follows_public_facts() -> None:
    workload = random_conjunctions(SCHEMA.domain, 60, 2, seed=3)
    small, large = Task(workload, 5), Task(workload, 10**6)
    assert best_size(small, 1.0) == 1
    assert best_size(large, 1.0) == largest_size(workload) > 1
    assert SmallDB().plan(large, Budget(1.0, 0.0)).parameters["size"] == best_size(large, 1.0)


def test_a_large_universe_is_refused_with_its_size() -> None:
    with pytest.raises(BadInputError, match=r"1,099,511,627,776 databases of 1 .* another mech"):
        SmallDB().plan(Task(random_conjunctions(Domain.binary(40), 9, 2), 100), Budget(1.0, 0.0))
    with pytest.raises(BadInputError, match=r"about 10\^\d+ databases of 9 .* size=\d is the larg"):
        SmallDB(size=9).plan(Task(random_conjunctions(Domain.binary(8), 9, 2), 9), Budget(1.0, 0.0))


def test_bad_arguments_are_one_message() -> None:
    for size in (0, -1, 2.5):
        with pytest.raises(BadInputError, match=f"size is {size}"):
            SmallDB(size=size)
    with pytest.raises(BadInputError, match="too little"):
        SmallDB().plan(Task(WORKLOAD, N), Budget(1e-13, 0.0))
    with pytest.raises(BadInputError, match="the bound needs"):
        best_error_bound(n=0, log_universe=1.0, queries=1, epsilon=1.0, beta=0.1)
    with pytest.raises(BadInputError, match="alpha"):
        sampling_size(5, 0.0)

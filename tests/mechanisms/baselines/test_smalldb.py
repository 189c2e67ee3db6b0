"""SmallDB on tiny universes: everything it can show, on every pair of neighbours, exactly."""

import math

import numpy as np
import pytest
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.baselines.smalldb import SmallDB, best_size, error_bound
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.make.making import run
from dualquery.room.draws.databases import SmallDatabases, largest_size
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, records_of
from tests.room.test_databases import DOMAIN, EPSILON, WORKLOAD, N, log_probabilities
from tests.tables import SCHEMA, dataset


def test_draws_follow_the_weights() -> None:
    """Chi-square at fixed seeds (false alarm 1e-4)."""
    data = dataset(ItemSchema.numbered(2, "bits"), all_records(DOMAIN)[[3, 3, 3]])
    work, mechanism = Task(WORKLOAD, N), SmallDB(size=1)
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
    n, beta = 400, 0.2
    counts = WORKLOAD.counts(records_of(all_records(DOMAIN)[np.arange(n) % 3]), threads=1)
    for size in (1, 2, 4, 8):
        databases = SmallDatabases(WORKLOAD, size)
        chances = np.exp(log_probabilities(counts, databases, 1.0, n))
        errors = -databases.scores(counts, n) / (n * size)
        assert chances[errors > error_bound(Task(WORKLOAD, n), 1.0, size, beta)].sum() <= beta


def test_bounds_are_those_of_the_slides() -> None:
    task = Task(random_conjunctions(Domain.binary(8), 400, 3), 10_000)
    size = math.ceil(math.log(400) / 0.1**2)
    alpha = math.sqrt(math.log(400) / size)
    assert error_bound(task, 0.5, size, 0.05) == pytest.approx(
        alpha + 2 * (math.log(256) * math.log(400) / alpha**2 + math.log(20)) / (0.5 * 10_000)
    )
    best = ((16 * math.log(256) * math.log(400) + 4 * math.log(20)) / 5_000) ** (1 / 3)
    # Theorem 4.5, with this bound for the best size, follows from Proposition 4.4 at alpha / 2.
    half = math.log(400) / (best / 2) ** 2
    assert error_bound(task, 0.5, math.ceil(half), 0.05) <= best * (1 + 1e-3)


def test_default_size_has_the_smallest_bound_and_follows_public_facts() -> None:
    workload = random_conjunctions(SCHEMA.domain, 60, 2, seed=3)
    small, large = Task(workload, 5), Task(workload, 10**6)
    assert best_size(small, 1.0) == 1
    assert best_size(large, 1.0) == largest_size(workload) > 1
    assert SmallDB().plan(large, Budget(1.0, 0.0)).parameters["size"] == best_size(large, 1.0)


def test_a_large_universe_is_refused_with_its_size() -> None:
    with pytest.raises(BadInputError, match=r"10\^12 databases of 1 .* size=0"):
        SmallDB().plan(Task(random_conjunctions(Domain.binary(40), 9, 2), 100), Budget(1.0, 0.0))
    with pytest.raises(BadInputError, match=r"about 10\^\d+ databases of 9 .* size=\d is the larg"):
        SmallDB(size=9).plan(Task(random_conjunctions(Domain.binary(8), 9, 2), 9), Budget(1.0, 0.0))


def test_bad_arguments_are_one_message() -> None:
    for size in (0, -1, 2.5):
        with pytest.raises(BadInputError, match=f"size is {size}"):
            SmallDB(size=size)
    with pytest.raises(BadInputError, match="too little"):
        SmallDB().plan(Task(WORKLOAD, N), Budget(1e-13, 0.0))

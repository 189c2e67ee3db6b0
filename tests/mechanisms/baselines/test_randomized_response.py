"""Randomized response: the channel's exact privacy, and answers without bias."""

import itertools
import math

import numpy as np
import pytest

from dualquery.data.domain import axis_sizes, column_values
from dualquery.mechanisms.baselines.randomized_response import RandomizedResponse, correct
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.derived_queries import Subqueries
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.make.making import run
from dualquery.room.draws.randomized import WORDS, asked_columns, randomize, steps_of
from dualquery.room.randomness import SeededRandomness
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, domain_of
from tests.room.test_randomized import DOMAIN, WORKLOAD
from tests.tables import SCHEMA, dataset, random_records


def chance(reported: int, true: int, epsilon: float, values: int) -> float:
    """Return the chance of a report of one column."""
    steps = steps_of(epsilon, values)
    return (WORDS - (values - 1) * steps if reported == true else steps) / WORDS


@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_answers_have_no_bias(epsilon) -> None:
    """The exact mean over all reports of a record is the query's value on the record."""
    sizes = axis_sizes(DOMAIN).tolist()
    cells = list(itertools.product(*(range(size) for size in sizes)))
    rows, inside = all_records(DOMAIN), Subqueries.of(WORKLOAD)
    corrected = [
        correct(WORKLOAD, inside, inside.workload.on_record(report).astype(float), epsilon)
        for report in rows
    ]
    for record, true in zip(rows, cells, strict=True):
        mean = sum(
            math.prod(chance(y, x, epsilon, v) for y, x, v in zip(report, true, sizes, strict=True))
            * answer
            for report, answer in zip(cells, corrected, strict=True)
        )
        np.testing.assert_allclose(mean, WORKLOAD.on_record(record), atol=1e-9)


def test_answers_come_close_with_a_large_budget() -> None:
    """Error far below the epsilon 0.2 one; fixed seeds."""
    data = dataset(SCHEMA, random_records(SCHEMA.domain, 9000, np.random.default_rng(1)))
    work = Task(random_conjunctions(SCHEMA.domain, 60, 2, seed=3), 9000)
    truth = work.workload.counts(data.records, threads=1) / 9000
    errors = []
    for epsilon in (0.2, 60.0):
        mechanism = RandomizedResponse()
        plan = mechanism.plan(work, Budget(epsilon, 0.0))
        errors.append(np.abs(run(data, work, mechanism, plan, 1, 1).answers - truth).max())
    assert errors[1] < 0.01 < errors[0]


def test_only_asked_columns_are_reported_and_paid_for() -> None:
    asked = Workload(np.array([[0, 9]], np.int32), DOMAIN)
    assert asked_columns(asked).tolist() == [0, 2]
    assert len(RandomizedResponse().plan(Task(asked, 50), Budget(1.0, 0.0)).schedule) == 2
    rows = all_records(DOMAIN)
    reported = randomize(rows, DOMAIN, asked_columns(asked), 0.1, SeededRandomness(1))
    assert (column_values(reported, DOMAIN)[:, 1] == 0).all()


def test_a_report_that_would_cost_more_is_refused_before_it_is_charged(monkeypatch) -> None:
    monkeypatch.setattr("dualquery.room.draws.randomized.WORDS", 2**20)
    with pytest.raises(BadInputError, match="too small for a report of 3 values"):
        RandomizedResponse().plan(Task(WORKLOAD, 50), Budget(1e-6, 0.0))


def test_long_queries_are_refused() -> None:
    long = Workload(np.arange(0, 40, 2, dtype=np.int32)[None, :], domain_of(*[1] * 20))
    with pytest.raises(BadInputError, match="too many queries inside"):
        RandomizedResponse().statistics(long)

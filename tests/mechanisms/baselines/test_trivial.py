"""The mechanisms that look at no data."""

from __future__ import annotations

import numpy as np

from dualquery.mechanisms.baselines.data_blind import Uniform, Zero
from dualquery.mechanisms.protocol import Budget, Outcome, Session, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from tests.tables import SCHEMA

BUDGET = Budget(1.0, 1e-6)


class Unread:
    """Rows that refuse to be read."""

    n = 10
    bits = SCHEMA.domain.bits

    def __getattr__(self, name: str):
        raise AssertionError(f"{name} of private rows was used")


def answered(mechanism, work: Task) -> Outcome:
    plan = mechanism.plan(work, BUDGET)
    statistics = mechanism.statistics(work.workload)
    curator = Curator(Unread(), statistics, plan.schedule, SeededRandomness(0))
    return mechanism.run(work, plan, curator, Session(public_seed=0))


def test_zero_says_1_where_every_literal_is_negated() -> None:
    literals = np.array([[1, -1], [0, -1], [1, 3], [1, 2]], np.int32)
    work = Task(Workload(literals, SCHEMA.domain), 10)
    outcome = answered(Zero(), work)
    assert outcome.answers.tolist() == [1, 0, 1, 0]
    assert outcome.records is None  # the zero record breaks the one-hot columns


def test_uniform_cells_are_equal() -> None:
    domain = SCHEMA.domain
    work = Task(all_marginals(domain, 1), 10)
    outcome = answered(Uniform(), work)
    cells = np.where(domain.sizes == 1, 2, domain.sizes)
    np.testing.assert_allclose(outcome.answers, np.repeat(1 / cells, cells))


def test_looking_at_no_data_costs_nothing() -> None:
    work = Task(all_marginals(SCHEMA.domain, 1), 10)
    for mechanism in (Zero(), Uniform()):
        plan = mechanism.plan(work, BUDGET)
        assert plan.schedule == ()
        assert not plan.needs_answers
        answered(mechanism, work)  # on rows that refuse to be read

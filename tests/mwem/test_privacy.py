"""MWEM on a tiny universe: everything it can show, on every pair of neighbours, exactly."""

import numpy as np
import pytest

from dualquery.audit.games import Game, audit_game
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.conjunctions import Workload
from mwem import Mwem
from tests.cases import both_relations, domain_of

WORKLOAD = Workload(np.array([[0, -1], [2, -1], [0, 2]], np.int32), domain_of(1, 1))
N = 2
EPSILON = 2.0


@both_relations
@pytest.mark.parametrize(("select", "iterations"), [("exponential", 2), ("noisy-max", 1)])
def test_no_outcome_is_more_than_e_to_epsilon_times_as_likely(relation, select, iterations) -> None:
    mechanism = Mwem(iterations=iterations, repetitions=2, records=1, select=select)
    game = Game(mechanism, WORKLOAD, N, Budget(EPSILON, 0.0, neighbours=relation), N, "mwem")
    found = audit_game(game, paths=1, most=300)
    assert found.violations == []
    assert found.tried == (3 * 7) * (2 * 7 if iterations == 2 else 1)  # enumerated
    assert found.share > 0.5  # the test looks at what matters


def test_the_schedule_adds_up_to_the_budget() -> None:
    for select in ("exponential", "noisy-max"):
        plan = Mwem(iterations=2, select=select).plan(Task(WORKLOAD, N), Budget(EPSILON, 0.0))
        total = sum(e.range if hasattr(e, "range") else e.epsilon for e in plan.schedule)
        assert EPSILON * (1 - 1e-6) < total <= EPSILON

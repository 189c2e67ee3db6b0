"""What `auto` chooses, and that it says why."""

from __future__ import annotations

from dualquery.automatic import Auto
from dualquery.mechanism import Budget, Task
from dualquery.queries.parities import Parities
from tests.tables import task


def chosen(work: Task, budget: Budget) -> str:
    plan = Auto().plan(work, budget)
    assert plan.parameters["reason"]
    return plan.parameters["mechanism"]


def test_conjunctions_are_answered_by_matrix() -> None:
    work = Task(task().queries, 100_000)
    assert chosen(work, Budget(1.0, 1e-6)) == "matrix"


def test_pure_budgets_and_other_accountants_are_for_dualquery() -> None:
    work = Task(task().queries, 100_000)
    assert chosen(work, Budget(1.0, 0.0)) == "dualquery"
    assert chosen(work, Budget(1.0, 1e-6, accountant="advanced")) == "dualquery"


def test_matrix_serves_the_smallest_budgets_too() -> None:
    few = Task(task().queries, 100)
    assert chosen(few, Budget(0.05, 1e-6)) == "matrix"


def test_other_families_are_answered_by_mwem() -> None:
    assert chosen(Task(Parities(6, 2), 10_000), Budget(1.0, 1e-6)) == "mwem"

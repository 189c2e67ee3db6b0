"""What `auto` chooses, and that it says why."""

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive import expansion
from dualquery.mechanisms.auto import Auto
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.generate.workloads import random_conjunctions, target_marginals
from dualquery.queries.parities import Parities
from dualquery.runtime.errors import BadInputError, LackOfMemoryError
from tests.tables import task


def chosen(work: Task, budget: Budget) -> str:
    plan = Auto().plan(work, budget)
    assert plan.parameters["reason"] in plan.remark
    name = plan.parameters["mechanism"]
    return plan.parameters["first_stage"] if name == "adaptive" else name


def test_conjunctions_are_answered_by_matrix() -> None:
    assert chosen(Task(task().queries, 100_000), Budget(1.0, 1e-6)) == "everything"


def test_pure_budgets_and_other_accountants_are_for_dualquery() -> None:
    work = Task(task().queries, 100_000)
    assert chosen(work, Budget(1.0, 0.0)) == "dualquery"
    plan = Auto().plan(work, Budget(1.0, 1e-6, accountant="advanced"))
    assert plan.parameters["mechanism"] == "dualquery"
    assert plan.parameters["reason"] == "the accountant advanced has no Gaussian noise"


def test_few_rows_and_small_budgets_are_probed_first() -> None:
    queries = task().queries
    assert chosen(Task(queries, 100), Budget(0.05, 1e-6)) == "pairs"
    assert chosen(Task(queries, 100), Budget(1.0, 1e-6)) == "pairs"
    assert chosen(Task(queries, 10_000), Budget(0.05, 1e-6)) == "pairs"
    # There is nothing to probe where no query is about two columns.
    alone = random_conjunctions(queries.domain, 10, 1)
    assert chosen(Task(alone, 100), Budget(0.05, 1e-6)) == "everything"
    # Of few columns positive queries are no others; of many, most columns are taken to be empty.
    for columns, first in ((22, "pairs"), (23, "columns")):
        positive = random_conjunctions(Domain.binary(columns), 200, 3, signed=False)
        assert chosen(Task(positive, 10_000), Budget(0.05, 1e-6)) == first
    # And who asks for a fit gets one.
    wanted = Auto(options={"components": 16}).plan(Task(queries, 100), Budget(0.05, 1e-6))
    assert wanted.parameters["first_stage"] == "everything"


def test_free_memory_does_not_choose_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left depends on what the private rows take, so a lack of it ends the run."""
    monkeypatch.setattr("dualquery.runtime.resources.available_memory", lambda: 30_000_000)
    work = Task(random_conjunctions(Domain.binary(60), 100_000, 3), 300)
    with pytest.raises(LackOfMemoryError, match="multiplying out"):
        Auto().plan(work, Budget(1.0, 1e-6))


def test_a_mechanism_that_is_ruled_out_asks_for_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualquery.runtime.resources.available_memory", lambda: 30_000_000)
    work = Task(random_conjunctions(Domain.binary(60), 100_000, 3), 300)
    plan = Auto(options={"rounds": 5}).plan(work, Budget(1.0, 1e-6))
    assert plan.parameters["mechanism"] == "dualquery"


def test_a_target_is_asked_for_what_it_depends_on() -> None:
    work = target_marginals(task().queries.domain, 0)
    assert chosen(Task(work, 300), Budget(0.1, 1e-6)) == "everything"


def test_a_public_limit_chooses_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MOST_TERMS", 1000)
    work = Task(random_conjunctions(Domain.binary(60), 1000, 3), 300)
    plan = Auto().plan(work, Budget(1.0, 1e-6))
    assert plan.parameters["mechanism"] == "dualquery"
    assert "adaptive refuses" in plan.parameters["reason"]


def test_other_families_are_answered_by_mwem() -> None:
    assert chosen(Task(Parities(6, 2), 10_000), Budget(1.0, 1e-6)) == "mwem"
    few = Task(Parities(3, 1), 10_000)
    assert Auto().plan(few, Budget(1.0, 1e-6)).parameters["iterations"] == 3


def test_what_the_room_could_not_serve_is_not_chosen() -> None:
    """Three queries are too few for ten iterations; DualQuery plays on another form of them."""
    with pytest.raises(BadInputError, match="mwem refuses the task: iterations is 10"):
        Auto(options={"iterations": 10}).plan(Task(Parities(3, 1), 10_000), Budget(1.0, 1e-6))


def test_queries_about_a_thousand_binary_columns_are_measured_in_stages() -> None:
    wide = Task(random_conjunctions(Domain.binary(1_500), 2_000, 3), 100_000)
    assert chosen(wide, Budget(1.0, 1e-6)) == "columns"
    # Those about fewer columns of the same table are not.
    few = random_conjunctions(Domain.binary(1_500), 200, 3)
    assert chosen(Task(few, 1_000_000), Budget(1.0, 1e-6)) == "everything"


def test_what_asks_which_items_come_together_is_measured_in_stages() -> None:
    domain = Domain.binary(30)
    pairs = random_conjunctions(domain, 300, 2, signed=False)
    assert chosen(Task(pairs, 100_000), Budget(1.0, 1e-6)) == "columns"
    signed = random_conjunctions(domain, 300, 2)
    assert chosen(Task(signed, 100_000), Budget(1.0, 1e-6)) == "everything"
    # Categories are never all empty.
    pairs = random_conjunctions(Domain(np.array([0, 1, 2, 5])), 5, 2, signed=False)
    assert chosen(Task(pairs, 100_000), Budget(1.0, 1e-6)) == "everything"

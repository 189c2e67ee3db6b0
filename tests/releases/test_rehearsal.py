"""How long a release will take, tried on made-up rows: by a clock that stands still in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dualquery.data.schema.columns import Binary, Categorical
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.mechanisms.registry import AUTOMATIC, configure
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.generate.random import random_conjunctions
from dualquery.releases import rehearsal

SCHEMA = TableSchema(
    (Binary("a"), Binary("b"), Categorical("c", (("x",), ("y",), ("z",))), Binary("d")),
    declared=True,
)
N = 50_000


def told(name: str, monkeypatch: pytest.MonkeyPatch, tick: Callable[[], float]) -> float:
    monkeypatch.setattr(rehearsal.time, "perf_counter", tick)
    task = Task(random_conjunctions(SCHEMA.domain, 20, way=2), N)
    budget = Budget(1.0, 1e-6)
    mechanism: Any = configure(name, {})
    if mechanism.pure:
        budget = Budget(1.0, 0.0)
    plan = mechanism.plan(task, budget)
    return rehearsal.expected_seconds(task, mechanism, plan, SCHEMA, Neighbours.REPLACE_ONE, 1)


@pytest.mark.parametrize("name", AUTOMATIC)
def test_what_is_left_unseen_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every look at the clock is a second later, the steps that were not made count, too."""
    seconds = iter(range(10_000))
    found = told(name, monkeypatch, lambda: float(next(seconds)))
    looks = next(seconds)
    assert found > rehearsal._START
    if name == "matrix":
        assert looks < 20  # it stopped after a few of 3,300 steps
        assert found > 3_000


def test_a_clock_that_stands_still_leaves_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = told("matrix", monkeypatch, lambda: 0.0)
    rows = rehearsal._CELL_READ * N * 4 + rehearsal._CELL_MADE * N * SCHEMA.domain.bits
    assert found == pytest.approx(rehearsal._START + rows)


def test_made_up_rows_are_legal() -> None:
    rows = rehearsal._made_up(SCHEMA.domain, 5_000).dense_rows(0, 5_000)
    assert (rows[:, 2:5].sum(axis=1) == 1).all()
    assert 0 < rows[:, [0, 1, 5]].mean() < 1
    assert np.array_equal(rows, rehearsal._made_up(SCHEMA.domain, 5_000).dense_rows(0, 5_000))


def test_columns_of_made_up_rows_are_tied_together() -> None:
    """So the trial of what looks first takes its longer way: one pair of 100 is in 1 row of 10."""
    values = tuple((str(each),) for each in range(10))
    domain = TableSchema((Categorical("a", values), Categorical("b", values)), declared=True).domain
    rows = rehearsal._made_up(domain, 5_000).dense_rows(0, 5_000)
    pairs = rows[:, :10, None] & rows[:, None, 10:]
    assert pairs.mean(axis=0).max() > 0.1

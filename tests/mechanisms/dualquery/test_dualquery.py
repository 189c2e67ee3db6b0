"""The game itself: its sign, its limits, and what a bad solver can do to it (nothing)."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dualquery import evaluate, release
from dualquery.mechanisms.dualquery.game import DualQuery
from dualquery.mechanisms.dualquery.responses import legal_response
from dualquery.mechanisms.protocol import Budget, Outcome, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.events import GameSchedule
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals
from dualquery.releases.make.making import run
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.rows.engines import load
from dualquery.rules.constraints import groups_of
from dualquery.runtime.errors import BadInputError
from solvers import BestResponse, Status
from solvers import get_solver as find_solver
from tests.solvers.faulty import Faulty
from tests.tables import SCHEMA, dataset, legal, people, random_records, task

BUDGET = Budget(epsilon=1.0, delta=1e-6, accountant="zcdp")


def loaded(rows: int = 300):
    return load(people(rows), SCHEMA)


def played(work: Task, **options) -> Outcome:
    """Return what a game on 300 rows gives, of seed 0 and one thread."""
    mechanism = DualQuery(**options)
    return run(loaded(), work, mechanism, mechanism.plan(work, BUDGET), 0, 1)


def errors(epsilon: float, seed: int, rows: int = 2000, **options) -> np.ndarray:
    data = loaded(rows)
    work = Task(all_marginals(SCHEMA.domain, 2), data.n)
    mechanism = DualQuery(**options)
    plan = mechanism.plan(work, replace(BUDGET, epsilon=epsilon))
    outcome = run(data, work, mechanism, plan, seed, 1)
    return np.abs(outcome.answers - work.workload.counts(data.records, threads=1) / data.n)


def test_error_falls_with_epsilon() -> None:
    """Means over two fixed seeds; the gap is several times their spread."""
    found = [[errors(e, seed, 600, rounds=40).max() for seed in range(2)] for e in (0.05, 5.0)]
    few, many = np.mean(found, axis=1)
    assert few > 1.5 * many
    assert many < 0.15


def test_it_learns_what_independent_columns_cannot() -> None:
    """Half the table is (young, Female), half (old, Male), so the joint cell is far from 1/4."""
    data = loaded(2000)
    work = Task(all_marginals(SCHEMA.domain, 2), data.n)
    mechanism = DualQuery(rounds=60)
    plan = mechanism.plan(work, replace(BUDGET, epsilon=10.0))
    answers = run(data, work, mechanism, plan, 0, 1).answers
    other = configure("independent", {})
    independent = run(data, work, other, other.plan(work, BUDGET), 0, 1).answers
    truth = work.workload.counts(data.records, threads=1) / data.n
    assert np.abs(answers - truth).max() < 0.7 * np.abs(independent - truth).max()


def room_with(schedule: GameSchedule, records: np.ndarray, workload: Workload) -> Curator:
    return Curator(dataset(SCHEMA, records).records, workload, schedule, SeededRandomness(0))


def test_a_number_of_rows_that_is_stated_wrongly_costs_little_accuracy() -> None:
    """Ten times too many: records are fitted to the game that was played, not to its plan."""
    table = people(3000)
    made = release(
        table, schema=SCHEMA, queries=200, way=2, mechanism="dualquery", rows=30_000, seed=0,
        neighbours="add-remove", epsilon=2.0, delta=1e-6, options={"effort": 0.05},
    )  # fmt: skip
    assert evaluate(made, table)["mean_error"] < 0.006  # .0155 if fitted to the plan
    assert any("The parameter eta goes with" in note for note in made.notes)


def test_under_served_queries_gain_weight() -> None:
    """All rows have the flag and are Female; one record with neither under-serves both."""
    flag, male = 4 + 4, 4 + 4 + 1
    rows = random_records(SCHEMA.domain, 300, np.random.default_rng(0))
    rows[:, flag], rows[:, male] = 1, 0
    workload = Workload(np.array([[2 * flag], [2 * male]], np.int32), SCHEMA.domain)
    room = room_with(GameSchedule(2, 200, 5.0, 300), rows, workload)
    room.begin_game(5.0)
    wrong = rows[0].copy()
    wrong[flag], wrong[male] = 0, 1
    room.reweight(wrong)
    sample = room.sample_queries(200)
    assert (sample.signs[sample.queries == 0] == 1).mean() > 0.97
    assert (sample.signs[sample.queries == 1] == -1).mean() > 0.97


def test_a_well_served_query_keeps_its_weight() -> None:
    """With a record that answers as all rows do, query and complement stay even (4.5 sigma)."""
    flag = 8
    rows = random_records(SCHEMA.domain, 300, np.random.default_rng(0))
    rows[:, flag] = 1
    workload = Workload(np.array([[2 * flag]], np.int32), SCHEMA.domain)
    room = room_with(GameSchedule(2, 4000, 5.0, 300), rows, workload)
    room.begin_game(5.0)
    room.reweight(rows[0])
    assert abs(room.sample_queries(4000).signs.mean()) < 4.5 / math.sqrt(4000)


@pytest.mark.parametrize(("share", "kept"), [(0.0, 20), (0.1, 18), (0.5, 10), (0.99, 1)])
def test_burn_in_leaves_out_the_first_rounds(share, kept) -> None:
    outcome = played(task(), rounds=20, samples=5, burn_in=share, mixture="equal")
    assert len(outcome.records) == kept
    assert len(outcome.trace) == 19
    whole = played(task(), rounds=20, samples=5, burn_in=0.0, mixture="equal")
    np.testing.assert_array_equal(outcome.records, whole.records[20 - kept :])


@pytest.mark.parametrize(
    ("solver", "policy"),
    [("auto", "zeros"), ("auto", "coins"), ("auto", "hint"), ("scip:aggregated", "zeros")],
)
def test_every_policy_gives_legal_records(solver, policy) -> None:
    outcome = played(task(queries=30), rounds=4, samples=4, solver=solver, free=policy)
    assert legal(SCHEMA.domain, outcome.records)
    assert {line["solver"] for line in outcome.trace} == {find_solver(solver).name}


def test_answers_are_those_of_the_records() -> None:
    work = task()
    outcome = played(work, rounds=10, samples=5)
    truth = np.stack([work.workload.on_record(r) for r in outcome.records]).mean(axis=0)
    np.testing.assert_allclose(outcome.answers, truth)


def test_memory_and_fitted_shares_are_worth_their_while() -> None:
    """Means over two fixed seeds; the gap is several times their spread."""
    neither = {"remembered_rounds": 1, "mixture": "equal"}
    plain = [errors(0.5, seed, rounds=60, **neither).mean() for seed in range(2)]
    ours = [errors(0.5, seed, rounds=60).mean() for seed in range(2)]
    assert np.mean(ours) < 0.8 * np.mean(plain)


def test_trace_describes_the_sampled_problem() -> None:
    outcome = played(task(), rounds=6, samples=7, remembered_rounds=1)
    assert [line["round"] for line in outcome.trace] == [2, 3, 4, 5, 6]
    for line in outcome.trace:
        assert line["samples"] == 7
        assert line["terms"] <= 7
        assert line["attributes"] <= 2 * line["terms"]
        assert line["status"] in {"optimal", "feasible", "fallback"}
        assert 0 <= line["incumbent_seconds"] <= line["seconds"]
    assert sum(outcome.solver["rounds"].values()) == 5
    assert outcome.solver["seconds"] == pytest.approx(sum(x["seconds"] for x in outcome.trace))


@pytest.mark.parametrize("fault", ["infeasible", "none"])
def test_a_solver_that_returns_nonsense_is_survived(fault, monkeypatch) -> None:
    monkeypatch.setattr("solvers.registry.metadata.entry_points", Faulty.points.select)
    options = {"solver": f"faulty:{fault}", "solver_timeout": 0.02}
    outcome = played(task(queries=30), rounds=3, samples=4, **options)
    assert legal(SCHEMA.domain, outcome.records)
    assert {line["status"] for line in outcome.trace} == {"fallback"}
    assert all(math.isfinite(line["objective"]) for line in outcome.trace)


def test_a_wrong_shape_is_replaced_and_a_legal_record_kept() -> None:
    domain = SCHEMA.domain
    problem = BestResponse(domain.bits, np.array([[0]], np.int32), np.ones(1), groups_of(domain))
    good = find_solver("exhaustive").solve(problem)
    default = random_records(domain, 1, np.random.default_rng(0))[0]
    assert legal_response(problem, good, default).record is good.record
    replaced = legal_response(problem, replace(good, record=good.record[:-1]), default)
    assert replaced.record is default
    assert replaced.objective == problem.value(default)
    assert replaced.status is Status.FALLBACK
    signed = replace(good, record=good.record.astype(np.int64))
    assert legal_response(problem, signed, default).record.dtype == np.uint8


def test_it_plays_no_round_that_the_schedule_does_not_have() -> None:
    work = task()
    plan = DualQuery(rounds=3, samples=2).plan(work, BUDGET)
    with pytest.raises(RuntimeError, match="the budget is spent"):
        run(loaded(), work, DualQuery(), replace(plan, schedule=()), 0, 1)


def test_a_game_that_does_not_fit_is_refused_before_anything_is_charged(monkeypatch) -> None:
    monkeypatch.setattr("dualquery.runtime.resources.available_memory", lambda: 1000)
    with pytest.raises(BadInputError, match=r"a game of 20 rounds on .* set fewer rounds"):
        DualQuery(rounds=20).plan(task(n=3000), Budget(1.0, 1e-6))

"""One suite that every mechanism passes; a line in ``MECHANISMS`` says what one claims."""

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import uniform_probabilities
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.mechanisms.registry import BUILT_IN, configure, mechanism_names
from dualquery.privacy.accountants.choice import ACCOUNTANTS, best
from dualquery.privacy.events import GaussianNoise, events_of
from dualquery.privacy.guarantee import PrivacyStatement
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.releases.make.making import run
from dualquery.releases.make.proof import price, statement
from dualquery.room.curator import Curator
from dualquery.room.ground import Ground
from dualquery.room.randomness import SeededRandomness, SystemRandomness
from dualquery.room.row_count import RowCount
from dualquery.rows.engines import Dataset
from dualquery.rows.row_sums import Rows
from dualquery.runtime.errors import BadInputError
from tests.cases import functionals
from tests.tables import SCHEMA, dataset, legal, random_records, task

DUALQUERY_TRACE = {
    "round", "samples", "terms", "attributes", "solver", "status", "objective", "bound",
    "incumbent_seconds", "seconds", "steps",
}  # fmt: skip
MWEM_TRACE = {
    "round", "query", "answer_before", "measured", "cells", "largest", "components", "seconds",
}  # fmt: skip
SAMPLED_TRACE = {"round", "query", "answer_before", "measured", "residual", "steps", "seconds"}
MATRIX_TRACE = {"trust"}
STAGES_TRACE = {"stage", "columns", "products", "weighed", "queries"}
LOOKS_AT_NOTHING = ("uniform", "zero")
UNMEASURED = {*LOOKS_AT_NOTHING, "dualquery", "smalldb", "randomized-response"}
"""Mechanisms whose release has no measurements: they draw queries, records or reports."""
ALL_ACCOUNTANTS = frozenset({"paper", "advanced", "zcdp", "exact"})


@dataclass(frozen=True)
class Case:
    """A mechanism, options that keep it small, and its claims; keys of ``trace`` are public."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    records: bool = True
    trace: Set[str] = frozenset()
    runs_at_delta_0: bool = True
    accountants: frozenset[str] = ALL_ACCOUNTANTS


NOISE: dict[str, Any] = {"accountants": frozenset({"zcdp", "exact"})}
GAUSSIAN = NOISE | {"runs_at_delta_0": False}
STAGED = GAUSSIAN | {"trace": MATRIX_TRACE | STAGES_TRACE}

MECHANISMS = [
    Case("dualquery", {"rounds": 10, "samples": 20}, trace=DUALQUERY_TRACE),
    Case("auto", trace=MATRIX_TRACE | STAGES_TRACE),
    *(Case(name, {"records": 50}, **STAGED) for name in ("adaptive", "probed", "staged")),
    Case("matrix", {"components": 16, "steps": 50, "records": 50}, trace=MATRIX_TRACE, **GAUSSIAN),
    Case("matrix", {"components": 0}, records=False, **GAUSSIAN),
    Case("gaussian", records=False, **GAUSSIAN),
    Case("laplace", records=False, accountants=frozenset({"advanced"})),
    Case("independent", {"records": 50}, **NOISE),
    Case("uniform", {"records": 50}),
    Case("zero", records=False),
    Case("smalldb", accountants=frozenset({"advanced"})),
    Case("randomized-response", records=False, accountants=ALL_ACCOUNTANTS - {"paper"}),
    Case("mwem", {"iterations": 4}, trace=MWEM_TRACE, **NOISE),
    Case("mwem", {"iterations": 4, "select": "noisy-max"}, trace=MWEM_TRACE, **NOISE),
    Case(
        "mwem-sampled",
        {"rounds": 4, "population": 500, "records": 50},
        trace=SAMPLED_TRACE,
        **GAUSSIAN,
    ),
    Case("barak", {"records": 50}, **NOISE),
    Case("barak", {"records": 50, "fit": "program"}, **NOISE),
    Case("barak", {"fit": "none"}, records=False, **NOISE),
]
N = 300
BUDGET = Budget(epsilon=1.0, delta=1e-5)
TIMINGS = {"seconds", "incumbent_seconds", "slowest_seconds"}


def rows(seed: int) -> np.ndarray:
    return random_records(SCHEMA.domain, N, np.random.default_rng(seed))


def carry_out(
    mechanism: Mechanism[Any], work: Task, plan: Plan[Any], seed: int = 5, threads: int = 1
) -> Outcome:
    return run(dataset(SCHEMA, rows(1)), work, mechanism, plan, seed, threads)


def room_of(mechanism: Mechanism[Any], work: Task, schedule: Any, **more: Any) -> Curator:
    """Return a room of the same rows, by default with draws of a seed."""
    held, source = mechanism.statistics(work.workload), more.pop("source", SeededRandomness(0))
    return Curator(dataset(SCHEMA, rows(1)).records, held, schedule, source, **more)


def unlisted(name: str) -> Case:
    """Return a mechanism that has no line above, with the claims that its own plan and run show."""
    mechanism, work = configure(name, {}), task()
    plan = mechanism.plan(work, BUDGET)
    priced = {a.name for a in ACCOUNTANTS if a.supports(plan.schedule, BUDGET.delta) is None}
    try:
        mechanism.plan(work, Budget(1.0, 0.0))
        runs_at_delta_0 = True
    except BadInputError:
        runs_at_delta_0 = False
    return Case(
        name,
        records=carry_out(mechanism, work, plan).records is not None,
        runs_at_delta_0=runs_at_delta_0,
        accountants=frozenset(priced),
    )


LISTED = {case.name for case in MECHANISMS}
CASES = [*MECHANISMS, *(unlisted(name) for name in BUILT_IN if name not in LISTED)]


@pytest.fixture(
    scope="module",
    params=CASES,
    ids=lambda case: f"{case.name} {case.options.get('fit', '')}".strip(),
)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(scope="module")
def mechanism(case: Case) -> Mechanism[Any]:
    return configure(case.name, case.options)


@pytest.fixture(scope="module")
def plan(mechanism: Mechanism[Any]) -> Plan[Any]:
    """The plan for `task()` at ``BUDGET``."""
    return mechanism.plan(task(), BUDGET)


@pytest.fixture(scope="module")
def outcome(mechanism: Mechanism[Any], plan: Plan[Any]) -> Outcome:
    """What a run gives by this plan, of seed 5 and one thread."""
    return carry_out(mechanism, task(), plan)


def without_timings(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in TIMINGS}


def assert_same(one: Outcome, other: Outcome) -> None:
    np.testing.assert_array_equal(one.answers, other.answers)
    assert (one.records is None) == (other.records is None)
    if one.records is not None:
        np.testing.assert_array_equal(one.records, other.records)
    assert [*map(without_timings, one.trace)] == [*map(without_timings, other.trace)]


def test_kept_measurements_are_the_truth_plus_the_noise_that_they_state(case, outcome) -> None:
    """Mean squares of normed errors: a chi-squared or so, within 5 of its standard deviations."""
    work, kept = task(), outcome.measurements
    if kept is None:
        assert case.name in UNMEASURED
        return
    truth = functionals(kept, rows(1), work.queries.domain).mean(axis=1)
    norms = (kept.values - truth) / kept.deviations
    # Laplace noise has the kurtosis 6, so its squares vary more.
    each = 2.0 if kept.noise == "gaussian" else 5.0
    assert abs((norms**2).mean() - 1.0) < 5.0 * np.sqrt(each / len(kept))


def test_configuration_is_a_frozen_dataclass_under_its_name(case: Case, mechanism) -> None:
    assert is_dataclass(mechanism)
    assert mechanism.name == case.name
    assert len({mechanism, configure(case.name, case.options)}) == 1
    for option in fields(mechanism)[:1]:
        with pytest.raises(AttributeError):
            setattr(mechanism, option.name, None)


@pytest.mark.parametrize("way", [1, 2, 3])
def test_answers_and_records_are_as_promised(case: Case, mechanism, way) -> None:
    work = task(way=way, queries=20)
    outcome = carry_out(mechanism, work, mechanism.plan(work, BUDGET))
    assert outcome.answers.shape == (20,)
    assert outcome.answers.dtype == np.float64
    assert np.isfinite(outcome.answers).all()
    assert outcome.answers.min() >= 0
    assert outcome.answers.max() <= 1
    assert (outcome.records is not None) == case.records
    if outcome.records is not None:
        assert len(outcome.records) >= 1
        assert legal(SCHEMA.domain, outcome.records)
        assert SCHEMA.decode(outcome.records).shape == (len(outcome.records), len(SCHEMA.columns))


def test_plan_is_a_function_of_public_facts(mechanism, plan, outcome) -> None:
    """`plan` gets no data, and asking again after a run gives the same."""
    again = mechanism.plan(task(), BUDGET)
    assert again == plan
    assert again.parameters == plan.parameters


def stated(plan: Plan[Any], budget: Budget, data: Dataset[Rows]) -> PrivacyStatement:
    """Return the guarantee of a plan, for a public number of rows."""
    return statement(plan, budget, price(plan, budget), data, RowCount(data.n), None)


def test_another_table_of_the_same_size_does_not_change_the_statement(plan) -> None:
    one, other = (stated(plan, BUDGET, dataset(SCHEMA, rows(data))) for data in (1, 2))
    assert one == other


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-3])
def test_schedule_fits_the_budget_by_the_accountant_named(case, mechanism, epsilon, delta) -> None:
    if delta == 0 and not case.runs_at_delta_0:
        pytest.skip("refused at delta 0, see below")
    plan = mechanism.plan(task(), Budget(epsilon, delta))
    accountant, cost = best(plan.schedule, delta, plan.accountant)
    assert accountant.name == plan.accountant
    assert cost <= epsilon
    # No budget lies idle: a mechanism that looks at data spends nearly all of it.
    assert cost >= 0.9 * epsilon or not events_of(plan.schedule)


def test_delta_0_is_pure_or_refused(case: Case, mechanism) -> None:
    work, budget = task(), Budget(1.0, 0.0)
    if not case.runs_at_delta_0:
        with pytest.raises(BadInputError, match="delta"):
            mechanism.plan(work, budget)
        return
    plan = mechanism.plan(work, budget)
    assert stated(plan, budget, dataset(SCHEMA, rows(1))).delta == 0
    assert carry_out(mechanism, work, plan).answers.shape == (len(work.workload),)


@pytest.mark.parametrize("name", ["paper", "advanced", "zcdp", "exact"])
def test_the_accountant_asked_for_is_used_or_refused(case: Case, mechanism, name) -> None:
    budget = replace(BUDGET, accountant=name)
    if name not in case.accountants:
        with pytest.raises(BadInputError, match=name):
            mechanism.plan(task(), budget)
        return
    plan = mechanism.plan(task(), budget)
    assert not events_of(plan.schedule) or plan.accountant == name


def test_ledger_is_used_up_exactly(case: Case, mechanism, plan) -> None:
    work, events = task(), events_of(plan.schedule)
    curator = room_of(mechanism, work, plan.schedule)
    mechanism.run(work, plan, curator, Session(public_seed=0))
    assert curator._ledger.spent == len(events)
    assert len(events) > 0 or case.name in LOOKS_AT_NOTHING
    with pytest.raises(RuntimeError, match="the budget is spent"):
        curator._ledger.charge(
            events[-1] if events else GaussianNoise(1.0, 1.0), Ground("a test", "counts", 1.0)
        )


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_record_added_or_removed(case: Case, mechanism, delta: float) -> None:
    """Planned on a public number of rows, run on another: used up exactly, and not a draw more."""
    budget = Budget(1.0, delta, neighbours=Neighbours.ADD_REMOVE)
    if delta == 0 and not case.runs_at_delta_0:
        pytest.skip("refused at delta 0")
    work = task(n=N + 7)
    if case.name == "randomized-response":
        with pytest.raises(BadInputError, match="use --neighbours replace-one"):
            mechanism.plan(work, budget)
        return
    plan = mechanism.plan(work, budget)
    assert best(plan.schedule, delta, plan.accountant)[1] <= 1.0
    if case.name in LOOKS_AT_NOTHING:
        return
    events, outcomes = events_of(plan.schedule), []
    for left in (events, events[:-1]):
        curator = room_of(mechanism, work, left, neighbours=budget.neighbours, public_rows=work.n)
        if left != events:
            with pytest.raises(RuntimeError, match="the budget is spent"):
                mechanism.run(work, plan, curator, Session(public_seed=0))
            continue
        outcomes.append(mechanism.run(work, plan, curator, Session(public_seed=0)))
        assert curator._ledger.spent == len(events) > 0
    assert np.isfinite(outcomes[0].answers).all()
    assert 0 <= outcomes[0].answers.min() <= outcomes[0].answers.max() <= 1
    # What moves half as far is planned with half the noise: never with more.
    replaced = mechanism.plan(work, replace(budget, neighbours=Neighbours.REPLACE_ONE))
    for ours, theirs in zip(events, events_of(replaced.schedule), strict=False):
        if isinstance(ours, GaussianNoise) and isinstance(theirs, GaussianNoise):
            assert ours.scale <= theirs.scale * (1 + 1e-9)


def test_same_seed_same_result_whatever_the_threads(mechanism, plan, outcome) -> None:
    assert_same(outcome, carry_out(mechanism, task(), plan, threads=1))
    assert_same(outcome, carry_out(mechanism, task(), plan, threads=3))


def test_another_seed_gives_another_result(case: Case, mechanism, plan, outcome) -> None:
    if case.name == "zero":
        return
    other = carry_out(mechanism, task(), plan, seed=6)
    same = np.array_equal(outcome.answers, other.answers)
    if outcome.records is not None and outcome.records.shape == other.records.shape:
        same &= np.array_equal(outcome.records, other.records)
    assert not same


def test_runs_on_cryptographic_randomness(mechanism, plan) -> None:
    work = task()
    curator = room_of(mechanism, work, plan.schedule, source=SystemRandomness())
    assert len(mechanism.run(work, plan, curator, Session()).answers) == len(work.workload)


def test_parameters_trace_and_totals_are_json(plan, outcome) -> None:
    for value in (dict(plan.parameters), [*map(dict, outcome.trace)], dict(outcome.solver)):
        assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_trace_holds_public_keys_only(case: Case, outcome) -> None:
    assert all(line.keys() <= case.trace for line in outcome.trace)
    for order in case.trace & {"pull", "stage", "round"}:
        numbers = [line[order] for line in outcome.trace if order in line]
        assert numbers == sorted(numbers)
    assert bool(outcome.trace) == bool(case.trace)


def test_statement_prices_the_schedule_again(plan) -> None:
    """A mechanism that understates its cost is found out before it runs."""
    if not events_of(plan.schedule):
        return
    cheaper = replace(BUDGET, epsilon=BUDGET.epsilon / 2)
    with pytest.raises(RuntimeError, match=r"above 0\.5"):
        price(plan, cheaper)


def test_unknown_options_are_bad_input(case: Case) -> None:
    with pytest.raises(BadInputError, match=f"mechanism '{case.name}' has no option 'colour'"):
        configure(case.name, {"colour": "blue"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("independent", {"records": "0"}, "records is 0"),
        ("uniform", {"records": "many"}, "records='many' is not a valid int"),
        ("dualquery", {"round": "3"}, "did you mean 'rounds'"),
        ("dualquery", {"free": "one"}, "free is 'one'; known policies: zeros, coins, hint"),
        ("dualquery", {"rounds": 0}, "rounds is 0; a whole number of at least 1"),
        ("dualquery", {"rounds": 1}, "the first round looks at no data"),
        ("dualquery", {"samples": True}, "samples is True; a whole number"),
        ("dualquery", {"eta": 0.0}, "eta is 0.0; a finite number above 0"),
        ("dualquery", {"solver_timeout": 0}, "solver_timeout is 0"),
        ("dualquery", {"beta": 0.0}, "beta is 0.0; a number between 0 and 1"),
        ("dualquery", {"alpha": 1.0}, "alpha is 1.0; a number from 0.01"),
        ("dualquery", {"samples": 2**63}, "below 2^63"),
        ("dualquery", {"alpha": 0.1, "rounds": 3}, "give alpha or these, not both"),
        ("dualquery", {"solver": "no-such"}, "--solver: unknown solver 'no-such'"),
        ("matrix", {"components": -1}, "components is -1"),
        ("matrix", {"steps": 0}, "steps is 0"),
        ("matrix", {"pull": 2.0}, "pull is 2.0"),
        ("matrix", {"pull": "x"}, "pull"),
        ("mwem", {"repetitions": None}, "repetitions is None"),
        ("matrix", {"pull": True}, "pull is True; a number from 0 to 1 is needed"),
        ("no-such", {}, "unknown mechanism 'no-such' (known: auto"),
    ],
)
def test_bad_options_are_one_clear_message(name, options, message) -> None:
    with pytest.raises(BadInputError) as error:
        configure(name, options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_uninstalled_solver_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.registry.find_spec", lambda module: None)
    with pytest.raises(BadInputError, match="--solver: solver scip needs the package"):
        configure("dualquery", {"solver": "scip"})


def test_memory_is_another_name_of_remembered_rounds() -> None:
    made = configure("dualquery", {"memory": "3"})
    assert made == configure("dualquery", {"remembered_rounds": 3})
    assert made.remembered_rounds == 3
    with pytest.raises(BadInputError, match="remembered_rounds is given twice, once as memory"):
        configure("dualquery", {"remembered_rounds": 3, "memory": 3})


def test_texts_become_the_types_of_the_fields() -> None:
    made = configure("dualquery", {"rounds": "7", "eta": "0.5", "free": "coins", "solver": "scip"})
    assert (made.rounds, made.eta, made.free, made.solver) == (7, 0.5, "coins", "scip")
    assert isinstance(made.rounds, int)


class TestThirdParty:
    """A mechanism from an entry point of somebody else's package."""

    @pytest.fixture
    def entry_points(self, monkeypatch: pytest.MonkeyPatch):
        points = EntryPoints(
            [
                EntryPoint("mine", "tests.mechanisms.test_mechanisms:Half", "dualquery.mechanisms"),
                EntryPoint("broken", "tests.no_such_module:Half", "dualquery.mechanisms"),
            ]
        )
        monkeypatch.setattr("dualquery.mechanisms.registry.entry_points", points.select)

    def test_is_found_configured_and_listed(self, entry_points) -> None:
        assert {"mine", "broken", "dualquery"} <= {*mechanism_names()}
        made = configure("mine", {"strength": "0.25", "loud": "TRUE"})
        assert (made.strength, made.loud) == (0.25, True)
        with pytest.raises(BadInputError, match="loud='maybe' is not a valid bool"):
            configure("mine", {"loud": "maybe"})

    def test_one_that_cannot_be_imported_is_one_message(self, entry_points) -> None:
        with pytest.raises(BadInputError, match=r"mechanism 'broken' .* cannot be imported"):
            configure("broken", {})


@dataclass(frozen=True, kw_only=True)
class Half:
    """A third party's configuration."""

    strength: float = 0.5
    loud: bool = False


def test_the_uniform_baseline_gives_every_value_of_a_column_the_same_share() -> None:
    domain = Domain(np.array([0, 1, 4, 6]))  # of 2, 3 and 2 values
    np.testing.assert_allclose(uniform_probabilities(domain), [1 / 2, *[1 / 3] * 3, *[1 / 2] * 2])


class Unread:
    """Rows that refuse to be read."""

    n, bits = N, SCHEMA.domain.bits


@pytest.mark.parametrize("name", LOOKS_AT_NOTHING)
def test_looking_at_no_data_reads_no_row_and_costs_nothing(name: str) -> None:
    """Zero says 1 where every literal is negated, and has no record: columns need a value."""
    work = Task(Workload(np.array([[1, -1], [0, -1], [1, 3]], np.int32), SCHEMA.domain), N)
    mechanism = configure(name, {})
    plan = mechanism.plan(work, BUDGET)
    assert (plan.schedule, plan.needs_answers) == ((), False)
    room = Curator(Unread(), mechanism.statistics(work.workload), (), SeededRandomness(0))
    outcome = mechanism.run(work, plan, room, Session(public_seed=0))
    if name == "zero":
        assert (outcome.answers.tolist(), outcome.records) == ([1, 0, 1], None)

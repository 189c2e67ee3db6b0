"""One suite that every back-end passes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from solvers import BestResponse, Capability, Solver, Status, available_solvers, errors, get_solver
from solvers.errors import InfeasibleProblemError
from tests.solvers import instances
from tests.solvers.instances import groups_of, problem, random_problem, row, sampled_problem

ELSEWHERE = ("maxsat", "pb", "maxsat-rc2", "clasp", "gurobi", "cplex")
"""A command of the user's, and extras: `test_maxsat` and `test_optional_backends` run these."""

VARIANTS = (
    "auto:brief",
    "auto:fast",
    "auto:prove",
    "cpsat:aggregated",
    "scip:aggregated",
    "highs:aggregated",
)

SOLVERS = [
    *(each.name for each in available_solvers() if each.installed and each.name not in ELSEWHERE),
    *VARIANTS,
]
"""Every registered back-end, without a line of its own here."""


@pytest.fixture(params=SOLVERS)
def solver(request: pytest.FixtureRequest) -> Solver:
    return get_solver(request.param)


def is_exact(solver: Solver) -> bool:
    return Capability.EXACT in solver.capabilities


@pytest.mark.parametrize("named", instances.NAMED, ids=lambda named: named.name)
def test_known_optimum(solver: Solver, named: instances.Named) -> None:
    instance = named.make()
    solution = solver.solve(instance)
    assert instance.feasible(solution.record)
    assert solution.objective == instance.value(solution.record)
    assert solution.objective == pytest.approx(named.optimum, rel=1e-12)
    assert solution.bound >= solution.objective
    assert solution.solver == solver.name
    assert 0 <= solution.incumbent_seconds <= solution.seconds
    assert (solution.status is Status.OPTIMAL) or not is_exact(solver)


@pytest.mark.parametrize(
    ("make", "count", "least"), [(random_problem, 100, 90), (instances.constrained_problem, 60, 57)]
)
def test_exact_on_random_problems(solver: Solver, make, count: int, least: int) -> None:
    reference, reached = get_solver("exhaustive"), 0
    for seed in range(count):
        instance = make(seed)
        reached += agrees(solver, instance, reference.solve(instance).objective)
    # The local search can be cut off from the optimum by linear constraints.
    assert reached >= (count if is_exact(solver) else least)


def test_real_coefficients_do_not_mislead_presolve(solver: Solver) -> None:
    # Part of CP-SAT 9.15's presolve, which is therefore off, cut off the optimum of this one.
    instance = random_problem(1149)
    assert agrees(solver, instance, get_solver("exhaustive").solve(instance).objective)


def test_constraints_have_their_slack(solver: Solver) -> None:
    """Of coefficients with six decimals and a bound of nine digits, a sum is off by rounding."""
    sizes = np.array([15260.627306, 28467.541089, 21176.323128, 21050.470786, 33809.3528])
    instance = problem(
        5, {(0,): -1.0}, constraints=(row([*range(5)], sizes, 77537.5212, 77537.5212),)
    )
    assert agrees(solver, instance, -1.0)


def agrees(solver: Solver, instance: BestResponse, optimum: float) -> bool:
    """Check what holds for every solver; tell whether it reached the optimum."""
    solution = solver.solve(instance)
    tolerance = 1e-9 * (1.0 + np.abs(instance.weights).sum())
    assert instance.feasible(solution.record)
    assert solution.objective == instance.value(solution.record)
    assert solution.objective <= optimum + tolerance
    assert solution.bound >= optimum - tolerance
    reached = solution.objective >= optimum - tolerance
    assert reached or solution.status is not Status.OPTIMAL
    assert solution.status is Status.OPTIMAL or not is_exact(solver)
    return reached


def test_contradictory_constraints_are_named(solver: Solver) -> None:
    instance = problem(
        4,
        {(0, 1): 1.0},
        groups_of([0, 1, 2]),
        (
            row([2, 3], [1.0, 1.0], 0.0, 2.0),
            row([0, 3], [1.0, 1.0], 2.0, 2.0),
            row([1, 3], [1.0, -1.0], 0.0, 0.0),
        ),
    )
    with pytest.raises(InfeasibleProblemError, match=r"constraints 1, 2 contradict.*groups 0"):
        solver.solve(instance)


def test_impossible_constraint_is_named(solver: Solver) -> None:
    instance = problem(
        3,
        {(0,): 1.0},
        groups_of([0, 1]),
        (row([2], [1.0], 0.0, 1.0), row([0, 1], [1.0, 1.0], 2.0, 2.0)),
    )
    with pytest.raises(InfeasibleProblemError, match=r"constraint 1 asks for 2.0 to 2.0.*groups 0"):
        solver.solve(instance)


def test_constraint_without_attributes(solver: Solver) -> None:
    idle = row([], [], -1.0, 1.0)
    assert solver.solve(problem(1, {(0,): 1.0}, constraints=(idle,))).objective == 1
    with pytest.raises(InfeasibleProblemError, match="constraint 0"):
        solver.solve(problem(1, {(0,): 1.0}, constraints=(row([], [], 1.0, 1.0),)))
    tiny = problem(2, {}, constraints=(row([0, 1], [1e-9, 2e-9], -np.inf, 2e-9),))
    assert not tiny.feasible(np.ones(2, np.uint8))
    parts = row([0, 1], [4e5, 4e5], 6e5, 6e5)  # what a reduction leaves has other numbers
    with pytest.raises((InfeasibleProblemError, errors.NoRecordFoundError), match=r"0, 1|violates"):
        solver.solve(problem(4, {}, constraints=(row([2, 3], [1.0, 1.0], 0.0, 2.0), parts)))
    large = row([0, 1, 2], [1e9, 1e9 + 1, 1e9 + 3], 1e9 + 2, 1e9 + 2)
    with pytest.raises((InfeasibleProblemError, errors.NoRecordFoundError)) as told:
        solver.solve(problem(3, {}, constraints=(large,)))
    assert told.type is InfeasibleProblemError or solver.name != "exhaustive"
    if is_exact(solver):
        assert solver.solve(problem(1, {(0,): 1.0}), time_limit=np.inf).status is Status.OPTIMAL


def test_answer_is_at_least_as_good_as_a_feasible_hint(solver: Solver) -> None:
    rng = np.random.default_rng(5)
    for seed in range(40):
        instance = random_problem(seed)
        hint = instances.random_record(instance.attributes, instance.groups, rng)
        solution = solver.solve(instance, hint=hint, time_limit=1e-4)
        assert instance.feasible(solution.record)
        if instance.feasible(hint):
            assert solution.objective >= instance.value(hint) - 1e-12


def test_default_fills_what_no_term_mentions(solver: Solver) -> None:
    instance = problem(6, {(0,): 1.0, (2,): -1.0}, groups_of([1, 2, 3], [4, 5]))
    default = np.array([0, 0, 0, 1, 0, 1], np.uint8)
    assert solver.solve(instance, default=default).record.tolist() == [1, 0, 0, 1, 0, 1]
    assert solver.solve(instance).record.tolist() == [1, 1, 0, 0, 1, 0]


def test_prints_nothing(solver: Solver, capfd: pytest.CaptureFixture[str]) -> None:
    # Large enough for every phase of a search, small enough to enumerate.
    solver.solve(sampled_problem(16, 60, 0))
    with pytest.raises(InfeasibleProblemError):
        solver.solve(problem(1, {(0,): 1.0}, constraints=(row([0], [2.0], 1.0, 1.0),)))
    assert capfd.readouterr() == ("", "")


def test_limit_returns_an_incumbent(solver: Solver) -> None:
    instance = sampled_problem(*((16, 400) if solver.name == "exhaustive" else (200, 900)), 1)
    solution = solver.solve(instance, time_limit=0.3)
    assert instance.feasible(solution.record)
    assert solution.objective == instance.value(solution.record)
    assert solution.bound >= solution.objective


def test_vanishing_limit_returns_a_record(solver: Solver) -> None:
    instance = sampled_problem(60, 1200, 1, column=20)
    solution = solver.solve(instance, time_limit=1e-6)
    assert instance.feasible(solution.record)
    # The reductions are not interrupted, and enumerate this one.
    assert solution.status is not Status.OPTIMAL or solver.name == "auto"


def test_same_seed_same_answer(solver: Solver) -> None:
    instance = sampled_problem(20, 80, 3, column=5)
    records = [solver.solve(instance, seed=4).record for _ in range(2)]
    np.testing.assert_array_equal(records[0], records[1])


def test_two_threads_at_once(solver: Solver) -> None:
    problems = [sampled_problem(12, 60, seed) for seed in range(4)]
    alone = [solver.solve(instance).objective for instance in problems]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda instance: solver.solve(instance).objective, problems))
    assert together == alone


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_bad_time_limit(solver: Solver, limit: float) -> None:
    with pytest.raises(errors.InvalidProblemError, match="time limit"):
        solver.solve(problem(1, {(0,): 1.0}), time_limit=limit)


def test_bad_options(solver: Solver) -> None:
    instance = problem(2, {(0,): 1.0}, groups_of([0, 1]))
    for option, value, message in (
        ("threads", 0, "threads is 0"),
        ("threads", 1.5, "threads is 1.5"),
        ("seed", -1, "seed is -1"),
        ("seed", 1.5, "seed is 1.5"),
        ("hint", np.zeros(3, np.uint8), r"hint has shape \(3,\)"),
        ("default", np.ones(2, np.uint8), "group 0 has 2 ones"),
    ):
        with pytest.raises(errors.InvalidProblemError, match=message):
            solver.solve(instance, **{option: value})


def test_exhaustive_refuses_large_problems() -> None:
    with pytest.raises(errors.ProblemTooLargeError, match="at most 4194304 records"):
        get_solver("exhaustive").solve(sampled_problem(60, 100, 0))

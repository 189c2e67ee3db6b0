"""Solvers that crash, hang or lie: in a process of their own, and judged."""

import math
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from solvers import Status, get_solver, guarded
from solvers.errors import InfeasibleProblemError, SolverError, SolverUnavailableError
from solvers.judging import judge
from solvers.registry import registered
from solvers.solution import Solution
from solvers.watched import MOST_FAULTS
from tests.solvers.faulty import Faulty
from tests.solvers.instances import groups_of, problem, row

PROBLEM = problem(6, {(0, 2): 1, (4,): 2, (~3, 5): 3, (~4, ~5): 1}, groups_of((0, 1), (2, 3)))


@pytest.fixture(autouse=True)
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.registry.metadata.entry_points", Faulty.points.select)


def check(found) -> None:
    assert PROBLEM.legal(found.record)
    assert found.objective == PROBLEM.value(found.record)
    assert found.bound >= found.objective
    assert math.isfinite(found.seconds)
    assert isinstance(found.status, Status)


ILLEGAL = ["infeasible", "short", "matrix", "halves", "nothing", "texts"]
DEAD = ["exit", "raise", "hang", "none", "unsatisfiable", *["segfault"] * (sys.platform != "win32")]
LIES = ["objective", "low bound", "nan bound", "nan objective", "text bound", "seconds", "status"]


@pytest.mark.parametrize("fault", [*ILLEGAL, *DEAD, "", "print", *LIES])
def test_what_is_no_answer_is_replaced_and_a_legal_record_kept_without_its_lies(fault) -> None:
    solver = guarded(f"faulty:{fault}")
    found = solver.solve(PROBLEM, time_limit=0.2)
    check(found)
    assert (found.status is Status.FALLBACK) == (fault in (*ILLEGAL, *DEAD))
    if fault in (*ILLEGAL, *DEAD):
        assert found.solver == "faulty"
        assert "local search in its place" in found.steps[0]
    elif fault not in ("", "print", "seconds", "status"):
        assert found.bound == math.inf
        assert found.status is not Status.OPTIMAL
    solver.close()


def test_a_solver_that_crashed_is_started_again(tmp_path) -> None:
    solver = guarded(f"faulty:exit@{tmp_path / 'crashed'}")
    statuses = [solver.solve(PROBLEM, time_limit=0.2).status for _ in range(2)]
    solver.close()
    assert statuses[0] is Status.FALLBACK
    assert statuses[1] is not Status.FALLBACK


def test_one_that_dies_between_two_calls_is_started_again() -> None:
    solver = get_solver("faulty:")
    for _ in range(2):
        check(solver.solve(PROBLEM, time_limit=0.2))
        process = solver.inner._child._running
        process.kill()
        process.wait()
    solver.close()
    with pytest.raises(SolverError, match="its process died, with status 3"):
        get_solver("faulty:exit").solve(PROBLEM)


def test_one_that_keeps_failing_is_asked_no_more() -> None:
    solver = guarded("faulty:raise")
    found = [solver.solve(PROBLEM, time_limit=0.1) for _ in range(MOST_FAULTS + 1)]
    solver.close()
    assert "RuntimeError" in found[0].steps[0] or "broken" in found[0].steps[0]
    assert "not asked any more" in found[-1].steps[0]


def test_one_that_cannot_be_loaded_is_refused() -> None:
    with pytest.raises(SolverUnavailableError, match="no licence"):
        guarded("faulty:unloadable")


CONSTRAINED = problem(3, {(0,): 1.0, (1,): 2.0}, None, (row([0, 1, 2], [1.0] * 3, 0.0, 1.0),))


def test_large_weights_do_not_make_the_record_before_the_best_optimal() -> None:
    """A tolerance is a share of the sum of weights: here it is larger than the next value's gap."""
    offset = problem(2, {(0,): 0.3, (1,): 0.25}, constant=1e12)
    none = Solution(np.zeros(2, np.uint8), 1e12, np.inf, Status.FEASIBLE, 0.0, 0.0, "said")
    assert judge(offset, none).status is Status.FEASIBLE
    large = problem(2, {(0,): 3e6, (1,): 1.0})
    for bound, status in ((3e6 + 1.0, Status.FEASIBLE), (3e6 + 0.4, Status.OPTIMAL)):
        said = Solution(np.array([1, 0], np.uint8), 3e6, bound, Status.OPTIMAL, 0.0, 0.0, "said")
        assert judge(large, said).status is status


def test_a_record_that_violates_a_constraint_is_no_answer() -> None:
    """It came back as optimal: only the groups were tested."""
    solver = guarded("faulty:infeasible")
    found = solver.solve(CONSTRAINED, time_limit=0.2)
    solver.close()
    assert CONSTRAINED.feasible(found.record)
    assert found.status is Status.FALLBACK
    with pytest.raises(SolverError, match="faulty:infeasible: its record is not feasible: constr"):
        get_solver("faulty:infeasible").solve(CONSTRAINED)
    with registered("mine", Faulty), pytest.raises(SolverError, match="solver mine:none: it retur"):
        get_solver("mine:none").solve(CONSTRAINED)


def test_infeasibility_keeps_its_type_through_a_process() -> None:
    solver = get_solver("faulty:unsatisfiable")
    never = replace(CONSTRAINED, constraints=(row([0], [1.0], 1.0, 1.0), row([0], [1.0], 0.0, 0.0)))
    with pytest.raises(InfeasibleProblemError, match="solver faulty:unsatisfiable: no record"):
        solver.solve(never)
    # What cannot be so is not believed: groups alone always leave a record, and here is one.
    hinted = CONSTRAINED, np.zeros(3, np.uint8)
    for instance, hint in ((PROBLEM, None), (CONSTRAINED, None), hinted):
        with pytest.raises(SolverError, match="it says that no record is feasible") as caught:
            solver.solve(instance, hint=hint)
        assert not isinstance(caught.value, InfeasibleProblemError)


def test_patience_is_in_proportion_to_the_limit() -> None:
    began = time.perf_counter()
    with pytest.raises(SolverError, match=r"solver faulty:hang: it did not answer within 2\.3 s"):
        get_solver("faulty:hang").solve(PROBLEM, time_limit=0.2)
    assert time.perf_counter() - began < 60.0  # it sleeps for an hour

"""Solvers by name."""

import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import solvers
from solvers import Capability, Status, available_solvers, get_solver, registry
from solvers.errors import SolverError, SolverUnavailableError, UnknownSolverError
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from tests.solvers.instances import groups_of, problem

BUILT_IN = ["auto", "local-search", "cpsat", "scip", "highs", "exhaustive"]


def test_available() -> None:
    infos = {info.name: info for info in available_solvers()}
    assert set(BUILT_IN) <= set(infos)
    for name in BUILT_IN:
        assert infos[name].installed
        assert infos[name].version
        assert infos[name].capabilities == get_solver(name).capabilities


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, solvers; solvers.available_solvers(); solvers.get_solver('auto');"
        "heavy = {'ortools', 'pyscipopt', 'scipy', 'numba'} & set(sys.modules);"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownSolverError, match=r"unknown solver 'xpress' \(known: auto, clasp"):
        get_solver("xpress")
    with pytest.raises(UnknownSolverError, match="scip:disaggregated, scip:aggregated"):
        get_solver("scip:fast")
    with pytest.raises(SolverError, match="takes no argument; found 'x'"):
        get_solver("exhaustive:x")


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda module: None)
    with pytest.raises(SolverUnavailableError, match="pip install pyscipopt"):
        get_solver("scip")
    assert not any(info.installed for info in available_solvers() if info.name in BUILT_IN)


class Garbage(KernelSolver):
    """A back-end that returns what it is told to."""

    name = "garbage"
    capabilities = frozenset({Capability.BOUND})
    module = distribution = "numpy"

    def __init__(self, argument: str = "") -> None:
        self.argument = argument
        self.result = SearchResult(Ending.STOPPED)

    def search(self, kernel, limits, start):
        return self.result


class Failing:
    """An entry point whose module cannot be imported."""

    @staticmethod
    def load():
        raise ImportError("No module named 'nowhere'")


def test_third_party_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = metadata.EntryPoint("garbage", f"{__name__}:Garbage", registry.ENTRY_POINTS)
    broken = metadata.EntryPoint("broken", "nowhere:Solver", registry.ENTRY_POINTS)
    points = metadata.EntryPoints([point, broken])
    monkeypatch.setattr(metadata, "entry_points", lambda **chosen: points.select(**chosen))
    garbage = get_solver("garbage:text")
    assert garbage.name == "garbage"
    # Judged by us, in whatever process it runs.
    assert garbage.solve(problem(1, {(0,): 1.0})).status is Status.FALLBACK
    with pytest.raises(SolverUnavailableError, match=r"broken \(nowhere:Solver\)"):
        get_solver("broken")
    infos = {info.name: info for info in available_solvers()}
    assert infos["garbage"].installed
    assert infos["garbage"].capabilities == {Capability.BOUND}
    assert not infos["broken"].installed


@pytest.mark.parametrize(
    "result",
    [
        SearchResult(Ending.STOPPED),
        SearchResult(Ending.FAILED),
        SearchResult(Ending.PROVEN, np.array([1, 1, 1], np.uint8), 0.0),
        SearchResult(Ending.PROVEN, np.array([1, 0], np.uint8), 0.0),
        SearchResult(Ending.PROVEN, np.array([2, 0, 0], np.uint8), 0.0),
        SearchResult(Ending.INFEASIBLE),
    ],
)
def test_garbage_is_replaced_by_our_record(result: SearchResult) -> None:
    solver = Garbage()
    solver.result = result
    instance = problem(3, {(0, ~2): 1.0, (1,): -1.0, (2,): -1.0, (~0, 2): 1.0}, groups_of([0, 1]))
    if result.ending is Ending.INFEASIBLE:
        with pytest.raises(solvers.InfeasibleProblemError):
            solver.solve(instance)
        solution = solver.solve(instance, hint=np.array([0, 1, 0], np.uint8))
    else:
        solution = solver.solve(instance)
    assert instance.feasible(solution.record)
    assert solution.status is Status.FALLBACK
    assert solution.objective == 1.0
    assert solution.bound >= 1.0


def test_wrong_proof_is_not_believed() -> None:
    solver, instance = Garbage(), problem(1, {(0,): 1.0, (~0,): 2.0})
    solver.result = SearchResult(Ending.PROVEN, np.ones(1, np.uint8), 2.0)
    assert solver.solve(instance).status is Status.FEASIBLE
    solver.result = SearchResult(Ending.STOPPED, np.zeros(1, np.uint8), 1.5)
    assert solver.solve(instance).bound == np.inf
    solver.result = SearchResult(Ending.STOPPED, np.zeros(1, np.uint8), 2.5)
    assert solver.solve(instance).bound == 2.5
    # Nor taken for the sum of the weights, of which rounding might hide 1,125.
    solver.result = SearchResult(Ending.STOPPED, np.array([1, 0], np.uint8))
    assert solver.solve(problem(2, {(0,): 2.0**50, (1,): 1.0})).status is Status.FEASIBLE

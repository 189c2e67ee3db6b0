"""The conformance suite on the back-ends that need an extra, or a licence for large problems."""

from importlib.util import find_spec
from typing import Any

import pytest

from solvers import ProblemTooLargeError, Solution, Solver, get_solver
from tests.solvers.test_conformance import *  # noqa: F403

OPTIONAL = {
    "maxsat-rc2": "pysat",
    "clasp": "clingo",
    "gurobi": "gurobipy",
    "gurobi:aggregated": "gurobipy",
    "cplex": "cplex",
    "cplex:aggregated": "cplex",
}


class WithinLicence:
    """A solver whose refusals of large problems skip the test."""

    def __init__(self, inner: Solver) -> None:
        self.name = inner.name
        self.capabilities = inner.capabilities
        self._inner = inner

    def solve(self, problem: Any, **options: Any) -> Solution:
        try:
            return self._inner.solve(problem, **options)
        except ProblemTooLargeError as error:
            pytest.skip(str(error))


@pytest.fixture(params=OPTIONAL)
def solver(request: pytest.FixtureRequest) -> Solver:
    if find_spec(OPTIONAL[request.param]) is None:
        pytest.skip(f"{OPTIONAL[request.param]} is not installed")
    return WithinLicence(get_solver(request.param))

"""A small self-test of a solver: problems whose optima were found by hand."""

from __future__ import annotations

import numpy as np

from solvers.comparison.runs import NamedProblem, compare
from solvers.constraints import LinearConstraint
from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.protocol import Capability

_LIMIT_SECONDS = 10.0
_TOLERANCE = 1e-9


def check(solver: str, capabilities: frozenset[Capability]) -> str:
    """Run a solver on three tiny problems; return what is wrong, or an empty text.

    Parameters
    ----------
    solver
        Name for :func:`solvers.get_solver`.
    capabilities
        What it says it can do: only an exact solver has to reach the optimum and prove it.
    """
    problems = _problems()
    named = [NamedProblem(name, problem) for name, (problem, _) in problems.items()]
    measured = compare(named, [solver], _LIMIT_SECONDS, shares=(1.0,))
    exact = Capability.EXACT in capabilities
    for result in measured:
        optimum = problems[result.instance][1]
        if result.message:
            return f"{result.instance}: {result.message}"
        if result.objective > optimum + _TOLERANCE or result.bound < optimum - _TOLERANCE:
            return (
                f"{result.instance}: objective {result.objective:g} and bound {result.bound:g}; "
                f"the optimum is {optimum:g}"
            )
        if exact and (result.status != "optimal" or result.objective < optimum - _TOLERANCE):
            return (
                f"{result.instance}: ended {result.status} with {result.objective:g}; "
                f"the optimum is {optimum:g}"
            )
    return ""


def _problems() -> dict[str, tuple[BestResponse, float]]:
    """Return problems with their optima."""
    plain = BestResponse(
        3,
        np.array([[0, 2, -1], [0, 2, 4], [4, -1, -1]], np.int32),
        np.array([3.0, -5.0, 1.0]),
    )
    pairs = np.array([[0, 6], [2, 8], [4, 10], [2, 8]], np.int32)
    grouped = BestResponse(
        6,
        pairs,
        np.array([2.0, 3.0, 2.5, -0.75]),
        Groups(np.array([0, 3, 6]), np.arange(6, dtype=np.int32)),
    )
    knapsack = BestResponse(
        3,
        np.array([[0], [2], [4]], np.int32),
        np.array([10.0, 6.0, 6.0]),
        constraints=(
            LinearConstraint(np.arange(3, dtype=np.int32), np.array([6.0, 5.0, 5.0]), upper=10.0),
        ),
    )
    return {"signed terms": (plain, 3.0), "groups": (grouped, 2.5), "knapsack": (knapsack, 12.0)}

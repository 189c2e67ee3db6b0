"""Records that satisfy the linear constraints, or the constraints that contradict each other."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InfeasibleProblemError
from solvers.formulation import Formulation, formulate
from solvers.problem import BestResponse, LinearConstraint

_INFEASIBLE = 2
"""``scipy.optimize.milp``'s status of a proof that nothing is feasible."""


def feasible_record(problem: BestResponse, deadline: float) -> NDArray[np.uint8] | None:
    """Return some feasible record, or None if the deadline passed first.

    Parameters
    ----------
    problem
        Its terms are ignored.
    deadline
        Value of ``time.perf_counter()`` at which to stop.

    Raises
    ------
    InfeasibleProblemError
        If there is none; names a set of constraints that contradict each other, and the groups on
        their attributes.
    """
    for number, constraint in enumerate(problem.constraints):
        least, most = _activity_range(problem, constraint)
        if (
            least > constraint.upper + constraint.slack
            or most < constraint.lower - constraint.slack
        ):
            raise InfeasibleProblemError(
                f"constraint {number} asks for {constraint.lower} to {constraint.upper}, but over "
                f"all records its sum is {least} to {most}{_groups_of(problem, [number])}"
            )
    record, infeasible = _search(problem, deadline)
    if infeasible:
        raise InfeasibleProblemError(_contradiction(problem, deadline))
    return record


def _activity_range(problem: BestResponse, constraint: LinearConstraint) -> tuple[float, float]:
    """Return the least and the largest sum of one constraint over the legal records."""
    coefficients = np.zeros(problem.attributes)
    coefficients[constraint.attributes] = constraint.coefficients
    least = most = 0.0
    if len(problem.groups):
        grouped = coefficients[problem.groups.members]
        least += float(np.minimum.reduceat(grouped, problem.groups.indptr[:-1]).sum())
        most += float(np.maximum.reduceat(grouped, problem.groups.indptr[:-1]).sum())
        coefficients[problem.groups.members] = 0.0
    least += float(np.minimum(coefficients, 0.0).sum())
    most += float(np.maximum(coefficients, 0.0).sum())
    return least, most


def _search(problem: BestResponse, deadline: float) -> tuple[NDArray[np.uint8] | None, bool]:
    """Return a feasible record or None, and whether there provably is none."""
    from scipy.optimize import Bounds, milp
    from scipy.optimize import LinearConstraint as Rows

    bare = replace(problem, terms=np.zeros((0, 1), np.int32), weights=np.zeros(0))
    model = formulate(bare, Formulation.DISAGGREGATED)
    result = milp(
        c=np.zeros(model.columns),
        integrality=np.ones(model.columns),
        bounds=Bounds(0.0, 1.0),
        constraints=Rows(model.sparse_matrix(), model.lower, model.upper),
        options={"time_limit": max(deadline - time.perf_counter(), 0.05)},
    )
    if result.x is None:
        return None, result.status == _INFEASIBLE
    record = (result.x > 0.5).astype(np.uint8)
    return (record if problem.feasible(record) else None), False


def _contradiction(problem: BestResponse, deadline: float) -> str:
    """Name constraints that contradict each other and can none be spared (deletion filter)."""
    needed = list(range(len(problem.constraints)))
    for number in range(len(problem.constraints)):
        if time.perf_counter() > deadline:
            break
        others = [other for other in needed if other != number]
        subset = replace(problem, constraints=tuple(problem.constraints[other] for other in others))
        if _search(subset, deadline)[1]:
            needed = others
    numbers = ", ".join(str(number) for number in needed)
    return (
        f"the constraints {numbers} contradict each other: no record satisfies all of them"
        f"{_groups_of(problem, needed)}"
    )


def _groups_of(problem: BestResponse, constraints: list[int]) -> str:
    named = np.concatenate([problem.constraints[number].attributes for number in constraints])
    sizes = np.diff(problem.groups.indptr)
    touched = np.repeat(np.arange(len(problem.groups)), sizes)[
        np.isin(problem.groups.members, named)
    ]
    if len(touched) == 0:
        return ""
    return " (one member of each group: groups " + ", ".join(map(str, np.unique(touched))) + ")"

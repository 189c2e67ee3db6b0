"""Records that satisfy the linear constraints, or the constraints that contradict each other."""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InfeasibleProblemError
from solvers.formulation import INFEASIBLE, Formulation, formulate, maximise
from solvers.problem import BestResponse
from solvers.propagation import FREE, ranges

_MOST_SHOWN = 20  # numbers of constraints or groups that a message holds


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
    rows, groups = problem.rows, problem.groups
    undecided = np.full(problem.attributes, FREE, np.int8)
    found = ranges(rows, groups, groups.group_of(problem.attributes), undecided)
    impossible = (found.least > rows.upper + rows.slack) | (found.most < rows.lower - rows.slack)
    if impossible.any():
        number = int(impossible.argmax())
        raise InfeasibleProblemError(
            f"constraint {number} asks for {rows.lower[number]} to {rows.upper[number]}, but over "
            f"all records its sum is {found.least[number]} to {found.most[number]}"
            f"{_groups_of(problem, [number])}"
        )
    record, infeasible = _search(problem, deadline)
    if infeasible:
        raise InfeasibleProblemError(_contradiction(problem, deadline))
    return record


def _search(problem: BestResponse, deadline: float) -> tuple[NDArray[np.uint8] | None, bool]:
    """Return a feasible record or None, and whether there provably is none."""
    bare = replace(problem, terms=np.zeros((0, 1), np.int32), weights=np.zeros(0), constant=0.0)
    seconds = max(deadline - time.perf_counter(), 0.05)
    status, values, _ = maximise(formulate(bare, Formulation.DISAGGREGATED), seconds)
    if values is None:
        return None, status == INFEASIBLE and bare.rows.provable
    record = (values > 0.5).astype(np.uint8)
    return (record if problem.feasible(record) else None), False


def _contradiction(problem: BestResponse, deadline: float) -> str:
    """Name constraints that contradict each other and can none be spared (deletion filter)."""
    needed = np.ones(len(problem.rows), np.bool_)
    for number in range(len(problem.rows)):
        if time.perf_counter() > deadline:
            break
        needed[number] = False
        subset = replace(problem, constraints=problem.rows.select(needed))
        needed[number] = not _search(subset, deadline)[1]
    numbers = np.flatnonzero(needed).tolist()
    return (
        f"the constraints {listed(numbers)} contradict each other: no record satisfies all of them"
        f"{_groups_of(problem, numbers)}"
    )


def listed(numbers: Sequence[int]) -> str:
    """Return numbers with commas between, the first ones only if there are many."""
    shown = ", ".join(map(str, numbers[:_MOST_SHOWN]))
    more = len(numbers) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def infeasible(problem: BestResponse) -> InfeasibleProblemError:
    """Return the error of a problem that no record satisfies, as its caller numbers constraints."""
    numbers = listed(range(len(problem.rows)))
    return InfeasibleProblemError(f"no record satisfies constraints {numbers} and groups")


def _groups_of(problem: BestResponse, constraints: list[int]) -> str:
    rows, groups = problem.rows, problem.groups
    named = rows.attributes[np.isin(rows.row_of, constraints)]
    touched = np.unique(groups.group_of(problem.attributes)[named])
    touched = touched[touched >= 0]
    if len(touched) == 0:
        return ""
    return f" (one member of each group: groups {listed(touched.tolist())})"

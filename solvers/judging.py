"""The one judge: what a solver states is compared with the problem, whoever the solver is."""

import math
from contextlib import suppress

import numpy as np

from solvers.errors import SolverError
from solvers.problem import BestResponse
from solvers.relaxation import unit
from solvers.solution import Solution, Status

_TOLERANCE = 1e-6
ROUNDING = 1e-12
"""What solvers' tolerances and sums may hide, as shares of the sum of absolute weights."""


def judge(problem: BestResponse, found: Solution, kernel: BestResponse | None = None) -> Solution:
    """Return a solution with nothing in it that is not so, as far as it can be checked.

    The objective is the record's. A bound that the record refutes, or that comes with another
    objective, is none. A record is optimal if its objective reaches the bound, up to 1e-6 of the
    sum of absolute weights and less than the distance to the next value; or if it reaches the
    sum of the positive weights. A solver's status does not make it so.

    Parameters
    ----------
    problem
        What was solved.
    found
        What a solver returned.
    kernel
        The reduced problem, of the same optimum, if there is one: its weights are then
        those that the tolerance is a share of.

    Raises
    ------
    SolverError
        If it is no solution, or its record is not a feasible one.
    """
    if not isinstance(found, Solution):
        raise SolverError(f"it returned {type(found).__name__}; expected a solvers.Solution")
    record = np.asarray(found.record)
    if record.dtype.kind not in "buif":
        raise SolverError(f"its record holds {record.dtype}; expected 0 and 1")
    violations = problem.violations(record)
    if not violations and record.dtype.kind == "f" and (record != record.astype(np.uint8)).any():
        violations = ["the record holds numbers other than 0 and 1"]
    if violations:
        raise SolverError(f"its record is not feasible: {violations[0]}")
    record = record.astype(np.uint8)
    value = problem.value(record)

    part = problem if kernel is None else kernel
    rounding = ROUNDING * float(np.abs(problem.weights).sum()) + 4 * math.ulp(problem.constant)
    tolerance = _TOLERANCE * float(np.abs(part.weights).sum()) + rounding
    bound = math.inf
    with suppress(TypeError, ValueError, OverflowError):
        stated = float(found.bound)
        if abs(float(found.objective) - value) <= tolerance and stated >= value - tolerance:
            bound = max(stated, value)
    status: Status = Status.FALLBACK if found.status is Status.FALLBACK else Status.FEASIBLE
    highest = part.constant + float(part.weights[part.weights > 0].sum())
    # Less than to the next value, where values have a distance.
    nearest = (0.5 * unit(part) if len(part.weights) else 0.0) or math.inf
    least = min(highest - min(rounding, nearest), bound - min(tolerance, nearest))
    if status is Status.FEASIBLE and least <= value:
        status, bound = Status.OPTIMAL, value
    return Solution(
        record=record,
        objective=value,
        bound=bound,
        status=status,
        incumbent_seconds=_seconds(found.incumbent_seconds),
        seconds=_seconds(found.seconds),
        solver=str(found.solver),
        steps=tuple(str(step) for step in found.steps),
    )


def _seconds(stated: object) -> float:
    """Return a time as stated if it is one, else 0."""
    with suppress(TypeError, ValueError, OverflowError):
        seconds = float(stated)  # type: ignore[arg-type]  # that is what is tried
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return 0.0

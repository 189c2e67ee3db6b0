"""The linear relaxation's bound on the optimum."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.formulation import Formulation, formulate, objective_scale
from solvers.problem import BestResponse

_MARGIN = 1e-6
"""What rounding in the simplex method may hide, as a share of the sum of absolute weights."""

_SECONDS_PER_ITERATION_AND_COEFFICIENT = 5e-9
_SECONDS_PER_TERM_SQUARED = 18e-9
"""Both measured on samples of 750 to 1,750 conjunctions of three literals."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What the linear relaxation says.

    Parameters
    ----------
    bound
        Upper bound on the optimum, rounded down to a value that the objective can take; ``inf`` if
        the deadline came first.
    point
        float64, shape ``(attributes,)``: the relaxed record; None if the deadline came first.
    work
        What it took, in seconds of a typical machine, but counted, not timed.
    """

    bound: float
    point: NDArray[np.float64] | None
    work: float


def estimated_seconds(kernel: BestResponse) -> float:
    """Estimate the time that :func:`relax` takes."""
    return 0.002 + _SECONDS_PER_TERM_SQUARED * len(kernel.terms) ** 2


def relax(kernel: BestResponse, deadline: float) -> Relaxation:
    """Solve the disaggregated linear relaxation by HiGHS's dual simplex method.

    Parameters
    ----------
    kernel
        Canonical, non-empty terms.
    deadline
        Value of ``time.perf_counter()`` at which to give up.
    """
    from scipy.optimize import linprog
    from scipy.sparse import vstack

    program = formulate(kernel, Formulation.DISAGGREGATED)
    matrix = program.sparse_matrix()
    equal = program.lower == program.upper
    above = np.isfinite(program.upper) & ~equal
    below = np.isfinite(program.lower) & ~equal
    scale = objective_scale(kernel.weights)
    result = linprog(
        -scale * program.objective,
        A_ub=vstack([matrix[above], -matrix[below]]),
        b_ub=np.concatenate((program.upper[above], -program.lower[below])),
        A_eq=matrix[equal] if equal.any() else None,
        b_eq=program.upper[equal] if equal.any() else None,
        bounds=(0.0, 1.0),
        method="highs-ds",
        options={"time_limit": max(deadline - time.perf_counter(), 1e-3)},
    )
    work = _SECONDS_PER_ITERATION_AND_COEFFICIENT * result.nit * len(program.coefficients)
    if result.status != 0:
        return Relaxation(math.inf, None, work)
    bound = attainable(kernel, program.constant - result.fun / scale)
    return Relaxation(bound, np.clip(result.x[: program.attributes], 0.0, 1.0), work)


def attainable(kernel: BestResponse, bound: float) -> float:
    """Return a bound rounded down to a multiple of the weights' unit, if they are integers.

    The bound is first raised by what rounding in a solver may hide.
    """
    margin = _MARGIN * float(np.abs(kernel.weights).sum())
    if not np.isfinite(bound) or not (kernel.weights == np.rint(kernel.weights)).all():
        return bound + margin
    unit = 1.0 / objective_scale(kernel.weights)
    return kernel.constant + unit * math.floor((bound - kernel.constant + margin) / unit)


def rounded(kernel: BestResponse, point: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the legal record nearest to a relaxed one: each group takes its largest member."""
    record = (point > 0.5).astype(np.uint8)
    record[kernel.groups.members] = 0
    for group in range(len(kernel.groups)):
        members = kernel.groups[group]
        record[members[int(point[members].argmax())]] = 1
    return record

"""The linear relaxation's bound on the optimum."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.formulation import Formulation, formulate, objective_scale
from solvers.problem import BestResponse, LinearConstraint

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
    bounds
        float64, shape ``(2, attributes)``: upper bounds on the records in which an attribute is 0,
        and 1, by its reduced cost; ``inf`` if the deadline came first.
    work
        What it took, in seconds of a typical machine, but counted, not timed.
    """

    bound: float
    point: NDArray[np.float64] | None
    bounds: NDArray[np.float64]
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
        # Its presolve finds nothing here that the reductions have not found.
        options={"time_limit": max(deadline - time.perf_counter(), 1e-3), "presolve": False},
    )
    work = _SECONDS_PER_ITERATION_AND_COEFFICIENT * result.nit * len(program.coefficients)
    n = program.attributes
    if result.status != 0:
        return Relaxation(math.inf, None, np.full((2, n), math.inf), work)
    bound = program.constant - result.fun / scale
    # Moving an attribute off the bound that it is at costs at least the bound's marginal.
    costs = np.stack((-result.upper.marginals[:n], result.lower.marginals[:n]))
    return Relaxation(
        float(attainable(kernel, bound)),
        np.clip(result.x[:n], 0.0, 1.0),
        attainable(kernel, bound - np.maximum(costs, 0.0) / scale),
        work,
    )


def attainable(kernel: BestResponse, bound: ArrayLike) -> NDArray[np.float64]:
    """Return bounds rounded down to multiples of the weights' unit, if they are integers.

    The bounds are first raised by what rounding in a solver may hide.
    """
    raised = np.asarray(bound) + _MARGIN * float(np.abs(kernel.weights).sum())
    if not (kernel.weights == np.rint(kernel.weights)).all():
        return raised
    unit = 1.0 / objective_scale(kernel.weights)
    return np.asarray(kernel.constant + unit * np.floor((raised - kernel.constant) / unit))


def restricted(kernel: BestResponse, relaxation: Relaxation, value: float) -> BestResponse:
    """Return the problem among the records that may be better than a value.

    One linear constraint fixes the attributes that the reduced costs decide for such records. Its
    optimum is the kernel's if that is better than the value.
    """
    ruled_out = relaxation.bounds <= value
    fixed = np.flatnonzero(ruled_out.any(axis=0)).astype(np.int32)
    if len(fixed) == 0:
        return kernel
    # Ruled out at both values: no better record exists, and the fixing below says so.
    signs = np.where(ruled_out[0, fixed], 1.0, -1.0)
    both = ruled_out[:, fixed].all(axis=0)
    ones = float(np.count_nonzero(signs > 0)) + float(both.any())
    fixing = LinearConstraint(fixed, signs, lower=ones)
    return replace(kernel, constraints=(*kernel.constraints, fixing))


def rounded(kernel: BestResponse, point: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the legal record nearest to a relaxed one: each group takes its largest member."""
    record = (point > 0.5).astype(np.uint8)
    record[kernel.groups.members] = 0
    for group in range(len(kernel.groups)):
        members = kernel.groups[group]
        record[members[int(point[members].argmax())]] = 1
    return record

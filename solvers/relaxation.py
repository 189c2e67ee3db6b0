"""Bounds on the optimum: the linear relaxation's, and what follows from any."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.constraints import LinearConstraint
from solvers.formulation import Formulation, formulate, maximise, objective_scale
from solvers.problem import BestResponse

_MARGIN = 1e-6
"""What a solver's tolerances may hide, as a share of the sum of absolute weights."""

_SECONDS_PER_TERM_SQUARED = 18e-9
"""Measured on samples of 750 to 1,750 conjunctions of three literals."""


def estimated_seconds(kernel: BestResponse) -> float:
    """Estimate the time that :func:`relax` takes."""
    return 0.002 + _SECONDS_PER_TERM_SQUARED * len(kernel.terms) ** 2


def relaxation_bound(kernel: BestResponse, deadline: float) -> float:
    """Return the optimum of the disaggregated linear relaxation, by HiGHS's dual simplex method.

    Rounded down to a value that the objective can take; ``inf`` if the deadline came first.

    Parameters
    ----------
    kernel
        Canonical, non-empty terms.
    deadline
        Value of ``time.perf_counter()`` at which to give up.
    """
    program = formulate(kernel, Formulation.DISAGGREGATED)
    scale = objective_scale(kernel.weights)
    scaled = replace(program, objective=scale * program.objective)
    # Its presolve finds nothing here that the reductions have not found.
    seconds = max(deadline - time.perf_counter(), 1e-3)
    _, _, bound = maximise(scaled, seconds, whole=False, presolve=False)
    return float(attainable(kernel, program.constant + bound / scale))


def attainable(
    kernel: BestResponse, bound: ArrayLike, margin: float = _MARGIN
) -> NDArray[np.float64]:
    """Return bounds rounded down to multiples of the weights' unit, if they are integers.

    The bounds are first raised by a margin, a share of the sum of absolute weights: what rounding
    and a solver's tolerances may hide.
    """
    raised = np.asarray(bound) + margin * float(np.abs(kernel.weights).sum())
    step = unit(kernel)
    if step == 0.0:
        return raised
    return np.asarray(kernel.constant + step * np.floor((raised - kernel.constant) / step))


def next_value(kernel: BestResponse, value: float) -> float:
    """Return the least value above one that the objective can take; the same, if any can be."""
    step = unit(kernel)
    if step == 0.0:
        return value
    return float(kernel.constant + step * (np.floor((value - kernel.constant) / step) + 1.0))


def unit(kernel: BestResponse) -> float:
    """Return what all weights are multiples of, if they are integers, else 0."""
    if not (kernel.weights == np.rint(kernel.weights)).all():
        return 0.0
    return 1.0 / objective_scale(kernel.weights)


def restricted(kernel: BestResponse, bounds: NDArray[np.float64], value: float) -> BestResponse:
    """Return the problem among the records that may be better than a value.

    One linear constraint fixes the attributes that the bounds decide for such records. Its
    optimum is the kernel's if that is better than the value.

    Parameters
    ----------
    kernel
        The problem.
    bounds
        float64, shape ``(2, attributes)``: upper bounds on the records in which an attribute is 0,
        and 1.
    value
        That of a known record.
    """
    ruled_out = bounds <= value
    fixed = np.flatnonzero(ruled_out.any(axis=0)).astype(np.int32)
    if len(fixed) == 0:
        return kernel
    # Ruled out at both values: no better record exists, and the fixing below says so.
    signs = np.where(ruled_out[0, fixed], 1.0, -1.0)
    both = ruled_out[:, fixed].all(axis=0)
    ones = float(np.count_nonzero(signs > 0)) + float(both.any())
    fixing = LinearConstraint(fixed, signs, lower=ones)
    return replace(kernel, constraints=(*kernel.constraints, fixing))

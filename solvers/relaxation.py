"""What follows from a bound on the optimum, and problems among some of the records."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.constraints import LinearConstraint
from solvers.formulation import objective_scale
from solvers.problem import BestResponse

_MARGIN = 1e-6  # what a solver's tolerances may hide, as a share of the sum of absolute weights


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
    whole = (kernel.weights == np.rint(kernel.weights)) & (np.abs(kernel.weights) < 2.0**53)
    return 1.0 / objective_scale(kernel.weights) if whole.all() else 0.0


def restricted(kernel: BestResponse, bounds: NDArray[np.float64], value: float) -> BestResponse:
    """Return the problem among the records that may be better than a value.

    One linear constraint fixes the attributes that the bounds decide for such records: upper
    bounds, float64 of shape ``(2, attributes)``, on the records in which an attribute is 0, and 1.
    Its optimum is the kernel's if that is better than the value.
    """
    ruled_out = bounds <= value
    fixed = np.flatnonzero(ruled_out.any(axis=0)).astype(np.int32)
    if len(fixed) == 0:
        return kernel
    # Ruled out at both values: no better record exists, and the fixing below says so.
    one = ruled_out[0, fixed]
    both = ruled_out[:, fixed].all(axis=0).any()
    constraint = fixing(fixed, one)
    constraint = replace(constraint, lower=constraint.lower + float(both))
    return replace(kernel, constraints=(*kernel.constraints, constraint))


def fixing(attributes: NDArray[np.int32], one: NDArray[np.bool_]) -> LinearConstraint:
    """Return the linear constraint that gives each of some attributes a value."""
    return LinearConstraint(
        attributes, np.where(one, 1.0, -1.0), lower=float(np.count_nonzero(one))
    )

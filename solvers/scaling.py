"""Real weights and coefficients as integers, for solvers and formats that know no others."""

from math import ceil, floor, frexp
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint

_DECIMALS = 9  # most decimal places tried before real numbers are rounded


def integer_scaled(
    values: NDArray[np.float64], bits: int = 52
) -> tuple[NDArray[np.int64], float, float]:
    """Bring real numbers to integers, about ``scale`` times as large.

    Exactly so for integers (divided by their common divisor) and for decimals of up to 9 places
    whose absolute integers add up to less than ``2 ** bits``, at most 61. Other numbers are scaled
    by a power of 2 so that those of the rounded ones do.

    Returns
    -------
    integers, scale, error
        ``error`` bounds how far a sum of any of the integers is from ``scale`` times the values'.
    """
    total = float(np.abs(values).sum())
    if total == 0.0:
        return np.zeros(len(values), np.int64), 1.0, 0.0
    for places in range(_DECIMALS + 1):
        scaled = values * 10.0**places
        integers = np.rint(scaled)
        if not np.abs(integers).sum() < 2.0**62:  # of 64-bit integers
            break
        if np.allclose(scaled, integers, rtol=1e-15, atol=0.0):
            exact = integers.astype(np.int64)
            exact //= np.gcd.reduce(np.abs(exact))
            if np.abs(exact).sum() < 2**bits:
                return exact, float(np.abs(exact).sum()) / total, 0.0
    scale = 2.0 ** min(bits - 1 - frexp(total)[1], 1000)
    integers = np.rint(values * scale)
    return integers.astype(np.int64), scale, float(np.abs(values * scale - integers).sum())


def integer_row(constraint: LinearConstraint, bits: int = 53) -> tuple[NDArray[np.int64], int, int]:
    """Return a linear constraint in integers: coefficients, lower and upper bound.

    What rounding and the constraint's own slack may hide is granted on both sides, so that no
    feasible record is lost. A bound that no sum reaches is the least or the largest sum. If the
    lower bound is above the upper one, no record satisfies the constraint. The absolute
    coefficients add up to less than ``2 ** bits``.
    """
    coefficients, scale, error = integer_scaled(constraint.coefficients, bits)
    total = int(np.abs(coefficients).sum())
    largest = float(np.abs(constraint.coefficients).sum())
    beyond = min(2.0 * largest + 1.0, float_info.max)  # what no sum reaches
    lower, upper = max(constraint.lower, -beyond), min(constraint.upper, beyond)
    # Rounded inwards, but never past a sum that the constraint itself allows.
    slack = constraint.slack
    step = largest // max(total, 1) or 1.0
    if (step * coefficients == constraint.coefficients).all():  # divided without any rounding
        least = -(-ceil(lower - slack) // int(step))
        most = floor(upper + slack) // int(step)
    else:
        allowed = error + scale * slack
        least = ceil(scale * lower - allowed)
        most = floor(scale * upper + allowed)
    return coefficients, max(least, -total), min(most, total)

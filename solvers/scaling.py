"""Real weights and coefficients as integers, for solvers and formats that know no others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_DECIMALS = 9
"""Most decimal places tried before real numbers are rounded."""


def integer_scaled(
    values: NDArray[np.float64], bits: int = 52
) -> tuple[NDArray[np.int64], float, float]:
    """Bring real numbers to integers.

    Exactly so for integers (divided by their common divisor) and for decimals of up to 9 places
    whose absolute integers add up to less than ``2 ** bits``. Other numbers are scaled by a power
    of 2 so that those of the rounded ones do.

    Parameters
    ----------
    values
        float64, finite.
    bits
        At most 61.

    Returns
    -------
    integers, scale, error
        ``integers`` are about ``scale * values``; ``error`` bounds how far a sum of any of them is
        from ``scale`` times the sum of the values.
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
    scale = 2.0 ** min(bits - 1 - math.frexp(total)[1], 1000)
    integers = np.rint(values * scale)
    return integers.astype(np.int64), scale, float(np.abs(values * scale - integers).sum())

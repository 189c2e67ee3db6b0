"""Shares rounded to whole numbers of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round shares of a total so that no run of them is off by more than 1.

    Their running sum is rounded: rounding each share on its own, as largest remainders do, may
    move all that are alike up. ``shares`` are not negative, and not all of them 0.
    """
    reached = np.cumsum(shares)
    ends = np.rint(reached / reached[-1] * total).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))

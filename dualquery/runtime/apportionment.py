"""Shares rounded to whole numbers of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round shares, some of them above 0, so that no run of them is off by more than 1."""
    reached = np.cumsum(shares)
    ends = np.rint(reached / reached[-1] * total).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))

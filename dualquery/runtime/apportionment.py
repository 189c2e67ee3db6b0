"""Shares rounded to whole numbers of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round shares of a total so that no run of them is off by more than 1.

    It is their running sum that is rounded. Rounding each share on its own, as largest remainders
    do, favours those that are alike: all of them may go up, and their errors add up.

    Parameters
    ----------
    shares
        float64, shape ``(k,)``, at least 0, not all of them 0; their sum counts as the whole.
    total
        What the numbers add up to, >= 0.

    Returns
    -------
    int64, shape ``(k,)``, at least 0.
    """
    reached = np.cumsum(shares)
    ends = np.rint(reached / reached[-1] * total).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))

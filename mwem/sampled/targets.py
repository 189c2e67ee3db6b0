"""From the noisy counts of a table's cells to shares that a distribution can have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FLOOR = 0.25
"""Standard deviations of the noise below which no possible cell is believed to lie."""


def target_shares(
    counts: NDArray[np.float64], possible: NDArray[np.bool_], n: int, scale: float
) -> NDArray[np.float64]:
    """Return the shares of the cells, a distribution over the possible ones.

    The rows are n in all, which is public: what the noisy counts add up to beyond it is taken off
    all possible cells alike (the nearest point in Euclidean distance). Then cells below `FLOOR`
    standard deviations are raised to that. What noise cannot tell from zero is not zero; without a
    floor the family becomes nearly deterministic there, and its Gibbs sampler stops moving.

    Parameters
    ----------
    counts
        float64, shape ``(cells,)``: noisy counts.
    possible
        bool, shape ``(cells,)``: cells that legal records can lie in.
    n
        Number of rows.
    scale
        Standard deviation of the noise, in rows.

    Returns
    -------
    float64, shape ``(cells,)``: 0 outside ``possible``, above 0 in it; the sum is 1.
    """
    shares = np.where(possible, counts, 0.0)
    shares[possible] += (n - shares.sum()) / np.count_nonzero(possible)
    shares[possible] = np.maximum(shares[possible], FLOOR * scale)
    total: NDArray[np.float64] = shares / shares.sum()
    return total

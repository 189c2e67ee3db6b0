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

    They are the nearest point, in Euclidean distance, to the noisy counts among the tables of n
    rows whose possible cells hold at least `FLOOR` standard deviations each: what the counts add up
    to beyond n, which is public, is taken off all cells above the floor alike. What noise cannot
    tell from zero is not zero; without a floor the family becomes nearly deterministic there, and
    its Gibbs sampler stops moving.

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
    cells = np.count_nonzero(possible)
    floor = min(FLOOR * scale, 0.5 * n / cells)
    above = np.sort(counts[possible] - floor)[::-1]
    # With the k largest cells above the floor, each gives up an equal part of the excess.
    excess = (np.cumsum(above) - (n - cells * floor)) / np.arange(1, cells + 1)
    taken = excess[np.flatnonzero(above > excess)[-1]]
    shares = np.where(possible, np.maximum(counts - taken, floor), 0.0)
    total: NDArray[np.float64] = shares / n
    return total

"""The compiled loop that draws targets: rounding, what it leaves being carried over."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from dualquery.runtime.array_types import Array, kernel, read_only


@kernel(void(read_only(int64, 2), read_only(float64, 2), float64[:, :], int64[:]))
def round_targets(cells: Array, chances: Array, owed: Array, targets: Array) -> None:
    """Write a value of the target for each record, in order.

    A record gets the value after which two sums of squares together are least: of what its cells
    are owed, on average over the pairs, and of what the record is owed itself. So each cell gets
    each value about as often as the chances of its records add up to, by the records' own chances.

    ``cells`` int64 ``(r, p)``: each record's, one a pair of columns; ``chances`` float64 ``(r,
    values)``, adding up to 1; ``owed`` float64 ``(cells, values)``, changed in place.
    """
    pairs, values = cells.shape[1], chances.shape[1]
    claim = np.empty(values)
    for record in range(len(cells)):
        claim[:] = 0.0
        for pair in range(pairs):
            cell = cells[record, pair]
            for value in range(values):
                claim[value] += owed[cell, value]
        best = 0
        for value in range(values):
            claim[value] += 2 * pairs * chances[record, value]
            if claim[value] > claim[best]:
                best = value
        targets[record] = best
        for pair in range(pairs):
            cell = cells[record, pair]
            for value in range(values):
                owed[cell, value] += chances[record, value]
            owed[cell, best] -= 1.0

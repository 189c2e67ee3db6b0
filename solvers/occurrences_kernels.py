"""Compiled loop that lists where each attribute occurs in the terms."""

import numpy as np
from numpy.typing import NDArray

from solvers.compiled import loop


@loop("void(int32[:, ::1], int64[::1], int32[::1])")
def list_occurrences(
    terms: NDArray[np.int32], starts: NDArray[np.int64], occurrences: NDArray[np.int32]
) -> None:
    """Fill a list of the literals by attribute, those of one attribute by ascending terms.

    Parameters
    ----------
    terms
        (J, k): literal codes, -1 for none; distinct attributes within a row.
    starts
        (n + 1,), zero: gets where the literals on each attribute start.
    occurrences
        As long as there are literals: gets each as ``2 * term + negated``.
    """
    count, width = terms.shape
    n = starts.shape[0] - 1
    for j in range(count):
        for i in range(width):
            if terms[j, i] >= 0:
                starts[terms[j, i] >> 1] += 1
    for a in range(n):
        starts[a + 1] += starts[a]
    # From the last term backwards, so that each end becomes a start.
    for back in range(count):
        j = count - 1 - back
        for i in range(width):
            code = terms[j, i]
            if code >= 0:
                starts[code >> 1] -= 1
                occurrences[starts[code >> 1]] = 2 * j + (code & 1)

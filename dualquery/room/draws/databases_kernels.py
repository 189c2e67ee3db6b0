"""Numba kernel of the small-database mechanism: the error of every database of a size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel


@kernel("void(uint8[:, ::1], int64[::1], int64, int64, int64[::1])")
def score_databases(
    truth: NDArray[np.uint8],
    counts: NDArray[np.int64],
    n: int,
    size: int,
    scores: NDArray[np.int64],
) -> None:
    """Fill in ``-max_q |size * counts[q] - n * hits[q]|`` for all databases, in their order.

    ``truth[x, q]`` is the value of query q on cell x. A database is a non-decreasing sequence of
    cells, and databases are in lexicographic order, so that most differ from the one before in
    their last cell only.
    """
    cells, queries = truth.shape
    chosen = np.zeros(size, np.int64)
    hits = np.zeros((size + 1, queries), np.int64)
    changed = 0
    for number in range(len(scores)):
        for place in range(changed, size):
            for query in range(queries):
                hits[place + 1, query] = hits[place, query] + np.int64(truth[chosen[place], query])
        worst = np.int64(0)
        for query in range(queries):
            worst = max(worst, abs(size * counts[query] - n * hits[size, query]))
        scores[number] = -worst
        changed = size - 1
        while changed > 0 and chosen[changed] == cells - 1:
            changed -= 1
        chosen[changed:] = chosen[changed] + 1

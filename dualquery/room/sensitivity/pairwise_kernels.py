"""Numba kernels of the pairwise bound on the number of differing queries, in exact integers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel

Int64 = NDArray[np.int64]


@kernel("void(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64)")
def pass_messages(
    pairwise: Int64, unary: Int64, offsets: Int64, messages: Int64, sweeps: int
) -> None:
    """Move mass between the pairwise tables and the columns, to lower the bound of `bound`.

    Sequential tree-reweighted message passing (Kolmogorov, "Convergent tree-reweighted message
    passing for energy minimization", PAMI 2006) in integers: any integer messages give a valid
    bound, so rounding a share down costs tightness only.

    Tables and ``offsets`` are those of `PairwiseModel` and `Conjunctions`; the pairwise block of a
    column with itself is not read. ``messages[b, v]``, changed in place, is what the table of the
    pair of columns ``b`` and that of ``v`` has given to the value ``v``. A sweep is a forward pass
    and a backward pass.
    """
    columns = len(offsets) - 1
    largest = 0
    for column in range(columns):
        largest = max(largest, offsets[column + 1] - offsets[column])
    belief = np.empty(largest, np.int64)
    for step in range(2 * sweeps):
        forward = step % 2 == 0
        for position in range(columns):
            column = position if forward else columns - 1 - position
            start, stop = offsets[column], offsets[column + 1]
            for value in range(start, stop):
                total = unary[value]
                for other in range(columns):
                    if other == column:
                        continue
                    best = np.iinfo(np.int64).min
                    for w in range(offsets[other], offsets[other + 1]):
                        best = max(best, pairwise[value, w] - messages[column, w])
                    messages[other, value] = best
                    total += best
                belief[value - start] = total
            behind = column if forward else columns - 1 - column
            share = max(behind, columns - 1 - behind)
            for other in range(columns):
                ahead = other > column if forward else other < column
                if ahead:
                    for value in range(start, stop):
                        messages[other, value] -= belief[value - start] // share


@kernel("int64(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1])")
def reparametrised_bound(pairwise: Int64, unary: Int64, offsets: Int64, messages: Int64) -> int:
    """Return the sum of the maxima of all tables after the messages have moved their mass.

    For every choice of one value a column, the sum of the tables' entries does not depend on the
    messages (each is subtracted from a pairwise table and added to a column), so the sum of maxima
    bounds the largest sum of entries, whatever the messages are. Parameters: `pass_messages`.
    """
    columns = len(offsets) - 1
    bound = 0
    for a in range(columns):
        best = np.iinfo(np.int64).min
        for value in range(offsets[a], offsets[a + 1]):
            total = unary[value]
            for other in range(columns):
                if other != a:
                    total += messages[other, value]
            best = max(best, total)
        bound += best
        for b in range(a + 1, columns):
            best = np.iinfo(np.int64).min
            for value in range(offsets[a], offsets[a + 1]):
                given = messages[b, value]
                for w in range(offsets[b], offsets[b + 1]):
                    best = max(best, pairwise[value, w] - given - messages[a, w])
            bound += best
    return bound

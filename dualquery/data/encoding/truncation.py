"""Rows with many 1s, cut to a public number of them, so that one row moves few answers.

The cut of a row depends on that row alone. So two tables that differ in one row differ in at most
that row after the cut: neighbouring tables stay neighbours, and the guarantee holds for the table
as it was. A hash of the row's own content chooses the 1s that stay, evenly over the items, so the
cut is the same in every pass and on every worker; privacy does not rest on the hash.
"""

import numpy as np
from numba import int32, int64, types

from dualquery.data.encoding.encode import BitRows
from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only

_KEY = 0x6475616C71756572


@kernel(types.Tuple((int64[::1], int32[::1]))(read_only(int64), read_only(int32), int64))
def _keep_ones(indptr: Array, bits: Array, most: int) -> tuple[Array, Array]:
    """Keep the ``most`` bits of each row that a hash keyed by the whole row puts first."""
    pointers = np.zeros(len(indptr), np.int64)
    kept = np.empty(len(bits), np.int32)
    end = 0
    for row in range(len(indptr) - 1):
        found = np.unique(bits[indptr[row] : indptr[row + 1]])
        if len(found) > most:
            key = np.uint64(_KEY)
            for bit in found:
                key = mix((key ^ np.uint64(bit)) + GOLDEN)
            order = np.empty(len(found), np.uint64)
            for place in range(len(found)):
                order[place] = mix(key + GOLDEN * np.uint64(found[place] + 1))
            found = np.sort(found[np.argsort(order)[:most]])
        kept[end : end + len(found)] = found
        end += len(found)
        pointers[row + 1] = end
    return pointers, kept[:end].copy()


def truncate(rows: BitRows, most: int) -> BitRows:
    """Return the rows with at most ``most`` 1s each, the numbers of a row increasing."""
    return BitRows(*_keep_ones(rows.indptr, rows.bits, most))

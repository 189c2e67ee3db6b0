"""Compiled loop that cuts rows to a number of 1s (for `truncation`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, int64, njit, types, uint64
from numpy.typing import NDArray

Array = NDArray[Any]

_KEY = 0x6475616C71756572
_GOLDEN = 0x9E3779B97F4A7C15
_INT64S = types.Array(int64, 1, "C", readonly=True)
_INT32S = types.Array(int32, 1, "C", readonly=True)


@njit(uint64(uint64), nogil=True, cache=True)
def _mix(word: Any) -> Any:
    """Return a bijection of 64-bit words whose output looks random (finaliser of SplitMix64)."""
    once = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    twice = (once ^ (once >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return twice ^ (twice >> np.uint64(31))


@njit(types.Tuple((int64[::1], int32[::1]))(_INT64S, _INT32S, int64), nogil=True, cache=True)
def keep_ones(indptr: Array, bits: Array, most: int) -> tuple[Array, Array]:
    """Keep the ``most`` bits of each row that a hash keyed by the whole row puts first."""
    pointers = np.zeros(len(indptr), np.int64)
    kept = np.empty(len(bits), np.int32)
    end = 0
    for row in range(len(indptr) - 1):
        found = np.unique(bits[indptr[row] : indptr[row + 1]])
        if len(found) > most:
            key = np.uint64(_KEY)
            for bit in found:
                key = _mix((key ^ np.uint64(bit)) + np.uint64(_GOLDEN))
            order = np.empty(len(found), np.uint64)
            for place in range(len(found)):
                order[place] = _mix(key + np.uint64(_GOLDEN) * np.uint64(found[place] + 1))
            found = np.sort(found[np.argsort(order)[:most]])
        kept[end : end + len(found)] = found
        end += len(found)
        pointers[row + 1] = end
    return pointers, kept[:end].copy()

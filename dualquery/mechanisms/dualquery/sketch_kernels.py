"""Compiled loops over a sample of the queries: how many of them hold on both of two records."""

import numpy as np
from numba import float64, int64, types, uint8, uint64, void

from dualquery.runtime.array_types import Array, kernel, popcount, read_only

WORD = 64  # queries a word
TILE = 64  # records a tile: two of a few hundred words a record stay in the second-level cache


@kernel(void(read_only(uint8, 2), types.Array(int64, 1, "C"), uint64[:, ::1]))
def gather_truths(truths: Array, taken: Array, words: Array) -> None:
    """Write which of the taken queries hold on each record, `WORD` of them a word.

    Bit q (big-endian) of row t of ``truths``: whether query q holds on record t. Row t of ``words``
    has as many bits as there are taken queries.
    """
    for t in range(words.shape[0]):
        for w in range(words.shape[1]):
            word = np.uint64(0)
            for query in taken[w * WORD : (w + 1) * WORD]:
                bit = (truths[t, query >> 3] >> np.uint8(7 - (query & 7))) & np.uint8(1)
                word = (word << np.uint64(1)) | np.uint64(bit)
            words[t, w] = word


@kernel(void(read_only(uint64, 2), int64, float64[:, ::1]))
def count_together(words: Array, tile: int, together: Array) -> None:
    """Write how many queries hold on each record of a tile and each up to that tile's last.

    ``words`` are from `gather_truths`; ``together`` is float64, records by records.
    """
    first, last = TILE * tile, min(TILE * (tile + 1), words.shape[0])
    for other in range(tile + 1):
        for t in range(first, last):
            for u in range(TILE * other, min(TILE * (other + 1), t + 1)):
                common = np.uint64(0)
                for w in range(words.shape[1]):
                    common += popcount(words[t, w] & words[u, w])
                together[t, u] = common
                together[u, t] = common

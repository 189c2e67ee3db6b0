"""Compiled loops over a sample of the queries: how many of them hold on both of two records."""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, uint8, uint64, void

from dualquery.runtime.array_types import Array, kernel, popcount, read_only

WORD = 64
"""Queries a word."""
TILE = 64
"""Records a tile: two tiles of a few hundred words a record stay in the second-level cache."""


@kernel(void(read_only(uint8, 2), types.Array(int64, 1, "C"), uint64[:, ::1]))
def gather_truths(truths: Array, taken: Array, words: Array) -> None:
    """Write which of some queries hold on each record, `WORD` of them a word.

    Parameters
    ----------
    truths
        Bit q (big-endian) of row t: whether query q holds on record t.
    taken
        The queries, with repetitions, as many as the words have bits.
    words
        Row t gets those of record t.
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
    """Write in how many queries each record of a tile agrees with each up to that tile's last.

    Parameters
    ----------
    words
        What `gather_truths` wrote.
    tile
        Number of the tile: its records are ``TILE tile .. TILE (tile + 1) - 1``.
    together
        float64, records by records: gets whole numbers, on both sides of the diagonal.
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

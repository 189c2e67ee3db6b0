"""Exact counts of many conjunctions in one pass over the blocks of the records."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dualquery.data.records import BLOCK_ROWS, Records
from dualquery.queries import kernels

_KERNELS = {1: kernels.count_one, 2: kernels.count_two, 3: kernels.count_three}


def count_conjunctions(
    literals: NDArray[np.int32], records: Records, threads: int
) -> NDArray[np.int64]:
    """Return in how many records each conjunction holds.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: literal codes ``2 * bit + negated``, at least one a row, padded on
        the right with -1.
    records
        The rows to count in.
    threads
        Number of threads, at least 1; the counts do not depend on it.

    Returns
    -------
    int64, shape ``(m,)``, each in ``0 .. n``.
    """
    used = literals >= 0
    # Padding repeats the row's first literal: the conjunction stays the same, and every row has k.
    full = np.where(used, literals, literals[:, :1])
    # Queries with the same first attribute follow each other and find its words in the cache.
    order = np.argsort(full[:, 0], kind="stable")
    attributes = np.unique(full >> 1)
    position = np.zeros(records.bits, np.int32)
    position[attributes] = np.arange(len(attributes), dtype=np.int32)
    local = np.ascontiguousarray(2 * position[full >> 1] + (full & 1), np.int32)[order]
    kernel = _KERNELS.get(local.shape[1], kernels.count_many)

    pending = deque(range(records.blocks))

    def count_pending() -> NDArray[np.int64]:
        counts = np.zeros(len(local), np.int64)
        while True:
            try:
                block = pending.popleft()
            except IndexError:
                return counts
            kernel(local, records.block(block, attributes), counts)

    with ThreadPoolExecutor(max_workers=threads) as executor:
        futures = [executor.submit(count_pending) for _ in range(threads)]
        try:
            total = np.sum([future.result() for future in futures], axis=0)
        except BaseException:
            pending.clear()  # an interrupt ends the other threads after their current block
            raise
    counts = np.empty(len(local), np.int64)
    counts[order] = total
    # The zero records that fill the last block satisfy the queries without positive literal only.
    counts[(full & 1).all(axis=1)] -= records.blocks * BLOCK_ROWS - records.n
    return counts

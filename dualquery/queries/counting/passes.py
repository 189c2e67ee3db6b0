"""Exact counts of many conjunctions in one pass over the blocks of the rows.

Blocks of 4,096 rows are counted independently, by as many threads as there are, wherever the rows
come from; README.md beside this file has the measured rates.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.counting import kernels
from dualquery.rows.protocol import BLOCK_ROWS, BLOCK_WORDS, Block, BlockRows
from dualquery.runtime.resources import check_memory
from dualquery.runtime.workers import workers

_PROBED_COLUMNS = 256
_SPARSE_WORDS, _SPARSE_WORDS_POSITIVE = 3, 12
"""Words of 64 that are not 0, on average, up to which `kernels.count_sparse` is the faster: for
signed queries, and for those without a negated literal (measured)."""


@dataclass(frozen=True, eq=False)
class ConjunctionCounts:
    """The statistic of how many rows satisfy each conjunction (see `RowSum`).

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: literal codes ``2 * bit + negated``, each row sorted, at least one
        literal a row, padded on the right with -1.
    """

    literals: NDArray[np.int32]

    def of_literals(self, literals: NDArray[np.int32], /) -> ConjunctionCounts:
        """Return the counts of other conjunctions."""
        return ConjunctionCounts(literals)

    def __call__(self, rows: BlockRows, threads: int, /) -> NDArray[np.int64]:
        """Count in some rows: int64, shape ``(m,)``.

        Raises `BadInputError` if they cannot be read to the end, or the pass needs too much memory.
        """
        check_memory(
            self._pass.memory(threads),
            f"counting {len(self.literals):,} queries about {len(self._pass.attributes):,} bits",
            "take fewer threads, queries or columns",
        )
        return self._pass.run(rows, threads)

    @cached_property
    def _pass(self) -> CountingPass:
        return CountingPass(self.literals)


class CountingPass:
    """Conjunctions, as of `ConjunctionCounts`, made ready for a pass over rows.

    ``attributes``, int32, increasing, are the bits that they mention. Only these are packed.
    """

    def __init__(self, literals: NDArray[np.int32]) -> None:
        self.literals = literals
        missing = max(0, 3 - literals.shape[1])
        literals = np.pad(literals, ((0, 0), (0, missing)), constant_values=-1).astype(np.int32)
        mentioned = np.zeros(int(literals.max() >> 1) + 1, np.uint8)
        kernels.mention(literals, mentioned)
        self.attributes = np.flatnonzero(mentioned).astype(np.int32)
        numbers = np.cumsum(mentioned, dtype=np.int32) - np.int32(1)
        # Padding repeats the row's first literal: the conjunction stays the same, and all have k.
        local = np.empty_like(literals)
        self._negative = np.empty(len(local), np.bool_)
        kernels.renumber(literals, numbers, local, self._negative)
        self._order = _cached_order(local, 2 * len(self.attributes))
        self._local = np.take(local, self._order, axis=0)
        self._sparse_words = _SPARSE_WORDS if (local & 1).any() else _SPARSE_WORDS_POSITIVE

    def memory(self, threads: int) -> int:
        """Return the bytes that the pass takes beside the rows."""
        block = len(self.attributes) * BLOCK_WORDS * 8
        queries = 2 * self.literals.nbytes + 16 * len(self.literals)
        return queries + threads * (block + 8 * len(self.literals))

    def run(self, rows: BlockRows, threads: int) -> NDArray[np.int64]:
        """Count: int64, shape ``(m,)``, each in ``0 .. n``, whatever the number of threads.

        Rows are read once, one block a thread in memory at a time; `BadInputError` if they cannot
        be read to the end.
        """
        blocks = _SharedBlocks(rows.stream())
        busy = min(threads, max(-(-rows.n // BLOCK_ROWS), 1))
        with workers(busy) as pool:
            futures = [pool.submit(self._count, blocks) for _ in range(busy)]
            try:
                total = np.sum([future.result() for future in futures], axis=0)
            except BaseException:
                blocks.stop()  # a fault or an interrupt ends the other threads, too
                raise
        counts = np.empty(len(total), np.int64)
        counts[self._order] = total
        # The zero records that fill the last block satisfy the queries without positive literal.
        counts[self._negative] -= -rows.n % BLOCK_ROWS
        return counts

    def _count(self, blocks: _SharedBlocks) -> NDArray[np.int64]:
        counts = np.zeros(len(self._local), np.int64)
        for block in blocks:
            self.count_words(block.pack(self.attributes), counts)
        return counts

    def count_words(self, words: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
        """Add the rows of one block, packed: uint64, ``(attributes, 64)``, in the pass's order."""
        if _words_held(words) <= self._sparse_words:
            occupied = np.empty(len(words), np.uint64)
            kernels.occupy(words, occupied)
            kernels.count_sparse(self._local, words, occupied, counts)
        else:
            count = kernels.count_three if self._local.shape[1] == 3 else kernels.count_many
            count(self._local, words, counts)


def count_conjunctions(
    literals: NDArray[np.int32], rows: BlockRows, threads: int
) -> NDArray[np.int64]:
    """Return in how many rows each conjunction holds, int64, shape ``(m,)``: see `CountingPass`."""
    return CountingPass(literals).run(rows, threads)


def _cached_order(literals: NDArray[np.int32], codes: int) -> NDArray[np.int64]:
    """Return an order of queries in which the words of their literals stay in the cache."""
    order = np.arange(len(literals))
    for place, shift in ((min(1, literals.shape[1] - 1), 1), (0, 0)):
        finer = np.empty_like(order)
        kernels.sort_stably(literals, place, shift, codes, order, finer)
        order = finer
    return order


def _words_held(words: NDArray[np.uint64]) -> float:
    """Return how many words of a column are not 0, on average, by looking at some columns."""
    probed = words[:: -(-len(words) // _PROBED_COLUMNS)]
    return np.count_nonzero(probed) / len(probed)


class _SharedBlocks:
    """Blocks handed to several threads, each block to one of them; reading is done by one."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._reading = threading.Lock()
        self._stopped = False

    def __iter__(self) -> Iterator[Block]:
        while (block := self._next()) is not None:
            yield block

    def _next(self) -> Block | None:
        with self._reading:
            return None if self._stopped else next(self._blocks, None)

    def stop(self) -> None:
        self._stopped = True

"""Exact counts of many conjunctions in one pass over the blocks of the rows.

Blocks of 4,096 rows are counted independently, by as many threads as there are, wherever the rows
come from; README.md beside this file has the measured rates. Numba vectorises the loops over the 64
words of a block, which a loop over literals inside would stop.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import int32, int64, types, uint8, uint64, void
from numpy.typing import NDArray

from dualquery.rows.row_sums import BLOCK_ROWS, BLOCK_WORDS, Block, BlockRows
from dualquery.runtime.array_types import Array, kernel, popcount, read_only
from dualquery.runtime.resources import check_memory, workers

_PROBED_COLUMNS = 256
_SPARSE_WORDS, _SPARSE_WORDS_POSITIVE = 3, 12
"""Words of 64 that are not 0, on average, up to which `count_sparse` is the faster: for
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
        mention(literals, mentioned)
        self.attributes = np.flatnonzero(mentioned).astype(np.int32)
        numbers = np.cumsum(mentioned, dtype=np.int32) - np.int32(1)
        local = np.empty_like(literals)
        self._negative = np.empty(len(local), np.bool_)
        renumber(literals, numbers, local, self._negative)
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
            occupy(words, occupied)
            count_sparse(self._local, words, occupied, counts)
        else:
            count = count_three if self._local.shape[1] == 3 else count_many
            count(self._local, words, counts)


def _cached_order(literals: NDArray[np.int32], codes: int) -> NDArray[np.int64]:
    """Return an order of queries in which the words of their literals stay in the cache."""
    order = np.arange(len(literals))
    for place, shift in ((min(1, literals.shape[1] - 1), 1), (0, 0)):
        finer = np.empty_like(order)
        sort_stably(literals, place, shift, codes, order, finer)
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


FEW_WORDS = np.uint64(5)
"""Up to this number, words of 64 are faster visited one by one than in vectors (measured)."""

_COUNT = void(read_only(int32, 2), read_only(uint64, 2), int64[::1])


@kernel(uint64(int32), inline="always")
def _flips(literal: int) -> np.uint64:
    """Return the word to XOR with: all 1s for a negated literal, else 0."""
    return np.uint64(0) - np.uint64(literal & 1)


@kernel(void(read_only(int32, 2), uint8[::1]))
def mention(literals: Array, mentioned: Array) -> None:
    """Set ``mentioned`` to 1 for each bit that queries mention."""
    for q in range(len(literals)):
        for j in range(literals.shape[1]):
            if literals[q, j] >= 0:
                mentioned[literals[q, j] >> 1] = 1


@kernel(void(read_only(int32, 2), read_only(int32, 1), int32[:, ::1], types.boolean[::1]))
def renumber(literals: Array, numbers: Array, renumbered: Array, negative: Array) -> None:
    """Give the bits of literals new numbers, and fill rows up with their first literal.

    ``negative`` receives whether all literals of a query are negated.
    """
    for q in range(len(literals)):
        negated = 1
        for j in range(literals.shape[1]):
            literal = literals[q, j] if literals[q, j] >= 0 else literals[q, 0]
            renumbered[q, j] = 2 * numbers[literal >> 1] + (literal & 1)
            negated &= literal
        negative[q] = negated == 1


@kernel(void(read_only(int32, 2), int64, int64, int64, int64[::1], int64[::1]))
def sort_stably(
    literals: Array, place: int, shift: int, keys: int, order: Array, sorted_order: Array
) -> None:
    """Write the order of queries, sorted further by one of their literals, counting its values.

    The key of query ``q`` is ``literals[q, place] >> shift``, below ``keys``; among equal keys
    ``order`` is kept.
    """
    starts = np.zeros(keys + 1, np.int64)
    for q in range(len(literals)):
        starts[(literals[q, place] >> shift) + 1] += 1
    for key in range(keys):
        starts[key + 1] += starts[key]
    for q in order:
        key = literals[q, place] >> shift
        sorted_order[starts[key]] = q
        starts[key] += 1


@kernel(_COUNT)
def count_three(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of three literals, some repeated, holds."""
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        b = literals[q, 1] >> 1
        c = literals[q, 2] >> 1
        flip_a = _flips(literals[q, 0])
        flip_b = _flips(literals[q, 1])
        flip_c = _flips(literals[q, 2])
        total = np.uint64(0)
        for w in range(64):
            total += popcount(
                (words[a, w] ^ flip_a) & (words[b, w] ^ flip_b) & (words[c, w] ^ flip_c)
            )
        counts[q] += np.int64(total)


@kernel(_COUNT)
def count_many(literals: Array, words: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query of any number of literals holds."""
    held = np.empty(64, np.uint64)
    for q in range(len(literals)):
        a = literals[q, 0] >> 1
        flip = _flips(literals[q, 0])
        for w in range(64):
            held[w] = words[a, w] ^ flip
        for j in range(1, literals.shape[1]):
            a = literals[q, j] >> 1
            flip = _flips(literals[q, j])
            for w in range(64):
                held[w] &= words[a, w] ^ flip
        total = np.uint64(0)
        for w in range(64):
            total += popcount(held[w])
        counts[q] += np.int64(total)


@kernel(void(read_only(uint64, 2), uint64[::1]))
def occupy(words: Array, occupied: Array) -> None:
    """Write which of the 64 words of each column are not 0, as the bits of one word."""
    for a in range(len(words)):
        held = np.uint64(0)
        for w in range(64):
            held |= np.uint64(words[a, w] != np.uint64(0)) << np.uint64(w)
        occupied[a] = held


@kernel(void(read_only(int32, 2), read_only(uint64, 2), read_only(uint64, 1), int64[::1]))
def count_sparse(literals: Array, words: Array, occupied: Array, counts: Array) -> None:
    """Add to ``counts`` in how many rows each query holds, by the words that can matter.

    Where a positive literal's word is 0 no row satisfies the query; the words that are left are
    found in ``occupied`` (see `occupy`), without touching the columns. If all literals are negated,
    every row of a word that is 0 in all of them satisfies the query.
    """
    for q in range(len(literals)):
        candidates, union = ~np.uint64(0), np.uint64(0)
        positive = False
        for j in range(literals.shape[1]):
            held = occupied[literals[q, j] >> 1]
            union |= held
            if literals[q, j] & 1 == 0:
                positive = True
                candidates &= held
        total = np.uint64(0)
        if not positive:
            candidates = union
            total = np.uint64(64) * (np.uint64(64) - popcount(union))
        if popcount(candidates) > FEW_WORDS:
            if literals.shape[1] == 3:
                count_three(literals[q : q + 1], words, counts[q : q + 1])
            else:
                count_many(literals[q : q + 1], words, counts[q : q + 1])
            continue
        while candidates != np.uint64(0):
            lowest = candidates & (~candidates + np.uint64(1))
            w = np.int64(popcount(lowest - np.uint64(1)))
            candidates ^= lowest
            held = ~np.uint64(0)
            for j in range(literals.shape[1]):
                a = literals[q, j] >> 1
                # A negated literal whose word is 0 holds in all its rows, and need not be read.
                if occupied[a] & lowest != np.uint64(0):
                    held &= words[a, w] ^ _flips(literals[q, j])
            total += popcount(held)
        counts[q] += np.int64(total)


@kernel(void(read_only(int32, 2), read_only(uint8, 1), uint8[::1]))
def evaluate(literals: Array, record: Array, truth: Array) -> None:
    """Write whether each query holds on ``record``, as 0/1."""
    # holds[code + 1] is the truth of a literal; the padding code -1 is true. No branch depends on
    # the record, so nothing is mispredicted.
    holds = np.ones(2 * len(record) + 1, np.uint8)
    for bit in range(len(record)):
        holds[2 * bit + 1] = record[bit]
        holds[2 * bit + 2] = 1 - record[bit]
    if literals.shape[1] == 3:
        for q in range(len(literals)):
            truth[q] = (
                holds[literals[q, 0] + 1] & holds[literals[q, 1] + 1] & holds[literals[q, 2] + 1]
            )
        return
    for q in range(len(literals)):
        value = np.uint8(1)
        for j in range(literals.shape[1]):
            value &= holds[literals[q, j] + 1]
        truth[q] = value

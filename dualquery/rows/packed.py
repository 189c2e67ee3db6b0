"""The private rows in memory: blocks of 4,096 records, packed or listed, whichever is smaller.

A block is packed as one 64-bit word for 64 rows of a bit, or lists the rows in which each bit is 1.
Readers of a block need not know: `Records.block` packs the bits asked for, so that a pass over wide
sparse data never holds more than one packed block for each thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import int32, int64, types, uint8, uint16, uint64, void
from numpy.typing import NDArray

from dualquery.data.encoding.encode import BitRows, CodedRows, Encoded
from dualquery.rows.row_sums import BLOCK_ROWS, BLOCK_WORDS, Block, RowSum
from dualquery.runtime.array_types import Array, kernel, popcount, read_only
from dualquery.runtime.errors import BadInputError

_LINE_BYTES = 64
"""A cache line, and the widest vector: a load across two of them takes as long as two loads."""


def zero_words(columns: int) -> NDArray[np.uint64]:
    """Return words for the bits of some columns, uint64 ``(columns, BLOCK_WORDS)``, all 0.

    Each column starts with a cache line, which NumPy leaves to chance: counting over them took 8.6
    ns a query and block, and 9.2 or 12.2 where they began 32 or 16 bytes later.
    """
    size = columns * BLOCK_WORDS * 8
    memory = np.zeros(size + _LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % _LINE_BYTES
    return memory[start : start + size].view(np.uint64).reshape(columns, BLOCK_WORDS)


@dataclass(frozen=True, eq=False)
class PackedBlock:
    """A block as packed words: uint64, shape ``(bits, BLOCK_WORDS)``."""

    words: NDArray[np.uint64]

    @property
    def nbytes(self) -> int:
        """Memory of the block in bytes."""
        return self.words.nbytes

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``."""
        words = zero_words(len(attributes))
        # Any other mode than this would make a second copy; the attributes are in range.
        return np.take(self.words, attributes, axis=0, out=words, mode="clip")

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out`` as 0/1."""
        unpack_rows(self.words, first_row, out)

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each bit to ``counts``."""
        count_words(self.words, counts)


@dataclass(frozen=True, eq=False)
class ListedBlock:
    """A block as lists of rows, one for each bit that is 1 somewhere in it."""

    columns: NDArray[np.int32]  # increasing: the bits that are 1 in at least one row
    counts: NDArray[np.uint16]  # in how many rows each of them is 1 (at most `BLOCK_ROWS`)
    rows: NDArray[np.uint16]  # those rows, one list after another

    @property
    def nbytes(self) -> int:
        """Memory of the block in bytes."""
        return self.columns.nbytes + self.counts.nbytes + self.rows.nbytes

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``."""
        words = zero_words(len(attributes))
        pack_lists(self.columns, self.counts, self.rows, attributes, words)
        return words

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the rows from ``first_row`` of the block on into ``out`` (zeroed) as 0/1."""
        unpack_lists(self.columns, self.counts, self.rows, first_row, out)

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each bit to ``counts``."""
        counts[self.columns] += self.counts


def _listed_bytes(ones: int, columns: int) -> int:
    return 2 * ones + 6 * columns


@dataclass(frozen=True, eq=False)
class Records:
    """``n`` records of ``bits`` bits, read block by block (made by `RecordsBuilder`).

    Row ``r`` lies in block ``r // BLOCK_ROWS``, word ``r % BLOCK_ROWS // 64``, bit ``r % 64``,
    least significant first. The rows missing at the end of the last block are zero records: whoever
    counts negated literals must leave them out (see `rows_in_block`).
    """

    n: int
    bits: int
    stored: tuple[Block, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.stored)

    @property
    def nbytes(self) -> int:
        """Memory of all blocks in bytes."""
        return sum(block.nbytes for block in self.stored)

    def rows_in_block(self, block: int) -> int:
        """Return how many of the ``BLOCK_ROWS`` rows of a block are records."""
        return min(BLOCK_ROWS, self.n - block * BLOCK_ROWS)

    def block(self, block: int, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return some bits, int32, increasing, of one block (see `Block.pack`)."""
        return self.stored[block].pack(attributes)

    def stream(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        return iter(self.stored)

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows."""
        return statistic(self, threads)

    def ones(self) -> NDArray[np.int64]:
        """Return in how many records each bit is 1, int64, shape ``(bits,)``."""
        counts = np.zeros(self.bits, np.int64)
        for block in self.stored:
            block.add_ones(counts)
        return counts

    def dense_rows(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return rows ``start .. stop - 1`` as 0/1, uint8, shape ``(stop - start, bits)``."""
        if not 0 <= start <= stop <= self.n:
            raise IndexError(f"rows {start}..{stop} asked of {self.n} records")
        out = np.zeros((stop - start, self.bits), np.uint8)
        while start < stop:
            block, first_row = divmod(start, BLOCK_ROWS)
            count = min(stop - start, BLOCK_ROWS - first_row)
            end = len(out) - (stop - start)
            self.stored[block].unpack(first_row, out[end : end + count])
            start += count
        return out


_MOST_DENSE = 1 << 17
"""Bits of records that are packed while they are collected: 64 MiB; wider ones are listed."""

_CELLS = 1 << 24
"""Cells of dense rows that are appended at a time: to list them takes 24 bytes for each 1."""


def _set_flags(
    words: NDArray[np.uint64], bits: NDArray[np.int32], flags: NDArray[np.uint8], first_row: int
) -> None:
    """Set bits of consecutive rows in packed words: flags are 0 or 1, shape ``(bits, rows)``."""
    if len(flags) > 1 and flags.T.flags.c_contiguous:
        found = np.zeros((len(bits), BLOCK_WORDS), np.uint64)
        pack_rows(flags.T, first_row, found)
        words[bits] |= found
        return
    first, before = divmod(first_row, 64)
    stop = -(-(first_row + flags.shape[1]) // 64)
    if before:
        flags = np.pad(flags, ((0, 0), (before, 0)))
    found = np.zeros((len(bits), (stop - first) * 8), np.uint8)
    packed = np.packbits(flags, axis=1, bitorder="little")
    found[:, : packed.shape[1]] = packed
    words[bits, first:stop] |= found.view("<u8")


class RecordsBuilder:
    """Collects rows in any pieces and stores each full block in its smaller form.

    Parameters
    ----------
    bits
        Number of bits of a record, at least 1.
    """

    def __init__(self, bits: int) -> None:
        if not 1 <= bits < 2**30:
            raise BadInputError(f"a record needs between 1 and 2^30 - 1 bits, not {bits}")
        self._bits = bits
        self._blocks: list[Block] = []
        self._taken = 0
        self._start_block()

    def _start_block(self) -> None:
        self._filled = 0
        self._words: NDArray[np.uint64] | None = None
        self._lengths: list[NDArray[np.int64]] = []
        self._indices: list[NDArray[np.int32]] = []

    @property
    def rows(self) -> int:
        """Number of rows appended so far."""
        return (self._taken + len(self._blocks)) * BLOCK_ROWS + self._filled

    @property
    def nbytes(self) -> int:
        """Memory of the full blocks that are held, in bytes."""
        return sum(block.nbytes for block in self._blocks)

    def append_ones(self, indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> None:
        """Append rows given by the numbers of their 1s.

        Row i is ``indices[indptr[i]:indptr[i + 1]]``, in any order; repeats count once.
        """
        pointers = np.asarray(indptr, np.int64)
        numbers = np.asarray(indices)
        used = numbers[pointers[0] : pointers[-1]]
        if len(wrong := np.flatnonzero((used < 0) | (used >= self._bits))):
            position = int(wrong[0])
            row = int(np.searchsorted(pointers - pointers[0], position, side="right")) - 1
            raise BadInputError(
                f"row {self.rows + row}: bit {int(used[position])} is outside 0..{self._bits - 1}"
            )
        for start, end in self._pieces(len(pointers) - 1):
            # Copies: a reader may reuse its buffers for the next piece.
            self._lengths.append(np.diff(pointers[start : end + 1]))
            self._indices.append(
                numbers[pointers[start] : pointers[end]].astype(np.int32, copy=True)
            )

    def append_encoded(self, rows: Encoded) -> None:
        """Append rows as they were encoded."""
        if isinstance(rows, CodedRows) and self._bits > _MOST_DENSE:
            rows = rows.listed()
        if isinstance(rows, BitRows):
            self.append_ones(rows.indptr, rows.bits)
            return
        for start, end in self._pieces(len(rows)):
            if self._words is None:
                self._words = np.zeros((self._bits, BLOCK_WORDS), np.uint64)
            for bits, flags in rows.flags:
                _set_flags(self._words, bits, flags[:, start:end], self._filled)
            for starts, codes in rows.codes:
                part = np.ascontiguousarray(codes[:, start:end])
                set_codes(starts, part, self._filled, self._words)
            self._lengths.append(np.zeros(end - start, np.int64))

    def append_dense(self, rows: NDArray[np.uint8]) -> None:
        """Append rows of 0s and 1s, uint8, shape ``(rows, bits)``."""
        if rows.ndim != 2 or rows.shape[1] != self._bits:
            raise BadInputError(f"rows of {self._bits} bits expected, found shape {rows.shape}")
        bits = np.arange(self._bits, dtype=np.int32)
        for part in np.array_split(rows, rows.size // _CELLS + 1):
            if (wrong := (part != 0) & (part != 1)).any():
                row, bit = np.argwhere(wrong)[0].tolist()
                raise BadInputError(
                    f"row {self.rows + row}, bit {bit}: found {part[row, bit]}, expected 0 or 1"
                )
            dense = np.ascontiguousarray(part, np.uint8)
            self.append_encoded(CodedRows(len(dense), ((bits, dense.T),)))

    def build(self) -> Records:
        """Return the records that were not taken; the builder starts again with none."""
        n = self.rows - self._taken * BLOCK_ROWS
        if self._filled:
            self._close_block()
        records = Records(n, self._bits, tuple(self._blocks))
        self._blocks = []
        self._taken = 0
        return records

    def take_full(self) -> list[Block]:
        """Return the full blocks and forget them, so that rows can pass through."""
        full = self._blocks
        self._blocks = []
        self._taken += len(full)
        return full

    def _pieces(self, rows: int) -> Iterator[tuple[int, int]]:
        """Cut new rows where blocks end; each block is closed once its piece has been taken in."""
        start = 0
        while start < rows:
            end = min(rows, start + BLOCK_ROWS - self._filled)
            yield start, end
            self._filled += end - start
            start = end
            if self._filled == BLOCK_ROWS:
                self._close_block()

    def _close_block(self) -> None:
        indptr = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        np.cumsum(indptr, out=indptr)
        indices = np.concatenate([np.zeros(0, np.int32), *self._indices])
        packed_bytes = self._bits * BLOCK_WORDS * 8
        most_listed = _listed_bytes(len(indices), min(len(indices), self._bits))
        words = self._words
        if words is None and most_listed < packed_bytes:
            block: Block = ListedBlock(*list_ones(indptr, indices, self._bits))
        else:
            if words is None:
                words = np.zeros((self._bits, BLOCK_WORDS), np.uint64)
            scatter_ones(indptr, indices, words)
            ones = np.zeros(self._bits, np.int64)
            count_words(words, ones)
            if _listed_bytes(int(ones.sum()), int(np.count_nonzero(ones))) < packed_bytes:
                block = ListedBlock(*list_words(words, ones))
            else:
                block = PackedBlock(words)
        self._blocks.append(block)
        self._start_block()


_WORDS = uint64[:, ::1]
_LISTS = (read_only(int32), read_only(uint16), read_only(uint16))
_LISTED = types.Tuple((int32[::1], uint16[::1], uint16[::1]))


@kernel(void(read_only(int64), read_only(int32), _WORDS))
def scatter_ones(indptr: Array, indices: Array, words: Array) -> None:
    """Set the listed bits of the rows of one block in its packed words."""
    for row in range(len(indptr) - 1):
        mask = np.uint64(1) << np.uint64(row & 63)
        for j in range(indptr[row], indptr[row + 1]):
            words[indices[j], row >> 6] |= mask


@kernel(void(read_only(uint8, 2), int64, _WORDS))
def pack_rows(rows: Array, first_row: int, words: Array) -> None:
    """Set the 1s of dense 0/1 rows in the packed words of one block."""
    count, bits = rows.shape
    start = 0
    while start < count:
        # All rows of one word at a time, so that each word is written once.
        word = (first_row + start) >> 6
        stop = min(count, ((word + 1) << 6) - first_row)
        for bit in range(bits):
            value = np.uint64(0)
            for i in range(start, stop):
                value |= np.uint64(rows[i, bit]) << np.uint64((first_row + i) & 63)
            words[bit, word] |= value
        start = stop


@kernel(void(read_only(int32), read_only(int32, 2), int64, _WORDS))
def set_codes(starts: Array, codes: Array, first_row: int, words: Array) -> None:
    """Set the bits ``starts[c] + codes[c, r]`` of consecutive rows in the words of one block."""
    for column in range(len(starts)):
        for i in range(codes.shape[1]):
            row = first_row + i
            mask = np.uint64(1) << np.uint64(row & 63)
            words[starts[column] + codes[column, i], row >> 6] |= mask


@kernel(void(read_only(uint64, 2), int64, uint8[:, ::1]))
def unpack_rows(words: Array, first_row: int, out: Array) -> None:
    """Write rows ``first_row ...`` of a packed block into ``out`` as 0/1."""
    for i in range(out.shape[0]):
        row = first_row + i
        shift = np.uint64(row & 63)
        for bit in range(out.shape[1]):
            out[i, bit] = (words[bit, row >> 6] >> shift) & np.uint64(1)


@kernel(void(read_only(uint64, 2), int64[::1]))
def count_words(words: Array, counts: Array) -> None:
    """Add the number of 1s of each row of ``words`` to ``counts``."""
    for bit in range(words.shape[0]):
        total = np.uint64(0)
        for word in range(words.shape[1]):
            total += popcount(words[bit, word])
        counts[bit] += np.int64(total)


@kernel(_LISTED(read_only(uint64, 2), read_only(int64)))
def list_words(words: Array, ones: Array) -> tuple[Array, Array, Array]:
    """Turn packed words into column lists; ``ones`` is the number of 1s of each column."""
    columns = np.flatnonzero(ones).astype(np.int32)
    counts = ones[columns].astype(np.uint16)
    rows = np.empty(ones.sum(), np.uint16)
    end = 0
    for column in columns:
        for word in range(words.shape[1]):
            rest = words[column, word]
            while rest != np.uint64(0):
                lowest = rest & (~rest + np.uint64(1))
                rows[end] = (word << 6) + np.int64(popcount(lowest - np.uint64(1)))
                end += 1
                rest ^= lowest
    return columns, counts, rows


@kernel(_LISTED(read_only(int64), read_only(int32), int64))
def list_ones(indptr: Array, indices: Array, bits: int) -> tuple[Array, Array, Array]:
    """Turn row lists of set bits into column lists, dropping repetitions within a row."""
    last = np.zeros(bits, np.int32)  # rows count from 1
    place = np.zeros(bits + 1, np.int64)
    used = 0
    for row in range(1, len(indptr)):
        for j in range(indptr[row - 1], indptr[row]):
            bit = indices[j]
            if last[bit] != row:
                used += last[bit] == 0
                last[bit] = row
                place[bit + 1] += 1
    columns, counts = np.empty(used, np.int32), np.empty(used, np.uint16)
    used = 0
    for bit in range(bits):
        last[bit] = 0
        if place[bit + 1] > 0:
            columns[used], counts[used] = bit, place[bit + 1]
            used += 1
        place[bit + 1] += place[bit]
    rows = np.empty(place[bits], np.uint16)
    for row in range(1, len(indptr)):
        for j in range(indptr[row - 1], indptr[row]):
            bit = indices[j]
            if last[bit] != row:
                last[bit] = row
                rows[place[bit]] = row - 1
                place[bit] += 1
    return columns, counts, rows


@kernel(void(*_LISTS, read_only(int32), _WORDS))
def pack_lists(columns: Array, counts: Array, rows: Array, attributes: Array, out: Array) -> None:
    """Pack the column lists of the (increasing) ``attributes`` into the zeroed words ``out``."""
    start = np.int64(0)
    i = 0
    for a in range(len(attributes)):
        while i < len(columns) and columns[i] < attributes[a]:
            start += np.int64(counts[i])
            i += 1
        if i == len(columns):
            return
        if columns[i] == attributes[a]:
            for j in range(start, start + np.int64(counts[i])):
                row = np.int64(rows[j])
                out[a, row >> 6] |= np.uint64(1) << np.uint64(row & 63)


@kernel(void(*_LISTS, int64, uint8[:, ::1]))
def unpack_lists(columns: Array, counts: Array, rows: Array, first_row: int, out: Array) -> None:
    """Write rows ``first_row ...`` of column lists into the zeroed ``out`` as 0/1."""
    start = np.int64(0)
    for i in range(len(columns)):
        stop = start + np.int64(counts[i])
        for j in range(start, stop):
            row = np.int64(rows[j]) - first_row
            if 0 <= row < out.shape[0]:
                out[row, columns[i]] = 1
        start = stop

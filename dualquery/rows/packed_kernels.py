"""Compiled loops that pack records into blocks and read them back (for `records`)."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint8, uint16, uint64, void

from dualquery.runtime.array_types import Array, kernel, popcount, read_only

_WORDS = uint64[:, ::1]
_LISTS = (read_only(int32), read_only(uint16), read_only(uint16))
_LISTED = types.Tuple((int32[::1], uint16[::1], uint16[::1]))


@kernel(void(read_only(int64), read_only(int32), int64, _WORDS))
def scatter_ones(indptr: Array, indices: Array, first_row: int, words: Array) -> None:
    """Set the listed bits of consecutive rows in the packed words of one block."""
    for i in range(len(indptr) - 1):
        row = first_row + i
        mask = np.uint64(1) << np.uint64(row & 63)
        for j in range(indptr[i], indptr[i + 1]):
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

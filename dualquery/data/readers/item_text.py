"""Rows of items as ``fimi``, ``matrix``, ``bitstring``: chunks of bytes become arrays at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import CHUNK_BYTES, FilePath, line_chunks
from dualquery.data.readers.source import DenseItems, ItemRows, ItemSource, rows_at_once
from dualquery.runtime.errors import BadInputError

LINE_FEED = 10
MAX_DIGITS = 18  # every number of at most this many fits int64

MOST_ROWS = 10**9
MOST_BITS = 1 << 37
"""Rows that the counts of a file stand for, all together, and their bits: each of them is read."""

_COMMA, _ONE = b",1"
_DIGIT, _BLANK, _SEPARATOR = np.zeros((3, 256), bool)
_DIGIT[48:58] = True
_BLANK[[9, 10, 32]] = True
_SEPARATOR[[9, 32, _COMMA]] = True


@dataclass(frozen=True)
class _TextFile(ItemSource):
    path: FilePath
    label: str
    chunk_bytes: int = CHUNK_BYTES

    def chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield whole lines that end in LF, with the number of the first."""
        for first_line, chunk in line_chunks(self.path, self.label, self.chunk_bytes):
            yield first_line, chunk.replace(b"\r\n", b"\n") if b"\r" in chunk else chunk

    def refuse(self, text: NDArray[np.uint8], fault: NDArray[np.bool_], line: int, by: str) -> None:
        """Raise `BadInputError` at the first fault of a text that starts at a line."""
        if fault.any():
            at = int(np.argmax(fault))
            raise BadInputError(
                f"{self.label}: line {line_of(text, at, line)}: {chr(text[at])!r} found where only "
                f"{by} are expected"
            )


class FimiSource(_TextFile):
    """One row a line, its item ids separated by blanks; ids need be neither dense nor sorted."""

    def item_rows(self) -> Iterator[ItemRows]:
        """Yield the rows of one chunk of the file after another."""
        for first_line, chunk in self.chunks():
            yield self._parse(np.frombuffer(chunk, np.uint8), first_line)

    def _parse(self, text: NDArray[np.uint8], first_line: int) -> ItemRows:
        digit = _DIGIT[text]
        known = "whole numbers from 0 up, separated by spaces,"
        self.refuse(text, ~(digit | _BLANK[text]), first_line, known)
        before = np.concatenate(([False], digit[:-1]))
        starts = np.flatnonzero(digit & ~before)
        lengths = np.flatnonzero(~digit & before) - starts
        if (longest := int(lengths.max(initial=0))) > MAX_DIGITS:
            line = line_of(text, int(starts[np.argmax(lengths)]), first_line)
            raise BadInputError(
                f"{self.label}: line {line}: a number of {longest} digits; at most {MAX_DIGITS} "
                "are possible"
            )
        values = np.zeros(len(starts), np.int64)
        for place in range(longest):
            longer = np.flatnonzero(lengths > place)
            values[longer] = 10 * values[longer] + (text[starts[longer] + place] - np.uint8(48))
        ends = np.searchsorted(starts, np.flatnonzero(text == LINE_FEED))
        return ItemRows(np.concatenate(([0], ends)).astype(np.int64), values)


class MatrixSource(_TextFile):
    """Rows of 0 and 1 separated by commas or blanks, without a header; empty lines are skipped."""

    @cached_property
    def width(self) -> int:  # type: ignore[override]
        """Number of values in the first row."""
        for _, chunk in self.chunks():
            for line in chunk.split(b"\n"):
                if values := line.replace(b",", b" ").split():
                    return len(values)
        raise BadInputError(f"{self.label}: the file has no rows")

    def item_rows(self) -> Iterator[DenseItems]:
        """Yield the rows of one chunk of the file after another."""
        for first_line, chunk in self.chunks():
            yield DenseItems(self._parse(np.frombuffer(chunk, np.uint8), first_line))

    def _parse(self, text: NDArray[np.uint8], first_line: int) -> NDArray[np.uint8]:
        value = (text | 1) == _ONE
        fault = ~(value | _SEPARATOR[text] | (text == LINE_FEED))
        # Two values that touch, such as 10, are a number that is neither 0 nor 1.
        fault[1:] |= value[1:] & value[:-1]
        self.refuse(text, fault, first_line, "0 and 1, separated by commas or spaces,")
        ends = np.flatnonzero(text == LINE_FEED)
        masks = (value, text == _COMMA)
        counts, commas = (np.diff(np.cumsum(mask)[ends], prepend=0) for mask in masks)
        wrong = (counts > 0) & (counts != self.width)
        wrong |= (commas > 0) & (commas != counts - 1)
        if np.any(wrong):
            line = int(np.argmax(wrong))
            raise BadInputError(
                f"{self.label}: line {first_line + line}: {self.width} values expected as in the "
                f"first row, found {counts[line]} with {commas[line]} commas"
            )
        ones: NDArray[np.uint8] = text[value] & np.uint8(1)
        return ones.reshape(-1, self.width)


@dataclass(frozen=True)
class BitstringSource(_TextFile):
    """A histogram: bits, a tab and how many rows have them; a block has few megabytes."""

    block_rows: int = 1 << 14

    @cached_property
    def width(self) -> int:  # type: ignore[override]
        """Number of bits of the first cell."""
        _, chunk = next(self.chunks())
        bits, tab, _ = chunk.split(b"\n", 1)[0].partition(b"\t")
        if not bits or not tab:
            raise self._fault(1, "bits")
        return len(bits)

    def item_rows(self) -> Iterator[DenseItems]:
        """Yield the rows, each cell repeated as its count says."""
        left = most = min(MOST_ROWS, MOST_BITS // self.width)
        step = rows_at_once(self.width, self.block_rows)
        for first_line, chunk in self.chunks():
            cells, counts = self._parse(chunk, first_line)
            left -= sum(counts)
            if left < 0:
                raise BadInputError(
                    f"{self.label}: the counts sum to more than {most:,} rows of {self.width:,} "
                    "bits, the most that are read"
                )
            ends = np.cumsum(counts)
            for start in range(0, int(ends[-1]), step):
                rows = np.arange(start, min(start + step, ends[-1]))
                yield DenseItems(cells[np.searchsorted(ends, rows, side="right")])

    def _parse(self, chunk: bytes, first_line: int) -> tuple[NDArray[np.uint8], list[int]]:
        """Return the cells, by line and bit, and their counts."""
        cells, counts = [], []
        for number, line in enumerate(chunk.splitlines(), first_line):
            bits, _, count = line.partition(b"\t")
            whole = count.strip()
            is_count = whole.isdigit() and len(whole) <= MAX_DIGITS
            if len(bits) != self.width or bits.strip(b"01") or not is_count:
                raise self._fault(number, f"{self.width} bits")
            cells.append(bits)
            counts.append(int(whole))
        text = np.frombuffer(b"".join(cells), np.uint8).reshape(-1, self.width)
        return text & np.uint8(1), counts

    def _fault(self, line: int, bits: str) -> BadInputError:
        return BadInputError(
            f"{self.label}: line {line}: expected {bits} as 0s and 1s, a tab, and a whole count"
        )


def line_of(chunk: NDArray[np.uint8], position: int, first_line: int) -> int:
    """Return the number of the line in which a position of the chunk lies."""
    return first_line + int(np.count_nonzero(chunk[:position] == LINE_FEED))

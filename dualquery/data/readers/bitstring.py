"""``bitstring``: a histogram; each line is a cell as 0s and 1s, a tab, and how often it occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import CHUNK_BYTES, FilePath, line_chunks
from dualquery.data.readers.integers import LINE_FEED, parse_integers
from dualquery.data.readers.source import DenseItems
from dualquery.runtime.errors import BadInputError

MOST_ROWS = 10**9
MOST_BITS = 1 << 37
"""Rows that the counts of a file stand for, all together, and their bits: each of them is read."""

_BLOCK_CELLS = 1 << 24

_TAB = 9
_SPACE = 32


@dataclass(frozen=True)
class BitstringSource:
    """A file of cells and counts; each cell stands for as many rows as its count says.

    A block has at most ``block_rows`` of them, and a few megabytes, however large the counts are.
    """

    path: FilePath
    label: str
    chunk_bytes: int = CHUNK_BYTES
    block_rows: int = 1 << 14

    def width(self) -> int | None:
        """Return the number of bits of the first cell."""
        return self._width

    @cached_property
    def _width(self) -> int:
        _, chunk = next(line_chunks(self.path, self.label, self.chunk_bytes))
        bits, tab, _ = chunk.split(b"\n", 1)[0].partition(b"\t")
        if not bits or not tab:
            raise self._fault(1)
        return len(bits)

    def item_rows(self) -> Iterator[DenseItems]:
        """Yield the rows, each cell repeated as its count says."""
        most = min(MOST_ROWS, MOST_BITS // self._width)
        left = most
        for first_line, chunk in line_chunks(self.path, self.label, self.chunk_bytes):
            cells, counts = self._parse(np.frombuffer(chunk, np.uint8), first_line)
            left -= sum(counts.tolist())  # exact: counts have up to 18 digits
            if left < 0:
                raise BadInputError(
                    f"{self.label}: the counts sum to more than {most:,} rows of {self._width:,} "
                    "bits, the most that are read"
                )
            ends = np.cumsum(counts)
            total = int(ends[-1]) if len(ends) else 0
            step = max(1, min(self.block_rows, _BLOCK_CELLS // self._width))
            for start in range(0, total, step):
                rows = np.arange(start, min(start + step, total))
                yield DenseItems(cells[np.searchsorted(ends, rows, side="right")])

    def _parse(
        self, text: NDArray[np.uint8], first_line: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the cells, uint8 ``(lines, width)``, and their counts, int64 ``(lines,)``."""
        ends = np.flatnonzero(text == LINE_FEED)
        starts = np.concatenate(([0], ends[:-1] + 1))
        short = ends - starts <= self._width
        if np.any(short):
            raise self._fault(first_line + int(np.argmax(short)))
        places = starts[:, None] + np.arange(self._width)
        cells = text[places]
        wrong = np.any((cells | 1) != ord("1"), axis=1) | (text[starts + self._width] != _TAB)
        if np.any(wrong):
            raise self._fault(first_line + int(np.argmax(wrong)))
        rest = text.copy()
        rest[places] = _SPACE
        counts = parse_integers(rest, self.label, first_line)
        several = np.diff(counts.indptr) != 1
        if np.any(several):
            raise self._fault(first_line + int(np.argmax(several)))
        return cells & np.uint8(1), counts.values

    def _fault(self, line: int) -> BadInputError:
        expected = f"{self._width} bits" if line > 1 else "bits"
        return BadInputError(
            f"{self.label}: line {line}: expected {expected} as 0s and 1s, a tab, and a whole count"
        )

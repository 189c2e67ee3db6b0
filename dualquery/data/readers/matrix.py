"""``matrix``: rows of 0 and 1 separated by commas or blanks, without a header."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import CHUNK_BYTES, FilePath, line_chunks, show_byte
from dualquery.data.readers.integers import LINE_FEED, line_of
from dualquery.data.readers.source import DenseItems
from dualquery.runtime.errors import BadInputError

_COMMA = ord(",")
_SEPARATOR = np.zeros(256, bool)
_SEPARATOR[[9, 13, 32, _COMMA]] = True


@dataclass(frozen=True)
class MatrixSource:
    """A file of 0/1 rows; lines without any value are skipped."""

    path: FilePath
    label: str
    chunk_bytes: int = CHUNK_BYTES

    def width(self) -> int | None:
        """Return the number of values in the first row."""
        return self._width

    @cached_property
    def _width(self) -> int:
        for _, chunk in line_chunks(self.path, self.label, self.chunk_bytes):
            for line in chunk.split(b"\n"):
                if values := line.replace(b",", b" ").split():
                    return len(values)
        raise BadInputError(f"{self.label}: the file has no rows")

    def item_rows(self) -> Iterator[DenseItems]:
        """Yield the rows of one chunk of the file after another."""
        for first_line, chunk in line_chunks(self.path, self.label, self.chunk_bytes):
            text = np.frombuffer(chunk, np.uint8)
            yield DenseItems(self._parse(text, first_line))

    def _parse(self, text: NDArray[np.uint8], first_line: int) -> NDArray[np.uint8]:
        """Return the values of a chunk of lines, uint8, shape ``(rows, width)``."""
        value = (text | 1) == ord("1")
        fault = ~(value | _SEPARATOR[text] | (text == LINE_FEED))
        # Two values that touch, such as 10, are a number that is neither 0 nor 1.
        fault[1:] |= value[1:] & value[:-1]
        if np.any(fault):
            at = int(np.argmax(fault))
            raise BadInputError(
                f"{self.label}: line {line_of(text, at, first_line)}: {show_byte(int(text[at]))} "
                "found where only 0 and 1, separated by commas or spaces, are expected"
            )
        ends = np.flatnonzero(text == LINE_FEED)
        counts = _per_line(value, ends)
        commas = _per_line(text == _COMMA, ends)
        wrong = (counts > 0) & (counts != self._width)
        wrong |= (commas > 0) & (commas != counts - 1)
        if np.any(wrong):
            line = int(np.argmax(wrong))
            raise BadInputError(
                f"{self.label}: line {first_line + line}: {self._width} values expected as in the "
                f"first row, found {counts[line]} with {commas[line]} commas"
            )
        ones: NDArray[np.uint8] = text[value] & np.uint8(1)
        return ones.reshape(-1, self._width)


def _per_line(mask: NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often the mask is set in each line, given the positions of the line ends."""
    running = np.cumsum(mask)
    return np.diff(running[ends], prepend=0)

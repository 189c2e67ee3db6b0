"""Integers in text, many at a time: chunks of bytes become arrays without a loop over tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.opening import show_byte
from dualquery.runtime.errors import BadInputError

LINE_FEED = 10
MAX_DIGITS = 18
"""Every number of at most this many digits fits int64."""

_DIGIT = np.zeros(256, bool)
_DIGIT[48:58] = True
_BLANK = np.zeros(256, bool)
_BLANK[[9, 10, 13, 32]] = True


@dataclass(frozen=True, eq=False)
class IntegerLines:
    """The numbers of some lines.

    Parameters
    ----------
    indptr
        int64, shape ``(lines + 1,)``: line ``i`` holds ``values[indptr[i]:indptr[i + 1]]``.
    values
        int64, not negative.
    """

    indptr: NDArray[np.int64]
    values: NDArray[np.int64]


def parse_integers(chunk: NDArray[np.uint8], label: str, first_line: int) -> IntegerLines:
    """Return the whole numbers, separated by spaces or tabs, of a chunk of lines.

    Parameters
    ----------
    chunk
        uint8, ends with a line feed.
    label, first_line
        For messages: the file, and the number of the chunk's first line.

    Raises
    ------
    BadInputError
        If anything else than digits and blanks occurs, or a number has more than 18 digits.
    """
    digit = _DIGIT[chunk]
    wrong = np.flatnonzero(~(digit | _BLANK[chunk]))
    if len(wrong):
        at = int(wrong[0])
        raise BadInputError(
            f"{label}: line {line_of(chunk, at, first_line)}: {show_byte(int(chunk[at]))} found "
            "where only whole numbers from 0 up, separated by spaces, are expected"
        )
    before = np.concatenate(([False], digit[:-1]))
    starts = np.flatnonzero(digit & ~before)
    lengths = np.flatnonzero(~digit & before) - starts
    longest = int(lengths.max(initial=0))
    if longest > MAX_DIGITS:
        at = int(starts[np.argmax(lengths)])
        raise BadInputError(
            f"{label}: line {line_of(chunk, at, first_line)}: a number of {longest} digits; at "
            f"most {MAX_DIGITS} are possible"
        )
    values = np.zeros(len(starts), np.int64)
    for place in range(longest):
        longer = np.flatnonzero(lengths > place)
        values[longer] = 10 * values[longer] + (chunk[starts[longer] + place] - np.uint8(48))
    ends = np.flatnonzero(chunk == LINE_FEED)
    indptr = np.concatenate(([0], np.searchsorted(starts, ends))).astype(np.int64)
    return IntegerLines(indptr, values)


def line_of(chunk: NDArray[np.uint8], position: int, first_line: int) -> int:
    """Return the number of the line in which a position of the chunk lies."""
    return first_line + int(np.count_nonzero(chunk[:position] == LINE_FEED))

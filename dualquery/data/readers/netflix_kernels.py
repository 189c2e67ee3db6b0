"""Compiled loops of the reader of the Netflix Prize files."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint8

from dualquery.runtime.array_types import Array, kernel, read_only


@kernel(types.UniTuple(int64, 3)(read_only(uint8), int32[::1], int64[::1], int64[::1]))
def parse_lines(
    chunk: Array, users: Array, movies: Array, first_rating: Array
) -> tuple[int, int, int]:
    """Split a chunk of lines ``MOVIE:`` and ``USER,RATING,DATE`` into numbers.

    Parameters
    ----------
    chunk
        uint8, whole lines, the last one ended by a line feed.
    users
        int32: receives the user of each rating; as long as there are lines.
    movies, first_rating
        int64: receive each line ``MOVIE:``, and how many ratings of the chunk come before it.

    Returns
    -------
    Number of ratings, number of movies, and where in the chunk the first line begins that is
    neither form (-1 if there is none). Ids have at most 9 digits.
    """
    ratings = 0
    headers = 0
    at = 0
    while at < len(chunk):
        begin = at
        number = np.int64(0)
        while 48 <= chunk[at] <= 57:
            number = 10 * number + np.int64(chunk[at]) - 48
            at += 1
        digits = at - begin
        mark = chunk[at]
        if digits == 0 and (mark == 10 or (mark == 13 and chunk[at + 1] == 10)):
            at += 1 if mark == 10 else 2
            continue
        if digits == 0 or digits > 9:
            return ratings, headers, begin
        at += 1
        if mark == 44:
            # A rating of 1 to 5, a comma, and a date as digits and dashes.
            if not (49 <= chunk[at] <= 53) or chunk[at + 1] != 44:
                return ratings, headers, begin
            at += 2
            date = at
            while 48 <= chunk[at] <= 57 or chunk[at] == 45:
                at += 1
            if at - date != 10:
                return ratings, headers, begin
            users[ratings] = number
            ratings += 1
        elif mark == 58:
            movies[headers] = number
            first_rating[headers] = ratings
            headers += 1
        else:
            return ratings, headers, begin
        if chunk[at] == 13:
            at += 1
        if chunk[at] != 10:
            return ratings, headers, begin
        at += 1
    return ratings, headers, -1

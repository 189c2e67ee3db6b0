"""Compiled loop of `dualquery.rules.repair`: which nearest legal record a record becomes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types

from dualquery.runtime.array_types import Array, kernel, read_only

_SAME = 1e-9
"""Distances that differ by less are the same."""


class Values(NamedTuple):
    """The values of the columns of rules.

    Parameters
    ----------
    starts
        int64, shape ``(c + 1,)``: where a column's values start.
    classes
        int64, shape ``(c + 1,)``: where its classes start.
    buckets
        int64, shape ``(c,)``: how many of its first values have an order.
    of_class, member
        int64 and int32: the values of each class, counted from 0 in the column, increasing.
    wanted
        float64, flat by `starts`: how many records are to have each value.
    """

    starts: Array
    classes: Array
    buckets: Array
    of_class: Array
    member: Array
    wanted: Array


_VALUES = types.NamedTuple(
    (int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], float64[::1]), Values
)


@kernel(types.Tuple((int64, float64))(_VALUES, float64[::1], int64, int64, int64))
def _value_in(
    known: Values, counts: Array, place: int, value: int, chosen: int
) -> tuple[int, float]:
    """Return the value of a class that a value is to become, and how far that is, in (0, 1]."""
    at = known.classes[place] + chosen
    first, stop = known.of_class[at], known.of_class[at + 1]
    buckets = known.buckets[place]
    if value < buckets and known.member[first] < buckets:
        nearest = known.member[first]
        for entry in range(first, stop):
            other = known.member[entry]
            if other < buckets and abs(other - value) < abs(nearest - value):
                nearest = other
        return nearest, abs(nearest - value) / (buckets - 1)
    best, least = known.member[first], np.inf
    for entry in range(first, stop):
        place_of = known.starts[place] + known.member[entry]
        ratio = (counts[place_of] + 1.0) / known.wanted[place_of]
        if ratio < least:
            best, least = known.member[entry], ratio
    return best, 1.0


@kernel(
    types.void(
        _VALUES,
        float64[::1],
        read_only(int64),
        read_only(int64),
        read_only(int32, 2),
        int32[:, ::1],
        int32[:, ::1],
    )
)
def become_nearest(
    known: Values,
    counts: Array,
    pattern: Array,
    option_at: Array,
    options: Array,
    classes: Array,
    values: Array,
) -> None:
    """Change records, one after the other, in place.

    Parameters
    ----------
    known
        The columns.
    counts
        float64, flat: how many records have each value; kept up to date.
    pattern
        int64, shape ``(r,)``: which options each record has.
    option_at, options
        int64 and int32 ``(o, c)``: the classes of the legal records that differ from those of each
        pattern in the fewest columns.
    classes, values
        int32, shape ``(r, c)``: of the records; values are changed.
    """
    columns = values.shape[1]
    for row in range(len(values)):
        chosen, nearest, least = -1, np.inf, np.inf
        for option in range(option_at[pattern[row]], option_at[pattern[row] + 1]):
            far, uneven = 0.0, 0.0
            for place in range(columns):
                if options[option, place] == classes[row, place]:
                    continue
                value = values[row, place]
                new, moved = _value_in(known, counts, place, value, options[option, place])
                old_at, new_at = known.starts[place] + value, known.starts[place] + new
                far += moved
                uneven += (counts[new_at] + 1.0) / known.wanted[new_at]
                uneven -= counts[old_at] / known.wanted[old_at]
            if far < nearest - _SAME or (far < nearest + _SAME and uneven < least):
                chosen, nearest, least = option, min(far, nearest), uneven
        for place in range(columns):
            if options[chosen, place] != classes[row, place]:
                value = values[row, place]
                new, _ = _value_in(known, counts, place, value, options[chosen, place])
                counts[known.starts[place] + value] -= 1.0
                counts[known.starts[place] + new] += 1.0
                values[row, place] = new

"""Compiled loop of `dualquery.rules.repair`: records exchange values until they keep the rules."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint64

from dualquery.rules.search_kernels import BOXES, Boxes, lies_inside
from dualquery.runtime.array_types import Array, kernel, read_only
from dualquery.runtime.splitmix import GOLDEN, mix


@kernel(int64(BOXES, int32[::1]))
def _count_broken(boxes: Boxes, record: Array) -> int:
    """Return how many boxes a record, int32 ``(c,)``, lies in."""
    count = 0
    for place in range(len(record)):
        anchor = boxes.classes[place] + record[place]
        for at in range(boxes.anchored_at[anchor], boxes.anchored_at[anchor + 1]):
            count += lies_inside(boxes, record, boxes.anchored[at])
    return count


@kernel(int64(BOXES, int32[::1], int64))
def _some_broken(boxes: Boxes, record: Array, number: int) -> int:
    """Return the box of a number from 0 among those that a record lies in."""
    for place in range(len(record)):
        anchor = boxes.classes[place] + record[place]
        for at in range(boxes.anchored_at[anchor], boxes.anchored_at[anchor + 1]):
            if lies_inside(boxes, record, boxes.anchored[at]):
                if number == 0:
                    return int(boxes.anchored[at])
                number -= 1
    return -1


@kernel(types.void(int32[:, ::1], int64, int64, int64))
def _swap(numbers: Array, row: int, other: int, place: int) -> None:
    numbers[row, place], numbers[other, place] = numbers[other, place], numbers[row, place]


@kernel(int64(uint64, int64), inline="always")
def _below(word: np.uint64, bound: int) -> int:
    """Return a whole number from 0 to ``bound - 1``, ``bound`` at most 2^32."""
    return int(((word >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@kernel(int64(BOXES, read_only(int64), int64, int64, uint64, int32[:, ::1], int32[:, ::1]))
def exchange(
    boxes: Boxes,
    order: Array,
    offers: int,
    fewer: int,
    key: np.uint64,
    classes: Array,
    values: Array,
) -> int:
    """Let broken records exchange single values with other records, in place.

    A record that lies in a box offers its value of one of the box's columns to a record at random.
    They exchange if the two then lie in fewer boxes than before.

    Parameters
    ----------
    boxes
        What records must not lie in.
    order
        int64, shape ``(r,)``: the order in which records are visited.
    offers
        How many a broken record makes at most.
    fewer
        By how many boxes an exchange must lead out of: 1, or 0 for as many as before.
    key
        Seed of the random words (public).
    classes, values
        int32, shape ``(r, c)``: of the records.

    Returns
    -------
    How many records still lie in a box.
    """
    broken = np.empty(len(order), np.int64)
    for row in range(len(order)):
        broken[row] = _count_broken(boxes, classes[row])
    step = np.uint64(0)
    for row in order:
        left = offers
        while broken[row] > 0 and left > 0:
            left -= 1
            step += np.uint64(3)
            other = _below(mix(key + step * GOLDEN), len(order))
            number = _below(mix(key + (step + np.uint64(1)) * GOLDEN), broken[row])
            box = _some_broken(boxes, classes[row], number)
            entries = boxes.entries[box + 1] - boxes.entries[box]
            word = mix(key + (step + np.uint64(2)) * GOLDEN)
            place = boxes.column[boxes.entries[box] + _below(word, entries)]
            if classes[row, place] == classes[other, place]:
                continue
            before = broken[row] + broken[other]
            _swap(classes, row, other, place)
            mine, its = _count_broken(boxes, classes[row]), _count_broken(boxes, classes[other])
            if mine + its <= before - fewer:
                _swap(values, row, other, place)
                broken[row], broken[other] = mine, its
            else:
                _swap(classes, row, other, place)
    return int(np.count_nonzero(broken))

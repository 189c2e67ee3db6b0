"""Compiled loops over forbidden boxes: which records break them, and what the nearest ones do.

**The search.** A record that breaks a box leaves it by a value outside of the box in one of its
columns, and by nothing else. So every legal record is reached from any other one by a row of such
changes, each of another column: take a box that the present record breaks; the legal record lies
outside of it in some column; take over its value there. The number of changes is at most the number
of columns in which the two differ. Trying all columns and values of the first broken box, to a
given number of changes, finds every legal record that many columns away, if none is nearer; and
where nothing was cut off by that number, there is no legal record at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, int32, int64, types, uint8

from dualquery.runtime.array_types import Array, kernel, read_only

POSSIBLE, IMPOSSIBLE, UNDECIDED = 0, 1, 2
"""What is known of a conjunction."""


class Columns(NamedTuple):
    """The columns of rules: their bits, values and classes.

    Parameters
    ----------
    first, bits
        int64, shape ``(c,)``: where a column's bits start, and how many there are.
    starts
        int64, shape ``(c + 1,)``: where its values start.
    class_of
        int32, flat by `starts`: the class of each value, counted from 0 in the column.
    classes
        int64, shape ``(c + 1,)``: where its classes start.
    place_of_bit
        int32, shape ``(bits,)``: the place of each bit's column, or -1.
    """

    first: Array
    bits: Array
    starts: Array
    class_of: Array
    classes: Array
    place_of_bit: Array


class Boxes(NamedTuple):
    """Boxes of classes.

    Parameters
    ----------
    classes
        As of `Columns`.
    anchored_at, anchored
        int64 and int32: for each class the boxes to look at in records that have it; each box is
        at the classes that it says of one of its columns.
    entries
        int64, shape ``(boxes + 1,)``: where the columns of a box start.
    column
        int32: these columns, by place.
    list_at, list_class
        int64 and int32: some classes of each, increasing.
    listed
        uint8: 1 if the box says these classes, 0 if it says all others.
    """

    classes: Array
    anchored_at: Array
    anchored: Array
    entries: Array
    column: Array
    listed: Array
    list_at: Array
    list_class: Array


_COLUMNS = types.NamedTuple(
    (int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], int32[::1]), Columns
)
BOXES = types.NamedTuple(
    (
        int64[::1],
        int64[::1],
        int32[::1],
        int64[::1],
        int32[::1],
        uint8[::1],
        int64[::1],
        int32[::1],
    ),
    Boxes,
)


@kernel(types.void(read_only(uint8, 2), read_only(int64), read_only(int64), int32[:, ::1]))
def record_values(records: Array, first: Array, bits: Array, found: Array) -> None:
    """Write the values of columns of records, uint8 ``(r, bits)``, int32 ``(r, c)``."""
    for row in range(len(records)):
        for place in range(len(first)):
            value = 0
            if bits[place] == 1:
                value = records[row, first[place]]
            else:
                while value < bits[place] - 1 and not records[row, first[place] + value]:
                    value += 1
            found[row, place] = value


@kernel(boolean(BOXES, int64, int64))
def _says(boxes: Boxes, entry: int, value: int) -> bool:
    """Return whether a box says a class of one of its columns."""
    low, high = boxes.list_at[entry], boxes.list_at[entry + 1]
    while low < high:
        middle = (low + high) // 2
        if boxes.list_class[middle] < value:
            low = middle + 1
        else:
            high = middle
    there: bool = low < boxes.list_at[entry + 1] and boxes.list_class[low] == value
    listed: bool = boxes.listed[entry] == 1
    return there == listed


@kernel(boolean(BOXES, int32[::1], int64))
def lies_inside(boxes: Boxes, record: Array, box: int) -> bool:
    """Return whether a record, int32 ``(c,)``, lies in a box."""
    for entry in range(boxes.entries[box], boxes.entries[box + 1]):
        if not _says(boxes, entry, record[boxes.column[entry]]):
            return False
    return True


@kernel(int64(BOXES, int32[::1]))
def _first_broken(boxes: Boxes, record: Array) -> int:
    """Return a box that a record, int32 ``(c,)``, lies in; -1 for none."""
    for place in range(len(record)):
        anchor = boxes.classes[place] + record[place]
        for at in range(boxes.anchored_at[anchor], boxes.anchored_at[anchor + 1]):
            if lies_inside(boxes, record, boxes.anchored[at]):
                return int(boxes.anchored[at])
    return -1


@kernel(types.void(BOXES, int32[:, ::1], int32[::1]))
def broken_boxes(boxes: Boxes, records: Array, found: Array) -> None:
    """Write a box that each record lies in, or -1."""
    for row in range(len(records)):
        found[row] = _first_broken(boxes, records[row])


@kernel(types.void(BOXES, int32[::1], int32[:, ::1], int64[::1]))
def count_broken(boxes: Boxes, rule_of: Array, records: Array, counts: Array) -> None:
    """Add the number of records that break each rule, and behind these, that break any."""
    seen = np.full(len(counts), -1, np.int64)
    for row in range(len(records)):
        record = records[row]
        for place in range(records.shape[1]):
            anchor = boxes.classes[place] + record[place]
            for at in range(boxes.anchored_at[anchor], boxes.anchored_at[anchor + 1]):
                box = boxes.anchored[at]
                rule = rule_of[box]
                if seen[rule] != row and lies_inside(boxes, record, box):
                    counts[rule] += 1
                    seen[rule] = row
                    if seen[-1] != row:
                        counts[-1] += 1
                        seen[-1] = row


@kernel(
    types.UniTuple(int64, 3)(BOXES, read_only(int32), read_only(uint8), int64, int64, int32[:, ::1])
)
def search(
    boxes: Boxes, start: Array, allowed: Array, depth: int, budget: int, found: Array
) -> tuple[int, int, int]:
    """Find legal records by at most ``depth`` changes of a record.

    Parameters
    ----------
    boxes
        What records must not lie in.
    start
        int32, shape ``(c,)``: classes that are allowed.
    allowed
        uint8, one entry a class: whether records may have it.
    depth
        Most columns that are changed.
    budget
        Most records that are looked at.
    found
        int32, shape ``(most, c)``: result. The search ends when it is full.

    Returns
    -------
    The number of records found, some of them more than once; whether more changes might find more;
    and the number of records looked at. If that is the budget, the search was cut short.
    """
    columns = len(start)
    record = start.copy()
    changed = np.zeros(columns, np.uint8)
    box = np.zeros(depth + 1, np.int64)
    entry = np.zeros(depth + 1, np.int64)
    value = np.zeros(depth + 1, np.int64)
    before = np.zeros(depth + 1, np.int32)
    count, cut, looked, level = 0, 0, 0, 0
    fresh = True
    while True:
        if fresh:
            looked += 1
            if looked >= budget:
                return count, 1, looked
            broken = _first_broken(boxes, record)
            fresh = False
            if broken < 0:
                found[count] = record
                count += 1
                if count == len(found):
                    return count, 1, looked
                level -= 1
            elif level == depth:
                cut = 1
                level -= 1
            else:
                box[level] = broken
                entry[level] = boxes.entries[broken]
                value[level] = -1
            if level < 0:
                return count, cut, looked
        if changed[boxes.column[entry[level]]] and value[level] >= 0:
            place = boxes.column[entry[level]]
            record[place] = before[level]
            changed[place] = 0
        # The next change that leaves the box.
        moved = False
        while entry[level] < boxes.entries[box[level] + 1] and not moved:
            place = boxes.column[entry[level]]
            value[level] += 1
            first = boxes.classes[place]
            if changed[place] or value[level] >= boxes.classes[place + 1] - first:
                entry[level] += 1
                value[level] = -1
            elif allowed[first + value[level]] and not _says(boxes, entry[level], value[level]):
                moved = True
        if moved:
            place = boxes.column[entry[level]]
            before[level] = record[place]
            record[place] = value[level]
            changed[place] = 1
            level += 1
            fresh = True
        else:
            level -= 1
            if level < 0:
                return count, cut, looked


@kernel(int64(BOXES, read_only(int32), read_only(uint8), int64))
def possible(boxes: Boxes, legal: Array, allowed: Array, budget: int) -> int:
    """Tell whether there is a legal record of allowed classes, searching from a legal one.

    Returns
    -------
    `POSSIBLE`, `IMPOSSIBLE`, or `UNDECIDED` if the budget of records to look at was not enough.
    """
    start = legal.copy()
    for place in range(len(legal)):
        first, stop = boxes.classes[place], boxes.classes[place + 1]
        if not allowed[first + start[place]]:
            start[place] = -1
            for each in range(stop - first):
                if allowed[first + each]:
                    start[place] = each
                    break
            if start[place] < 0:
                return IMPOSSIBLE
    found = np.empty((1, len(legal)), np.int32)
    for depth in range(len(legal) + 1):
        count, cut, looked = search(boxes, start, allowed, depth, budget, found)
        budget -= looked
        if count:
            return POSSIBLE
        if budget <= 0:
            return UNDECIDED
        if not cut:
            break
    return IMPOSSIBLE


@kernel(types.void(BOXES, _COLUMNS, read_only(int32), read_only(int32, 2), int64, uint8[::1]))
def conjunctions_possible(
    boxes: Boxes, columns: Columns, legal: Array, literals: Array, budget: int, found: Array
) -> None:
    """Write what `possible` says of conjunctions, literal codes ``(m, k)``: uint8 ``(m,)``."""
    inside = np.ones(len(columns.class_of), np.uint8)
    allowed = np.ones(columns.classes[-1], np.uint8)
    for query in range(len(literals)):
        named = False
        for at in range(literals.shape[1]):
            code = literals[query, at]
            place = -1 if code < 0 else columns.place_of_bit[code >> 1]
            if place < 0:
                continue
            named = True
            first, stop = columns.starts[place], columns.starts[place + 1]
            value = first + 1
            if columns.bits[place] > 1:
                value = first + (code >> 1) - columns.first[place]
            if code & 1:
                inside[value] = 0
            else:
                for each in range(first, stop):
                    if each != value:
                        inside[each] = 0
        if not named:
            found[query] = POSSIBLE
            continue
        for again in range(2):  # once to say what is allowed, once to forget it
            for at in range(literals.shape[1]):
                code = literals[query, at]
                place = -1 if code < 0 else columns.place_of_bit[code >> 1]
                if place < 0:
                    continue
                first = columns.classes[place]
                for each in range(first, columns.classes[place + 1]):
                    allowed[each] = again
                for each in range(columns.starts[place], columns.starts[place + 1]):
                    if again:
                        inside[each] = 1
                    elif inside[each]:
                        allowed[first + columns.class_of[each]] = 1
            if not again:
                found[query] = possible(boxes, legal, allowed, budget)

"""Compiled loops over forbidden boxes: which records break them, and what the nearest ones do.

**The search.** A record that breaks a box leaves it by a value outside of the box in one of its
columns, and by nothing else. So every legal record is reached from any other one by a row of such
changes, each of another column: take a box that the present record breaks; the legal record lies
outside of it in some column; take over its value there. The number of changes is at most the number
of columns in which the two differ. Trying all columns and values of the first broken box, to a
given number of changes, finds every legal record that many columns away, if none is nearer; and
where nothing was cut off by that number, there is no legal record at all.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, int32, int64, types, uint8

from dualquery.runtime.array_types import Array, kernel, read_only

UNDECIDED = -1  # a search that came to no end


class Columns(NamedTuple):
    """The columns of rules: their bits, values and classes."""

    first: Array  # int64 (c,): where a column's bits start
    bits: Array  # int64 (c,): how many there are
    starts: Array  # int64 (c + 1,): where its values start
    class_of: Array  # int32, flat by `starts`: the class of each value, from 0 in the column
    classes: Array  # int64 (c + 1,): where its classes start
    sizes: Array  # int64: how many values each class has
    place_of_bit: Array  # int32 (bits,): the place of each bit's column, or -1


class Boxes(NamedTuple):
    """Boxes of classes. Each is looked up at the classes that it says of one of its columns."""

    classes: Array  # as of `Columns`
    anchored_at: Array  # int64: where the boxes to look at start, for each class
    anchored: Array  # int32: these boxes
    entries: Array  # int64 (boxes + 1,): where the columns of a box start
    column: Array  # int32: these columns, by place
    listed: Array  # uint8: 1 if the box says the classes of the list, 0 if all others
    list_at: Array  # int64: where some classes of each start
    list_class: Array  # int32: these classes, increasing


_COLUMNS = types.NamedTuple(
    (int64[::1], int64[::1], int64[::1], int32[::1], int64[::1], int64[::1], int32[::1]), Columns
)
BOXES = types.NamedTuple(
    (int64[::1], int64[::1], int32[::1], int64[::1], int32[::1], uint8[::1], int64[::1],
     int32[::1]),
    Boxes,
)  # fmt: skip


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
    first, stop = boxes.list_at[entry], boxes.list_at[entry + 1]
    at = first + np.searchsorted(boxes.list_class[first:stop], value)
    there: bool = at < stop and boxes.list_class[at] == value
    listed: bool = boxes.listed[entry] == 1
    return there == listed


@kernel(boolean(BOXES, int32[::1], int64))
def _lies_inside(boxes: Boxes, record: Array, box: int) -> bool:
    """Return whether a record, int32 ``(c,)``, lies in a box."""
    for entry in range(boxes.entries[box], boxes.entries[box + 1]):
        if not _says(boxes, entry, record[boxes.column[entry]]):
            return False
    return True


@kernel(types.UniTuple(int64, 2)(BOXES, int32[::1], int64))
def _broken(boxes: Boxes, record: Array, most: int) -> tuple[int, int]:
    """Return the last box that a record lies in, or -1, and their number; stop at ``most``."""
    found, count = -1, 0
    for place in range(len(record)):
        anchor = boxes.classes[place] + record[place]
        for at in range(boxes.anchored_at[anchor], boxes.anchored_at[anchor + 1]):
            if _lies_inside(boxes, record, boxes.anchored[at]):
                found, count = int(boxes.anchored[at]), count + 1
                if count == most:
                    return found, count
    return found, count


@kernel(types.void(BOXES, int32[:, ::1], int32[::1], int32[::1]))
def broken_boxes(boxes: Boxes, records: Array, found: Array, counts: Array) -> None:
    """Write the last box that each record lies in, or -1, and the number of such boxes."""
    for row in range(len(records)):
        found[row], counts[row] = _broken(boxes, records[row], len(boxes.entries))


# The state of a search: how many records it found, how many more it may look at, whether more
# changes might find more.
_FOUND, _LEFT, _CUT = 0, 1, 2


@kernel(
    types.void(BOXES, read_only(uint8), int64, int32[::1], uint8[::1], int64[::1], int32[:, ::1])
)
def _search(
    boxes: Boxes, allowed: Array, depth: int, record: Array, changed: Array, state: Array,
    found: Array,
) -> None:  # fmt: skip
    """Find the legal records at most ``depth`` changes away, in columns not changed yet."""
    state[_LEFT] -= 1
    if state[_LEFT] <= 0:
        return
    box, _ = _broken(boxes, record, 1)
    if box < 0:
        found[state[_FOUND]] = record
        state[_FOUND] += 1
        return
    if depth == 0:
        state[_CUT] = 1
        return
    for entry in range(boxes.entries[box], boxes.entries[box + 1]):
        place = boxes.column[entry]
        if changed[place]:
            continue
        before, first = record[place], boxes.classes[place]
        changed[place] = 1
        for value in range(boxes.classes[place + 1] - first):
            if allowed[first + value] and not _says(boxes, entry, value):
                record[place] = value
                _search(boxes, allowed, depth - 1, record, changed, state, found)
                if state[_LEFT] <= 0 or state[_FOUND] == len(found):
                    return
        record[place] = before
        changed[place] = 0


@kernel(int64(BOXES, read_only(int32), read_only(uint8), int64, int32[:, ::1]))
def nearest(boxes: Boxes, start: Array, allowed: Array, budget: int, found: Array) -> int:
    """Find the legal records that differ from another one, ``start``, in the fewest columns.

    ``allowed`` says which classes records may have; those of ``start`` that are not count as
    changed. ``budget`` is the most records that are looked at; the search ends when ``found``,
    int32 ``(most, c)``, is full. Returns the number of records found, some of them more than once;
    0 if there is none, `UNDECIDED` if the budget was not enough.
    """
    begin = start.copy()
    for place in range(len(start)):
        first, stop = boxes.classes[place], boxes.classes[place + 1]
        if not allowed[first + start[place]]:
            others = np.flatnonzero(allowed[first:stop])
            if len(others) == 0:
                return 0
            begin[place] = others[0]
    state = np.zeros(3, np.int64)
    state[_LEFT] = budget
    for depth in range(len(start) + 1):
        state[_CUT] = 0
        _search(boxes, allowed, depth, begin.copy(), np.zeros(len(start), np.uint8), state, found)
        if state[_FOUND]:
            return int(state[_FOUND])
        if state[_LEFT] <= 0:
            return UNDECIDED
        if not state[_CUT]:
            break
    return 0


@kernel(types.void(BOXES, _COLUMNS, read_only(int32), read_only(int32, 2), int64, uint8[::1]))
def impossible_among(
    boxes: Boxes, columns: Columns, legal: Array, literals: Array, budget: int, found: Array
) -> None:
    """Write 1 for conjunctions, literal codes ``(m, k)``, that provably no legal record satisfies.

    Of two negated literals on one column each is taken by itself.
    """
    allowed = np.ones(columns.classes[-1], np.uint8)
    some = legal.copy().reshape(1, -1)  # the one found last: the next may be near
    for query in range(len(literals)):
        for code in literals[query]:
            place = -1 if code < 0 else columns.place_of_bit[code >> 1]
            if place < 0:
                continue
            bit = (code >> 1) - columns.first[place] if columns.bits[place] > 1 else 1
            own = columns.classes[place] + columns.class_of[columns.starts[place] + bit]
            if not code & 1:
                for each in range(columns.classes[place], columns.classes[place + 1]):
                    allowed[each] &= each == own
            elif columns.sizes[own] == 1:
                allowed[own] = 0
        found[query] = nearest(boxes, some[0], allowed, budget, some) == 0
        for code in literals[query]:
            place = -1 if code < 0 else columns.place_of_bit[code >> 1]
            if place >= 0:
                allowed[columns.classes[place] : columns.classes[place + 1]] = 1

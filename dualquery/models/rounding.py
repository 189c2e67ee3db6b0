"""How a model's chances become whole records: compiled loops, whose random words are public."""

import numpy as np
from numba import float32, float64, int64, uint8, uint16, uint64, void

from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only

_INTS, _CHANCES = read_only(int64), read_only(float32, 2)


@kernel(void(_INTS, _CHANCES, _INTS, int64[:], uint64, uint16[:, :], uint8[:, :]))
def deal(
    offsets: Array,
    chances: Array,
    sizes: Array,
    order: Array,
    key: np.uint64,
    values: Array,
    records: Array,
) -> None:
    """Give each record a value of every column, a component's records in a random order.

    Of the values that the column owes by now, one that it owes a whole record comes first; then the
    one after which the sum of squares of what the record's cells are owed is least: its cells with
    each column before, or none if ``values`` is empty (uint16 ``(columns, n)``, to be written).

    ``sizes`` are the records of each component, whose places are in ``order``, int64 ``(n,)``;
    ``key`` seeds the (public) random words. ``records``, uint8 ``(n, bits)``, is all 0 before.
    """
    widest, step = 2, np.uint64(0)
    for column in range(len(offsets) - 1):
        widest = max(widest, offsets[column + 1] - offsets[column])
    for column in range(len(offsets) - 1):
        first = offsets[column]
        bits = offsets[column + 1] - offsets[column]
        width, end, before = max(bits, 2), 0, min(column, len(values))
        alone, owed = np.zeros(width), np.zeros((before, widest, width))
        claim, share = np.empty(width), np.empty(width)
        if bits == 1 and len(values) == 0:
            # A random debt: many blocks of records, each dealt anew, have rare 1s as often.
            word = mix(key - np.uint64(column + 1) * GOLDEN) >> np.uint64(11)
            alone[0], alone[1] = word * 2.0**-53 - 0.5, 0.5 - word * 2.0**-53
        for component in range(len(sizes)):
            place, end = end, end + sizes[component]
            for value in range(bits):
                share[value] = chances[first + value, component]
            if bits == 1:
                share[1] = 1.0 - share[0]
            share /= share.sum()
            left = sizes[component]
            while left > 0:
                if bits == 1 and len(values) == 0:
                    # Zeros are not written: to the next 1, which is owed more than a half.
                    zeros = min(int((0.5 - alone[0]) / max(share[0], 1e-9)), left)
                    alone[0] += zeros * share[0]
                    alone[1] -= zeros * share[0]
                    left -= zeros
                    if left == 0:
                        break
                left -= 1
                step += np.uint64(1)
                word = mix(key + step * GOLDEN) >> np.uint64(32)
                other = place + int((word * np.uint64(end - place)) >> np.uint64(32))
                order[place], order[other] = order[other], order[place]
                record, best, place = order[place], -1, place + 1
                for value in range(width):
                    alone[value] += share[value]
                    claim[value] = before * share[value] + alone[value]
                    claim[value] += (before + 1) * (len(order) + 1) * int(alone[value])
                for earlier in range(before):
                    cell = values[earlier, record]
                    for value in range(width):
                        claim[value] += owed[earlier, cell, value]
                for value in range(width):
                    if alone[value] > 0.0 and (best < 0 or claim[value] > claim[best]):
                        best = value
                alone[best] -= 1.0
                if best < bits:
                    records[record, first + best] = 1
                if len(values):
                    values[column, record] = best
                for earlier in range(before):
                    cell = values[earlier, record]
                    for value in range(width):
                        owed[earlier, cell, value] += share[value]
                    owed[earlier, cell, best] -= 1.0


@kernel(void(read_only(int64, 2), read_only(float64, 2), float64[:, :], int64[:]))
def round_targets(cells: Array, chances: Array, owed: Array, targets: Array) -> None:
    """Write a value of the target for each record, in order.

    A record gets the value after which two sums of squares together are least: of what its cells
    are owed, on average over the pairs, and of what the record is owed itself.

    ``cells`` int64 ``(r, p)``: each record's, one a pair of columns; ``chances`` float64 ``(r,
    values)``, adding up to 1; ``owed`` float64 ``(cells, values)``, changed in place.
    """
    pairs, values = cells.shape[1], chances.shape[1]
    claim = np.empty(values)
    for record in range(len(cells)):
        claim[:] = 0.0
        for pair in range(pairs):
            cell = cells[record, pair]
            claim += owed[cell]
        best = 0
        for value in range(values):
            claim[value] += 2 * pairs * chances[record, value]
            if claim[value] > claim[best]:
                best = value
        targets[record] = best
        for pair in range(pairs):
            cell = cells[record, pair]
            owed[cell] += chances[record]
            owed[cell, best] -= 1.0

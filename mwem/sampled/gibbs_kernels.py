"""Compiled loops over a population of records: Gibbs sweeps, tallies of cells, packing into words.

Random numbers are a hash of (seed, record, number of the draw), so that a sweep gives the same
population however its records are shared among threads: SplitMix64, one stream a record.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint8, uint16, uint64, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only, unit

_LARGEST_LOG = 700.0  # its exponential is still finite
_LARGEST_MOVE = 0.7
"""A table's turn moves its log-factors by at most this: few records are weak evidence."""

_LEAST_WANTED = 0.1  # slack lowers a target to this part of it at most


class Places(NamedTuple):
    """Column and value of each bit of each table, ``(tables, k)``, padded with column -1."""

    columns: NDArray[np.int32]
    values: NDArray[np.uint16]


class Touches(NamedTuple):
    """For every column, the tables that ask about it: what a Gibbs sweep walks along.

    A touch is a value of a column that sets a bit of a table.
    """

    columns: NDArray[np.int32]  # the columns that some table asks about, in the order of the sweep
    start: NDArray[np.int64]  # one number more: where the touches of each of these columns begin
    table: NDArray[np.int32]
    value: NDArray[np.uint16]
    sets: NDArray[np.int32]  # the bit of the cell's number that the value sets
    all: NDArray[np.int32]  # all bits of the cell's number that are about the column


class Family(NamedTuple):
    """Independent columns times ``exp(factors[table, cell])`` for every table."""

    start: NDArray[np.int64]
    base: NDArray[np.float64]
    """Column ``c`` alone has the values' shares ``base[start[c]:start[c + 1]]``."""
    factors: NDArray[np.float64]  # (tables, 2^k): log-factors of the cells
    places: Places
    touches: Touches


_PLACES = types.NamedTuple((int32[:, ::1], uint16[:, ::1]), Places)
_TOUCHES = types.NamedTuple(
    (int32[::1], int64[::1], int32[::1], uint16[::1], int32[::1], int32[::1]), Touches
)
_FAMILY = types.NamedTuple((int64[::1], float64[::1], float64[:, ::1], _PLACES, _TOUCHES), Family)


@kernel(void(read_only(uint16), _PLACES, int32[::1]))
def find_cells(record: Array, places: Places, cells: Array) -> None:
    """Write the cell of each table that a record lies in."""
    columns, values = places.columns, places.values
    for table in range(len(cells)):
        cell = 0
        for i in range(columns.shape[1]):
            column = columns[table, i]
            if column >= 0 and record[column] == values[table, i]:
                cell |= 1 << i
        cells[table] = cell


@kernel(void(uint16[:, ::1], int64, int64, uint64, _FAMILY, int64[:, ::1]))
def sweep(
    population: Array, first: int, last: int, seed: np.uint64, family: Family, tally: Array
) -> None:
    """Draw every touched column of some records anew, given the record's other columns.

    Only values that some table asks about depend on the factors: relative to all other values, they
    gain the difference between the cell with the value and the cell without.

    Parameters
    ----------
    population
        Values by column, uint16 ``(records, columns)``; records ``first .. last - 1`` are updated.
    first, last
        Which records.
    seed
        Another one for each sweep.
    family
        The distribution.
    tally
        int64 ``(tables, 2^k)``: gets how many of the records lie in each cell after the sweep,
        added to what it holds.
    """
    starts, base, factors = family.start, family.base, family.factors
    touched, touches = family.touches.columns, family.touches.start
    table_of, value_of = family.touches.table, family.touches.value
    sets, whole = family.touches.sets, family.touches.all
    tables = len(factors)
    cells = np.empty(tables, np.int32)
    widest = 0
    for column in touched:
        widest = max(widest, starts[column + 1] - starts[column])
    gain = np.zeros(widest)
    cumulative = np.empty(widest)
    for row in range(first, last):
        record = population[row]
        stream = mix(seed + GOLDEN * np.uint64(row + 1))
        find_cells(record, family.places, cells)
        for number in range(len(touched)):
            column = touched[number]
            start = starts[column]
            size = starts[column + 1] - start
            gain[:size] = 0.0
            top = 0.0
            for t in range(touches[number], touches[number + 1]):
                table = table_of[t]
                without = cells[table] & ~whole[t]
                gain[value_of[t]] += factors[table, without | sets[t]] - factors[table, without]
            stream += GOLDEN
            point = unit(mix(stream))
            drawn = 0
            if size == 2:
                odds = math.exp(min(gain[1] - gain[0], _LARGEST_LOG)) * base[start + 1]
                drawn = 1 if point * (base[start] + odds) < odds else 0
            else:
                for value in range(size):
                    top = max(top, gain[value])
                rest = math.exp(-top)
                total = 0.0
                for value in range(size):
                    weight = rest if gain[value] == 0.0 else math.exp(gain[value] - top)
                    total += weight * base[start + value]
                    cumulative[value] = total
                reached = point * total
                while drawn < size - 1 and cumulative[drawn] <= reached:
                    drawn += 1
            if drawn == record[column]:
                continue
            record[column] = drawn
            for t in range(touches[number], touches[number + 1]):
                cells[table_of[t]] &= ~whole[t]
            for t in range(touches[number], touches[number + 1]):
                if value_of[t] == drawn:
                    cells[table_of[t]] |= sets[t]
        for table in range(tables):
            tally[table, cells[table]] += 1


@kernel(void(read_only(uint16, 2), _PLACES, int64[:, ::1]))
def count_cells(population: Array, places: Places, tally: Array) -> None:
    """Add to ``tally`` how many records lie in each cell of each table."""
    cells = np.empty(len(tally), np.int32)
    for row in range(len(population)):
        find_cells(population[row], places, cells)
        for table in range(len(cells)):
            tally[table, cells[table]] += 1


@kernel(void(read_only(uint16, 2), read_only(int32), read_only(uint16), uint64[:, ::1]))
def pack_values(population: Array, columns: Array, values: Array, words: Array) -> None:
    """Set the bits of row ``i`` of ``words``, zeroed, for the records with value ``values[i]``."""
    for word in range((len(population) + 63) // 64):
        first = 64 * word
        stop = min(64, len(population) - first)
        for bit in range(len(columns)):
            packed = np.uint64(0)
            for i in range(stop):
                same = population[first + i, columns[bit]] == values[bit]
                packed |= np.uint64(same) << np.uint64(i)
            words[bit, word] = packed


@kernel(void(read_only(uint16, 2), _PLACES, uint8[:, ::1]))
def write_cells(population: Array, places: Places, cells: Array) -> None:
    """Write the cell of each table that each record lies in, ``(tables, records)``."""
    found = np.empty(len(cells), np.int32)
    for row in range(len(population)):
        find_cells(population[row], places, found)
        for table in range(len(found)):
            cells[table, row] = found[table]


@kernel(
    void(
        read_only(uint8, 2), read_only(float64, 2), read_only(float64), read_only(float64, 2),
        int64, float64[:, ::1], float64[::1],
    ),
)  # fmt: skip
def rake(
    cells: Array,
    targets: Array,
    slack: Array,
    factors: Array,
    passes: int,
    moved: Array,
    weights: Array,
) -> None:
    """Multiply records' weights until tables have their shares, one table after another.

    Iterative proportional fitting of a sample's weights (Deming and Stephan 1940), with slack.

    Parameters
    ----------
    cells
        The cell of each record in each table, ``(tables, records)``.
    targets
        Shares that the cells are to have, ``(tables, 2^k)``.
    slack
        How far a share may miss its target for every unit of its log-factor, by table.
    factors
        Log-factors that the records were drawn with, ``(tables, 2^k)``.
    passes
        How often every table has its turn.
    moved
        Zeros; gets how far the log-factors move: the centre of a table's stays at 0.
    weights
        Updated.
    """
    tables, records = cells.shape
    width = targets.shape[1]
    even, odd = np.empty(width), np.empty(width)
    wanted, ratio = np.empty(width), np.empty(width)
    for _ in range(passes):
        for table in range(tables):
            even[:] = 0.0
            odd[:] = 0.0
            cell = cells[table]
            # Two sums, for one addition need not wait for the last.
            for row in range(0, records - 1, 2):
                even[cell[row]] += weights[row]
                odd[cell[row + 1]] += weights[row + 1]
            if records % 2:
                even[cell[records - 1]] += weights[records - 1]
            total = 0.0
            reachable = 0.0
            for i in range(width):
                even[i] += odd[i]
                total += even[i]
                wanted[i] = 0.0
                if even[i] > 0.0 and targets[table, i] > 0.0:
                    log_factor = factors[table, i] + moved[table, i]
                    wanted[i] = max(
                        targets[table, i] - slack[table] * log_factor,
                        _LEAST_WANTED * targets[table, i],
                    )
                    reachable += wanted[i]
            centre = 0.0
            possible = 0
            for i in range(width):
                ratio[i] = 1.0
                if wanted[i] > 0.0:
                    move = math.log(wanted[i] / reachable * total / even[i])
                    move = min(max(move, -_LARGEST_MOVE), _LARGEST_MOVE)
                    moved[table, i] += move
                    ratio[i] = math.exp(move)
                if targets[table, i] > 0.0:
                    centre += factors[table, i] + moved[table, i]
                    possible += 1
            for i in range(width):
                if targets[table, i] > 0.0:
                    moved[table, i] -= centre / possible
            for row in range(records):
                weights[row] *= ratio[cell[row]]

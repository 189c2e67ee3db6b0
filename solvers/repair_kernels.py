"""Compiled loop that makes a record satisfy the linear constraints.

Each violated row has a penalty. A step takes a violated row at random, looks at moves that bring
its sum nearer to its bounds, and makes the one that lowers the weighted violations of all rows
most; of equal ones the one that costs the objective least. Where none lowers them, the row's
penalty grows, so that local minima of the violations are left (the breakout method: Morris, AAAI
1993; with jumps over 0-1 rows: Luteberget and Sartor, "Feasibility Jump", 2023).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from solvers.compiled import loop
from solvers.local_search_kernels import (
    STATE,
    SearchState,
    apply_move,
    below,
    carry,
    leaving_member,
)

_CANDIDATES = 40
"""Most entries of a row that are looked at in a step."""
_MEMBERS = 4
"""Other members that are tried in the place of a group's."""
_TENURE = 4


class RepairState(NamedTuple):
    """The rows of a :class:`SearchState` in the course of a repair; arrays change in place."""

    indptr: NDArray[np.int64]
    """(R + 1,): where each row starts."""
    attributes: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    penalties: NDArray[np.float64]
    """(R,): what a unit of each row's violation counts."""
    growth: NDArray[np.float64]
    """(R,): what is added to the penalty at a local minimum."""
    violated: NDArray[np.int32]
    """(R,): the violated rows, first."""
    place: NDArray[np.int32]
    """(R,): where each row is among these, or -1."""
    listed: NDArray[np.int64]
    """(1,): how many are violated."""
    stamp: NDArray[np.int64]
    """(R,): the last look at each row."""
    looks: NDArray[np.int64]
    """(1,): looks so far."""


_f8, _i4, _i8 = types.float64[::1], types.int32[::1], types.int64[::1]
_REPAIR = types.NamedTuple((_i8, _i4, _f8, _f8, _f8, _i4, _i4, _i8, _i8, _i8), RepairState)


@loop(types.float64(STATE, types.int64), forceinline=True)
def _violation(state: SearchState, row: int) -> float:
    activity = state.activity[row]
    return float(max(max(state.lower[row] - activity, activity - state.upper[row]), 0.0))


@loop(types.void(STATE, _REPAIR, types.int64))
def _list_row(state: SearchState, repair: RepairState, row: int) -> None:
    """Bring the list of violated rows in line with a row's sum."""
    is_listed = repair.place[row] >= 0
    if (_violation(state, row) > 0.0) == is_listed:
        return
    if is_listed:
        repair.listed[0] -= 1
        last = repair.violated[repair.listed[0]]
        repair.violated[repair.place[row]] = last
        repair.place[last] = repair.place[row]
        repair.place[row] = -1
    else:
        repair.violated[repair.listed[0]] = row
        repair.place[row] = repair.listed[0]
        repair.listed[0] += 1


@loop(types.float64(STATE, _REPAIR, types.int32, types.int32))
def _weighed(state: SearchState, repair: RepairState, one: np.int32, other: np.int32) -> float:
    """Return the weighted violations of the rows that hold either of two attributes."""
    repair.looks[0] += 1
    total = 0.0
    for attribute in (one, other):
        if attribute >= 0:
            for at in range(state.row_starts[attribute], state.row_starts[attribute + 1]):
                row = state.rows[at]
                if repair.stamp[row] != repair.looks[0]:
                    repair.stamp[row] = repair.looks[0]
                    total += repair.penalties[row] * _violation(state, row)
    return total


@loop(types.float64(STATE, _REPAIR, types.int32))
def _change(state: SearchState, repair: RepairState, attribute: np.int32) -> float:
    """Return what a move adds to the weighted violations."""
    leaving = leaving_member(state, attribute)
    before = _weighed(state, repair, attribute, leaving)
    carry(state, attribute, 1.0)
    after = _weighed(state, repair, attribute, leaving)
    carry(state, attribute, -1.0)
    return float(after - before)


@loop(types.void(STATE, _REPAIR, types.int32))
def _make(state: SearchState, repair: RepairState, attribute: np.int32) -> None:
    leaving = leaving_member(state, attribute)
    carry(state, attribute, 1.0)
    apply_move(state, attribute)
    for moved in (attribute, leaving):
        if moved >= 0:
            for at in range(state.row_starts[moved], state.row_starts[moved + 1]):
                _list_row(state, repair, state.rows[at])
            state.tabu_until[moved] = state.clock[0] + 1 + below(state.rng, _TENURE)


@loop(types.void(STATE, _REPAIR))
def _step(state: SearchState, repair: RepairState) -> None:
    row = repair.violated[below(state.rng, repair.listed[0])]
    raise_it = state.activity[row] < state.lower[row]
    first, size = repair.indptr[row], repair.indptr[row + 1] - repair.indptr[row]
    offset = below(state.rng, size)
    best, best_change, best_score = np.int32(-1), np.inf, -np.inf
    looked = 0
    for number in range(size):
        at = first + (offset + number) % size
        attribute = repair.attributes[at]
        is_one = state.record[attribute] == 1
        if (repair.coefficients[at] > 0.0) == (raise_it == is_one):
            continue
        group = state.group_of[attribute]
        tries = _MEMBERS if group >= 0 and is_one else 1
        for _ in range(tries):
            move = attribute
            if group >= 0 and is_one:
                start = state.group_starts[group]
                move = state.group_members[
                    start + below(state.rng, state.group_starts[group + 1] - start)
                ]
                if move == attribute:
                    continue
            if state.tabu_until[move] > state.clock[0]:
                continue
            change = _change(state, repair, move)
            leaving = leaving_member(state, move)
            score = state.scores[move] + (state.scores[leaving] if leaving >= 0 else 0.0)
            if change < best_change or (change == best_change and score > best_score):
                best, best_change, best_score = move, change, score
            looked += 1
        if looked >= _CANDIDATES:
            break
    if best_change >= 0.0:
        repair.penalties[row] += repair.growth[row]
    if best >= 0:
        _make(state, repair, best)


@loop(types.int64(STATE, _REPAIR, types.int64))
def repair_rows(state: SearchState, repair: RepairState, steps: int) -> int:
    """Make steps until no row is violated; return the least number of violated rows seen."""
    for row in range(repair.place.shape[0]):
        _list_row(state, repair, row)
    least = repair.listed[0]
    for _ in range(steps):
        if repair.listed[0] == 0:
            break
        state.clock[0] += 1
        _step(state, repair)
        least = min(least, repair.listed[0])
    return int(least)

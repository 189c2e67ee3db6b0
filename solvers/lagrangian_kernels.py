"""Compiled loop of the Lagrangian dual: see :mod:`solvers.lagrangian` for the mathematics."""

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from solvers.compiled import kernel, loop


class DualState(NamedTuple):
    """A dual over ``n`` attributes, ``J`` conjunctions and ``R`` rows; arrays change in place."""

    terms: NDArray[np.int32]  # (J, k): literal codes of two or more literals each, padded with -1
    weights: NDArray[np.float64]  # (J,)
    single: NDArray[np.float64]  # (n,): weight of each attribute's terms of one literal
    free: NDArray[np.uint8]  # (n,): 1 for attributes in no group
    group_starts: NDArray[np.int64]
    group_members: NDArray[np.int32]
    row_starts: NDArray[np.int64]  # (R + 1,): the linear constraints in CSR form
    row_attributes: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    reach: NDArray[np.float64]  # (n,): step length of each attribute
    term_step: NDArray[np.float64]  # (J,): step length of each conjunction's multipliers
    row_step: NDArray[np.float64]  # (R,): step length of each row's multiplier
    shares: NDArray[np.float64]
    """(J, k): multipliers of the conjunctions; of negative ones only the first is used."""
    prices: NDArray[np.float64]  # (R,): multipliers of the rows
    point: NDArray[np.float64]  # (n,): the relaxed record
    ahead: NDArray[np.float64]  # (n,): the relaxed record extrapolated by its last step
    pull: NDArray[np.float64]  # (n,): what raising each attribute adds to the Lagrangian
    best_pull: NDArray[np.float64]  # (n,): the pull that gave the least bound
    values: NDArray[np.float64]
    """(3,): least bound, constant of the objective, constant of the present Lagrangian."""


_int32s, _int64s, _float64s = types.int32[::1], types.int64[::1], types.float64[::1]
_STATE = types.NamedTuple(
    (
        types.int32[:, ::1], _float64s, _float64s, types.uint8[::1], _int64s, _int32s, _int64s,
        _int32s, _float64s, _float64s, _float64s, _float64s, _float64s, _float64s,
        types.float64[:, ::1], _float64s, _float64s, _float64s, _float64s, _float64s, _float64s,
    ),
    DualState,
)  # fmt: skip


@loop(types.float64(_float64s, _float64s, types.int64, types.float64), forceinline=True)
def _threshold(
    values: NDArray[np.float64], reach: NDArray[np.float64], count: int, total: float
) -> float:
    """Return theta with which positive parts of ``values - theta * reach`` add up to the total."""
    # Michelot (J. Optimization Theory and Applications 50, 1986): the threshold of the projection
    # onto a simplex rises as entries below it are left out, and ends after at most `count` rounds.
    theta = -np.inf
    while True:
        mass, width = -total, 0.0
        for i in range(count):
            if values[i] > theta * reach[i]:
                mass += values[i]
                width += reach[i]
        # By rounding alone nothing may be above the threshold.
        above = mass / width if width > 0.0 else -np.inf
        if not above > theta:  # nor if weights near 0 made it NaN
            return theta
        theta = above


@loop(types.void(_STATE))
def gather(state: DualState) -> None:
    """Bring the pull and the Lagrangian's constant in line with the multipliers."""
    terms, weights, shares, pull = state.terms, state.weights, state.shares, state.pull
    for a in range(pull.shape[0]):
        pull[a] = state.single[a]
    constant = state.values[1]
    for j in range(terms.shape[0]):
        positive = weights[j] > 0.0
        share = -shares[j, 0]
        if not positive:
            # z (k - 1 - sum of literals) is -z and z for each false literal.
            constant += share
        for i in range(terms.shape[1]):
            code = terms[j, i]
            if code < 0:
                break
            if positive:
                share = shares[j, i]
            else:
                constant -= share
            if code & 1:
                pull[code >> 1] -= share
                constant += share
            else:
                pull[code >> 1] += share
    for row in range(state.prices.shape[0]):
        price = state.prices[row]
        if price > 0.0:
            constant += price * state.upper[row]
        elif price < 0.0:
            constant += price * state.lower[row]
        for at in range(state.row_starts[row], state.row_starts[row + 1]):
            pull[state.row_attributes[at]] -= price * state.coefficients[at]
    state.values[2] = constant


@loop(types.float64(_STATE))
def _bound(state: DualState) -> float:
    """Return the Lagrangian's maximum over the records that are legal for the groups."""
    pull, free = state.pull, state.free
    bound = state.values[2]
    for a in range(pull.shape[0]):
        if free[a] == 1 and pull[a] > 0.0:
            bound += pull[a]
    for group in range(state.group_starts.shape[0] - 1):
        most = -np.inf
        for at in range(state.group_starts[group], state.group_starts[group + 1]):
            most = max(most, pull[state.group_members[at]])
        bound += most
    return float(bound)


@loop(types.void(_STATE, _float64s, _float64s))
def _move_point(state: DualState, values: NDArray[np.float64], reach: NDArray[np.float64]) -> None:
    """Step along the pull and project onto the relaxed records; extrapolate."""
    point, ahead, free = state.point, state.ahead, state.free
    pull, steps = state.pull, state.reach
    for a in range(point.shape[0]):
        before = point[a]
        after = before + steps[a] * pull[a]
        if free[a] == 1:
            after = min(max(after, 0.0), 1.0)
            ahead[a] = 2.0 * after - before
            point[a] = after
        else:
            ahead[a] = after
    for group in range(state.group_starts.shape[0] - 1):
        first, last = state.group_starts[group], state.group_starts[group + 1]
        for at in range(first, last):
            member = state.group_members[at]
            values[at - first] = ahead[member]
            reach[at - first] = state.reach[member]
        theta = _threshold(values, reach, last - first, 1.0)
        for at in range(first, last):
            member = state.group_members[at]
            after = max(ahead[member] - theta * state.reach[member], 0.0)
            ahead[member] = 2.0 * after - point[member]
            point[member] = after


@loop(types.void(_STATE, _float64s, _float64s))
def _move_multipliers(
    state: DualState, values: NDArray[np.float64], ones: NDArray[np.float64]
) -> None:
    """Step against the literals of the extrapolated record and project onto what is allowed."""
    terms, weights, steps = state.terms, state.weights, state.term_step
    ahead, shares = state.ahead, state.shares
    for j in range(terms.shape[0]):
        weight, step = weights[j], steps[j]
        true, width = 0.0, 0
        for i in range(terms.shape[1]):
            code = terms[j, i]
            if code < 0:
                break
            literal = 1.0 - ahead[code >> 1] if code & 1 else ahead[code >> 1]
            values[i] = shares[j, i] - step * literal
            true += literal
            width += 1
        if weight > 0.0:
            theta = _threshold(values, ones, width, weight)
            for i in range(width):
                shares[j, i] = max(values[i] - theta, 0.0)
        else:
            after = shares[j, 0] + step * (true - (width - 1))
            shares[j, 0] = min(max(after, 0.0), -weight)
    for row in range(state.prices.shape[0]):
        step = state.row_step[row]
        sum_ahead = 0.0
        for at in range(state.row_starts[row], state.row_starts[row + 1]):
            sum_ahead += state.coefficients[at] * ahead[state.row_attributes[at]]
        # By Moreau's identity: the support function of an interval against the projection onto it.
        price = state.prices[row] + step * sum_ahead
        allowed = min(max(price / step, state.lower[row]), state.upper[row])
        state.prices[row] = price - step * allowed


@kernel(types.int64(_STATE, types.int64, types.float64))
def descend(state: DualState, iterations: int, target: float) -> int:
    """Iterate until the bound is at most the target; return the number of iterations made."""
    most = state.terms.shape[1]
    for group in range(state.group_starts.shape[0] - 1):
        most = max(most, state.group_starts[group + 1] - state.group_starts[group])
    values, reach = np.empty(most), np.empty(most)
    ones = np.ones(most)
    for made in range(iterations):
        if state.values[0] <= target:
            return made
        _move_point(state, values, reach)
        _move_multipliers(state, values, ones)
        gather(state)
        bound = _bound(state)
        if bound < state.values[0]:
            state.values[0] = bound
            state.best_pull[:] = state.pull
    return iterations

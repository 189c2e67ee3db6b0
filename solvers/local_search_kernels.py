"""Compiled loops of the local search: maintained flip scores, tabu search, annealing, descent.

A *move* is named by one attribute: it flips a free attribute, or makes the attribute the chosen
member of its group. A group move flips two attributes, and its score is the sum of their two flip
scores; where one term holds literals on both of them that sum is a guess, but a flip accounts
exactly, so the tracked value never departs from the true one.

All randomness comes from a generator whose state is in the search: searches in several threads do
not disturb each other.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from solvers.compiled import kernel, loop
from solvers.occurrences_kernels import list_occurrences


class SearchState(NamedTuple):
    """A search over ``n`` attributes and ``J`` terms; arrays change in place."""

    terms: NDArray[np.int32]
    """(J, k): literal codes, padded with -1, distinct attributes within a row."""
    weights: NDArray[np.float64]  # (J,)
    starts: NDArray[np.int64]
    """(n + 1,): where the literals on each attribute start in ``occurrences``."""
    occurrences: NDArray[np.int32]  # literals by attribute, each as ``2 * term + negated``
    record: NDArray[np.uint8]  # (n,): the current record, always legal for groups
    false_count: NDArray[np.int32]  # (J,): false literals of each term
    false_sum: NDArray[np.int64]
    """(J,): sum of their attributes; a term with one false literal names it without a scan."""
    scores: NDArray[np.float64]
    """(n,): what flipping each attribute alone would add to the objective."""
    group_of: NDArray[np.int32]  # (n,): group of each attribute, or -1
    group_starts: NDArray[np.int64]
    group_members: NDArray[np.int32]
    chosen: NDArray[np.int32]  # the member of each group that is 1
    row_starts: NDArray[np.int64]
    """(n + 1,): where each attribute's column of the constraint matrix starts."""
    rows: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    activity: NDArray[np.float64]  # the sum of each linear constraint
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    penalties: NDArray[np.float64]
    """What a unit of each linear constraint's violation costs the tabu search."""
    growth: NDArray[np.float64]
    """What is added to each penalty where a step leaves the constraint violated."""
    tabu_until: NDArray[np.int64]  # (n,): the step before which a move on the attribute is tabu
    best_record: NDArray[np.uint8]
    value: NDArray[np.float64]  # (2,): the current record's value and the best one's
    clock: NDArray[np.int64]  # (2,): steps made, and the step of the last improvement or kick
    rng: NDArray[np.uint64]  # (1,): state of the generator, not 0


_int32s, _int64s, _float64s = types.int32[::1], types.int64[::1], types.float64[::1]
STATE = types.NamedTuple(
    (
        types.int32[:, ::1], _float64s, _int64s, _int32s, types.uint8[::1], _int32s, _int64s,
        _float64s, _int32s, _int64s, _int32s, _int32s, _int64s, _int32s, _float64s, _float64s,
        _float64s, _float64s, _float64s, _float64s, _int64s, types.uint8[::1], _float64s, _int64s,
        types.uint64[::1],
    ),
    SearchState,
)  # fmt: skip

_SHIFT_11 = np.uint64(11)
_SHIFT_12 = np.uint64(12)
_SHIFT_25 = np.uint64(25)
_SHIFT_27 = np.uint64(27)
_SHIFT_32 = np.uint64(32)
_MULTIPLIER = np.uint64(2685821657736338717)
_UNIT = 1.0 / 9007199254740992.0

_KICK_DRAWS = 30  # random draws made to find a term that a kick can repair
_BARRED = -1.7976931348623157e308  # score of a move that may not be made: the least finite number
_DECAY = 0.98  # factor of the penalty of a constraint that is satisfied, a step
_KICK_TENURE = 10  # steps for which what a kick moved is tabu


@loop(types.uint64(types.uint64[::1]), forceinline=True)
def _next(rng: NDArray[np.uint64]) -> np.uint64:
    """Advance an xorshift64* generator (Vigna, ACM TOMS 42:30, 2016)."""
    x = rng[0]
    x ^= x >> _SHIFT_12
    x ^= x << _SHIFT_25
    x ^= x >> _SHIFT_27
    rng[0] = x
    return np.uint64(x * _MULTIPLIER)


@loop(types.int64(types.uint64[::1], types.int64), forceinline=True)
def below(rng: NDArray[np.uint64], bound: int) -> np.int64:
    """Return a random integer in ``0 .. bound - 1``, for ``0 < bound < 2**31``."""
    return np.int64(((_next(rng) >> _SHIFT_32) * np.uint64(bound)) >> _SHIFT_32)


@loop(types.float64(types.uint64[::1]), forceinline=True)
def _uniform(rng: NDArray[np.uint64]) -> np.float64:
    return np.float64(_next(rng) >> _SHIFT_11) * _UNIT


@loop(types.boolean(STATE), forceinline=True)
def _feasible(state: SearchState) -> bool:
    for row in range(state.activity.shape[0]):
        if not state.lower[row] <= state.activity[row] <= state.upper[row]:
            return False
    return True


@loop(types.void(STATE))
def initialise(state: SearchState) -> None:
    """Fill occurrences, counts and scores (all zero before) for the state's record."""
    terms, weights, record = state.terms, state.weights, state.record
    scores = state.scores
    list_occurrences(terms, state.starts, state.occurrences)
    for j in range(terms.shape[0]):
        count = 0
        total = 0
        for i in range(terms.shape[1]):
            code = terms[j, i]
            if code < 0:
                break
            a = code >> 1
            if record[a] == (code & 1):
                count += 1
                total += a
        state.false_count[j] = count
        state.false_sum[j] = total
        if count == 1:
            scores[total] += weights[j]
        elif count == 0:
            state.value[0] += weights[j]
            for i in range(terms.shape[1]):
                code = terms[j, i]
                if code < 0:
                    break
                scores[code >> 1] -= weights[j]
    state.value[1] = state.value[0] if _feasible(state) else -np.inf


@loop(types.void(STATE, types.int32), forceinline=True)
def _flip(state: SearchState, attribute: np.int32) -> None:
    """Flip one attribute and bring counts, scores and value up to date."""
    terms, weights, scores = state.terms, state.weights, state.scores
    false_count, false_sum = state.false_count, state.false_sum
    change = 0.0
    before = state.record[attribute]
    state.record[attribute] = 1 - before
    width = terms.shape[1]
    for at in range(state.starts[attribute], state.starts[attribute + 1]):
        occurrence = state.occurrences[at]
        j = occurrence >> 1
        count = false_count[j]
        if before == (occurrence & 1):
            # The literal becomes true.
            false_count[j] = count - 1
            false_sum[j] -= attribute
            if count == 1:
                w = weights[j]
                change += w
                for i in range(width):
                    code = terms[j, i]
                    if code < 0:
                        break
                    scores[code >> 1] -= w
                scores[attribute] -= w
            elif count == 2:
                scores[false_sum[j]] += weights[j]
        else:
            # The literal becomes false.
            if count == 0:
                w = weights[j]
                change -= w
                for i in range(width):
                    code = terms[j, i]
                    if code < 0:
                        break
                    scores[code >> 1] += w
                scores[attribute] += w
            elif count == 1:
                scores[false_sum[j]] -= weights[j]
            false_count[j] = count + 1
            false_sum[j] += attribute
    state.value[0] += change


@loop(types.int32(STATE, types.int32), forceinline=True)
def leaving_member(state: SearchState, attribute: np.int32) -> np.int32:
    """Return the member that a move on the attribute unsets, or -1."""
    group = state.group_of[attribute]
    return state.chosen[group] if group >= 0 else np.int32(-1)


@loop(types.void(STATE, types.int32, types.float64))
def carry(state: SearchState, attribute: np.int32, direction: float) -> None:
    """Carry the constraints' activities through a move about to be made (1) or called off (-1)."""
    rows, coefficients, activity = state.rows, state.coefficients, state.activity
    change = direction * (1.0 - 2.0 * state.record[attribute])
    for at in range(state.row_starts[attribute], state.row_starts[attribute + 1]):
        activity[rows[at]] += change * coefficients[at]
    leaving = leaving_member(state, attribute)
    if leaving >= 0:
        for at in range(state.row_starts[leaving], state.row_starts[leaving + 1]):
            activity[rows[at]] -= direction * coefficients[at]


@loop(types.boolean(STATE, types.int32))
def _within(state: SearchState, attribute: np.int32) -> bool:
    """Tell whether the constraints that a move on the attribute touches are satisfied."""
    for a in (attribute, leaving_member(state, attribute)):
        if a >= 0:
            for at in range(state.row_starts[a], state.row_starts[a + 1]):
                row = state.rows[at]
                if not state.lower[row] <= state.activity[row] <= state.upper[row]:
                    return False
    return True


@loop(types.void(STATE, types.int32), forceinline=True)
def apply_move(state: SearchState, attribute: np.int32) -> None:
    """Make the flips of a move."""
    group = state.group_of[attribute]
    if group >= 0:
        _flip(state, state.chosen[group])
        state.chosen[group] = attribute
    _flip(state, attribute)


@loop(types.boolean(STATE, types.int32), forceinline=True)
def _move(state: SearchState, attribute: np.int32) -> bool:
    """Make a move; return False, and change nothing, if a constraint forbids it."""
    if state.activity.shape[0] > 0:
        carry(state, attribute, 1.0)
        if not _within(state, attribute):
            carry(state, attribute, -1.0)
            return False
    apply_move(state, attribute)
    return True


@loop(types.void(STATE), forceinline=True)
def _keep_if_best(state: SearchState) -> None:
    if state.value[0] > state.value[1] and _feasible(state):
        state.value[1] = state.value[0]
        state.clock[1] = state.clock[0]
        for a in range(state.record.shape[0]):
            state.best_record[a] = state.record[a]


@loop(types.void(STATE, types.int32, types.int64))
def _give(state: SearchState, attribute: np.int32, wanted: int) -> None:
    """Set an attribute to a value."""
    if state.record[attribute] == wanted:
        return
    group = state.group_of[attribute]
    if group >= 0 and wanted == 0:
        # The chosen member gives way to a random other one.
        first, last = state.group_starts[group], state.group_starts[group + 1]
        if last - first < 2:
            return
        other = state.group_members[first + below(state.rng, last - first - 1)]
        attribute = state.group_members[last - 1] if other == attribute else other
    carry(state, attribute, 1.0)
    apply_move(state, attribute)
    state.tabu_until[attribute] = state.clock[0] + _KICK_TENURE


@loop(types.void(STATE))
def _kick(state: SearchState) -> None:
    """Give a random term, if there is any, what its weight wants: its literals, or a false one."""
    for _ in range(_KICK_DRAWS if state.terms.shape[0] > 0 else 0):
        j = below(state.rng, state.terms.shape[0])
        if (state.weights[j] > 0.0) == (state.false_count[j] == 0):
            continue
        width = 0
        while width < state.terms.shape[1] and state.terms[j, width] >= 0:
            width += 1
        if state.weights[j] > 0.0:
            for i in range(width):
                code = state.terms[j, i]
                _give(state, code >> 1, 1 - (code & 1))
        else:
            code = state.terms[j, below(state.rng, width)]
            _give(state, code >> 1, code & 1)
        return


@loop(types.float64(_float64s), forceinline=True)
def _largest(values: NDArray[np.float64]) -> float:
    """Return the largest number, by four running maxima that do not wait for each other."""
    n = values.shape[0]
    top = second = third = fourth = _BARRED
    for i in range(0, n - 3, 4):
        if values[i] > top:
            top = values[i]
        if values[i + 1] > second:
            second = values[i + 1]
        if values[i + 2] > third:
            third = values[i + 2]
        if values[i + 3] > fourth:
            fourth = values[i + 3]
    for i in range(n - n % 4, n):
        if values[i] > top:
            top = values[i]
    return max(max(top, second), max(third, fourth))


@loop(types.float64(STATE, types.int32))
def _penalty(state: SearchState, attribute: np.int32) -> float:
    """Return what violations of the constraints cost that a move on the attribute touches."""
    total = 0.0
    for a in (attribute, leaving_member(state, attribute)):
        if a >= 0:
            for at in range(state.row_starts[a], state.row_starts[a + 1]):
                row = state.rows[at]
                excess = max(
                    state.lower[row] - state.activity[row], state.activity[row] - state.upper[row]
                )
                if excess > 0.0:
                    total += state.penalties[row] * excess
    return total


@loop(types.float64(STATE))
def _shift_penalties(state: SearchState) -> float:
    """Raise the penalties of violated constraints, lower the others; return what all cost."""
    total = 0.0
    for row in range(state.activity.shape[0]):
        excess = max(state.lower[row] - state.activity[row], state.activity[row] - state.upper[row])
        if excess > 0.0:
            state.penalties[row] += state.growth[row]
            total += state.penalties[row] * excess
        else:
            state.penalties[row] *= _DECAY
    return total


@loop(types.int32(STATE, types.uint32[::1], _float64s, _float64s, types.float64), forceinline=True)
def _best_move(
    state: SearchState,
    column: NDArray[np.uint32],
    unsetting: NDArray[np.float64],
    gains: NDArray[np.float64],
    cost: float,
) -> np.int32:
    """Return the best move that is not tabu, or beats the best value; -1 if there is none."""
    n = state.record.shape[0]
    scores, chosen, tabu_until = state.scores, state.chosen, state.tabu_until
    now = state.clock[0]
    aspired = state.value[1] - state.value[0]
    for group in range(chosen.shape[0]):
        unsetting[group] = scores[chosen[group]]
    for a in range(n):
        gain = scores[a] + unsetting[column[a]]
        gains[a] = gain if (tabu_until[a] <= now) | (gain > aspired) else _BARRED
    for member in chosen:
        gains[member] = _BARRED
    # Ties go to the first attribute found, from a random one on.
    offset = below(state.rng, n)
    if state.activity.shape[0] == 0:
        top = _largest(gains)
        if top == _BARRED:
            return np.int32(-1)
        found = offset
        while gains[found] != top:
            found = found + 1 if found + 1 < n else 0
        return np.int32(found)
    best, top = np.int32(-1), _BARRED
    for i in range(n):
        bit = np.int32(i + offset if i + offset < n else i + offset - n)
        if gains[bit] == _BARRED or gains[bit] + cost <= top:
            continue
        before = _penalty(state, bit)
        carry(state, bit, 1.0)
        after = _penalty(state, bit)
        carry(state, bit, -1.0)
        gain = gains[bit] + before - after
        if gain > top and (tabu_until[bit] <= now or after == 0.0):
            best, top = bit, gain
    return best


@loop(types.void(STATE, types.UniTuple(types.int64, 3), types.uint32[::1], _float64s, _float64s))
def _tabu_steps(
    state: SearchState,
    limits: tuple[int, int, int],
    column: NDArray[np.uint32],
    unsetting: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> None:
    """Do the work of `tabu_search`; the other arguments are those of `_best_move`."""
    steps, tenure, patience = limits
    cost = _shift_penalties(state)
    for _ in range(steps):
        state.clock[0] += 1
        now = state.clock[0]
        choice = _best_move(state, column, unsetting, gains, cost)
        if choice >= 0:
            group = state.group_of[choice]
            moved = state.chosen[group] if group >= 0 else choice
            carry(state, choice, 1.0)
            apply_move(state, choice)
            state.tabu_until[moved] = now + tenure + below(state.rng, tenure)
            _keep_if_best(state)
        if now - state.clock[1] >= patience:
            _kick(state)
            _keep_if_best(state)
            state.clock[1] = now
        cost = _shift_penalties(state)


@kernel(types.void(STATE, types.int64, types.int64, types.int64))
def tabu_search(state: SearchState, steps: int, tenure: int, patience: int) -> None:
    """Make the best move that is not tabu, again and again.

    A scan over all attributes finds it; a tabu move is allowed if it beats the best value so far
    (aspiration). After ``patience`` steps without a new best value, one random term is satisfied by
    force. A moved attribute is tabu for ``tenure`` steps and up to as many more, at random. Linear
    constraints may be violated on the way, at penalties that rise while they are and fall while
    they are not.
    """
    group_of, groups = state.group_of, state.chosen.shape[0]
    column = np.where(group_of < 0, np.int32(groups), group_of).astype(np.uint32)
    unsetting = np.zeros(groups + 1)
    gains = np.empty(state.record.shape[0])
    _tabu_steps(state, (steps, tenure, patience), column, unsetting, gains)


@loop(types.void(STATE, types.int64, types.float64, types.float64))
def anneal(state: SearchState, proposals: int, temperature: float, cooling: float) -> None:
    """Propose random moves and accept by Metropolis's rule, cooling after each proposal."""
    n = state.record.shape[0]
    for _ in range(proposals):
        a = np.int32(below(state.rng, n))
        score = state.scores[a]
        group = state.group_of[a]
        if group >= 0:
            leaving = state.chosen[group]
            if leaving == a:
                continue
            score += state.scores[leaving]
        temperature *= cooling
        if score >= 0.0 or _uniform(state.rng) < math.exp(score / temperature):
            _move(state, a)


@loop(types.void(STATE, types.int64))
def descend(state: SearchState, sweeps: int) -> None:
    """Make every improving move, attribute by attribute, until none is left (or ``sweeps``)."""
    n = state.record.shape[0]
    for _ in range(sweeps):
        before = state.value[0]
        for a in range(n):
            score = state.scores[a]
            group = state.group_of[a]
            if group >= 0:
                leaving = state.chosen[group]
                if leaving == a:
                    continue
                score += state.scores[leaving]
            if score > 0.0:
                _move(state, np.int32(a))
        if state.value[0] <= before:
            break
    _keep_if_best(state)


@loop(types.void(STATE, types.int32, types.int64))
def _choose(state: SearchState, choice: int, value: int) -> None:
    if choice >= 0:
        if state.record[choice] == value:
            return
        attribute = choice
    else:
        attribute = state.group_members[state.group_starts[~choice] + value]
        if state.chosen[~choice] == attribute:
            return
    if state.activity.shape[0] > 0:
        carry(state, attribute, 1.0)
    apply_move(state, attribute)


@loop(types.boolean(STATE, _int32s))
def _satisfies(state: SearchState, rows: NDArray[np.int32]) -> bool:
    for r in range(rows.shape[0]):
        row = rows[r]
        if not state.lower[row] <= state.activity[row] <= state.upper[row]:
            return False
    return True


@kernel(types.boolean(STATE, _int32s, _int32s))
def enumerate_choices(
    state: SearchState, choices: NDArray[np.int32], rows: NDArray[np.int32]
) -> bool:
    """Give free attributes ``a`` and groups ``~g`` (of two or more) the values best together.

    Visits all combinations, one move at a time: the loopless reflected Gray code of mixed radices
    (Knuth, The Art of Computer Programming 4A, 7.2.1.1, Algorithm H). Of the linear constraints
    these rows are looked at; returns whether any combination satisfies them.
    """
    count = choices.shape[0]
    digits, best = np.zeros(count, np.int64), np.zeros(count, np.int64)
    radices = np.full(count, 2, np.int64)
    step = np.ones(count, np.int64)
    focus = np.arange(count + 1)
    for c in range(count):
        if choices[c] < 0:
            group = ~choices[c]
            radices[c] = state.group_starts[group + 1] - state.group_starts[group]
        _choose(state, choices[c], 0)
    most = state.value[0] if _satisfies(state, rows) else -np.inf
    while True:
        c = focus[0]
        if c == count:
            break
        focus[0] = 0
        digits[c] += step[c]
        _choose(state, choices[c], digits[c])
        if digits[c] == 0 or digits[c] == radices[c] - 1:
            step[c] = -step[c]
            focus[c] = focus[c + 1]
            focus[c + 1] = c + 1
        if state.value[0] > most and _satisfies(state, rows):
            most = state.value[0]
            best[:] = digits
    for c in range(count):
        _choose(state, choices[c], best[c])
    return bool(most > -np.inf)

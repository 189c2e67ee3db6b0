"""Compiled loop of the reductions: dominance rules to a fixpoint, by queues.

A *choice* is a group, or a free attribute as a group of the values 1 and "none". Its value ``v`` is
worth at least ``low(v)`` and at most ``high(v)`` more than none, whatever the rest of the record:

    ``high(v) = unit(v) + wanting 1``,  ``low(v) = unit(v) - wanting 0``

``unit`` is the net weight of the terms that are a single literal on ``v`` by now, the others the
absolute weights of longer terms that want ``v`` to be 1 or 0. Linear constraints *lock* an
attribute against being raised (``low = -inf``) or lowered (``high = inf``). A value ``u`` is ruled
out if ``high(u) <= low(v)``; a term of positive weight is made true if its weight makes up for what
the moves to its literals can cost. Both keep an optimum.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from solvers.compiled import loop
from solvers.occurrences_kernels import list_occurrences

FREE = -1
"""Value of an attribute that is not decided."""
NEGATION = 2
"""Value of an attribute that has been replaced by the negation of another one."""


class ReductionState(NamedTuple):
    """Reductions under way over ``n`` attributes, ``g`` groups, ``J`` terms; changed in place."""

    terms: NDArray[np.int32]
    """(J, k): literal codes, padded with -1, on distinct free attributes within a row."""
    weights: NDArray[np.float64]  # (J,)
    group_of: NDArray[np.int32]  # (n,): group of each attribute, or -1
    group_starts: NDArray[np.int64]
    group_members: NDArray[np.int32]
    raise_locked: NDArray[np.uint8]
    """(n,): whether some constraint may forbid to raise the attribute."""
    lower_locked: NDArray[np.uint8]
    value: NDArray[np.int8]  # (n,): 0, 1, FREE or NEGATION
    replacement: NDArray[np.int32]
    """(n,): the group member that a dominated one gives way to, or -1."""
    alive: NDArray[np.uint8]
    """(J,): whether the term still has two or more free literals, none of them false."""
    left: NDArray[np.int32]  # (J,): number of its literals not yet known to be true
    unit: NDArray[np.float64]
    """(n,): net weight of setting the attribute to 1, by terms of this one literal."""
    wanting: NDArray[np.float64]
    """(n, 2): weight of the longer terms that want the attribute 0 or 1."""
    wishes: NDArray[np.int32]
    """(n, 2): number of these terms; at 0 the weight is 0 without rounding errors."""
    starts: NDArray[np.int64]
    """(n + 1,): where the literals on each attribute start in ``occurrences``."""
    occurrences: NDArray[np.int32]  # literals by attribute, each as ``2 * term + negated``
    processed: NDArray[np.uint8]
    """(n,): whether the attribute's value has been carried into its terms and group."""
    stack: NDArray[np.int32]  # (n,): decided attributes not yet processed
    choices: NDArray[np.int32]
    """(n + g + 1,): circular queue of free attributes and, from n on, groups to look at."""
    choice_queued: NDArray[np.uint8]
    conjunctions: NDArray[np.int32]
    """(J + 1,): circular queue of terms of positive weight to look at."""
    conjunction_queued: NDArray[np.uint8]
    ends: NDArray[np.int64]
    """(5,): height of the stack; first and last of the queue of choices; of conjunctions."""
    constant: NDArray[np.float64]
    """(1,): weight of the terms of one negated literal: ``w (1 - x)`` is ``w`` and unit ``-w``."""


_i4, _i8, _f8, _u1 = types.int32[::1], types.int64[::1], types.float64[::1], types.uint8[::1]
_STATE = types.NamedTuple(
    (
        types.int32[:, ::1], _f8, _i4, _i8, _i4, _u1, _u1, types.int8[::1], _i4, _u1, _i4, _f8,
        types.float64[:, ::1], types.int32[:, ::1], _i8, _i4, _u1, _i4, _i4, _u1, _i4, _u1, _i8,
        _f8,
    ),
    ReductionState,
)  # fmt: skip


@loop(types.void(_STATE, types.int32), forceinline=True)
def _queue_choice(s: ReductionState, attribute: int) -> None:
    group = s.group_of[attribute]
    choice = s.value.shape[0] + group if group >= 0 else attribute
    if s.choice_queued[choice] == 0:
        s.choice_queued[choice] = 1
        s.choices[s.ends[2]] = choice
        s.ends[2] = (s.ends[2] + 1) % s.choices.shape[0]


@loop(types.void(_STATE, types.int32), forceinline=True)
def _queue_conjunction(s: ReductionState, term: int) -> None:
    if s.conjunction_queued[term] == 0:
        s.conjunction_queued[term] = 1
        s.conjunctions[s.ends[4]] = term
        s.ends[4] = (s.ends[4] + 1) % s.conjunctions.shape[0]


@loop(types.void(_STATE, types.int32, types.int8), forceinline=True)
def _decide(s: ReductionState, attribute: int, value: int) -> None:
    if s.value[attribute] == FREE:
        s.value[attribute] = value
        s.stack[s.ends[0]] = attribute
        s.ends[0] += 1


@loop(types.void(_STATE, types.int32, types.int32), forceinline=True)
def _unwish(s: ReductionState, code: int, term: int) -> None:
    """Take a term out of what wants the attribute of one of its literals to be 0 or 1."""
    attribute = code >> 1
    wanted = 1 - (code & 1) if s.weights[term] > 0.0 else code & 1
    s.wishes[attribute, wanted] -= 1
    if s.wishes[attribute, wanted] == 0:
        s.wanting[attribute, wanted] = 0.0
    else:
        s.wanting[attribute, wanted] -= abs(s.weights[term])
    _queue_choice(s, attribute)


@loop(types.void(_STATE, types.int32, types.float64), forceinline=True)
def _add_unit(s: ReductionState, code: int, weight: float) -> None:
    if code & 1:
        s.unit[code >> 1] -= weight
        s.constant[0] += weight
    else:
        s.unit[code >> 1] += weight


@loop(types.void(_STATE, types.int32), forceinline=True)
def _process(s: ReductionState, attribute: int) -> None:
    """Carry a decided value into the terms and the group of its attribute."""
    s.processed[attribute] = 1
    value = s.value[attribute]
    for at in range(s.starts[attribute], s.starts[attribute + 1]):
        term, negated = s.occurrences[at] >> 1, s.occurrences[at] & 1
        if s.alive[term] == 0:
            continue
        if value == negated:
            s.alive[term] = 0
            for i in range(s.terms.shape[1]):
                code = s.terms[term, i]
                if code >= 0 and s.processed[code >> 1] == 0:
                    _unwish(s, code, term)
            continue
        s.left[term] -= 1
        if s.left[term] == 1:
            s.alive[term] = 0
            for i in range(s.terms.shape[1]):
                code = s.terms[term, i]
                if code >= 0 and s.processed[code >> 1] == 0:
                    _unwish(s, code, term)
                    _add_unit(s, code, s.weights[term])
        elif s.weights[term] > 0.0:
            _queue_conjunction(s, term)

    group = s.group_of[attribute]
    if group < 0:
        return
    free, last = 0, np.int32(-1)
    for at in range(s.group_starts[group], s.group_starts[group + 1]):
        member = s.group_members[at]
        if value == 1:
            _decide(s, member, np.int8(0))
        elif s.value[member] == 1:
            return
        elif s.value[member] == FREE:
            free, last = free + 1, member
    if value == 0:
        if free == 1:
            _decide(s, last, np.int8(1))
        else:
            _queue_choice(s, attribute)


@loop(types.float64(_STATE, types.int32), forceinline=True)
def _high(s: ReductionState, attribute: int) -> float:
    if s.lower_locked[attribute]:
        return math.inf
    return float(s.unit[attribute] + s.wanting[attribute, 1])


@loop(types.float64(_STATE, types.int32), forceinline=True)
def _low(s: ReductionState, attribute: int) -> float:
    if s.raise_locked[attribute]:
        return -math.inf
    return float(s.unit[attribute] - s.wanting[attribute, 0])


@loop(types.void(_STATE, types.int32), forceinline=True)
def _queue_conjunctions_on(s: ReductionState, attribute: int) -> None:
    for at in range(s.starts[attribute], s.starts[attribute + 1]):
        term = s.occurrences[at] >> 1
        if s.alive[term] and s.weights[term] > 0.0:
            _queue_conjunction(s, term)


@loop(types.void(_STATE, types.int32), forceinline=True)
def _look_at_choice(s: ReductionState, choice: int) -> None:
    """Rule out dominated values of a free attribute or a group."""
    n = s.value.shape[0]
    if choice < n:
        if s.value[choice] != FREE:
            return
        if _high(s, choice) <= 0.0:
            _decide(s, choice, np.int8(0))
        elif _low(s, choice) >= 0.0:
            _decide(s, choice, np.int8(1))
        else:
            _queue_conjunctions_on(s, choice)
        return

    first, last = s.group_starts[choice - n], s.group_starts[choice - n + 1]
    best, best_low = np.int32(-1), -math.inf
    free, remaining = 0, np.int32(-1)
    for at in range(first, last):
        member = s.group_members[at]
        if s.value[member] == 1:
            return
        if s.value[member] == FREE:
            free, remaining = free + 1, member
            if _low(s, member) > best_low:
                best, best_low = member, _low(s, member)
    if free == 1:
        _decide(s, remaining, np.int8(1))
        return
    if best >= 0:
        for at in range(first, last):
            member = s.group_members[at]
            if member != best and s.value[member] == FREE and _high(s, member) <= best_low:
                _decide(s, member, np.int8(0))
                s.replacement[member] = best
    for at in range(first, last):
        if s.value[s.group_members[at]] == FREE:
            _queue_conjunctions_on(s, s.group_members[at])


@loop(types.Tuple((types.float64, types.int32))(_STATE, types.int32), forceinline=True)
def _cost(s: ReductionState, code: int) -> tuple[float, np.int32]:
    """Return what making a literal true can cost, and the member that replaces a negated one."""
    attribute, negated = np.int32(code >> 1), code & 1
    group = s.group_of[attribute]
    if group < 0:
        if negated:
            return max(0.0, _high(s, attribute)), np.int32(-1)
        return max(0.0, -_low(s, attribute)), np.int32(-1)
    highest = -math.inf
    best = np.int32(-1)
    best_low = -math.inf
    for at in range(s.group_starts[group], s.group_starts[group + 1]):
        member = s.group_members[at]
        if member == attribute or s.value[member] != FREE:
            continue
        highest = max(highest, _high(s, member))
        if _low(s, member) > best_low:
            best, best_low = member, _low(s, member)
    if not negated:
        low = _low(s, attribute)
        return (max(0.0, highest - low) if low > -math.inf else math.inf), np.int32(-1)
    if best < 0:
        return math.inf, np.int32(-1)
    return max(0.0, _high(s, attribute) - best_low), best


@loop(types.void(_STATE, types.int32), forceinline=True)
def _look_at_conjunction(s: ReductionState, term: int) -> None:
    """Make a term of positive weight true if its weight makes up for the cost."""
    if s.alive[term] == 0:
        return
    width, rest = s.terms.shape[1], s.weights[term]
    for i in range(width):
        code = s.terms[term, i]
        if code < 0 or s.value[code >> 1] != FREE:
            continue
        group = s.group_of[code >> 1]
        if group >= 0:
            for h in range(i):
                other = s.terms[term, h]
                if s.value[other >> 1] == FREE and s.group_of[other >> 1] == group:
                    return
        rest -= _cost(s, code)[0]
        # Also ends here if the cost was infinite.
        if not rest >= 0.0:
            return
    for i in range(width):
        code = s.terms[term, i]
        if code < 0 or s.value[code >> 1] != FREE:
            continue
        s.replacement[code >> 1] = _cost(s, code)[1]
    for i in range(width):
        code = s.terms[term, i]
        if code >= 0:
            _decide(s, code >> 1, np.int8(1 - (code & 1)))


@loop(types.void(_STATE))
def run(s: ReductionState) -> None:
    """Apply the rules until none applies.

    On entry ``value`` may hold decisions; those that are ``processed`` occur in no term. The
    arrays from ``alive`` on are zero, but for ``unit``, which may hold weights already.
    """
    n, count, width = s.value.shape[0], s.terms.shape[0], s.terms.shape[1]
    list_occurrences(s.terms, s.starts, s.occurrences)
    for j in range(count):
        for i in range(width):
            if s.terms[j, i] >= 0:
                s.left[j] += 1
        w = s.weights[j]
        if s.left[j] > 1:
            s.alive[j] = 1
            if w > 0.0:
                _queue_conjunction(s, np.int32(j))
        for i in range(width):
            code = s.terms[j, i]
            if code < 0:
                continue
            if s.left[j] > 1:
                wanted = 1 - (code & 1) if w > 0.0 else code & 1
                s.wanting[code >> 1, wanted] += abs(w)
                s.wishes[code >> 1, wanted] += 1
            else:
                _add_unit(s, code, w)
    for a in range(n):
        if s.value[a] == FREE:
            _queue_choice(s, np.int32(a))
        elif s.value[a] != NEGATION and s.processed[a] == 0:
            s.stack[s.ends[0]] = a
            s.ends[0] += 1

    while True:
        if s.ends[0] > 0:
            s.ends[0] -= 1
            _process(s, s.stack[s.ends[0]])
        elif s.ends[1] != s.ends[2]:
            choice = s.choices[s.ends[1]]
            s.ends[1] = (s.ends[1] + 1) % s.choices.shape[0]
            s.choice_queued[choice] = 0
            _look_at_choice(s, choice)
        elif s.ends[3] != s.ends[4]:
            term = s.conjunctions[s.ends[3]]
            s.ends[3] = (s.ends[3] + 1) % s.conjunctions.shape[0]
            s.conjunction_queued[term] = 0
            _look_at_conjunction(s, term)
        else:
            break

"""Rules as linear constraints of a best-response problem, and records that a solver finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.rules.forbidden import Forbidden, values_in
from solvers import BestResponse, Groups, LinearConstraint, get_solver
from solvers.constraints import Rows
from solvers.errors import InfeasibleProblemError

_MOST_PENALTIES = 1_000

_SECONDS = 20.0
"""For one record."""


def constraints_of(rules: Forbidden) -> Rows:
    """Return a linear constraint for each box: at most all but one of its columns lie in it.

    With ``x(S)`` the sum of the bits of a column's values S, which is 0 or 1, a box of k columns is
    ``x(S_1) + ... + x(S_k) <= k - 1``. Where S is more than half of the column, ``x(S)`` is 1 less
    the sum of the others.
    """
    sizes, offsets = axis_sizes(rules.domain), rules.domain.offsets
    return Rows.of(
        _constraint(
            [
                (int(offsets[column]), int(rules.domain.sizes[column]), mask, int(sizes[column]))
                for column, mask in sorted(box.items())
            ]
        )
        for box in rules.boxes
    )


def _constraint(said: list[tuple[int, int, int, int]]) -> LinearConstraint:
    """Return the constraint of a box: a column's first bit, its bits, what is said, its values."""
    attributes: list[NDArray[np.int64]] = []
    coefficients: list[NDArray[np.float64]] = []
    most = len(said) - 1
    for first, bits, mask, size in said:
        inside = values_in(mask, size)
        if bits == 1:
            if len(inside) == 2:
                most -= 1  # both values: always inside
                continue
            negated, members = inside[0] == 0, np.zeros(1, np.int64)
        else:
            negated = 2 * len(inside) > size
            members = np.setdiff1d(np.arange(size), inside) if negated else inside
        most -= int(negated)
        attributes.append(first + members)
        coefficients.append(np.full(len(members), -1.0 if negated else 1.0))
    return LinearConstraint(
        np.concatenate([*attributes, np.zeros(0, np.int64)]).astype(np.int32),
        np.concatenate([*coefficients, np.zeros(0)]),
        upper=float(most),
    )


def penalties_of(rules: Forbidden) -> NDArray[np.int32]:
    """Return conjunctions of which a record satisfies one for each box that it lies in.

    A column's values in a box are one literal each, or all negated literals of the others,
    whichever are fewer. Boxes that are more than `_MOST_PENALTIES` conjunctions are left out.

    Returns
    -------
    int32, shape ``(t, k)``: codes, padded with -1.
    """
    sizes, offsets = axis_sizes(rules.domain), rules.domain.offsets
    found: list[tuple[int, ...]] = []
    for box in rules.boxes:
        choices = []
        for column, mask in sorted(box.items()):
            first, inside = int(offsets[column]), values_in(mask, int(sizes[column]))
            others = np.setdiff1d(np.arange(sizes[column]), inside)
            if rules.domain.sizes[column] == 1:
                choices.append([(2 * first + (value == 0),) for value in inside.tolist()])
            elif len(inside) <= len(others):
                choices.append([(2 * (first + value),) for value in inside.tolist()])
            else:
                choices.append([tuple((2 * (first + others) + 1).tolist())])
        if math.prod(map(len, choices)) <= _MOST_PENALTIES:
            found += [sum(chosen, ()) for chosen in itertools.product(*choices)]
    width = max([1, *map(len, found)])
    return np.array([[*codes, *[-1] * (width - len(codes))] for codes in found], np.int32).reshape(
        -1, width
    )


def solved_record(
    rules: Forbidden, near: NDArray[np.int32], allowed: NDArray[np.uint8]
) -> NDArray[np.int32] | None:
    """Return the legal record nearest to another one, by a solver: where a search is too long.

    Parameters
    ----------
    near
        int32, shape ``(c,)``: classes of `Forbidden.columns`.
    allowed
        uint8, one entry a class: whether the record may have it.

    Returns
    -------
    int32, shape ``(c,)``; None if there provably is no such record. It may not be the nearest one
    if the solver did not come to an end.

    Raises
    ------
    SolverError
        If the solver neither finds a record nor proves that there is none.
    """
    boxes = rules.compiled
    sizes = np.diff(boxes.classes)
    groups = Groups(boxes.classes, np.arange(boxes.classes[-1], dtype=np.int32))
    constraints = []
    for box in range(len(rules.boxes)):
        entries = range(int(boxes.entries[box]), int(boxes.entries[box + 1]))
        attributes, coefficients, most = [], [], float(len(entries) - 1)
        for entry in entries:
            listed = boxes.list_class[boxes.list_at[entry] : boxes.list_at[entry + 1]]
            sign = 1.0 if boxes.listed[entry] else -1.0
            most -= 0.0 if boxes.listed[entry] else 1.0
            attributes.append(boxes.classes[boxes.column[entry]] + listed)
            coefficients.append(np.full(len(listed), sign))
        constraints.append(
            LinearConstraint(
                np.concatenate(attributes).astype(np.int32),
                np.concatenate(coefficients),
                upper=most,
            )
        )
    banned = np.flatnonzero(allowed == 0).astype(np.int32)
    if len(banned):
        constraints.append(LinearConstraint(banned, np.ones(len(banned)), upper=0.0))
    kept = 2 * (boxes.classes[:-1] + near)
    problem = BestResponse(
        int(boxes.classes[-1]),
        kept.astype(np.int32)[:, None],
        np.ones(len(sizes)),
        groups,
        constraints,
    )
    try:
        solution = get_solver("highs").solve(problem, time_limit=_SECONDS)
    except InfeasibleProblemError:
        return None
    found = np.flatnonzero(solution.record) - boxes.classes[:-1]
    return np.asarray(found, np.int32)

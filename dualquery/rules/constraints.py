"""Rules as linear constraints of a best-response problem, and records that a solver finds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

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
                (int(offsets[c]), rules.domain.sizes[c] == 1, values_in(mask, int(sizes[c])),
                 int(sizes[c]))
                for c, mask in sorted(box.items())
            ]
        )
        for box in rules.boxes
    )  # fmt: skip


def _constraint(said: Sequence[tuple[int, bool, NDArray[np.int64], int]]) -> LinearConstraint:
    """Return the constraint of a box: of a column its first bit, whether it has no other, values
    that are said, and how many there are.
    """
    attributes: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    coefficients: list[NDArray[np.float64]] = [np.zeros(0)]
    most = len(said) - 1
    for first, binary, inside, size in said:
        if len(inside) == size:
            most -= 1  # always inside
            continue
        negated = bool(inside[0] == 0) if binary else 2 * len(inside) > size
        members = np.setdiff1d(np.arange(size), inside) if negated else inside
        most -= int(negated)
        attributes.append(np.array([first]) if binary else first + members)
        coefficients.append(np.full(len(attributes[-1]), -1.0 if negated else 1.0))
    return LinearConstraint(
        np.concatenate(attributes).astype(np.int32), np.concatenate(coefficients), upper=float(most)
    )


def penalties_of(rules: Forbidden) -> NDArray[np.int32]:
    """Return conjunctions: a record satisfies one for each box that it lies in.

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


def solved_record(rules: Forbidden, near: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Return the legal record nearest to another one, by a solver: where a search is too long.

    Both are int32, shape ``(c,)``: classes of `Forbidden.columns`. It may not be the nearest one if
    the solver did not come to an end; None if there provably is none.

    Raises
    ------
    SolverError
        If the solver neither finds a record nor proves that there is none.
    """
    boxes = rules.compiled
    classes, count = boxes.classes, int(boxes.classes[-1])
    sizes = np.diff(classes)
    constraints = []
    for box in range(len(rules.boxes)):
        said = []
        for entry in range(int(boxes.entries[box]), int(boxes.entries[box + 1])):
            place = int(boxes.column[entry])
            listed = boxes.list_class[boxes.list_at[entry] : boxes.list_at[entry + 1]]
            if not boxes.listed[entry]:
                listed = np.setdiff1d(np.arange(sizes[place]), listed)
            said.append((int(classes[place]), False, listed, int(sizes[place])))
        constraints.append(_constraint(said))
    kept = 2 * (classes[:-1] + near).astype(np.int32)
    groups = Groups(classes, np.arange(count, dtype=np.int32))
    problem = BestResponse(count, kept[:, None], np.ones(len(sizes)), groups, constraints)
    try:
        solution = get_solver("highs").solve(problem, time_limit=_SECONDS)
    except InfeasibleProblemError:
        return None
    return np.asarray(np.flatnonzero(solution.record) - classes[:-1], np.int32)

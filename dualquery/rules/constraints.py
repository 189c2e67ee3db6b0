"""Rules as linear constraints of a best-response problem, and records that a solver finds."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.questions.disjoint_boxes import Box
from dualquery.rows.repeats import side_by_side
from dualquery.rules.forbidden import Forbidden, values_in
from solvers import BestResponse, Groups, LinearConstraint, get_solver
from solvers.constraints import Rows
from solvers.errors import InfeasibleProblemError

_MOST_PENALTIES, _SECONDS = 1_000, 20.0  # of one box; for one record


def constraints_of(rules: Forbidden) -> Rows:
    """Return a linear constraint for each box: at most all but one of its columns lie in it.

    With ``x(S)`` the sum of the bits of a column's values S, which is 0 or 1, a box of k columns is
    ``x(S_1) + ... + x(S_k) <= k - 1``. Where S is more than half of the column, ``x(S)`` is 1 less
    the sum of the others.
    """
    return Rows.of(_constraint(rules.domain, box) for box in rules.boxes)


def _constraint(domain: Domain, box: Box) -> LinearConstraint:
    attributes: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    coefficients: list[NDArray[np.float64]] = [np.zeros(0)]
    most = len(box) - 1
    for column, mask in sorted(box.items()):
        size = max(int(domain.sizes[column]), 2)
        first = domain.offsets[column]
        inside = values_in(mask, size)
        if len(inside) == size:
            most -= 1  # always inside
            continue
        binary = domain.sizes[column] == 1
        negated = bool(inside[0] == 0) if binary else 2 * len(inside) > size
        members = np.setdiff1d(np.arange(size), inside) if negated else inside
        most -= int(negated)
        attributes.append(np.array([first]) if binary else first + members)
        coefficients.append(np.full(len(attributes[-1]), -1.0 if negated else 1.0))
    return LinearConstraint(
        np.concatenate(attributes).astype(np.int32), np.concatenate(coefficients), upper=float(most)
    )


def groups_of(domain: Domain) -> Groups:
    """Return the exactly-one groups of a domain: one for each column of two or more bits."""
    indptr = np.concatenate(([0], np.cumsum(domain.sizes[domain.sizes > 1])))
    members = np.flatnonzero(domain.sizes[domain.column_of_bit] > 1).astype(np.int32)
    return Groups(indptr=indptr, members=members)


def penalties_of(rules: Forbidden, *, cells: bool = False) -> NDArray[np.int32]:
    """Return conjunctions: a record satisfies one for each box that it lies in.

    A column's values in a box are one literal each; where the others are fewer, all of these
    negated, but not as ``cells``. Boxes of more than `_MOST_PENALTIES` conjunctions are left out.
    int32, shape ``(t, k)``: codes, padded with -1.
    """
    sizes = axis_sizes(rules.domain)
    found = [np.zeros((0, 1), np.int32)]
    for box in rules.boxes:
        choices: list[list[tuple[int, ...]]] = []
        for column, mask in sorted(box.items()):
            first = int(rules.domain.offsets[column])
            inside = values_in(mask, int(sizes[column]))
            others = np.setdiff1d(np.arange(sizes[column]), inside)
            if rules.domain.sizes[column] == 1:
                choices.append([(2 * first + (value == 0),) for value in inside.tolist()])
            elif cells or len(inside) <= len(others):
                choices.append([(2 * (first + value),) for value in inside.tolist()])
            else:
                choices.append([tuple((2 * (first + others) + 1).tolist())])
        if math.prod(map(len, choices)) <= _MOST_PENALTIES:
            rows = [sum(chosen, ()) for chosen in itertools.product(*choices)]
            found.append(np.array(rows, np.int32))
    return side_by_side(*found)


def solved_record(rules: Forbidden, near: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Return the legal record nearest to another one, by a solver: where a search is too long.

    Both are int32, shape ``(c,)``: classes of `Forbidden.columns`. It may not be the nearest one if
    the solver did not come to an end; None if there provably is none, `SolverError` if it is open.
    """
    domain, axes = rules.domain, rules.axes
    kept: list[NDArray[np.int64]] = []
    for place, chosen in enumerate(near.tolist()):
        classes = axes.class_of[axes.starts[place] : axes.starts[place + 1]]
        inside = np.flatnonzero(classes == chosen)
        first = axes.first[place]
        # A record has at most one of a column's literals.
        kept.append(2 * first + 1 - inside if axes.bits[place] == 1 else 2 * (first + inside))
    literals = np.concatenate(kept).astype(np.int32)[:, None]
    problem = BestResponse(
        domain.bits, literals, np.ones(len(literals)), groups_of(domain), constraints_of(rules)
    )
    try:
        solution = get_solver("highs").solve(problem, time_limit=_SECONDS)
    except InfeasibleProblemError:
        return None
    return np.asarray(rules.classes(solution.record[None, :])[0])

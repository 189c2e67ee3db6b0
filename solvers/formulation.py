"""Best responses as 0-1 linear programs, built in bulk.

A term of two or more literals gets a column ``c``, its truth; one of a single literal weighs its
attribute. Positive terms have one row (Gaboardi et al. 2014: ``sum of literals >= k c``) or one a
literal (``c <= literal``), which is tighter; negative ones ``c >= 1 - sum of (1 - literal)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import Rows
from solvers.problem import BestResponse

if TYPE_CHECKING:
    from scipy.sparse import csr_array


INFEASIBLE = 2
"""``scipy.optimize.milp``'s status."""


class Formulation(Enum):
    """How the truth of a positively weighted conjunction is tied to its literals."""

    DISAGGREGATED = "disaggregated"
    AGGREGATED = "aggregated"


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Maximise ``constant + objective @ z`` over 0-1 vectors ``z`` with ``lower <= A z <= upper``.

    The first ``attributes`` columns are the record's attributes, the others the truth of ``terms``,
    int64 numbers. Sides are infinite where they are open.
    """

    attributes: int
    objective: NDArray[np.float64]
    constant: float
    constraints: Rows
    terms: NDArray[np.int64]

    @property
    def columns(self) -> int:
        """Number of variables."""
        return len(self.objective)

    @property
    def rows(self) -> int:
        """Number of constraints."""
        return len(self.constraints)

    def sparse_matrix(self) -> csr_array[np.float64, tuple[int, int]]:
        """Return A as a SciPy sparse array."""
        from scipy.sparse import csr_array

        rows = self.constraints
        entries = rows.coefficients, rows.attributes, rows.indptr
        return csr_array(entries, shape=(self.rows, self.columns))

    def assignment(self, problem: BestResponse, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the columns' values, uint8 of shape ``(columns,)``, that belong to a record."""
        satisfied = problem.satisfied(record)[self.terms]
        return np.concatenate((record, satisfied.astype(np.uint8)))


def formulate(problem: BestResponse, formulation: Formulation) -> LinearProgram:
    """Return a problem as a 0-1 linear program.

    Its terms must be canonical and not empty, as those of a kernel are
    (:func:`solvers.compact.compact`).
    """
    objective, constant, terms = without_single_literals(problem)
    columns = problem.attributes + np.arange(len(terms))
    positive = problem.weights[terms] > 0
    upward = _aggregated if formulation is Formulation.AGGREGATED else _disaggregated
    groups = problem.groups
    ones = np.ones(len(problem.groups))
    blocks = [
        upward(problem.terms[terms[positive]], columns[positive]),
        _forced(problem.terms[terms[~positive]], columns[~positive]),
        Rows(groups.indptr, groups.members, np.ones(len(groups.members)), ones, ones),
        problem.rows,
    ]
    widths = np.concatenate([np.diff(block.indptr) for block in blocks])
    rows = Rows(
        np.concatenate(([0], np.cumsum(widths))),
        np.concatenate([b.attributes for b in blocks]).astype(np.int32),
        np.concatenate([b.coefficients for b in blocks]),
        np.concatenate([b.lower for b in blocks]),
        np.concatenate([b.upper for b in blocks]),
    )
    weights = np.concatenate((objective, problem.weights[terms]))
    return LinearProgram(problem.attributes, weights, constant, rows, terms)


def without_single_literals(
    problem: BestResponse,
) -> tuple[NDArray[np.float64], float, NDArray[np.int64]]:
    """Return what terms of one literal add to each attribute, the constant, and the other terms.

    Terms must be canonical and not empty. The constant is the problem's with that of the negated
    literals; the other terms are int64 numbers of those of two or more literals.
    """
    widths = (problem.terms >= 0).sum(axis=1)
    objective = np.zeros(problem.attributes)
    single = np.flatnonzero(widths == 1)
    codes = problem.terms[single, :1].ravel()
    weights = problem.weights[single]
    negated = (codes & 1) == 1
    np.add.at(objective, codes >> 1, np.where(negated, -weights, weights))
    return objective, problem.constant + float(weights[negated].sum()), np.flatnonzero(widths > 1)


def _disaggregated(codes: NDArray[np.int32], columns: NDArray[np.int64]) -> Rows:
    """``c - x <= 0`` for a literal ``x``, ``c + x <= 1`` for ``1 - x``."""
    real = codes >= 0
    literal = codes[real]
    term = np.broadcast_to(columns[:, None], codes.shape)[real]
    negated = (literal & 1).astype(np.float64)
    return Rows(
        2 * np.arange(len(literal) + 1),
        np.column_stack((literal >> 1, term)).ravel().astype(np.int32),
        np.column_stack((2 * negated - 1, np.ones(len(literal)))).ravel(),
        np.full(len(literal), -np.inf),
        negated,
    )


def _aggregated(codes: NDArray[np.int32], columns: NDArray[np.int64]) -> Rows:
    """``k c - sum of literals <= 0``."""
    widths = (codes >= 0).sum(axis=1)
    negated = ((codes >= 0) & (codes & 1 == 1)).sum(axis=1).astype(np.float64)
    return _literals_and_column(codes, columns, widths, np.full(len(codes), -np.inf), negated)


def _forced(codes: NDArray[np.int32], columns: NDArray[np.int64]) -> Rows:
    """``c - sum of literals >= 1 - k``."""
    plain = ((codes >= 0) & (codes & 1 == 0)).sum(axis=1)
    ones = np.ones(len(codes))
    above = np.full(len(codes), np.inf)
    return _literals_and_column(codes, columns, ones, 1.0 - plain, above)


def _literals_and_column(
    codes: NDArray[np.int32],
    columns: NDArray[np.int64],
    coefficients: NDArray[Any],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> Rows:
    """Return the rows ``coefficient * c - sum of literals``, constants left to the bounds."""
    real = np.column_stack((codes >= 0, np.ones(len(codes), np.bool_)))
    indices = np.column_stack((codes >> 1, columns))
    signs = np.column_stack((np.where(codes & 1, 1.0, -1.0), coefficients))
    indptr = np.concatenate(([0], np.cumsum(real.sum(axis=1))))
    return Rows(indptr, indices[real].astype(np.int32), signs[real], lower, upper)


def maximise(
    program: LinearProgram, seconds: float, **options: float
) -> tuple[int, NDArray[np.float64] | None, float]:
    """Maximise a program, but for its constant, by SciPy's HiGHS with options of ``milp``.

    Returns SciPy's status, the columns' values if there are any, and an upper bound on the optimum.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = program.constraints
    lower, upper = rows.lower - rows.slack, rows.upper + rows.slack
    result = milp(
        c=-program.objective,
        integrality=np.ones(program.columns),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(program.sparse_matrix(), lower, upper),
        options={"time_limit": seconds, **options},
    )
    bound = result.mip_dual_bound
    known = math.inf if bound is None or not np.isfinite(bound) else -float(bound)
    return int(result.status), result.x, known


def objective_scale(weights: NDArray[np.float64]) -> float:
    """Return the factor that brings weights to sizes for which solvers' tolerances are made.

    Integers keep their value but for a common divisor; others are scaled by a power of 2 (which is
    exact) so that the largest is between 512 and 1024.
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    if largest < 2**53 and bool((weights == np.rint(weights)).all()):
        return 1.0 / float(np.gcd.reduce(np.abs(weights).astype(np.int64)))
    return 2.0 ** min(10 - math.frexp(largest)[1], 1000)

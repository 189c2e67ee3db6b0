"""A best response as weighted partial MaxSAT.

Variable ``a + 1`` is attribute ``a``; further variables come after. A conjunction of positive
weight gets a variable of its own, which implies every literal and is a soft unit clause; one of
negative weight is the soft clause of its negated literals, which needs none. Groups and linear
constraints are hard clauses: see :mod:`solvers.formats.decision_diagram`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint
from solvers.errors import ProblemTooLargeError
from solvers.formats.decision_diagram import Clause, exactly_one_clauses, linear_clauses
from solvers.formulation import without_single_literals
from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.scaling import integer_scaled
from solvers.terms import is_canonical, merge_terms


@dataclass(frozen=True, eq=False)
class WeightedClauses:
    """Hard clauses, and soft ones with positive integer weights; literals are signed numbers.

    A record whose violated soft clauses weigh ``cost`` has the objective ``best - cost / scale``,
    up to ``error / scale``, which is 0 unless the weights had to be rounded
    (:func:`solvers.scaling.integer_scaled`).
    """

    variables: int
    attributes: int
    hard: list[Clause]
    soft: list[tuple[int, Clause]]
    scale: float
    best: float
    error: float
    groups: Groups
    constraints: Sequence[LinearConstraint]

    def objective(self, cost: int) -> float:
        """Return the objective of an assignment whose violated soft clauses weigh ``cost``."""
        return self.best - cost / self.scale


def encode(problem: BestResponse) -> WeightedClauses:
    """Return a problem as weighted clauses.

    Raises
    ------
    ProblemTooLargeError
        If a linear constraint would take too many clauses.
    """
    if not is_canonical(problem.terms):
        terms, weights, shift = merge_terms(problem.attributes, problem.terms, problem.weights)
        constant = problem.constant + shift
        problem = replace(problem, terms=terms, weights=weights, constant=constant)
    wish, constant, longer = without_single_literals(problem)
    terms, weights = problem.terms[longer], problem.weights[longer]
    integers, scale, error = integer_scaled(np.concatenate((wish, weights)))
    wishes, totals = integers[: len(wish)], integers[len(wish) :]
    variables, hard, soft = clauses_of(wishes, terms, totals, problem.groups, problem.constraints)
    return WeightedClauses(
        variables=variables,
        attributes=problem.attributes,
        hard=hard,
        soft=soft,
        scale=scale,
        best=constant + float(wish[wish > 0].sum() + weights[weights > 0].sum()),
        error=error,
        groups=problem.groups,
        constraints=problem.constraints,
    )


def clauses_of(
    wishes: NDArray[np.int64],
    terms: NDArray[np.int32],
    weights: NDArray[np.int64],
    groups: Groups,
    constraints: Sequence[LinearConstraint],
    most: float = math.inf,
) -> tuple[int, list[Clause], list[tuple[int, Clause]]]:
    """Return the number of variables, the hard and the soft clauses.

    Parameters
    ----------
    wishes
        int64, shape ``(attributes,)``: what it is worth that an attribute is 1 (or, negative, 0).
    terms, weights
        Canonical conjunctions of two or more literals and their integer weights.
    groups, constraints
        As of the problem.
    most
        Of the hard clauses no more than about so many are made: what is left out is not looked for.
    """
    count = len(wishes)

    def fresh() -> int:
        nonlocal count
        count += 1
        return count

    soft: list[tuple[int, Clause]] = [
        (abs(wish), [number if wish > 0 else -number])
        for number, wish in enumerate(wishes.tolist(), 1)
        if wish
    ]
    hard: list[Clause] = []
    widths = (terms >= 0).sum(axis=1).tolist()
    literals = np.where(terms & 1, -(terms >> 1) - 1, (terms >> 1) + 1).tolist()
    for row, width, weight in zip(literals, widths, weights.tolist(), strict=True):
        if weight > 0:
            variable = fresh()
            hard += [[-variable, literal] for literal in row[:width]]
            soft.append((weight, [variable]))
        elif weight < 0:
            soft.append((-weight, [-literal for literal in row[:width]]))
    for group in range(len(groups)):
        hard += exactly_one_clauses((groups[group] + 1).tolist(), fresh)
    for number, constraint in enumerate(constraints):
        if len(hard) > most:
            break
        try:
            hard += linear_clauses(constraint, (constraint.attributes + 1).tolist(), fresh)
        except ProblemTooLargeError as error:
            raise ProblemTooLargeError(f"constraint {number}: {error}") from None
    return count, hard, soft

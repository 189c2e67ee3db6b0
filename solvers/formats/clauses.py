"""A best response as weighted partial MaxSAT.

Variable ``a + 1`` is attribute ``a``. A conjunction of positive weight gets a variable that implies
every literal and is a soft clause; one of negative weight is the soft clause of its negated
literals. Groups and constraints are hard clauses, by reduced ordered decision diagrams, two clauses
a node (Abio, Nieuwenhuis, Oliveras, Rodriguez-Carbonell, Mayer-Eichberger, JAIR 2012, section 6).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import numpy as np

from solvers.constraints import LinearConstraint
from solvers.errors import ProblemTooLargeError
from solvers.formulation import without_single_literals
from solvers.problem import BestResponse
from solvers.scaling import integer_row, integer_scaled

MOST_STATES = 300_000
"""Largest number of partial sums of one constraint that are looked at."""

_PAIRWISE = 100
"""Up to this many literals, at most one is written as pairs, which readers recognise."""

_TRUE, _FALSE = 0, -1  # the diagram's leaves; other nodes are variables, which are positive

Clause = list[int]


@dataclass(frozen=True, eq=False)
class WeightedClauses:
    """Hard clauses, and soft ones with positive integer weights; literals are signed numbers.

    A record whose violated soft clauses weigh ``cost`` has the objective ``best - cost / scale``,
    up to ``error / scale``, which is 0 unless the weights had to be rounded
    (:func:`solvers.scaling.integer_scaled`).
    """

    variables: int
    hard: list[Clause]
    soft: list[tuple[int, Clause]]
    scale: float
    best: float
    error: float


def encode(problem: BestResponse) -> WeightedClauses:
    """Return a problem as weighted clauses.

    Raises
    ------
    ProblemTooLargeError
        If a linear constraint would take too many clauses.
    """
    problem = problem.canonical()
    wish, constant, longer = without_single_literals(problem)
    terms, weights = problem.terms[longer], problem.weights[longer]
    integers, scale, error = integer_scaled(np.concatenate((wish, weights)), bits=53)
    fresh = count(problem.attributes + 1).__next__
    soft: list[tuple[int, Clause]] = [
        (abs(weight), [number if weight > 0 else -number])
        for number, weight in enumerate(integers[: len(wish)].tolist(), 1)
        if weight
    ]
    hard: list[Clause] = []
    literals = np.where(terms & 1, -(terms >> 1) - 1, (terms >> 1) + 1)
    totals = integers[len(wish) :].tolist()
    for row, codes, weight in zip(literals, terms, totals, strict=True):
        asked = row[codes >= 0].tolist()
        if weight > 0:
            variable = fresh()
            hard += [[-variable, literal] for literal in asked]
            soft.append((weight, [variable]))
        elif weight < 0:
            soft.append((-weight, [-literal for literal in asked]))
    for group in range(len(problem.groups)):
        hard += exactly_one_clauses((problem.groups[group] + 1).tolist(), fresh)
    for number, constraint in enumerate(problem.rows):
        try:
            hard += linear_clauses(constraint, (constraint.attributes + 1).tolist(), fresh)
        except ProblemTooLargeError as error_:
            raise ProblemTooLargeError(f"constraint {number}: {error_}") from None
    best = constant + float(wish[wish > 0].sum() + weights[weights > 0].sum())
    return WeightedClauses(fresh() - 1, hard, soft, scale, best, error)


def linear_clauses(
    constraint: LinearConstraint, variables: Sequence[int], fresh: Callable[[], int]
) -> list[Clause]:
    """Return clauses that say the same as a linear constraint, up to its own slack.

    Its attributes have the (positive) numbers ``variables``; ``fresh`` gives numbers of new ones.

    Raises
    ------
    ProblemTooLargeError
        If the constraint has too many different partial sums.
    """
    coefficients, lower, upper = integer_row(constraint)
    return [
        *_at_most(coefficients.tolist(), variables, upper, fresh),
        *_at_most((-coefficients).tolist(), variables, -lower, fresh),
    ]


def exactly_one_clauses(variables: Sequence[int], fresh: Callable[[], int]) -> list[Clause]:
    """Return clauses that make exactly one of some variables true."""
    return [list(variables), *_at_most([1] * len(variables), variables, 1, fresh)]


def _at_most(
    coefficients: Sequence[int], variables: Sequence[int], bound: int, fresh: Callable[[], int]
) -> list[Clause]:
    """Return clauses for ``sum coefficients * variables <= bound``."""
    bound -= sum(c for c in coefficients if c < 0)  # a x = a + |a| (1 - x)
    pairs = zip(coefficients, variables, strict=True)
    items = sorted(((abs(c), v if c > 0 else -v) for c, v in pairs if c), reverse=True)
    if bound < 0:
        impossible = fresh()
        return [[impossible], [-impossible]]
    clauses = [[-literal] for coefficient, literal in items if coefficient > bound]
    items = items[len(clauses) :]
    total = sum(coefficient for coefficient, _ in items)
    if total <= bound:
        return clauses
    if total - items[-1][0] <= bound:  # all but any one of them
        return [*clauses, [-literal for _, literal in items]]
    if len(items) <= _PAIRWISE and items[-1][0] + items[-2][0] > bound:  # at most one
        return clauses + [[-one, -other] for (_, one), (_, other) in combinations(items, 2)]
    return clauses + _diagram(items, bound, total, fresh)


def _diagram(
    items: list[tuple[int, int]], bound: int, total: int, fresh: Callable[[], int]
) -> list[Clause]:
    """Return the clauses of a diagram, one level for each ``(coefficient, literal)``."""
    levels = [{bound}]
    rest, states = total, 1
    for coefficient, _ in items:
        rest -= coefficient
        levels.append(
            {s for slack in levels[-1] for s in (slack, slack - coefficient) if 0 <= s < rest}
        )
        states += len(levels[-1])
        if states > MOST_STATES:
            raise ProblemTooLargeError(
                f"a linear constraint of {len(items)} attributes has more than {MOST_STATES} "
                "partial sums, too many to be written as clauses; "
                "take smaller integer coefficients, or LP or MPS"
            )
    clauses: list[Clause] = []
    below: dict[int, int] = {}
    rest = 0  # the sum of the coefficients below the current level
    for (coefficient, literal), level in zip(reversed(items), reversed(levels[:-1]), strict=True):
        nodes: dict[int, int] = {}
        known: dict[tuple[int, int], int] = {}
        for slack in sorted(level):
            without = _TRUE if slack >= rest else below[slack]
            left = slack - coefficient
            with_it = _FALSE if left < 0 else _TRUE if left >= rest else below[left]
            if with_it == without:
                nodes[slack] = without
                continue
            if (with_it, without) not in known:
                node = known[with_it, without] = fresh()
                if without != _TRUE:
                    clauses.append([-node, without])
                clauses.append([-node, -literal] + ([with_it] if with_it != _FALSE else []))
            nodes[slack] = known[with_it, without]
        below = nodes
        rest += coefficient
    return [*clauses, [below[bound]]]

"""Linear constraints over 0-1 variables as clauses, by reduced ordered decision diagrams.

The diagram of ``sum a_i l_i <= b`` with positive coefficients is monotone, so two clauses a node
are enough (Abio, Nieuwenhuis, Oliveras, Rodriguez-Carbonell and Mayer-Eichberger, "A new look at
BDDs for pseudo-Boolean constraints", JAIR 2012, section 6). With coefficients of 1 the diagram is
the sequential counter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from solvers.constraints import LinearConstraint
from solvers.errors import ProblemTooLargeError
from solvers.scaling import integer_scaled

MOST_STATES = 300_000
"""Largest number of partial sums of one constraint that are looked at."""

_PAIRWISE = 5
"""Up to this many literals, at most one is written as pairs, without further variables."""

_TRUE, _FALSE = 0, -1
"""The diagram's leaves; other nodes are variables, which are positive."""

Clause = list[int]


def linear_clauses(
    constraint: LinearConstraint, variables: Sequence[int], fresh: Callable[[], int]
) -> list[Clause]:
    """Return clauses that say the same as a linear constraint, up to its own slack.

    Parameters
    ----------
    constraint
        The constraint. Its coefficients are taken exactly, as decimals or as binary fractions.
    variables
        For each of its attributes the (positive) number of the variable.
    fresh
        Returns the number of a new variable at each call.

    Raises
    ------
    ProblemTooLargeError
        If the constraint has too many different partial sums.
    """
    coefficients, lower, upper = _integers(constraint)
    return [
        *_at_most(coefficients, variables, upper, fresh),
        *_at_most([-c for c in coefficients], variables, None if lower is None else -lower, fresh),
    ]


def exactly_one_clauses(variables: Sequence[int], fresh: Callable[[], int]) -> list[Clause]:
    """Return clauses that make exactly one of some variables true."""
    return [list(variables), *_at_most([1] * len(variables), variables, 1, fresh)]


def _integers(constraint: LinearConstraint) -> tuple[list[int], int | None, int | None]:
    """Return a constraint in integers, its slack granted; None for an open side."""
    scaled, factor, error = integer_scaled(constraint.coefficients)
    if error == 0.0:
        coefficients, scale = scaled.tolist(), Fraction(factor)
    else:
        ratios = [Fraction(c) for c in constraint.coefficients.tolist()]
        scale = Fraction(max(ratio.denominator for ratio in ratios))  # powers of 2
        coefficients = [int(ratio * scale) for ratio in ratios]
    slack = Fraction(constraint.slack)
    lower = upper = None
    if constraint.lower != -math.inf:
        lower = math.ceil((Fraction(constraint.lower) - slack) * scale)
    if constraint.upper != math.inf:
        upper = math.floor((Fraction(constraint.upper) + slack) * scale)
    return coefficients, lower, upper


def _at_most(
    coefficients: Sequence[int],
    variables: Sequence[int],
    bound: int | None,
    fresh: Callable[[], int],
) -> list[Clause]:
    """Return clauses for ``sum coefficients * variables <= bound``."""
    if bound is None:
        return []
    items = []
    for coefficient, variable in zip(coefficients, variables, strict=True):
        if coefficient < 0:  # a x = a + |a| (1 - x)
            bound -= coefficient
        if coefficient != 0:
            items.append((abs(coefficient), variable if coefficient > 0 else -variable))
    if bound < 0:
        impossible = fresh()
        return [[impossible], [-impossible]]
    clauses = [[-literal] for coefficient, literal in items if coefficient > bound]
    items = sorted(item for item in items if item[0] <= bound)[::-1]
    total = sum(coefficient for coefficient, _ in items)
    if total <= bound:
        return clauses
    if total - items[-1][0] <= bound:  # all but any one of them
        return [*clauses, [-literal for _, literal in items]]
    if len(items) <= _PAIRWISE and items[-1][0] + items[-2][0] > bound:  # at most one
        pairs = [(a, b) for n, (_, a) in enumerate(items) for _, b in items[n + 1 :]]
        return clauses + [[-a, -b] for a, b in pairs]
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

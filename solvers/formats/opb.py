"""OPB, the format of the Pseudo-Boolean Competitions, written.

Variable ``x1`` is attribute 0, and so on; a conjunction of two or more literals has a variable of
its own after these. The file asks for the minimum of the negated weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.constraints import LinearConstraint
from solvers.formulation import without_single_literals
from solvers.problem import BestResponse
from solvers.scaling import integer_row, integer_scaled


@dataclass(frozen=True)
class PseudoBooleanProgram:
    """Maximise ``constant + (sum of the weights of variables that are 1) / scale`` under rows.

    Parameters
    ----------
    variables
        Number of 0-1 variables, ``x1`` and so on.
    wishes
        Weight, not 0, and number of each variable that has one.
    rows
        Constraints as lines of the format, without their end.
    constant, scale, error
        The objective of a record is ``constant`` and the weights' sum through ``scale``, up to
        ``error / scale``.
    """

    variables: int
    wishes: list[tuple[int, int]]
    rows: list[str]
    constant: float
    scale: float
    error: float

    def text(self) -> str:
        """Return the file."""
        # The older rules know no empty objective and no number without a sign.
        objective = " ".join(f"{-weight:+d} x{number}" for weight, number in self.wishes)
        lines = [
            f"* #variable= {self.variables} #constraint= {len(self.rows)}",
            f"min: {objective or '+0 x1'} ;",
            *(f"{row} ;" for row in self.rows),
        ]
        return "\n".join([*lines, ""])


def pseudo_boolean(problem: BestResponse, bits: int = 52) -> PseudoBooleanProgram:
    """Return a problem as a pseudo-Boolean program.

    Parameters
    ----------
    problem
        Its terms must be canonical and not empty, as those of a kernel are.
    bits
        The absolute weights, and those of any row, add up to less than ``2 ** bits``.
    """
    single, constant, terms = without_single_literals(problem)
    weights, scale, error = integer_scaled(np.concatenate((single, problem.weights[terms])), bits)
    wishes = [(weight, number) for number, weight in enumerate(weights.tolist(), 1) if weight]
    first = problem.attributes + 1
    rows = [
        row
        for number, (term, positive) in enumerate(
            zip(problem.terms[terms].tolist(), (problem.weights[terms] > 0).tolist(), strict=True),
            first,
        )
        for row in _tied(term, number, positive)
    ]
    rows += [
        " ".join(f"+1 x{member + 1}" for member in problem.groups[group].tolist()) + " = 1"
        for group in range(len(problem.groups))
    ]
    rows += [row for constraint in problem.rows for row in _linear(constraint, bits)]
    return PseudoBooleanProgram(first - 1 + len(terms), wishes, rows, constant, scale, error)


def _tied(term: list[int], number: int, positive: bool) -> Iterator[str]:
    """Yield what ties a conjunction's variable to its literals, from the side that matters."""
    # Of a literal x or 1 - x: its sign in a sum, and what the sum lacks.
    literals = [("-" if code & 1 else "+", code & 1, (code >> 1) + 1) for code in term if code >= 0]
    if positive:
        for sign, negated, attribute in literals:
            yield f"{sign}1 x{attribute} -1 x{number} >= {-negated}"
    else:
        opposite = " ".join(
            f"{'-' if sign == '+' else '+'}1 x{attribute}" for sign, _, attribute in literals
        )
        plain = sum(1 - negated for _, negated, _ in literals)
        yield f"{opposite} +1 x{number} >= {1 - plain}"


def _linear(constraint: LinearConstraint, bits: int) -> Iterator[str]:
    """Yield a linear constraint as rows: none, one or two."""
    coefficients, lower, upper = integer_row(constraint, bits)
    total = int(np.abs(coefficients).sum())
    numbers = (constraint.attributes + 1).tolist()
    pairs = [(c, x) for c, x in zip(coefficients.tolist(), numbers, strict=True) if c] or [(0, 1)]
    if lower > -total or lower > upper:
        yield " ".join(f"{c:+d} x{number}" for c, number in pairs) + f" >= {lower}"
    if upper < total or lower > upper:
        yield " ".join(f"{-c:+d} x{number}" for c, number in pairs) + f" >= {-upper}"

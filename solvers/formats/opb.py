"""OPB, the format of the Pseudo-Boolean Competitions, written.

Variable ``x1`` is attribute 0, and so on; a conjunction of two or more literals has a variable of
its own after these. The file asks for the minimum of the negated weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.constraints import LinearConstraint
from solvers.formulation import Formulation, formulate
from solvers.problem import BestResponse
from solvers.scaling import integer_row, integer_scaled


@dataclass(frozen=True)
class PseudoBooleanProgram:
    """Maximise ``constant + (sum of the weights of variables that are 1) / scale`` under rows.

    The objective is exact up to ``error / scale``.
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
    """Return a problem of canonical terms, as those of a kernel, as a pseudo-Boolean program.

    The absolute weights, and those of any row, add up to less than ``2 ** bits``.
    """
    program = formulate(problem, Formulation.DISAGGREGATED)
    weights, scale, error = integer_scaled(program.objective, bits)
    wishes = [(weight, number) for number, weight in enumerate(weights.tolist(), 1) if weight]
    rows = [line for row in program.constraints for line in _lines(row, bits)]
    return PseudoBooleanProgram(program.columns, wishes, rows, program.constant, scale, error)


def _lines(row: LinearConstraint, bits: int) -> Iterator[str]:
    """Yield a row as lines of the format: none, one or two."""
    coefficients, lower, upper = integer_row(row, bits)
    total = int(np.abs(coefficients).sum())
    numbers = (row.attributes + 1).tolist()
    pairs = [(c, x) for c, x in zip(coefficients.tolist(), numbers, strict=True) if c] or [(0, 1)]
    if lower == upper:
        yield " ".join(f"{c:+d} x{number}" for c, number in pairs) + f" = {lower}"
        return
    if lower > -total or lower > upper:
        yield " ".join(f"{c:+d} x{number}" for c, number in pairs) + f" >= {lower}"
    if upper < total or lower > upper:
        yield " ".join(f"{-c:+d} x{number}" for c, number in pairs) + f" >= {-upper}"

r"""CPLEX's LP format, written.

Attributes are the binaries ``x0``, ``x1``, ...; a term of two or more literals is a binary ``c0``,
``c1``, ... with one row a literal (see :mod:`solvers.formulation`); the first line is the comment
``\ dualquery attributes N``. :mod:`solvers.formats.scip_reader` reads the format.
"""

from __future__ import annotations

import math
from itertools import pairwise

from solvers.formats.program import MARK, NamedProgram

_PIECES_A_LINE = 8


def lp_text(named: NamedProgram, scale: float = 1.0) -> str:
    """Return a program in the LP format, its objective times a scale."""
    program, columns, rows = named
    # Every column, also of weight 0: readers take a variable only from objective or rows.
    objective = [
        f"{weight:+.17g} {name}"
        for weight, name in zip((scale * program.objective).tolist(), columns, strict=True)
    ]
    if program.constant or not objective:
        objective.append(f"{scale * program.constant:+.17g}")
    lines = [f"\\ {MARK} {program.attributes}", "Maximize", " obj:", *_wrapped(objective)]
    lines.append("Subject To")
    pieces = [
        f"{coefficient:+.17g} {columns[column]}"
        for coefficient, column in zip(
            program.coefficients.tolist(), program.indices.tolist(), strict=True
        )
    ]
    ends = pairwise(program.indptr.tolist())
    bounds = zip(rows, ends, program.lower.tolist(), program.upper.tolist(), strict=True)
    for name, (first, last), lower, upper in bounds:
        if first == last:
            continue
        left = _wrapped(pieces[first:last])
        if lower == upper:
            lines += [f" {name}:", *left, f" = {upper:.17g}"]
            continue
        if upper != math.inf:
            lines += [f" {name}:", *left, f" <= {upper:.17g}"]
        if lower != -math.inf:
            suffix = "" if upper == math.inf else "_lower"
            lines += [f" {name}{suffix}:", *left, f" >= {lower:.17g}"]
    return "\n".join([*lines, "Binaries", *_wrapped(columns), "End", ""])


def _wrapped(pieces: list[str]) -> list[str]:
    step = _PIECES_A_LINE
    return [" " + " ".join(pieces[first : first + step]) for first in range(0, len(pieces), step)]

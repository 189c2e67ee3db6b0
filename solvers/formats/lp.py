r"""CPLEX's LP format, written; and MPS, which SCIP makes of it.

Attributes are ``x0``, ``x1``, ...; a term of two or more literals is a binary ``c0``, ``c1``, ...
with a row a literal. The first line is the comment ``\ dualquery attributes N`` (MPS: ``* ...``).
"""

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from solvers.formats.program import MARK, NamedProgram

_PIECES_A_LINE = 8


def lp_text(named: NamedProgram) -> str:
    """Return a program in the LP format."""
    program, columns, rows = named
    given = program.constraints
    # Every column, also of weight 0: readers take a variable only from objective or rows.
    objective = [
        f"{weight:+.17g} {name}"
        for weight, name in zip(program.objective.tolist(), columns, strict=True)
    ]
    if program.constant or not objective:
        objective.append(f"{program.constant:+.17g}")
    lines = [f"\\ {MARK} {program.attributes}", "Maximize", " obj:", *_wrapped(objective)]
    lines.append("Subject To")
    pieces = [
        f"{coefficient:+.17g} {columns[column]}"
        for coefficient, column in zip(
            given.coefficients.tolist(), given.attributes.tolist(), strict=True
        )
    ]
    ends = pairwise(given.indptr.tolist())
    bounds = zip(rows, ends, given.lower.tolist(), given.upper.tolist(), strict=True)
    for name, (first, last), lower, upper in bounds:
        if not columns:
            continue
        left = _wrapped(pieces[first:last] or [f"+0 {columns[0]}"])
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


@contextmanager
def lp_file(named: NamedProgram) -> Iterator[str]:
    """Write a program for a solver to read: faster than one by one at 70,000 terms."""
    with tempfile.TemporaryDirectory(prefix="dualquery-") as folder:
        path = Path(folder) / "program.lp"
        path.write_text(lp_text(named), encoding="ascii")
        yield str(path)


def scip_model(named: NamedProgram) -> Any:
    """Return a program as a model of SCIP, to which nothing above 1e-20 is 0."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("numerics/epsilon", 1e-20)
    with lp_file(named) as path:
        model.readProblem(path)
    return model


def mps_text(named: NamedProgram) -> str:
    """Return a program in MPS, its numbers with 15 digits."""
    with tempfile.TemporaryDirectory(prefix="dualquery-") as folder:
        path = Path(folder) / "program.mps"
        scip_model(named).writeProblem(str(path), verbose=False)
        _, _, text = path.read_text("ascii").partition("\nOBJSENSE")
    return f"* {MARK} {named.program.attributes}\nNAME dualquery\nOBJSENSE{text}"

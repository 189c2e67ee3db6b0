"""MPS in its free form, written.

Columns and rows are those of :mod:`solvers.formats.lp`, after the comment
``* dualquery attributes N``; ``OBJSENSE MAX``; the objective's constant is minus the right-hand
side of its row. :mod:`solvers.formats.scip_reader` reads the format.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from solvers.formats.program import MARK, NamedProgram

_OBJECTIVE = "obj"


def mps_text(named: NamedProgram) -> str:
    """Return a program in free MPS."""
    program, columns, names = named
    rows: list[str] = []
    sides: list[str] = []
    copies: list[list[str]] = []
    bounds = zip(
        names,
        pairwise(program.indptr.tolist()),
        program.lower.tolist(),
        program.upper.tolist(),
        strict=True,
    )
    for name, (first, last), lower, upper in bounds:
        written: list[tuple[str, str, float]] = []
        if first == last:
            pass
        elif lower == upper:
            written.append(("E", name, upper))
        else:
            if upper != math.inf:
                written.append(("L", name, upper))
            if lower != -math.inf:
                suffix = "" if upper == math.inf else "_lower"
                written.append(("G", name + suffix, lower))
        rows += [f" {kind} {label}" for kind, label, _ in written]
        sides += [f" RHS {label} {value:.17g}" for _, label, value in written if value]
        copies.append([label for _, label, _ in written])
    if program.constant:
        sides.append(f" RHS {_OBJECTIVE} {-program.constant:.17g}")

    lines = [f"* {MARK} {program.attributes}", "NAME dualquery", "OBJSENSE", "    MAX"]
    lines += ["ROWS", f" N {_OBJECTIVE}", *rows, "COLUMNS", " MARKER MARKER 'MARKER' 'INTORG'"]
    row_of = np.repeat(np.arange(program.rows), np.diff(program.indptr))
    order = np.argsort(program.indices, kind="stable")
    starts = np.concatenate(
        ([0], np.cumsum(np.bincount(program.indices, minlength=program.columns)))
    )
    row_list, values = row_of[order].tolist(), program.coefficients[order].tolist()
    for column, (first, last) in enumerate(pairwise(starts.tolist())):
        name = columns[column]
        lines.append(f" {name} {_OBJECTIVE} {program.objective[column]:.17g}")
        for row, value in zip(row_list[first:last], values[first:last], strict=True):
            lines += [f" {name} {label} {value:.17g}" for label in copies[row]]
    lines += [" MARKER MARKER 'MARKER' 'INTEND'", "RHS", *sides, "BOUNDS"]
    lines += [f" BV BND {name}" for name in columns]
    return "\n".join([*lines, "ENDATA", ""])

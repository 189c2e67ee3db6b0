"""Bounds and types of the variables of a file; all have to come down to 0-1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvers.formats.binary_program import BinaryProgram, Row


@dataclass
class _Range:
    line: int
    integer: bool = False
    lower: float = 0.0
    upper: float = math.inf


class Bounds:
    """Collects what a file says of each variable."""

    def __init__(self, program: BinaryProgram) -> None:
        self._program = program
        self._ranges: dict[str, _Range] = {}

    def declare(self, name: str, line: int, *, binary: bool) -> None:
        """Take a variable as integer, within 0 and 1 if it is binary."""
        self._program.column(name)
        found = self._range(name, line)
        found.integer = True
        if binary:
            found.lower, found.upper = max(found.lower, 0.0), min(found.upper, 1.0)

    def restrict(self, name: str, relation: str, value: float, line: int) -> None:
        """Take ``name relation value`` with the relation ``<``, ``>`` or ``=``."""
        if name not in self._program.numbers:
            self._program.fail(line, f"a bound of {name!r}, which is in no row and no objective")
        if math.isnan(value):
            self._program.fail(line, f"the bound of {name!r} is not a number")
        found = self._range(name, line)
        # A declaration as binary keeps its own bounds: they can only be tightened.
        binary = found.integer and found.upper <= 1.0
        if relation in "<=":
            found.upper = min(found.upper, value) if binary else value
        if relation in ">=":
            found.lower = max(found.lower, value) if binary else value

    def free(self, name: str, line: int) -> None:
        """Take a variable as unbounded."""
        self._program.column(name)
        found = self._range(name, line)
        found.lower, found.upper = -math.inf, math.inf

    def finish(self) -> None:
        """Check that every variable is 0-1, and write fixed ones as rows."""
        program = self._program
        for column, name in enumerate(program.names):
            found = self._ranges.get(name)
            if found is None or not found.integer:
                line = found.line if found is not None else self._first_line(column)
                program.fail(
                    line, f"variable {name!r} is not declared binary; only 0-1 programs are read"
                )
            if found.lower <= -1.0 or found.upper >= 2.0:
                program.fail(
                    found.line,
                    f"integer variable {name!r} may be {found.lower} to {found.upper}; "
                    "only 0-1 programs are read, so bound it by 0 and 1",
                )
            if found.lower > 0.0:
                program.rows.append(Row(name, found.line, {column: 1.0}, lower=found.lower))
            if found.upper < 1.0:
                program.rows.append(Row(name, found.line, {column: 1.0}, upper=found.upper))

    def _range(self, name: str, line: int) -> _Range:
        return self._ranges.setdefault(name, _Range(line))

    def _first_line(self, column: int) -> int:
        return next((row.line for row in self._program.rows if column in row.entries), 1)

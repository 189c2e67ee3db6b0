"""MPS in its free form, with spaces between fields and none in names.

Written: columns and rows as in :mod:`solvers.formats.lp`, after the comment
``* dualquery attributes N``; ``OBJSENSE MAX``; the objective's constant is minus the right-hand
side of its row. Read: linear programs whose variables are all 0-1; an integer variable between
markers without bounds is 0-1.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from solvers.formats.binary_program import MARK, BinaryProgram, Row, formulated
from solvers.formats.bounds import Bounds
from solvers.formats.files import Instance
from solvers.problem import BestResponse

_OBJECTIVE = "obj"
_REFUSED = ("QUADOBJ", "QMATRIX", "QSECTION", "QCMATRIX", "SOS", "INDICATORS", "CSECTION",
            "LAZYCONS", "USERCUTS", "GENCONS", "PWLOBJ")  # fmt: skip


def mps_text(problem: BestResponse) -> str:
    """Return a problem in free MPS.

    Raises
    ------
    SolverError
        If a constraint that mentions no attribute cannot hold.
    """
    program, columns, names = formulated(problem)
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

    lines = [f"* {MARK} {problem.attributes}", "NAME dualquery", "OBJSENSE", "    MAX"]
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


def parse_mps(text: str, name: str) -> Instance:
    """Read a 0-1 program from MPS.

    Parameters
    ----------
    text
        The file's content.
    name
        The file's name, for messages.

    Raises
    ------
    MalformedFileError
        If the text is not MPS, or not a linear program in 0-1 variables.
    """
    return _Parser(BinaryProgram(name)).parse(text)


class _Parser:
    """Reads sections line by line."""

    def __init__(self, program: BinaryProgram) -> None:
        self._program = program
        self._bounds = Bounds(program)
        self._section = ""
        self._maximise = False
        self._objective: str | None = None
        self._free_rows: set[str] = set()
        self._rows: dict[str, Row] = {}
        self._kinds: dict[str, str] = {}
        self._sides: set[str] = set()
        self._between_markers = False
        self._bounded: set[str] = set()
        self._columns: dict[str, int] = {}
        """Integer columns and their first lines."""

    def parse(self, text: str) -> Instance:
        program = self._program
        number = 0
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("*"):
                program.read_mark(line[1:].strip(), number)
                continue
            words = line.split()
            if not words:
                continue
            if line[0] not in " \t":
                self._begin(words, number)
                if self._section == "ENDATA":
                    break
            else:
                self._take(words, number)
        if self._section != "ENDATA":
            program.fail(max(number, 1), "the file ends without ENDATA: is it cut off?")
        if self._objective is None:
            program.fail(number, "no row of type N, the objective")
        for column, line_number in self._columns.items():
            if column not in self._bounded:
                self._bounds.restrict(column, "<", 1.0, line_number)
        self._bounds.finish()
        program.rows = [*self._rows.values(), *program.rows]
        if not self._maximise:
            program.negate()
        return program.instance()

    def _begin(self, words: list[str], line: int) -> None:
        section = words[0].upper()
        if section in _REFUSED:
            self._program.fail(line, f"a section {section}; only linear 0-1 programs are read")
        known = ("NAME", "OBJSENSE", "OBJSENSE:", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS")
        if section not in (*known, "ENDATA"):
            self._program.fail(line, f"found the section {words[0]!r}; expected {', '.join(known)}")
        self._section = section.rstrip(":")
        if self._section == "OBJSENSE" and len(words) > 1:
            self._sense(words[1], line)

    def _take(self, words: list[str], line: int) -> None:
        match self._section:
            case "OBJSENSE":
                self._sense(words[0], line)
            case "ROWS":
                self._row(words, line)
            case "COLUMNS":
                self._column(words, line)
            case "RHS":
                for name, value in self._pairs(words, line):
                    self._side(name, value, line)
            case "RANGES":
                for name, value in self._pairs(words, line):
                    self._range(name, value, line)
            case "BOUNDS":
                self._bound(words, line)
            case _:
                self._program.fail(line, f"found {' '.join(words)[:40]!r} outside of a section")

    def _sense(self, word: str, line: int) -> None:
        senses = {"MAX": True, "MAXIMIZE": True, "MIN": False, "MINIMIZE": False}
        if word.upper() not in senses:
            self._program.fail(line, f"the sense is {word!r}; expected MAX or MIN")
        self._maximise = senses[word.upper()]

    def _row(self, words: list[str], line: int) -> None:
        if len(words) != 2 or words[0].upper() not in ("N", "L", "G", "E"):
            self._program.fail(line, f"found {' '.join(words)[:40]!r}; expected N, L, G or E, name")
        kind, name = words[0].upper(), words[1]
        if name in self._rows or name in self._free_rows or name == self._objective:
            self._program.fail(line, f"row {name!r} is declared twice")
        if kind == "N":
            if self._objective is None:
                self._objective = name
            else:
                self._free_rows.add(name)
            return
        self._kinds[name] = kind
        self._rows[name] = Row(
            name, line, lower=-math.inf if kind == "L" else 0.0,
            upper=math.inf if kind == "G" else 0.0,
        )  # fmt: skip

    def _column(self, words: list[str], line: int) -> None:
        if len(words) >= 3 and words[1].strip("'\"") == "MARKER":
            self._between_markers = words[2].strip("'\"") == "INTORG"
            return
        if len(words) not in (3, 5):
            self._program.fail(line, "expected a column and one or two pairs of row and number")
        name = words[0]
        column = self._program.column(name)
        if self._between_markers:
            self._bounds.declare(name, line, binary=False)
            self._columns.setdefault(name, line)
        for row, text in zip(words[1::2], words[2::2], strict=True):
            value = self._number(text, line)
            if row == self._objective:
                entries = self._program.objective
            elif row in self._rows:
                entries = self._rows[row].entries
            elif row in self._free_rows:
                continue
            else:
                self._program.fail(line, f"row {row!r} is not declared in ROWS")
            if column in entries:
                self._program.fail(line, f"column {name!r} is given twice in row {row!r}")
            entries[column] = value

    def _pairs(self, words: list[str], line: int) -> list[tuple[str, float]]:
        """Return the pairs of a line whose first field, the set's name, may be missing."""
        if len(words) not in (2, 3, 4, 5):
            self._program.fail(line, "expected one or two pairs of row and number")
        pairs = words[len(words) % 2 :]
        return [
            (row, self._number(text, line))
            for row, text in zip(pairs[::2], pairs[1::2], strict=True)
        ]

    def _side(self, name: str, value: float, line: int) -> None:
        if name in self._sides:
            self._program.fail(line, f"row {name!r} has two right-hand sides")
        self._sides.add(name)
        if name == self._objective:
            self._program.constant = -value
        elif name in self._rows:
            row = self._rows[name]
            row.lower = value if row.lower != -math.inf else row.lower
            row.upper = value if row.upper != math.inf else row.upper
        elif name not in self._free_rows:
            self._program.fail(line, f"row {name!r} is not declared in ROWS")

    def _range(self, name: str, value: float, line: int) -> None:
        if name not in self._rows:
            self._program.fail(line, f"row {name!r} is not declared in ROWS")
        row = self._rows[name]
        kind = self._kinds[name]
        if kind == "L" or (kind == "E" and value < 0):
            row.lower = row.upper - abs(value)
        else:
            row.upper = row.lower + abs(value)

    def _bound(self, words: list[str], line: int) -> None:
        kind = words[0].upper()
        with_value = kind in ("UP", "LO", "FX", "UI", "LI")
        if not with_value and kind not in ("BV", "FR", "MI", "PL"):
            self._program.fail(line, f"the type of bound is {words[0]!r}; expected BV, UP, LO, FX")
        fields = words[1:]
        expected = 3 if with_value else 2
        if len(fields) == expected - 1:  # without the name of the set
            fields = ["", *fields]
        if len(fields) < expected:
            self._program.fail(line, "expected a type, a set, a column and a number")
        name = fields[1]
        if name not in self._program.numbers:
            self._program.fail(line, f"a bound of {name!r}, which is not in COLUMNS")
        if kind in ("BV", "UP", "UI", "FX", "PL", "FR"):
            self._bounded.add(name)
        value = self._number(fields[2], line) if with_value else 0.0
        if kind == "BV":
            self._bounds.declare(name, line, binary=True)
        elif kind in ("UP", "UI"):
            self._bounds.restrict(name, "<", value, line)
        elif kind in ("LO", "LI"):
            self._bounds.restrict(name, ">", value, line)
        elif kind == "FX":
            self._bounds.restrict(name, "=", value, line)
        elif kind == "FR":
            self._bounds.free(name, line)
        elif kind == "MI":
            self._bounds.restrict(name, ">", -math.inf, line)

    def _number(self, text: str, line: int) -> float:
        try:
            value = float(text)
        except ValueError:
            self._program.fail(line, f"found {text!r} where a number is expected")
        if not math.isfinite(value):
            self._program.fail(line, f"found the number {text!r}; expected a finite one")
        return value

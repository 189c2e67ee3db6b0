r"""CPLEX's LP format.

Written: attributes are the binaries ``x0``, ``x1``, ...; a term of two or more literals is a binary
``c0``, ``c1``, ... with one row a literal (see :mod:`solvers.formulation`); the first line is the
comment ``\ dualquery attributes N``.

Read: linear programs whose variables are all 0-1. The sections ``Bounds``, ``Binaries`` and
``Generals`` are understood; quadratic terms, indicators, SOS, semi-continuous variables, lazy
constraints and user cuts are refused.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import NamedTuple

from solvers.formats.binary_program import MARK, BinaryProgram, Row, formulated
from solvers.formats.bounds import Bounds
from solvers.formats.files import Instance
from solvers.problem import BestResponse

_PIECES_A_LINE = 8

_SECTIONS = (
    ("maximise", r"maximi[sz]e|maximum|max"),
    ("minimise", r"minimi[sz]e|minimum|min"),
    ("rows", r"subject\s+to|such\s+that|s\.t\.|st\.?"),
    ("bounds", r"bounds?"),
    ("binaries", r"binar(?:y|ies)|bin"),
    ("generals", r"generals?|gen|integers?|int"),
    ("end", r"end"),
    ("refused", r"semi-continuous|semis?|sos[12]?|lazy\s+constraints|user\s+cuts|pwlobj"),
)
_SECTION = re.compile(
    "|".join(rf"(?P<{name}>(?:{pattern}))(?=$|\s|:(?!=))" for name, pattern in _SECTIONS),
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<relation><=|=<|>=|=>|<|>|=)"
    r"|(?P<sign>[+\-:*])"
    r"|(?P<name>[A-Za-z!\"#$%&(),;?@_'`{}~][A-Za-z0-9!\"#$%&(),.;?@_'`{}~\[\]]*)"
    r")"
)
_RELATIONS = {"<=": "<", "=<": "<", "<": "<", ">=": ">", "=>": ">", ">": ">", "=": "="}


def lp_text(problem: BestResponse) -> str:
    """Return a problem in the LP format.

    Raises
    ------
    SolverError
        If a constraint that mentions no attribute cannot hold.
    """
    program, columns, rows = formulated(problem)
    lines = [f"\\ {MARK} {problem.attributes}", "Maximize", " obj:"]
    objective = [
        f"{weight:+.17g} {name}"
        for weight, name in zip(program.objective.tolist(), columns, strict=True)
        if weight
    ]
    if program.constant or not objective:
        objective.append(f"{program.constant:+.17g}")
    lines += _wrapped(objective)
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


def parse_lp(text: str, name: str) -> Instance:
    """Read a 0-1 program from the LP format.

    Parameters
    ----------
    text
        The file's content.
    name
        The file's name, for messages.

    Raises
    ------
    MalformedFileError
        If the text is not LP, or not a linear program in 0-1 variables.
    """
    program = BinaryProgram(name)
    sections = _split(text, program)
    objective = _Reader(sections["objective"], program)
    if objective.peek(1) == ("sign", ":"):
        objective.skip(2)
    program.objective, program.constant = objective.expression()
    objective.expect_end()
    if sections["sense"][0].text == "minimise":
        program.negate()
    rows = _Reader(sections["rows"], program)
    while not rows.done:
        program.rows.append(rows.row(len(program.rows)))
    bounds = Bounds(program)
    for section in ("binaries", "generals"):
        for token in sections[section]:
            if token.kind != "name":
                program.fail(token.line, f"found {token.text!r} where a variable is expected")
            bounds.declare(token.text, token.line, binary=section == "binaries")
    reader = _Reader(sections["bounds"], program)
    while not reader.done:
        reader.bound(bounds)
    bounds.finish()
    return program.instance()


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def _split(text: str, program: BinaryProgram) -> dict[str, list[_Token]]:
    """Return the tokens of each section; the section ``sense`` says what the objective is."""
    sections: dict[str, list[_Token]] = {
        name: [] for name in ("sense", "objective", "rows", "bounds", "binaries", "generals")
    }
    current, ended, number = "", False, 0
    for number, raw in enumerate(text.splitlines(), 1):
        line, _, comment = raw.partition("\\")
        program.read_mark(comment.strip(), number)
        line = line.strip()
        if not line or ended:
            continue
        header = _header(line)
        if header is not None:
            current, line = header
            if current == "refused":
                program.fail(
                    number, f"a section {raw.strip()!r}; only linear 0-1 programs are read"
                )
            if current in ("maximise", "minimise"):
                if sections["sense"]:
                    program.fail(number, "a second objective; expected one")
                sections["sense"].append(_Token("sense", current, number))
                current = "objective"
            ended = current == "end"
        elif not current:
            program.fail(number, f"found {line[:40]!r}; expected Maximize or Minimize first")
        if not ended:
            sections[current] += _tokens(line, number, program)
    if not sections["sense"]:
        program.fail(max(number, 1), "no Maximize or Minimize in the file")
    if not ended:
        program.fail(number, "the file ends without End: is it cut off?")
    return sections


def _header(line: str) -> tuple[str, str] | None:
    """Return the section that a line begins, and the rest of the line."""
    found = _SECTION.match(line)
    if found is None or found.lastgroup is None:
        return None
    rest = line[found.end() :].strip()
    if rest[:1] in (":", "<", ">", "=", "+", "-", "*") and found.lastgroup not in (
        "maximise",
        "minimise",
        "rows",
    ):
        return None  # a variable or a row of that name
    return found.lastgroup, rest.removeprefix(":") if found.lastgroup[1:] == "imise" else rest


def _tokens(line: str, number: int, program: BinaryProgram) -> list[_Token]:
    tokens = []
    position = 0
    while position < len(line):
        found = _TOKEN.match(line, position)
        if found is None or found.lastgroup is None:
            rest = line[position:].strip()
            what = "; quadratic terms are not read" if rest[:1] in "[^" else ""
            program.fail(number, f"cannot read {rest[:40]!r}{what}")
        tokens.append(_Token(found.lastgroup, found[found.lastgroup], number))
        position = found.end()
    return tokens


class _Reader:
    """Reads expressions, rows and bounds from tokens."""

    def __init__(self, tokens: list[_Token], program: BinaryProgram) -> None:
        self._tokens = tokens
        self._program = program
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._tokens)

    def peek(self, ahead: int = 0) -> tuple[str, str]:
        """Return kind and text of a token ahead; empty past the end."""
        at = self._at + ahead
        if at >= len(self._tokens):
            return "", ""
        return self._tokens[at].kind, self._tokens[at].text

    def skip(self, count: int) -> None:
        self._at += count

    @property
    def line(self) -> int:
        if not self._tokens:
            return 1
        return self._tokens[min(self._at, len(self._tokens) - 1)].line

    def expect_end(self) -> None:
        if not self.done:
            self._program.fail(self.line, f"found {self.peek()[1]!r} in the objective")

    def expression(self) -> tuple[dict[int, float], float]:
        """Read ``+ 2 x - y + 3`` up to a relation or the end: coefficients and constant."""
        entries: dict[int, float] = {}
        constant = 0.0
        first = True
        while not self.done and self.peek()[0] != "relation":
            signed = self.peek()[0] == "sign"
            if not first and not signed:
                self._program.fail(
                    self.line, f"found {self.peek()[1]!r}; expected + or - before it"
                )
            sign = self._signs()
            value = None
            if self.peek()[0] == "number":
                value = float(self.peek()[1])
                self.skip(1)
                if self.peek() == ("sign", "*"):
                    self.skip(1)
            if self.peek()[0] == "name":
                column = self._program.column(self.peek()[1])
                self.skip(1)
                if self.peek()[0] == "sign" and self.peek()[1] in ":*":
                    self._program.fail(self.line, f"found {self.peek()[1]!r} after a variable")
                entries[column] = entries.get(column, 0.0) + sign * (
                    1.0 if value is None else value
                )
            elif value is not None:
                constant += sign * value
            else:
                found = self.peek()[1] or "the end"
                self._program.fail(
                    self.line, f"found {found!r} where a number or variable is expected"
                )
            first = False
        self._check_finite([*entries.values(), constant])
        return entries, constant

    def row(self, number: int) -> Row:
        """Read ``name: expression relation constant``, also with a constant on both sides."""
        line = self.line
        name = f"row {number + 1}"
        if self.peek()[0] == "name" and self.peek(1) == ("sign", ":"):
            name = self.peek()[1]
            self.skip(2)
        entries, constant = self.expression()
        relation = self._relation()
        row = Row(name, line, entries)
        if entries:
            self._bound_row(row, relation, self._number() - constant)
            return row
        row.entries, shift = self.expression()
        mirrored = {"<": ">", ">": "<", "=": "="}[relation]
        if not row.entries:
            self._program.fail(line, f"row {name} has no variable")
        self._bound_row(row, mirrored, constant - shift)
        if self.peek()[0] == "relation":
            self._bound_row(row, self._relation(), self._number() - shift)
        if row.lower > row.upper:
            self._program.fail(
                line, f"row {name} has the bounds [{row.lower}, {row.upper}]: lower above upper"
            )
        return row

    def bound(self, bounds: Bounds) -> None:
        """Read ``0 <= x <= 1``, ``x <= 1``, ``x = 1`` or ``x free``."""
        line = self.line
        if self.peek()[0] != "name" or self.peek()[1].lower() in ("inf", "infinity"):
            value = self._number()
            relation = self._relation()
            name = self._variable()
            bounds.restrict(name, {"<": ">", ">": "<", "=": "="}[relation], value, line)
        else:
            name = self._variable()
            if self.peek()[1].lower() == "free":
                self.skip(1)
                bounds.free(name, line)
                return
            if self.peek()[0] != "relation":
                self._program.fail(line, f"found {self.peek()[1]!r} after the variable {name}")
        if self.peek()[0] == "relation":
            bounds.restrict(name, self._relation(), self._number(), line)

    def _bound_row(self, row: Row, relation: str, value: float) -> None:
        self._check_finite([value])
        if relation in "<=":
            row.upper = min(row.upper, value)
        if relation in ">=":
            row.lower = max(row.lower, value)

    def _relation(self) -> str:
        kind, text = self.peek()
        if kind != "relation":
            self._program.fail(self.line, f"found {text or 'the end'!r}; expected <=, >= or =")
        self.skip(1)
        return _RELATIONS[text]

    def _variable(self) -> str:
        kind, text = self.peek()
        if kind != "name":
            self._program.fail(self.line, f"found {text or 'the end'!r}; expected a variable")
        self.skip(1)
        return text

    def _number(self) -> float:
        """Read a signed number that ends a row or a bound."""
        line = self.line
        sign = self._signs()
        kind, text = self.peek()
        if text.lower() in ("inf", "infinity"):
            self.skip(1)
            return sign * math.inf
        if kind != "number":
            self._program.fail(self.line, f"found {text or 'the end'!r}; expected a number")
        self.skip(1)
        follows = self._tokens[self._at] if not self.done else None
        if (
            follows is not None
            and follows.line == line
            and follows.kind in ("name", "sign")
            and self.peek(1) != ("sign", ":")
        ):
            self._program.fail(
                line, f"found {follows.text!r} right of the relation; expected a number only"
            )
        return sign * float(text)

    def _signs(self) -> float:
        sign = 1.0
        while self.peek() in (("sign", "+"), ("sign", "-")):
            sign = -sign if self.peek()[1] == "-" else sign
            self.skip(1)
        return sign

    def _check_finite(self, values: list[float]) -> None:
        if not all(map(math.isfinite, values)):
            self._program.fail(self.line, "a number that is not finite")

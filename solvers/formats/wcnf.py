"""WCNF, the format of the MaxSAT Evaluations.

Written is the form of 2022: a line of ``h`` and literals, ended by 0, for a hard clause, one of a
weight and literals for a soft clause, no header. Read is also the older form, which has a header
``p wcnf VARIABLES CLAUSES TOP``. The objective is the weight of the satisfied soft clauses, which
may add up to 2^53, and :mod:`solvers.formats.recognition` finds conjunctions and groups, whoever
wrote the file.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NoReturn

import numpy as np

from solvers.constraints import Rows
from solvers.errors import MalformedFileError
from solvers.formats.clauses import Clause, WeightedClauses
from solvers.formats.instance import Instance
from solvers.formats.program import Program
from solvers.formats.recognition import check_cells, recognise

_MOST_VARIABLES = 2**20
_MOST_VARIABLES_A_LITERAL = 4
"""A file has at most the larger of 2^20 and 4 variables a literal: each takes 100 bytes."""

_LARGEST_TOTAL = 2**53
"""Soft clauses weigh no more, since larger sums are not exact in floating point."""


def wcnf_text(clauses: WeightedClauses, *, header: bool = False) -> str:
    """Return weighted clauses as WCNF; with a header and a top weight, in the older form."""
    error = f", within {clauses.error / clauses.scale!r}" if clauses.error else ""
    best, scale = clauses.best, clauses.scale
    lines = [f"c objective = {best!r} - (weight of violated clauses) / {scale!r}{error}"]
    # No clause at all would look like a file that is cut off.
    must = clauses.hard if clauses.hard or clauses.soft else [[1, -1]]
    hard = "h"
    if header:
        hard = str(sum(weight for weight, _ in clauses.soft) + 1)
        lines.append(f"p wcnf {max(clauses.variables, 1)} {len(must) + len(clauses.soft)} {hard}")
    lines += [f"{hard} {' '.join(map(str, clause))} 0" for clause in must]
    lines += [f"{weight} {' '.join(map(str, clause))} 0" for weight, clause in clauses.soft]
    return "\n".join([*lines, ""])


def parse_wcnf(text: str, name: str) -> Instance:
    """Read a problem from WCNF of either form; messages name the file.

    Raises
    ------
    MalformedFileError
        If the text is not WCNF.
    ProblemTooLargeError
        If the clauses are too many and too long.
    """
    parsed = _Parser(name).parse(text)
    return replace(recognise(parsed.program()), clauses=(parsed.hard, parsed.soft))


@dataclass
class _Parser:
    """What has been read of one file."""

    name: str
    variables: int = 0
    declared: tuple[int, int] | None = None  # variables and clauses that a header states
    top: int | None = None
    hard: list[Clause] = field(default_factory=list)
    soft: list[tuple[int, Clause]] = field(default_factory=list)
    soft_weight: int = 0  # of the weights of soft clauses

    def parse(self, text: str) -> _Parser:
        number = 0
        # No other character that Python takes for the end of a line, such as a form feed, is one.
        for number, line in enumerate(map(str.rstrip, io.StringIO(text, None)), 1):
            words = line.split()
            if not words or words[0].startswith("c"):
                continue
            if "_" in line or not line.isascii():  # which Python would take for numbers
                self._fail(number, f"found {line[:60]!r} where numbers in digits are expected")
            if words[0] == "p":
                self._header(words, number)
            else:
                self._clause(words, number)
        literals = sum(map(len, self.hard)) + sum(len(clause) for _, clause in self.soft)
        most = max(_MOST_VARIABLES, _MOST_VARIABLES_A_LITERAL * literals)
        if self.variables > most:
            found = f"variables up to {self.variables} in a file of {literals} literals; at most"
            self._fail(max(number, 1), f"{found} {most} are expected: number them without gaps")
        count = len(self.hard) + len(self.soft)
        if self.declared is not None and count != self.declared[1]:
            stated = self.declared[1]
            self._fail(number, f"the file states {stated} clauses, but has {count}: is it cut off?")
        if self.declared is None and count == 0:
            self._fail(max(number, 1), "no clause in the file: is it cut off?")
        return self

    def _fail(self, line: int, message: str) -> NoReturn:
        raise MalformedFileError(f"{self.name}, line {line}: {message}")

    def _header(self, words: list[str], line: int) -> None:
        if self.declared is not None or self.hard or self.soft:
            self._fail(line, "a header after the first clause or header; expected it once, first")
        if len(words) not in (4, 5) or words[1] != "wcnf":
            self._fail(line, f"found {' '.join(words)!r}; expected p wcnf VARIABLES CLAUSES [TOP]")
        numbers = [self._integer(word, line, "a number of the header") for word in words[2:]]
        if min(numbers) < 0:
            self._fail(line, f"the header has the number {min(numbers)}; expected none below 0")
        self.declared = (numbers[0], numbers[1])
        self.variables = numbers[0]
        self.top = numbers[2] if len(numbers) == 3 else None

    def _clause(self, words: list[str], line: int) -> None:
        is_hard = words[0] == "h"
        if is_hard and self.declared is not None:
            self._fail(line, "a clause 'h' in a file with a header; its hard clauses weigh TOP")
        weight = 0 if is_hard else self._integer(words[0], line, "a weight or h")
        if weight < 0:
            self._fail(line, f"the weight is {weight}; expected a whole number from 0 on")
        try:
            literals = list(map(int, words[1:]))
        except ValueError:
            literals = [self._integer(word, line, "a literal") for word in words[1:]]
        if not literals or literals[-1] != 0:
            self._fail(line, "the clause does not end with 0")
        literals.pop()
        if 0 in literals:
            self._fail(line, "0 inside a clause; it ends one, and each clause has its own line")
        largest = max(max(literals), -min(literals)) if literals else 0
        if self.declared is not None and largest > self.declared[0]:
            self._fail(line, f"variable {largest}, but the header declares {self.declared[0]}")
        if largest >= 2**30:
            self._fail(line, f"variable {largest}; expected numbers below {2**30}")
        self.variables = max(self.variables, largest)
        if is_hard or (self.top is not None and weight >= self.top):
            self.hard.append(literals)
        else:
            self.soft.append((weight, literals))
            self.soft_weight += weight
            if self.soft_weight > _LARGEST_TOTAL:
                self._fail(line, "the soft clauses weigh more than 2^53; such sums are not read")

    def _integer(self, word: str, line: int, what: str) -> int:
        try:
            return int(word)
        except ValueError:
            self._fail(line, f"found {word[:60]!r} where {what} is expected")

    def program(self) -> Program:
        """Return clauses of unknown origin as a program: soft ones as negative conjunctions."""
        objective = np.zeros(self.variables)
        rows: list[Clause] = []
        weights: list[int] = []
        constant = 0
        for weight, clause in self.soft:
            if len(clause) == 1:
                variable = abs(clause[0]) - 1
                constant += weight if clause[0] < 0 else 0
                objective[variable] += weight if clause[0] > 0 else -weight
            elif clause and weight:
                constant += weight
                for plain in _simplified(clause):
                    rows.append([-literal for literal in plain])
                    weights.append(-weight)
        hard = [plain for clause in self.hard for plain in _simplified(clause)]
        sizes = np.array([len(clause) for clause in hard], np.int64)
        literals = np.fromiter(chain.from_iterable(hard), np.int32, int(sizes.sum()))
        signs = np.sign(literals).astype(np.float64)
        indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        negative = np.concatenate(([0], np.cumsum(literals < 0)))[indptr]
        return Program(
            names=tuple(str(variable + 1) for variable in range(self.variables)),
            objective=objective,
            constant=float(constant),
            terms=_codes(rows),
            weights=np.array(weights, np.float64),
            rows=Rows(
                indptr,
                np.abs(literals) - 1,
                signs,
                1.0 - np.diff(negative),
                np.full(len(hard), np.inf),
            ),
        )


def _simplified(clause: Clause) -> tuple[Clause, ...]:
    """Return a clause without repeated literals, or nothing if it is true whatever the values."""
    variables = len(set(map(abs, clause)))
    if variables == len(clause):
        return (clause,)
    distinct = list(dict.fromkeys(clause))
    return (distinct,) if len(distinct) == variables else ()


def _codes(rows: list[Clause]) -> np.ndarray:
    """Return lists of signed variables as rows of literal codes."""
    width = max(map(len, rows), default=0)
    check_cells(len(rows), width)
    literals = np.zeros((len(rows), width), np.int32)
    lengths = np.array([len(row) for row in rows], np.int64)
    literals[np.arange(width) < lengths[:, None]] = [x for row in rows for x in row]
    codes = 2 * (np.abs(literals) - 1) + (literals < 0)
    return np.where(literals == 0, -1, codes).astype(np.int32)

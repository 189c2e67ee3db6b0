"""OPB files of the Pseudo-Boolean Competitions, read: linear constraints, a linear objective.

Products of literals are read in the objective only, where they are weighted conjunctions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from solvers.errors import MalformedFileError
from solvers.formats.program import Program, summed_rows

_COMMENT = re.compile(r"^[ \t]*\*.*$", re.MULTILINE)
_STATED = re.compile(r"^\*.*#constraint= *(\d{1,18})\b", re.MULTILINE)
_RELATION = re.compile(r"([<>]?=|(?<=:))")
_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_LITERAL = re.compile(r"~?[A-Za-z_][A-Za-z0-9_\[\]{}^]*", re.ASCII)
_RELATIONS = (">=", "<=", "=")
_LARGEST = 2**53  # numbers up to it are exact in floating point


def parse_opb(text: str, name: str) -> Program:
    """Read a pseudo-Boolean program; messages name the file.

    Raises
    ------
    MalformedFileError
        If the text is not of the format, a constraint has products, a number is above 2^53, or a
        statement's add up to that.
    """
    # Lines keep their ends, so that they can be counted.
    plain = _RELATION.sub(r" \1 ", _COMMENT.sub("", text))
    reading, place = _Reading(), 0
    for statement in plain.split(";"):
        end = place + len(statement)
        try:
            if end == len(plain) and statement.strip():
                raise _FaultError("the file ends without ';': is it cut off?")
            reading.take(statement.split())
        except _FaultError as fault:
            begin = end - len(statement.lstrip())
            line = plain.count("\n", 0, begin) + 1
            raise MalformedFileError(f"{name}, line {line}: {fault}") from None
        place = end + 1
    if not reading.columns and not reading.sides:
        raise MalformedFileError(f"{name}, line 1: no variable in the file")
    stated = _STATED.search(text)
    if stated is not None and int(stated[1]) != len(reading.sides):
        raise MalformedFileError(
            f"{name}: the first line states {stated[1]} constraints, but the file has "
            f"{len(reading.sides)}"
        )
    return reading.program()


class _FaultError(Exception):
    """What is wrong with a statement."""


class _Summand(NamedTuple):
    """A number times a product of literals, codes ``2 * column + negated``."""

    factor: int
    literals: list[int]


@dataclass
class _Reading:
    """What the statements so far say."""

    columns: dict[str, int] = field(default_factory=dict)
    objective: list[_Summand] | None = None
    minimises: bool = False
    indptr: list[int] = field(default_factory=lambda: [0])
    members: list[int] = field(default_factory=list)
    coefficients: list[int] = field(default_factory=list)
    sides: list[tuple[float, float]] = field(default_factory=list)

    def take(self, words: list[str]) -> None:
        """Take one statement."""
        if not words:
            return
        sense = words[0].lower()
        if sense in ("min:", "max:"):
            if self.objective is not None or self.sides:
                raise _FaultError("an objective that is not the first statement")
            self.objective = self._summands(words[1:])
            self.minimises = sense == "min:"
            return
        if len(words) < 3 or words[-2] not in _RELATIONS:
            raise _FaultError(
                f"found {' '.join(words)[:60]!r}; expected min:, max: or a constraint with >= or ="
            )
        constant = 0
        for factor, literals in self._summands(words[:-2]):
            if len(literals) != 1:
                raise _FaultError("a product in a constraint; only linear constraints are read")
            column, negated = divmod(literals[0], 2)
            constant += negated * factor
            self.members.append(column)
            self.coefficients.append(-factor if negated else factor)
        self.indptr.append(len(self.members))
        side = float(_number(words[-1]) - constant)
        relation = words[-2]
        self.sides.append(
            (-np.inf if relation == "<=" else side, np.inf if relation == ">=" else side)
        )

    def _summands(self, words: Sequence[str]) -> list[_Summand]:
        found: list[_Summand] = []
        for word in words:
            if _NUMBER.fullmatch(word):
                found.append(_Summand(_number(word), []))
            elif not found:
                raise _FaultError(f"found {word[:60]!r}; expected a whole number")
            elif _LITERAL.fullmatch(word):
                variable = word.removeprefix("~")
                column = self.columns.setdefault(variable, len(self.columns))
                found[-1].literals.append(2 * column + (variable != word))
            else:
                raise _FaultError(f"found {word[:60]!r}; expected a number or a variable")
        for factor, literals in found:
            if not literals:
                raise _FaultError(f"the number {factor} has no variable")
        if sum(abs(summand.factor) for summand in found) >= _LARGEST:
            raise _FaultError("the numbers add up to 2^53 or more; such sums are not read")
        return found

    def program(self) -> Program:
        """Return the whole."""
        width = len(self.columns)
        sign = -1.0 if self.minimises else 1.0
        objective, constant = np.zeros(width), 0.0
        products: list[_Summand] = []
        for summand in self.objective or ():
            column, negated = divmod(summand.literals[0], 2)
            if len(summand.literals) > 1:
                products.append(summand)
            else:
                objective[column] += -summand.factor if negated else summand.factor
                constant += negated * summand.factor
        terms = np.full((len(products), max((len(p.literals) for p in products), default=1)), -1)
        for row, product in zip(terms, products, strict=True):
            row[: len(product.literals)] = product.literals
        bounds = np.array(self.sides, np.float64).reshape(len(self.sides), 2)
        return Program(
            names=tuple(self.columns),
            objective=sign * objective,
            constant=sign * constant,
            terms=terms.astype(np.int32),
            weights=sign * np.array([product.factor for product in products], np.float64),
            rows=summed_rows(self.indptr, self.members, self.coefficients, bounds, width),
            minimises=self.minimises,
        )


def _number(word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise _FaultError(f"found {word[:60]!r}; expected a whole number")
    if len(word) > 18 or abs(int(word)) > _LARGEST:
        raise _FaultError(f"the number {word[:60]} is above 2^53; larger ones are not read")
    return int(word)

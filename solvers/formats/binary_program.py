"""0-1 programs between the text of LP or MPS files and best responses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint
from solvers.errors import MalformedFileError, SolverError
from solvers.formats.files import Instance
from solvers.formulation import Formulation, LinearProgram, formulate
from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.terms import merge_terms

MARK = "dualquery attributes"
"""Begins the comment that tells how many of a file's columns are attributes."""


@dataclass
class Row:
    """``lower <= sum of coefficients times columns <= upper``."""

    name: str
    line: int
    entries: dict[int, float] = field(default_factory=dict)
    """Column -> coefficient."""
    lower: float = -math.inf
    upper: float = math.inf


@dataclass
class BinaryProgram:
    """Maximise ``constant + objective @ z`` over 0-1 vectors ``z`` under rows, as a file says it.

    Parameters
    ----------
    file
        Name of the file, for messages.
    attributes
        Number of attributes, if a comment of our own writers states it: columns ``x0``, ``x1``
        and so on; the other columns then stand for terms.
    """

    file: str
    attributes: int | None = None
    names: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    objective: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0
    rows: list[Row] = field(default_factory=list)
    minimises: bool = False

    def column(self, name: str) -> int:
        """Return the number of a column, which is made if there is none of that name."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def negate(self) -> None:
        """Turn the minimum of an objective into the maximum of its negative."""
        self.objective = {column: -weight for column, weight in self.objective.items()}
        self.constant = -self.constant
        self.minimises = True

    def read_mark(self, text: str, line: int) -> None:
        """Take the number of attributes from a comment, if it is the writers' own."""
        if text.startswith(MARK):
            count = text.removeprefix(MARK).strip()
            if not count.isdecimal():
                self.fail(line, f"the comment {text!r} does not end with a number")
            self.attributes = int(count)

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise an error about a line of the file."""
        raise MalformedFileError(f"{self.file}, line {line}: {message}")

    def instance(self) -> Instance:
        """Return the program as a best response.

        Rows that demand exactly one of some columns become groups as long as these are disjoint;
        two rows in succession that bound one sum from both sides become one constraint.
        """
        terms: list[list[int]] = []
        weights: list[float] = []
        if self.attributes is None:
            order = list(range(len(self.names)))
            rows = self.rows
        else:
            order = self._attribute_columns(self.attributes)
            rows, terms, weights = self._terms(order)
        place = {column: attribute for attribute, column in enumerate(order)}
        for column, weight in self.objective.items():
            if column in place and weight != 0.0:
                terms.append([2 * column])
                weights.append(weight)
        width = max(map(len, terms), default=1)
        codes = np.full((len(terms), width), -1, np.int32)
        for row, literals in enumerate(terms):
            codes[row, : len(literals)] = [2 * place[code >> 1] + (code & 1) for code in literals]
        groups, left = _split_groups(rows)
        problem = BestResponse(
            len(order),
            codes,
            np.array(weights, np.float64),
            _as_groups([[place[column] for column in group] for group in groups]),
            tuple(_constraint(row, place) for row in _joined(left)),
            self.constant,
        )
        return Instance(problem, tuple(self.names[column] for column in order), self.minimises)

    def _attribute_columns(self, attributes: int) -> list[int]:
        missing = [f"x{a}" for a in range(attributes) if f"x{a}" not in self.numbers]
        if missing:
            self.fail(
                1,
                f"the comment {MARK!r} states {attributes} attributes, but there is no variable "
                f"{missing[0]}",
            )
        return [self.numbers[f"x{attribute}"] for attribute in range(attributes)]

    def _terms(self, order: list[int]) -> tuple[list[Row], list[list[int]], list[float]]:
        """Separate the rows that tie terms to their literals from the others."""
        attributes = set(order)
        tied: dict[int, list[Row]] = {
            column: [] for column in range(len(self.names)) if column not in attributes
        }
        others = []
        for row in self.rows:
            named = [column for column in row.entries if column not in attributes]
            if len(named) > 1:
                self.fail(row.line, f"row {row.name} ties two terms; {self._advice()}")
            if named:
                tied[named[0]].append(row)
            else:
                others.append(row)
        terms, weights = [], []
        for column, rows in tied.items():
            weight = self.objective.get(column, 0.0)
            if weight != 0.0:
                terms.append(self._literals(column, weight, rows))
                weights.append(weight)
        return others, terms, weights

    def _literals(self, column: int, weight: float, rows: list[Row]) -> list[int]:
        """Return the literals of a term, as codes of columns, from the rows that tie it."""
        found = []
        for row in rows:
            entries = {c: value for c, value in row.entries.items() if c != column}
            at_most = weight > 0 and len(entries) == 1 and row.lower == -math.inf
            at_least = weight < 0 and len(rows) == 1 and row.upper == math.inf
            values = list(entries.values())
            fits = row.entries[column] == 1.0 and all(abs(value) == 1.0 for value in values)
            if at_most:
                fits &= row.upper == float(values[0] > 0)
            elif at_least:
                fits &= row.lower == 1.0 - sum(value < 0 for value in values)
            if not fits or not (at_most or at_least):
                self.fail(
                    row.line,
                    f"row {row.name} does not tie the term {self.names[column]} to its literals; "
                    f"{self._advice()}",
                )
            found += [2 * c + int(value > 0) for c, value in entries.items()]
        if not found:
            self.fail(1, f"no row ties the term {self.names[column]}; {self._advice()}")
        return found

    def _advice(self) -> str:
        return f"to have the program read as it stands, remove the comment {MARK!r}"


def formulated(problem: BestResponse) -> tuple[LinearProgram, list[str], list[str]]:
    """Return a problem as a program to be written, the names of its columns and of its rows.

    The rows are those that tie terms, one for each group (``g0``, ...) and one for each linear
    constraint (``r0``, ...).

    Raises
    ------
    SolverError
        If a constraint that mentions no attribute cannot hold: no row can say so.
    """
    terms, weights, shift = merge_terms(problem.attributes, problem.terms, problem.weights)
    for number, constraint in enumerate(problem.constraints):
        if len(constraint.attributes) == 0 and not constraint.lower <= 0.0 <= constraint.upper:
            raise SolverError(
                f"constraint {number} mentions no attribute and asks for {constraint.lower} to "
                f"{constraint.upper}: no record satisfies it, and LP and MPS cannot express it"
            )
    program = formulate(
        BestResponse(
            problem.attributes,
            terms,
            weights,
            problem.groups,
            problem.constraints,
            problem.constant + shift,
        ),
        Formulation.DISAGGREGATED,
    )
    columns = [f"x{attribute}" for attribute in range(problem.attributes)]
    columns += [f"c{term}" for term in range(program.columns - problem.attributes)]
    last = [f"g{group}" for group in range(len(problem.groups))]
    last += [f"r{constraint}" for constraint in range(len(problem.constraints))]
    rows = [f"t{row}" for row in range(program.rows - len(last))] + last
    return program, columns, rows


def _split_groups(rows: list[Row]) -> tuple[list[list[int]], list[Row]]:
    groups: list[list[int]] = []
    grouped: set[int] = set()
    left = []
    for row in rows:
        exactly_one = row.lower == row.upper == 1.0 and row.entries
        if (
            exactly_one
            and all(value == 1.0 for value in row.entries.values())
            and grouped.isdisjoint(row.entries)
        ):
            groups.append(list(row.entries))
            grouped.update(row.entries)
        else:
            left.append(row)
    return groups, left


def _joined(rows: list[Row]) -> list[Row]:
    """Join neighbours that bound one sum from below and from above."""
    joined: list[Row] = []
    for row in rows:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.entries == row.entries
            and before.lower == -math.inf
            and row.upper == math.inf
            and row.lower <= before.upper
        ):
            joined[-1] = Row(before.name, before.line, row.entries, row.lower, before.upper)
        else:
            joined.append(row)
    return joined


def _constraint(row: Row, place: dict[int, int]) -> LinearConstraint:
    columns = np.array([place[column] for column in row.entries], np.int32)
    coefficients: NDArray[np.float64] = np.array(list(row.entries.values()), np.float64)
    return LinearConstraint(columns, coefficients, row.lower, row.upper)


def _as_groups(groups: list[list[int]]) -> Groups:
    indptr = np.concatenate(([0], np.cumsum([len(group) for group in groups], dtype=np.int64)))
    members = [member for group in groups for member in group]
    return Groups(indptr.astype(np.int64), np.array(members, np.int32))

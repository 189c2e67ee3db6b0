"""WCNF, the format of the MaxSAT Evaluations.

Written is the form of 2022: a line of ``h`` and literals, ended by 0, for a hard clause, one of a
weight and literals for a soft clause, no header. Read is also the older form, which has a header
``p wcnf VARIABLES CLAUSES TOP``.

What clauses do not say stands in comments that begin with ``c dualquery``: how many attributes, the
scale of the weights, the objective at cost 0, the groups and the linear constraints. They are
only believed if the clauses are what the writer makes of them. In a file without them the
objective is the weight of the satisfied soft clauses, and :mod:`solvers.formats.recognition` finds
conjunctions and groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import LinearConstraint, Rows
from solvers.errors import MalformedFileError, SolverError
from solvers.formats.clauses import WeightedClauses, clauses_of
from solvers.formats.decision_diagram import Clause
from solvers.formats.instance import Instance
from solvers.formats.program import Program
from solvers.formats.recognition import check_cells, groups_of, recognise
from solvers.problem import BestResponse

_MARK = "dualquery"
_MOST_VARIABLES = 2**20
_MOST_VARIABLES_A_LITERAL = 4
"""A file may have so many variables, and more if it has literals for them: each takes 100 bytes."""

_LARGEST_NUMBER = 2**63
"""Weights and literals are below it; the MaxSAT Evaluations allow no more for their sum."""


def wcnf_text(clauses: WeightedClauses, *, header: bool = False) -> str:
    """Return weighted clauses as WCNF.

    Parameters
    ----------
    clauses
        The clauses.
    header
        Write the older form, with a header and a top weight.
    """
    lines = [
        f"c {_MARK} attributes {clauses.attributes} clauses "
        f"{len(clauses.hard) + len(clauses.soft)}",
        f"c {_MARK} scale {clauses.scale!r}",
        f"c {_MARK} best {clauses.best!r}",
    ]
    for group in range(len(clauses.groups)):
        members = " ".join(map(str, (clauses.groups[group] + 1).tolist()))
        lines.append(f"c {_MARK} group {members}")
    for row in clauses.constraints:
        pairs = zip(row.coefficients.tolist(), (row.attributes + 1).tolist(), strict=True)
        terms = "".join(f" {coefficient!r} {variable}" for coefficient, variable in pairs)
        lines.append(f"c {_MARK} constraint {row.lower!r} {row.upper!r}{terms}")
    hard = "h"
    if header:
        top = sum(weight for weight, _ in clauses.soft) + 1
        hard = str(top)
        total = len(clauses.hard) + len(clauses.soft)
        lines.append(f"p wcnf {clauses.variables} {total} {top}")
    lines += [f"{hard} {' '.join(map(str, clause))} 0" for clause in clauses.hard]
    lines += [f"{weight} {' '.join(map(str, clause))} 0" for weight, clause in clauses.soft]
    return "\n".join([*lines, ""])


class ClauseFile(NamedTuple):
    """A WCNF file as it stands, whoever wrote it."""

    instance: Instance
    hard: list[Clause]
    soft: list[tuple[int, Clause]]

    def cost(self, values: NDArray[np.uint8]) -> int:
        """Return the weight of the soft clauses that values of the variables violate.

        Raises
        ------
        SolverError
            If they violate a hard clause.
        """
        true = set(np.flatnonzero(values) + 1) | set(-np.flatnonzero(values == 0) - 1)
        for clause in self.hard:
            if true.isdisjoint(clause):
                raise SolverError(f"the values violate the hard clause {clause}")
        return sum(weight for weight, clause in self.soft if true.isdisjoint(clause))


def parse_clauses(text: str, name: str) -> ClauseFile:
    """Read the clauses of WCNF and nothing else: our own writer's comments are passed over.

    Parameters and errors are those of :func:`parse_wcnf`.
    """
    parsed = _Parser(name).parse(text)
    return ClauseFile(recognise(parsed.program()), parsed.hard, parsed.soft)


def parse_wcnf(text: str, name: str) -> Instance:
    """Read a problem from WCNF of either form.

    Parameters
    ----------
    text
        The file's content.
    name
        The file's name, for messages.

    Raises
    ------
    MalformedFileError
        If the text is not WCNF, or its comments do not fit its clauses.
    ProblemTooLargeError
        If the clauses are too many and too long.
    """
    parsed = _Parser(name).parse(text)
    if parsed.attributes is None:
        return recognise(parsed.program())
    problem = parsed.own_problem()
    variables = tuple(str(variable + 1) for variable in range(problem.attributes))
    return Instance(problem, variables, False, np.arange(problem.attributes))


@dataclass
class _Parser:
    """What has been read of one file."""

    name: str
    variables: int = 0
    declared: tuple[int, int] | None = None
    """Variables and clauses that a header states."""
    top: int | None = None
    stated: int | None = None
    """Clauses, by our own writer's comment."""
    hard: list[Clause] = field(default_factory=list)
    hard_lines: list[int] = field(default_factory=list)
    soft: list[tuple[int, Clause]] = field(default_factory=list)
    soft_lines: list[int] = field(default_factory=list)
    attributes: int | None = None
    scale: float = 1.0
    best: float = 0.0
    groups: list[list[int]] = field(default_factory=list)
    constraints: list[LinearConstraint] = field(default_factory=list)

    def parse(self, text: str) -> _Parser:
        number = 0
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words:
                continue
            if words[0].startswith("c"):
                if words[:2] == ["c", _MARK]:
                    self._comment(words[2:], number)
            elif words[0] == "p":
                self._header(words, number)
            else:
                self._clause(words, number)
        literals = sum(map(len, self.hard)) + sum(len(clause) for _, clause in self.soft)
        most = max(_MOST_VARIABLES, _MOST_VARIABLES_A_LITERAL * literals)
        if max(self.variables, self.attributes or 0) > most:
            self._fail(
                max(number, 1),
                f"variables up to {max(self.variables, self.attributes or 0)} in a file of "
                f"{literals} literals; expected at most {most}: number them without gaps",
            )
        found = len(self.hard) + len(self.soft)
        stated = self.stated if self.declared is None else self.declared[1]
        if stated is not None and found != stated:
            self._fail(number, f"the file states {stated} clauses, but has {found}: is it cut off?")
        if stated is None and found == 0:
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
        if weight >= _LARGEST_NUMBER:
            self._fail(line, f"the weight {words[0][:30]} is not below 2^63")
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
            self.hard_lines.append(line)
        else:
            self.soft.append((weight, literals))
            self.soft_lines.append(line)

    def _integer(self, word: str, line: int, what: str) -> int:
        try:
            return int(word)
        except ValueError:
            self._fail(line, f"found {word[:60]!r} where {what} is expected")

    def _comment(self, words: list[str], line: int) -> None:
        try:
            match words:
                case ["attributes", attributes, "clauses", count] if int(attributes) >= 0:
                    self.attributes, self.stated = int(attributes), int(count)
                case ["scale", scale] if 0 < float(scale) < math.inf:
                    self.scale = float(scale)
                case ["best", best] if math.isfinite(float(best)):
                    self.best = float(best)
                case ["group", *members] if members:
                    numbers = np.array([int(member) - 1 for member in members], np.int32)
                    self.groups.append(numbers.tolist())
                case ["constraint", lower, upper, *pairs] if len(pairs) % 2 == 0:
                    self.constraints.append(
                        LinearConstraint(
                            np.array([int(variable) - 1 for variable in pairs[1::2]], np.int32),
                            np.array([float(c) for c in pairs[::2]], np.float64),
                            float(lower),
                            float(upper),
                        )
                    )
                case _:
                    raise ValueError("not one of the comments that the writer makes")
        except (ValueError, OverflowError) as error:
            self._fail(line, f"the comment {' '.join(words)[:60]!r} cannot be read: {error}")

    def own_problem(self) -> BestResponse:
        """Return the problem that our own writer wrote."""
        attributes = self.attributes or 0
        implied: dict[int, Clause] = {}
        for clause in self.hard:
            if len(clause) == 2 and clause[0] < -attributes:
                implied.setdefault(-clause[0], []).append(clause[1])
        wishes = np.zeros(attributes, np.int64)
        rows: list[Clause] = []
        weights: list[int] = []
        for line, (weight, clause) in zip(self.soft_lines, self.soft, strict=True):
            if len(clause) == 1 and abs(clause[0]) <= attributes:
                wishes[abs(clause[0]) - 1] = weight if clause[0] > 0 else -weight
                continue
            own = len(clause) == 1
            literals = implied.get(clause[0], []) if own else [-literal for literal in clause]
            if not literals or max(map(abs, literals)) > attributes:
                self._fail(line, f"a soft clause that the comments 'c {_MARK}' do not explain")
            rows.append(literals)
            weights.append(weight if own else -weight)
        terms = _codes(rows)
        totals = np.array(weights, np.int64)
        groups = groups_of(self.groups)
        # Validates the comments before they are encoded.
        BestResponse(attributes, terms, totals.astype(np.float64), groups, tuple(self.constraints))
        expected = clauses_of(
            wishes, terms, totals, groups, tuple(self.constraints), len(self.hard)
        )
        self._compare(expected[1], self.hard, self.hard_lines, "hard")
        self._compare(expected[2], self.soft, self.soft_lines, "soft")

        wished = np.flatnonzero(wishes)
        unit_codes = 2 * wished + (wishes[wished] < 0)
        unit_rows = np.full((len(wished), max(terms.shape[1], 1)), -1, np.int32)
        unit_rows[:, 0] = unit_codes
        if terms.shape[1] == 0:
            terms = np.zeros((0, 1), np.int32)
        all_weights = np.concatenate((np.abs(wishes[wished]), totals)) / self.scale
        return BestResponse(
            attributes,
            np.concatenate((unit_rows, terms)),
            all_weights,
            groups,
            tuple(self.constraints),
            self.best - float(all_weights[all_weights > 0].sum()),
        )

    def _compare(
        self, expected: Sequence[object], found: Sequence[object], lines: list[int], kind: str
    ) -> None:
        if expected == found:
            return
        at = next(
            (n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
            min(len(expected), len(found)),
        )
        line = lines[at] if at < len(lines) else (lines[-1] if lines else 1)
        self._fail(
            line,
            f"the {kind} clauses are not those of the problem that the comments 'c {_MARK}' "
            "describe; to have the clauses read as they stand, remove these comments",
        )

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

"""Structure in 0-1 programs, whoever wrote them: conjunctions and groups.

Defined columns (`solvers.formats.definitions`) become weighted conjunctions, and leave with their
rows; nested ones one after another. Rows that ask for exactly one of some columns become groups, as
far as these are disjoint, also where clauses say so pair by pair.
"""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import Rows
from solvers.errors import ProblemTooLargeError
from solvers.formats.definitions import definitions_of
from solvers.formats.instance import Definitions, Instance
from solvers.formats.program import Program
from solvers.groups import Groups
from solvers.problem import BestResponse

_MOST_PASSES = 30  # how deep definitions may be nested
_MOST_CELLS = 2**27  # largest number of literals, padding included, of the table of conjunctions


_MOST_PAIRS = 1_000_000
"""Most pairs of columns that exclude each other which are searched for groups."""


def recognise(program: Program) -> Instance:
    """Return a program as a best response, its structure recognised.

    Columns that are attributes of a problem of our own stay as they are, and so do its rows but
    for groups.
    """
    program.rows.check(len(program.names))
    work = _Work(program)
    # First, for of exactly one each is 1 where the others are 0: a definition, too.
    work.group_exactly()
    for _ in range(_MOST_PASSES):
        if not work.define():
            break
    return work.instance()


class _Work:
    """A program in the course of recognition; columns keep their numbers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.columns = len(program.names)
        self.objective = program.objective.copy()
        self.constant = program.constant
        self.terms, self.weights = program.terms, program.weights
        self.rows = _joined(program.rows)
        self.open = np.ones(self.columns, np.bool_)
        """Columns that may be defined."""
        self.open[: program.attributes or 0] = False
        self.kept = np.ones(self.columns, np.bool_)
        self.definitions: list[Definitions] = []
        self.grouped = np.zeros(self.columns, np.bool_)
        self.explained: list[int] = []
        """Rows that say what a group says."""
        self.exactly: list[list[int]] = []

    # Definitions

    def define(self) -> bool:
        """Replace columns that are defined, independently of each other; tell if there are any."""
        if len(self.rows) == 0:
            return False
        found = definitions_of(self.rows, self.objective, self.terms, self.open & self.kept)
        columns, negated, table = found.variables, found.negated, found.literals
        if len(columns) == 0:
            return False
        self.definitions.append(found)
        self._substitute(columns, table)
        weight = self.objective[columns]
        self.constant += float(weight[negated].sum())
        weight = np.where(negated, -weight, weight)
        self._add_terms(table[weight != 0], weight[weight != 0])
        self.objective[columns] = 0.0
        self.kept[columns] = False
        touched = np.zeros(len(self.rows), np.bool_)
        touched[self.rows.row_of[~self.kept[self.rows.attributes]]] = True
        self.rows = self.rows.select(~touched)
        return True

    def _substitute(self, columns: NDArray[np.int64], table: NDArray[np.int32]) -> None:
        """Put the literals of two-sided definitions where conjunctions hold their columns."""
        place = np.full(self.columns + 1, -1, np.int64)
        place[columns] = np.arange(len(columns))
        while True:
            defined = place[self.terms >> 1]
            rows = np.flatnonzero((defined >= 0).any(axis=1))
            if len(rows) == 0:
                return
            at = (defined[rows] >= 0).argmax(axis=1)
            more = table[defined[rows, at]]
            check_cells(len(self.terms), self.terms.shape[1] + table.shape[1])
            wide = np.full((len(self.terms), self.terms.shape[1] + table.shape[1]), -1, np.int32)
            wide[:, : self.terms.shape[1]] = self.terms
            wide[rows, at] = -1
            wide[rows, self.terms.shape[1] :] = more
            self.terms = _compacted(wide)

    def _add_terms(self, terms: NDArray[np.int32], weights: NDArray[np.float64]) -> None:
        width = max(self.terms.shape[1], terms.shape[1])
        check_cells(len(self.terms) + len(terms), width)
        both = [
            np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=-1)
            for each in (self.terms, terms)
        ]
        self.terms = np.concatenate(both)
        self.weights = np.concatenate((self.weights, weights))

    # Groups

    def group_exactly(self) -> None:
        """Take out the rows that ask for exactly one of some columns."""
        rows = self.rows
        widths = np.diff(rows.indptr)
        plain = rows.sums(rows.coefficients != 1.0) == 0
        exact = plain & (rows.lower == 1.0) & (rows.upper == 1.0) & (widths > 0)
        clause = plain & (rows.lower == 1.0) & (rows.upper >= widths) & (widths > 1)
        for row in np.flatnonzero(exact).tolist():
            self._take(self._members(row), [row])
        pairs = self._pairs()
        degree = np.bincount(np.array([*pairs], np.int64).ravel(), minlength=self.columns)
        left = _MOST_PAIRS
        for row in np.flatnonzero(clause).tolist():
            members = np.sort(self._members(row))
            if self.grouped[members].any():
                continue
            if (degree[members] >= len(members) - 1).all():
                left -= math.comb(len(members), 2)
                if left < 0:
                    break
                both = [*combinations(members.tolist(), 2)]
                if all(pair in pairs for pair in both):
                    self._take(members, [row, *(pairs[pair] for pair in both)])
        unexplained = np.ones(len(rows), np.bool_)
        unexplained[self.explained] = False
        self.rows = rows.select(unexplained)
        self.open &= ~self.grouped

    def _take(self, members: NDArray[np.int32], explained: list[int]) -> None:
        """Make columns a group, unless one of them is in a group already."""
        if not self.grouped[members].any():
            self.exactly.append(members.tolist())
            self.grouped[members] = True
            self.explained += explained

    def _members(self, row: int) -> NDArray[np.int32]:
        return self.rows.attributes[self.rows.indptr[row] : self.rows.indptr[row + 1]]

    def _pairs(self) -> dict[tuple[int, int], int]:
        """Return the pairs of columns that exclude each other, each with its row."""
        rows = self.rows
        equal = rows.sums(np.abs(rows.coefficients) != 1.0) == 0
        positive = rows.sums(rows.coefficients < 0) == 0
        negative = rows.sums(rows.coefficients > 0) == 0
        found = negative & (rows.lower == -1.0) & (rows.upper >= 0.0)
        found |= positive & (rows.upper == 1.0) & (rows.lower <= 0.0)
        numbers = np.flatnonzero(found & equal & (np.diff(rows.indptr) == 2))
        if len(numbers) > _MOST_PAIRS:
            return {}
        ends = np.sort(rows.attributes[rows.indptr[numbers][:, None] + np.arange(2)], axis=1)
        return dict(zip(map(tuple, ends.tolist()), numbers.tolist(), strict=True))

    # The result

    def instance(self) -> Instance:
        """Return the problem and the way back."""
        columns = np.flatnonzero(self.kept)
        number = np.full(self.columns + 1, -1, np.int32)
        number[columns] = np.arange(len(columns), dtype=np.int32)
        single = np.flatnonzero(self.objective)
        self._add_terms((2 * single[:, None]).astype(np.int32), self.objective[single])
        terms = np.where(self.terms < 0, -1, 2 * number[self.terms >> 1] + (self.terms & 1))
        groups = [number[group].tolist() for group in self.exactly]
        problem = BestResponse(
            len(columns),
            terms.astype(np.int32),
            self.weights,
            groups_of(groups),
            self.rows.renumbered(number),
            self.constant,
        )
        names, own = self.program.names, self.program.attributes
        if own is not None and not self.kept[own:].any():
            # All that is no attribute was the writer's own.
            names, number, self.definitions = names[:own], number[:own], []
        else:
            number = number[:-1]
        return Instance(
            problem,
            names,
            self.program.minimises,
            number.astype(np.int64),
            tuple(self.definitions),
            tuple(self._found()),
        )

    def _found(self) -> Iterator[str]:
        defined = sum(len(each.variables) for each in self.definitions)
        for count, what in (
            (defined, "defined variables read as conjunctions"),
            (len(self.exactly), "groups of exactly one"),
            (len(self.rows), "other linear constraints"),
        ):
            if count:
                yield f"{count:,} {what}"


def check_cells(rows: int, width: int) -> None:
    """Raise `ProblemTooLargeError` if a table of conjunctions, padded, would be too large."""
    if rows * width > _MOST_CELLS:
        raise ProblemTooLargeError(
            f"{rows} conjunctions or soft clauses of up to {width} literals; expected at most "
            f"{_MOST_CELLS} literals, each counted with the longest one's length"
        )


def groups_of(groups: list[list[int]]) -> Groups:
    """Return lists of members as groups."""
    indptr = np.concatenate(([0], np.cumsum([len(group) for group in groups], dtype=np.int64)))
    members = [member for group in groups for member in group]
    return Groups(indptr.astype(np.int64), np.array(members, np.int32))


def _compacted(terms: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return terms with their padding on the right, as narrow as they can be."""
    order = np.argsort(terms < 0, axis=1, kind="stable")
    terms = np.take_along_axis(terms, order, axis=1)
    return np.ascontiguousarray(terms[:, : max(int((terms >= 0).sum(axis=1).max(initial=0)), 1)])


def _joined(rows: Rows) -> Rows:
    """Join neighbours that bound one sum from both sides."""
    widths = np.diff(rows.indptr)
    above = np.isfinite(rows.upper) & ~np.isfinite(rows.lower)
    below = np.isfinite(rows.lower) & ~np.isfinite(rows.upper)
    lower = rows.lower.copy()
    kept = np.ones(len(rows), np.bool_)
    for row in np.flatnonzero(above[:-1] & below[1:] & (widths[:-1] == widths[1:])).tolist():
        first, middle, last = rows.indptr[row : row + 3]
        same = (rows.attributes[first:middle] == rows.attributes[middle:last]).all() and (
            rows.coefficients[first:middle] == rows.coefficients[middle:last]
        ).all()
        if same and rows.lower[row + 1] <= rows.upper[row]:
            lower[row], kept[row + 1] = rows.lower[row + 1], False
    return Rows(rows.indptr, rows.attributes, rows.coefficients, lower, rows.upper).select(kept)

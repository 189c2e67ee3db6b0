"""Exact reductions: a smaller problem with the same optimum, and the way between the two.

:func:`reduce` compacts (:mod:`solvers.compact`), then repeats until nothing changes: values that
constraints force; dominance (:mod:`solvers.dominance_kernels`); a group of two members becomes one
free attribute; equal terms merge. At last small separate parts are enumerated.
"""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from solvers.compact import Compacted, compact
from solvers.constraints import Rows
from solvers.groups import Groups
from solvers.problem import BestResponse
from solvers.propagation import FREE, propagate, ranges
from solvers.terms import merge_terms

_NEGATION = 2  # as in :mod:`solvers.dominance_kernels`, which is imported late
_ENUMERATION_WORK = 2**21  # most flips of literals spent on enumerating parts: some 10 ms


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem, its reduction, and the way between the two.

    The optimum of :attr:`problem` is the original's, so a bound on the one bounds the other, and
    :meth:`expand` preserves values. :meth:`restrict` never makes a feasible record worse.
    ``literals`` says what each attribute of the compacted problem is equal to: a literal code of
    the reduced problem or, with N attributes there, ``2 N`` for 0, ``2 N + 1`` for 1;
    ``replacement``, the group member that a dominated one gives way to, or -1.
    """

    original: BestResponse
    problem: BestResponse
    compacted: Compacted
    literals: NDArray[np.int32]
    replacement: NDArray[np.int32]

    @property
    def steps(self) -> tuple[str, ...]:
        """The outcome in one phrase."""
        if self.solved:
            return ("solved by reductions",)
        left = self.problem
        return (f"reduced to {left.attributes} attributes and {len(left.terms)} terms",)

    @property
    def solved(self) -> bool:
        """Whether nothing is left to decide: the expanded empty record is optimal."""
        return self.problem.attributes == 0

    def expand(
        self, record: NDArray[np.uint8], default: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Return the full record of a record of the reduced problem.

        Parameters
        ----------
        record
            uint8, shape ``(N,)``: legal for the reduced problem.
        default
            uint8, shape ``(d,)``, legal for the groups: see :meth:`solvers.Compacted.expand`.
        """
        truth = np.empty(2 * len(record) + 2, np.uint8)
        truth[0:-2:2] = record
        truth[1:-2:2] = 1 - record
        truth[-2:] = 0, 1
        return self.compacted.expand(truth[self.literals], default)

    def restrict(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a record of the reduced problem at least as good as a feasible full one.

        A dominated group member is replaced by the one that dominates it. The result is feasible if
        the full record was.
        """
        kernel = self.compacted.restrict(record)
        fixed = self.literals >= 2 * self.problem.attributes
        for member in np.flatnonzero((kernel == 1) & fixed & (self.replacement >= 0)).tolist():
            while fixed[member] and self.replacement[member] >= 0:
                kernel[member] = 0
                member = int(self.replacement[member])
            kernel[member] = 1
        reduced = np.zeros(self.problem.attributes, np.uint8)
        plain = np.flatnonzero(~fixed & (self.literals & 1 == 0))
        reduced[self.literals[plain] >> 1] = kernel[plain]
        return reduced


def reduce(problem: BestResponse, deadline: float = math.inf) -> Reduction:
    """Return a problem's exact reduction.

    A problem that linear constraints alone show to be infeasible is only compacted. With weights
    that are not integers, sums are compared up to rounding.

    Parameters
    ----------
    problem
        The problem.
    deadline
        Value of ``time.perf_counter()`` from which no further round of the rules begins.
    """
    compacted = compact(problem)
    work = _Work(compacted.problem)
    if work.reduce(deadline):
        return work.reduction(compacted)
    n = compacted.problem.attributes
    identity = np.arange(0, 2 * n, 2, dtype=np.int32)
    nobody = np.full(n, -1, np.int32)
    return Reduction(problem, compacted.problem, compacted, identity, nobody)


class _Work:
    """A compacted problem in the course of its reduction; attributes keep their numbers."""

    def __init__(self, problem: BestResponse) -> None:
        n = problem.attributes
        self.problem = problem
        self.constant = problem.constant
        self.group_of = problem.groups.group_of(n)
        self.terms, self.weights = _one_literal_a_group(
            problem.terms, problem.weights, self.group_of
        )
        if self.terms.shape[1] == 0:
            self.terms = np.zeros((0, 1), np.int32)
        self.rows = problem.rows
        self.unit = np.zeros(n)
        self.value = np.full(n, FREE, np.int8)
        self.replacement = np.full(n, -1, np.int32)
        self.partner = np.full(n, -1, np.int32)

    def reduce(self, deadline: float) -> bool:
        """Reduce until nothing changes; return False if the constraints turn out infeasible."""
        while True:
            processed = self.value != FREE
            if (locks := self._apply_constraints()) is None:
                return False
            self._apply_rules(processed, *locks)
            changed = self._replace_pairs(locks[0] | locks[1])
            changed |= self._merge()
            if len(self.rows):
                changed |= bool(((self.value != FREE) & ~processed).any())
            if time.perf_counter() > deadline:
                return True
            if not changed:
                break
        self._enumerate()
        return True

    def reduction(self, compacted: Compacted) -> Reduction:
        """Return the result."""
        reduced, number = self._remaining()
        size = reduced.attributes
        literals = 2 * number
        fixed = (self.value == 0) | (self.value == 1)
        literals[fixed] = self.value[fixed] + np.int32(2 * size)
        pairs = np.flatnonzero(self.value == _NEGATION)
        literals[pairs] = literals[self.partner[pairs]] ^ 1
        return Reduction(compacted.original, reduced, compacted, literals, self.replacement)

    def _apply_constraints(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
        """Decide what single constraints force; return what may not be raised, nor lowered."""
        n, groups = self.problem.attributes, self.problem.groups
        raising, lowering = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        if len(self.rows) == 0:
            return raising, lowering
        if (found := propagate(self.rows, groups, self.group_of, self.value)) is None:
            return None
        above = found.most > self.rows.upper + self.rows.slack
        below = found.least < self.rows.lower - self.rows.slack
        # One that no record can violate any more is done with: later ranges might look wider.
        binding = above | below
        rows, above, below = self.rows.select(binding), above[binding], below[binding]
        self.rows = rows
        up = rows.coefficients > 0
        too_much, too_little = above[rows.row_of], below[rows.row_of]
        raising[rows.attributes[np.where(up, too_much, too_little)]] = 1
        lowering[rows.attributes[np.where(up, too_little, too_much)]] = 1
        return raising, lowering

    def _apply_rules(
        self, processed: NDArray[np.bool_], raising: NDArray[np.uint8], lowering: NDArray[np.uint8]
    ) -> None:
        from solvers import dominance_kernels as kernels

        n, count = len(self.value), len(self.terms)
        groups = self.problem.groups
        state = kernels.ReductionState(
            terms=self.terms,
            weights=self.weights,
            group_of=self.group_of,
            group_starts=groups.indptr,
            group_members=groups.members,
            raise_locked=raising,
            lower_locked=lowering,
            value=self.value,
            replacement=self.replacement,
            alive=np.zeros(count, np.uint8),
            left=np.zeros(count, np.int32),
            unit=self.unit,
            wanting=np.zeros((n, 2)),
            wishes=np.zeros((n, 2), np.int32),
            starts=np.zeros(n + 1, np.int64),
            occurrences=np.zeros(int(np.count_nonzero(self.terms >= 0)), np.int32),
            processed=processed.astype(np.uint8),
            stack=np.zeros(n, np.int32),
            choices=np.zeros(n + len(groups) + 1, np.int32),
            choice_queued=np.zeros(n + len(groups), np.uint8),
            conjunctions=np.zeros(count + 1, np.int32),
            conjunction_queued=np.zeros(count, np.uint8),
            ends=np.zeros(5, np.int64),
            constant=np.zeros(1),
        )
        kernels.run(state)
        self.constant += float(state.constant[0])
        alive = state.alive == 1
        self.terms, self.weights = self.terms[alive], self.weights[alive]
        # The attributes of living terms that are decided were decided in the literal's favour.
        decided = (self.terms >= 0) & (self.value[self.terms >> 1] != FREE)
        self.terms[decided] = -1

    def _replace_pairs(self, locked: NDArray[np.uint8]) -> bool:
        """Replace a group of two members left, neither locked, by one free attribute."""
        groups = self.problem.groups
        if len(groups) == 0:
            return False
        grouped = self.group_of[groups.members] >= 0
        free = (self.value[groups.members] == FREE) & grouped
        left = np.add.reduceat(free.astype(np.int64), groups.indptr[:-1])
        tied = np.add.reduceat(free * locked[groups.members], groups.indptr[:-1])
        pair = np.repeat((left == 2) & (tied == 0), np.diff(groups.indptr))
        members = groups.members[free & pair]
        if len(members) == 0:
            return False
        first, second = members[0::2], members[1::2]
        self.partner[second] = first
        self.value[second] = _NEGATION
        self.constant += float(self.unit[second].sum())
        self.unit[first] -= self.unit[second]
        self.unit[second] = 0.0
        self.group_of[members] = -1
        attributes = self.terms >> 1
        moved = (self.terms >= 0) & (self.value[attributes] == _NEGATION)
        self.terms[moved] = 2 * self.partner[attributes[moved]] + 1 - (self.terms[moved] & 1)
        return True

    def _merge(self) -> bool:
        before = len(self.terms)
        self.terms, self.weights, constant = merge_terms(len(self.value), self.terms, self.weights)
        self.constant += constant
        return len(self.terms) < before

    def _enumerate(self) -> None:
        """Solve small separate parts."""
        reduced, _ = self._remaining()
        if reduced.attributes == 0:
            return
        from solvers.enumeration import enumerate_parts

        decided, parts = enumerate_parts(reduced, _ENUMERATION_WORK)
        if parts == 0:
            return
        processed = self.value != FREE
        self.value[~processed] = decided
        # The rest is at a fixpoint already: the rules only carry the decisions into the terms.
        everything = np.ones(len(self.value), np.uint8)
        self._apply_rules(processed, everything, everything)

    def _remaining(self) -> tuple[BestResponse, NDArray[np.int32]]:
        """Return the problem that is left, and the numbers of its attributes there."""
        left = self.value == FREE
        kept = np.flatnonzero(left)
        number = np.zeros(len(self.value), np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        single = np.flatnonzero(left & (self.unit != 0.0))
        units = np.full((len(single), self.terms.shape[1]), -1, np.int32)
        units[:, 0] = 2 * single
        codes = np.concatenate((units, self.terms))
        reduced = BestResponse(
            len(kept),
            np.where(codes < 0, np.int32(-1), 2 * number[codes >> 1] + (codes & 1)),
            np.concatenate((self.unit[single], self.weights)),
            self._remaining_groups(number),
            self._remaining_rows(number),
            self.constant + float(self.unit[self.value == 1].sum()),
        )
        return reduced, number

    def _remaining_groups(self, number: NDArray[np.int32]) -> Groups:
        groups = self.problem.groups
        if len(groups) == 0:
            return groups
        kept = (self.value[groups.members] == FREE) & (self.group_of[groups.members] >= 0)
        sizes = np.add.reduceat(kept.astype(np.int64), groups.indptr[:-1])
        return Groups(
            np.concatenate(([0], np.cumsum(sizes[sizes > 0]))), number[groups.members[kept]]
        )

    def _remaining_rows(self, number: NDArray[np.int32]) -> Rows:
        """Return what the constraints still ask for."""
        rows = self.rows
        if len(rows) == 0:
            return rows
        found = ranges(rows, self.problem.groups, self.group_of, self.value)
        value = self.value[rows.attributes]
        free = value == FREE
        settled = rows.sums(np.where(value == 1, rows.coefficients, 0.0))
        left = Rows(
            np.concatenate(([0], np.cumsum(np.bincount(rows.row_of[free], minlength=len(rows))))),
            number[rows.attributes[free]],
            rows.coefficients[free],
            rows.lower,
            rows.upper,
        )
        # Fewer coefficients, less slack: the bounds take up the difference.
        spare = rows.slack - left.slack
        lower = np.where(found.least >= rows.lower - rows.slack, -np.inf, rows.lower)
        upper = np.where(found.most <= rows.upper + rows.slack, np.inf, rows.upper)
        left = replace(left, lower=lower - settled - spare, upper=upper - settled + spare)
        return left.select(np.isfinite(lower) | np.isfinite(upper))


def _one_literal_a_group(
    terms: NDArray[np.int32], weights: NDArray[np.float64], group_of: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Simplify terms that hold a plain literal and another one on the same group."""
    if not (group_of >= 0).any():
        return terms.copy(), weights
    group = np.where(terms < 0, np.int32(-1), group_of[terms >> 1])
    false = np.zeros(len(terms), np.bool_)
    implied = np.zeros(terms.shape, np.bool_)
    for i in range(terms.shape[1]):
        plain = (group[:, i] >= 0) & (terms[:, i] & 1 == 0)
        for h in range(terms.shape[1]):
            if h == i:
                continue
            together = plain & (group[:, h] == group[:, i])
            false |= together & (terms[:, h] & 1 == 0)
            implied[:, h] |= together & (terms[:, h] & 1 == 1)
    if not (false.any() or implied.any()):
        return terms.copy(), weights
    terms = np.where(implied, np.int32(-1), terms)[~false]
    merged, totals, _ = merge_terms(len(group_of), terms, weights[~false])
    return merged, totals

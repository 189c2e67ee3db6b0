"""The nearest legal record, and whether there is one: by search, or else by a solver."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import column_values
from dualquery.rules.constraints import solved_record
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.search_kernels import IMPOSSIBLE, UNDECIDED, possible, search
from solvers import SolverError

BUDGET = 2_000_000
"""Records that one search looks at, at most."""

_MOST_OPTIONS = 4096
"""Nearest records that a search keeps."""

Float64 = NDArray[np.float64]


def legal_classes(rules: Forbidden) -> NDArray[np.int32] | None:
    """Return a legal record, as classes of `Forbidden.columns`; None if there is none.

    A search decides; a solver, where that takes too long.

    Raises
    ------
    SolverError
        If neither comes to an end.
    """
    start = np.zeros(len(rules.columns), np.int32)
    everything = np.ones(int(rules.compiled.classes[-1]), np.uint8)
    found = np.empty((1, len(start)), np.int32)
    budget = BUDGET
    for depth in range(len(start) + 1):
        count, cut, looked = search(rules.compiled, start, everything, depth, budget, found)
        budget -= looked
        if count:
            return np.asarray(found[0])
        if budget <= 0:
            return solved_record(rules, start, everything)
        if not cut:
            break
    return None


def contradiction(rules: Forbidden) -> tuple[int, ...]:
    """Return rules that no record keeps all of, none of which can be spared; none if there are."""
    if not rules.boxes or legal_classes(rules) is not None:
        return ()
    needed = list(range(len(rules)))
    for number in range(len(rules)):
        fewer = [each for each in needed if each != number]
        some = rules.only(fewer)
        if some.boxes and legal_classes(some) is None:
            needed = fewer
    return tuple(needed)


def impossible(rules: Forbidden, allowed: NDArray[np.uint8], legal: NDArray[np.int32]) -> bool:
    """Tell whether no legal record has allowed classes only: proven by search, or by a solver.

    ``legal`` is what `legal_classes` found. Where neither comes to an end, False.
    """
    found = possible(rules.compiled, legal, allowed, BUDGET)
    if found == UNDECIDED:
        with suppress(SolverError):
            return solved_record(rules, legal, allowed) is None
    return bool(found == IMPOSSIBLE)


def repaired(
    records: NDArray[np.uint8], rules: Forbidden, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Return records in which each that breaks a rule has become a nearest legal one.

    Nearest is what differs in the fewest columns; among these, what moves numbers and dates over
    the fewest buckets, as a share of the column's, any other change counting as all of them. What
    is as near is chosen at random, a value as often as the given records have it.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal for the domain.
    generator
        Public.

    Returns
    -------
    uint8, shape ``(r, bits)``; the same object if no record breaks a rule.
    """
    broken = np.flatnonzero(rules.broken(records) >= 0)
    if not len(broken):
        return records
    better = records.copy()
    patterns, which = np.unique(rules.classes(records[broken]), axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(patterns)))
    legal = legal_classes(rules)
    assert legal is not None  # the rules were read, so there is one
    changes = _Changes(rules, records, legal, generator)
    for pattern, rows in zip(patterns, np.split(broken[order], ends[:-1]), strict=True):
        changes.make(pattern, better, rows)
    return better


class _Changes:
    """Changes of records to nearest ones, by the values that the given records have."""

    def __init__(
        self,
        rules: Forbidden,
        records: NDArray[np.uint8],
        legal: NDArray[np.int32],
        generator: np.random.Generator,
    ) -> None:
        self.rules, self.generator, self.legal = rules, generator, legal
        domain, axes = rules.domain, rules.axes
        ones = records.sum(axis=0, dtype=np.int64).astype(np.float64)
        self.frequency = []
        for column in rules.columns.tolist():
            first, stop = domain.offsets[column : column + 2]
            known = ones[first:stop]
            if stop - first == 1:
                known = np.array([len(records) - known[0], known[0]])
            self.frequency.append(known + 0.5)  # what no record has is possible, too
        self.axes = axes

    def make(
        self, pattern: NDArray[np.int32], records: NDArray[np.uint8], rows: NDArray[np.int64]
    ) -> None:
        """Change some rows, all of the same classes, in place."""
        options = self._nearest(pattern)
        values = column_values(records[rows], self.rules.domain)[:, self.rules.columns]
        costs = np.zeros((len(options), len(rows)))
        chances = np.zeros(len(options))
        for at, option in enumerate(options):
            for place in np.flatnonzero(option != pattern).tolist():
                costs[at] += self._move(place, option[place])[0][values[:, place]]
                chances[at] += np.log(
                    self.frequency[place][self._inside(place, option[place])].sum()
                )
        # Exponential races: the first of the nearest, each with its chance.
        race = (
            self.generator.exponential(size=costs.shape) / np.exp(chances - chances.max())[:, None]
        )
        nearest = costs <= costs.min(axis=0) + 1e-9
        chosen = np.where(nearest, race, np.inf).argmin(axis=0)
        for at in np.unique(chosen).tolist():
            taken = chosen == at
            for place in np.flatnonzero(options[at] != pattern).tolist():
                self._set(records, rows[taken], place, options[at][place], values[taken, place])

    def _nearest(self, pattern: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the legal classes that differ from a pattern in the fewest columns."""
        boxes = self.rules.compiled
        everything = np.ones(int(boxes.classes[-1]), np.uint8)
        found = np.empty((_MOST_OPTIONS, len(pattern)), np.int32)
        budget = BUDGET
        for depth in range(1, len(pattern) + 1):
            count, _, looked = search(boxes, pattern, everything, depth, budget, found)
            budget -= looked
            if count:
                return np.unique(found[:count], axis=0)
            if budget <= 0:
                break
        with suppress(SolverError):
            solved = solved_record(self.rules, pattern, everything)
            if solved is not None:
                return solved[None, :]
        return self.legal[None, :]

    def _inside(self, place: int, chosen: int) -> NDArray[np.int64]:
        first, stop = self.axes.starts[place : place + 2]
        return np.flatnonzero(self.axes.class_of[first:stop] == chosen)

    def _move(self, place: int, chosen: int) -> tuple[Float64, NDArray[np.int64]]:
        """Return how far each value is from a class, and the nearest value there; -1 for any."""
        inside, size = self._inside(place, chosen), len(self.frequency[place])
        buckets = int(self.rules.buckets[self.rules.columns[place]])
        far, near = np.ones(size), np.full(size, -1, np.int64)
        there = inside[inside < buckets]
        if buckets > 1 and len(there):
            apart = np.abs(np.arange(buckets)[:, None] - there[None, :])
            far[:buckets] = apart.min(axis=1) / (buckets - 1)
            near[:buckets] = there[apart.argmin(axis=1)]
        return far, near

    def _set(
        self,
        records: NDArray[np.uint8],
        rows: NDArray[np.int64],
        place: int,
        chosen: int,
        values: NDArray[np.int64],
    ) -> None:
        near = self._move(place, chosen)[1][values]
        inside = self._inside(place, chosen)
        weights = self.frequency[place][inside]
        drawn = self.generator.choice(inside, size=len(rows), p=weights / weights.sum())
        new = np.where(near >= 0, near, drawn)
        first, bits = int(self.axes.first[place]), int(self.axes.bits[place])
        if bits == 1:
            records[rows, first] = new
        else:
            records[rows, first : first + bits] = 0
            records[rows, first + new] = 1

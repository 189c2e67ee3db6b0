"""Records made better: values changed until the records answer the workload as the release does.

A local search for a small sum of squared differences between the records' answers and the released
ones, those that are far off counting more. It visits single records, where it makes the change of
one column that lowers the sum most, and pairs of records, which swap the values of a column. What a
second of it gains differs by the table and as the search goes on, so it does what has gained most
of late. It looks at what is released and at nothing else, so it costs no privacy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload, conjunctions_of
from dualquery.queries.family import Statistic
from dualquery.releases.polish_kernels import change_columns, swap_columns
from dualquery.releases.polish_terms import MOST_LITERALS, MultipliedOut, on_asked_columns
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS
from dualquery.runtime.resources import check_memory

_TURN = 0.2
"""Seconds between two looks at the clock, roughly."""

_CHANGES = 3
"""Most changes of a record in one visit."""

_AGAIN = 8
"""Every so many turns the search tries a kind of visit that gained less of late, and weighs the
queries anew."""

_STEP = 0.25
"""Part of the way that weights go to new ones: at once, the search would swing between the few
queries that are far off and all others."""

_WORST, _LOOKED_AT = 64, 20_000
"""Queries whose counts are furthest off, and records that are looked through for those that may
mend them, in a turn."""

_TINY = 1e-9
"""Instead of 0, where no difference is left."""

_PATIENCE = 20
"""Visits of every record without a change after which the search ends."""

_QUERY_BYTES = 1500
"""Memory for each query, while its terms are gathered."""

Float64 = NDArray[np.float64]


def check_polish(queries: Statistic, seconds: float) -> Workload:
    """Return the workload if its records can be polished.

    Raises
    ------
    BadInputError
        If the queries are not conjunctions of at most `MOST_LITERALS` literals, or the time is not
        above 0.
    """
    if not seconds > 0:
        raise BadInputError(f"--polish is {seconds}; a number of seconds above 0 is needed")
    workload = conjunctions_of(queries)
    if workload is None or workload.way > MOST_LITERALS:
        raise BadInputError(
            f"--polish brings records to the answers of conjunctions of at most {MOST_LITERALS} "
            "literals; leave it out for this workload"
        )
    check_memory(
        len(workload) * _QUERY_BYTES,
        f"polishing records for {len(workload):,} queries",
        "leave --polish out, or ask fewer queries",
    )
    return workload


def polished(
    records: NDArray[np.uint8],
    workload: Workload,
    answers: Float64,
    seconds: float,
    generator: np.random.Generator,
    progress: Callable[[int, int], None] = NO_PROGRESS.step,
) -> NDArray[np.uint8]:
    """Return records that answer a workload more as it is answered.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal.
    workload, answers
        m conjunctions of at most `MOST_LITERALS` literals, and float64, shape ``(m,)``: what the
        shares of the records should be. Conjunctions with two literals on one column are left as
        they come out.
    seconds
        Time that the search may take, above 0. It ends earlier where nothing is left to gain.
    generator
        Order in which records are visited (public).
    progress
        Called with the milliseconds that have passed, and with all.

    Returns
    -------
    uint8, shape ``(r, bits)``, legal.
    """
    if not len(records):
        return records
    started = time.perf_counter()
    bits, narrow = on_asked_columns(workload)
    search = _Search.of(records.take(bits, axis=1), narrow, answers, generator)
    kinds = (search.visit_for_worst, search.visit_any, search.visit_pairs)
    gains, visits = np.full(len(kinds), np.inf), np.full(len(kinds), 256)
    turn, unchanged, passed, error = 0, 0, 0.0, search.error
    while passed < seconds and unchanged < _PATIENCE * len(records):
        tried = turn % _AGAIN == 0 or not gains.any()
        kind = turn % len(kinds) if tried else int(gains.argmax())
        visited, changes = kinds[kind](int(visits[kind]))
        unchanged = 0 if changes else unchanged + visited
        before, passed = passed, time.perf_counter() - started
        took = max(passed - before, 1e-9)
        gains[kind] = (error - search.error) / took
        # Aim at the turn's length, but not by more than a factor of 2 at once.
        visits[kind] = np.clip(visits[kind] * np.clip(_TURN / took, 0.5, 2.0), 1, len(records))
        turn += 1
        if turn % _AGAIN == 0:
            search.weigh(_STEP)
        error = search.error
        progress(min(int(1000 * passed), int(1000 * seconds)), int(1000 * seconds))
    if len(bits) == records.shape[1]:
        return search.records
    better = records.copy()
    better[:, bits] = search.records
    return better


@dataclass(eq=False)
class _Search:
    """Records, by how much they answer too much, and the kinds of visits that change them.

    Each kind takes the most visits to make, and returns how many it made and how many changes.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal; changed in place, as `made_of` and `excess` are.
    workload
        The queries.
    made_of
        What they are made of.
    excess
        float64, shape ``(m,)``: by how much each query's count is too large.
    generator
        Order of visits.
    """

    records: NDArray[np.uint8]
    workload: Workload
    made_of: MultipliedOut
    excess: Float64
    generator: np.random.Generator
    _left: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @staticmethod
    def of(
        records: NDArray[np.uint8],
        workload: Workload,
        answers: Float64,
        generator: np.random.Generator,
    ) -> _Search:
        """Start from records, which the search changes."""
        excess = (workload.answers_on(records) - answers) * len(records)
        search = _Search(records, workload, MultipliedOut.of(workload), excess, generator)
        search.weigh()
        return search

    @property
    def error(self) -> float:
        """Sum of squared differences of counts, weighed."""
        return float(self.made_of.asked.weights @ self.excess**2)

    def weigh(self, step: float = 1.0) -> None:
        """Let queries that are far off count more: go a part of the way to such weights.

        Iteratively reweighted least squares: for differences e of root mean square s, least squares
        by the weights ``1 + e^2 / s^2``, again and again, lead to a small sum of
        ``e^2 + e^4 / (2 s^2)``.
        """
        square = self.excess**2
        now = self.made_of.asked.weights
        aim = 1.0 + square / max(float(square.mean()), _TINY)
        self.made_of.weigh(now + step * (aim - now), self.excess)

    def visit_any(self, most: int) -> tuple[int, int]:
        """Visit records in a random order, all once before any twice."""
        return self._change(self._next(most))

    def visit_for_worst(self, most: int) -> tuple[int, int]:
        """Visit records that may mend the queries whose counts are furthest off."""
        return self._change(self.near_worst()[:most])

    def near_worst(self) -> NDArray[np.int64]:
        """Return records, in a random order, that may mend the queries furthest off.

        Records on which a query holds, where its count is too large, or all but one of its literals
        do, where it is too small; no more than are needed of those looked through.
        """
        size = len(self.records)
        looked_at = self.generator.choice(size, min(size, _LOOKED_AT), replace=False)
        off = np.where(np.diff(self.made_of.asked.made) > 0, np.abs(self.excess), 0.0)
        worst = np.argpartition(-off, min(_WORST, len(off)) - 1)[:_WORST]
        literals = self.workload.literals[worst]
        held = self.records[looked_at[:, None, None], literals >> 1] != (literals & 1)
        missing = (~held & (literals >= 0)).sum(axis=2)
        may = missing == (self.excess[worst] < 0)
        needed = may & (may.cumsum(axis=0) <= off[worst])
        found: NDArray[np.int64] = looked_at[needed.any(axis=1)]
        return found

    def visit_pairs(self, most: int) -> tuple[int, int]:
        """Visit records as `visit_any` does, each with a random other one."""
        visited = self._next(most)
        partners = self.generator.integers(len(self.records), size=len(visited))
        offsets, made_of = self.workload.domain.offsets, self.made_of
        swaps = swap_columns(
            self.records, offsets, made_of.terms, made_of.asked, visited, partners, self.excess
        )
        return len(visited), swaps

    def _change(self, visited: NDArray[np.int64]) -> tuple[int, int]:
        offsets, made_of = self.workload.domain.offsets, self.made_of
        changes = change_columns(
            self.records, offsets, made_of.terms, made_of.asked, visited, _CHANGES, self.excess
        )
        return len(visited), changes

    def _next(self, most: int) -> NDArray[np.int64]:
        if not len(self._left):
            self._left = self.generator.permutation(len(self.records))
        visited, self._left = self._left[:most], self._left[most:]
        return visited

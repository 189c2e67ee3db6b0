"""Records made better: values changed until the records answer the workload as the release does.

A local search for a small sum of squared differences between the records' answers and the released
ones. It visits single records, where it makes the change of one column that lowers the sum most,
and pairs of records, which swap the values of a column. What a second of it gains differs by the
table and as the search goes on, so it does what has gained most of late. It looks at what is
released and at nothing else, so it costs no privacy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload, conjunctions_of
from dualquery.queries.family import Statistic
from dualquery.releases.polish_kernels import Asked, Terms, change_columns, swap_columns
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.progress import NO_PROGRESS
from dualquery.runtime.resources import check_memory

_TURN = 0.2
"""Seconds between two looks at the clock, roughly."""

_CHANGES = 3
"""Most changes of a record in one visit."""

_AGAIN = 8
"""Every so many turns the search tries a kind of visit that gained less of late."""

_WORST, _LOOKED_AT = 64, 20_000
"""Queries whose counts are furthest off, and records that are looked through for those that may
mend them, in a turn."""

_PATIENCE = 20
"""Visits of every record without a change after which the search ends."""

MOST_LITERALS = 3

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
    uint8, shape ``(r, bits)``, legal; no worse in the sum of squared differences over the queries
    that were looked at.
    """
    if not len(records):
        return records
    started = time.perf_counter()
    search = _Search.of(records, workload, answers, generator)
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
        error, gains[kind] = search.error, (error - search.error) / took
        # Aim at the turn's length, but not by more than a factor of 2 at once.
        visits[kind] = np.clip(visits[kind] * np.clip(_TURN / took, 0.5, 2.0), 1, len(records))
        turn += 1
        progress(min(int(1000 * passed), int(1000 * seconds)), int(1000 * seconds))
    return search.records


@dataclass(eq=False)
class _Search:
    """Records, by how much they answer too much, and the kinds of visits that change them.

    Each kind takes the most visits to make, and returns how many it made and how many changes.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal; changed in place, as `terms` and `excess` are.
    workload
        The queries.
    terms, asked
        What they are made of.
    excess
        float64, shape ``(m,)``: by how much each query's count is too large.
    generator
        Order of visits.
    """

    records: NDArray[np.uint8]
    workload: Workload
    terms: Terms
    asked: Asked
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
        """Start from records."""
        excess = (workload.answers_on(records) - answers) * len(records)
        terms, asked = _multiplied_out(workload, excess)
        return _Search(np.array(records, order="C"), workload, terms, asked, excess, generator)

    @property
    def error(self) -> float:
        """Sum of squared differences of counts."""
        return float(self.excess @ self.excess)

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
        off = np.where(np.diff(self.asked.made) > 0, np.abs(self.excess), 0.0)
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
        offsets = self.workload.domain.offsets
        swaps = swap_columns(
            self.records, offsets, self.terms, self.asked, visited, partners, self.excess
        )
        return len(visited), swaps

    def _change(self, visited: NDArray[np.int64]) -> tuple[int, int]:
        offsets = self.workload.domain.offsets
        changes = change_columns(
            self.records, offsets, self.terms, self.asked, visited, _CHANGES, self.excess
        )
        return len(visited), changes

    def _next(self, most: int) -> NDArray[np.int64]:
        if not len(self._left):
            self._left = self.generator.permutation(len(self.records))
        visited, self._left = self._left[:most], self._left[most:]
        return visited


def _multiplied_out(workload: Workload, excess: Float64) -> tuple[Terms, Asked]:
    """Write the queries as sums of products of bits, a negation being 1 less its bit."""
    literals, bits = workload.literals, workload.domain.bits
    columns = np.where(literals >= 0, workload.domain.column_of_bit[literals >> 1], -1)
    # Literals increase, and so do their columns.
    twice = ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)
    literals = np.where(twice[:, None], np.int32(-1), literals)
    padding = np.full((len(literals), MOST_LITERALS - literals.shape[1]), -1, np.int32)
    literals = np.concatenate((literals, padding), axis=1)
    present, negated = literals >= 0, (literals & 1 == 1) & (literals >= 0)

    rows, owners, signs = [], [], []
    for pattern in range(1 << MOST_LITERALS):
        kept = (pattern >> np.arange(MOST_LITERALS) & 1).astype(bool)
        # Positive literals are in every term, negated ones in half of them.
        fits = (present & ~negated <= kept).all(axis=1) & (kept <= present).all(axis=1)
        owner = np.flatnonzero(fits & ~twice)
        rows.append(np.where(kept, literals[owner], np.int32(-1)))
        owners.append(owner)
        signs.append((-1.0) ** (negated[owner] & kept).sum(axis=1))
    codes, owner, sign = np.concatenate(rows), np.concatenate(owners), np.concatenate(signs)
    products = pad_right(np.where(codes >= 0, codes >> 1, np.int32(-1)))
    first = first_occurrences(products, bits)
    distinct = np.flatnonzero(first == np.arange(len(first)))
    place = np.searchsorted(distinct, first)
    slopes = np.bincount(place, 2.0 * sign * excess[owner], len(distinct))

    # For each term and each bit v of it: the bits that must be set for v to matter.
    term, position = np.nonzero(products[distinct] >= 0)
    bit = products[distinct][term, position]
    others = products[distinct][term]
    others[np.arange(len(term)), position] = -1
    others = pad_right(others)[:, :2].astype(np.int64)
    # A literal's own sign and that of the term: the square of a change is its number of queries.
    steady = np.zeros((len(distinct), MOST_LITERALS))
    for column in range(MOST_LITERALS):
        held = codes[:, column] >= 0
        own = np.where(codes[held, column] & 1, -1.0, 1.0) * sign[held]
        where = (products[held] == (codes[held, column] >> 1)[:, None]).argmax(axis=1)
        np.add.at(steady, (place[held], where), own)
    single = others[:, 1] < 0
    pair = np.where(single, -1, others[:, 0] * bits + others[:, 1])
    pairs = np.unique(pair[~single])
    where = np.where(others[:, 0] < 0, 0, 1 + others[:, 0])
    where[~single] = 1 + bits + np.searchsorted(pairs, pair[~single])
    order = np.argsort(where, kind="stable")
    terms = Terms(
        partners=np.searchsorted(pairs, np.arange(bits + 1) * bits).astype(np.int64),
        partner=(pairs % bits).astype(np.int32),
        starts=_starts(where, 1 + bits + len(pairs)),
        bit=bit[order].astype(np.int32),
        term=term[order].astype(np.int32),
        steady=steady[term, position][order],
        slopes=slopes,
    )

    query, spot = np.nonzero(present & ~twice[:, None])
    own_codes = literals[query, spot]
    rest = literals[query]
    rest[np.arange(len(query)), spot] = -1
    by_bit = np.argsort(own_codes >> 1, kind="stable")
    by_owner = np.argsort(owner, kind="stable")
    asked = Asked(
        starts=_starts(own_codes >> 1, bits),
        query=query[by_bit].astype(np.int32),
        negated=(own_codes & 1).astype(np.uint8)[by_bit],
        others=np.ascontiguousarray(pad_right(rest)[by_bit][:, :2]),
        made=_starts(owner, len(literals)),
        term=place[by_owner].astype(np.int32),
        coefficient=sign[by_owner],
    )
    return terms, asked


def _starts(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return where each of ``count`` numbers starts in the sorted list of them."""
    return np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count)))).astype(np.int64)

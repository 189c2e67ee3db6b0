"""How far exact numbers move between neighbouring tables; the room charges it, plans ask for it.

When one record is *replaced*, the number of rows n is public; a count moves by at most the spread
of its query, and only the counts of queries that tell the two records apart move.

When one record is *added or removed*, n is private, and a public number of rows N stands in for it
(see `dualquery.room.row_count`). A count then moves by what one record contributes. Two things
make that small:

- *Complements.* A conjunction without positive literals holds on most records, so the room counts
  the rows on which it does **not** hold, and gives out N less that: see `contributing_queries`.
- *Centres.* A query's values lie in ``low .. high``. Counted from their middle z, a record
  contributes at most half of the range, up or down: the room uses ``c + (N - n) z`` for a count c
  where only the log-ratio of weights or the comparison of scores matters. That is half of what
  replacing a record does, at the price of a common shift by (N - n) z.

When one *unit* of at most K rows is replaced, added or removed (`dualquery.privacy.neighbours`), n
is private, too, and the same numbers are counted: complements, centres, N in the place of n. A step
that adds or removes a row moves them as above. A step that replaces a row moves them as it moves
plain counts: it leaves n and N alone, so a complement moves as its count does, and a centre not at
all. Neighbours are at most K steps apart, and move the numbers by at most K times the larger of the
two.

**Bounds.** They prove how many queries of a workload can differ between two records. Replacing one
record of a table changes the count of a query by at most 1, and only if the query tells the two
records apart. So the vector of all counts has L1 sensitivity at most B and L2 sensitivity at most
sqrt(B) under replace-one, where B bounds

    D(x, x') = #{q : q(x) != q(x')}    over all legal records x, x'.

B is a function of the workload and the domain only: no data are read. It is a privacy constant, so
everything that decides it is either integer arithmetic or floating point with a stated margin.

The literals are first rewritten over the *values* of the columns: a binary column has two values,
and "not b" on it (or on a one-hot column of two bits) says that it has the other one. What remains
is, for each query, a set of *positive* literals "column = value" and a set of *negative* ones
"column != value" on columns of three or more values. Write a, b, .. for the 0/1 indicators of the
positive literals' values and A, B, .. for those that the negative literals exclude. All bounds use

    f_q = 1 - q  for a query without positive literals,  f_q = q  for any other,
    D(x, x') <= sum_q f_q(x) + f_q(x').                                              (1)

Different methods suit different workloads; each is valid for all of them, and so is the smallest.

When a record x is *added or removed*, what moves is what x itself contributes. Take the vector of
the counts of all f_q, that is, count the rows on which a query does not hold where it has no
positive literal: its L1 sensitivity is at most the largest sum of f_q(x), and its L2 sensitivity
at most the root of that. Every method bounds this sum on its way to (1), so each serves both: below
they take the number of records whose f_q they add up, two or one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Statistic
from dualquery.room.sensitivity.combinatorial import (
    MOST_VALUES,
    Conjunctions,
    column_set_bound,
    pairwise_bound,
)


@dataclass(frozen=True)
class Moves:
    """How far a vector of numbers moves between neighbours."""

    l1: float  # largest sum of the absolute moves of its entries; infinite where none is proven
    l2: float  # largest Euclidean length of its move
    entries: int = 0  # most entries that move, where `l1` and `l2` follow from it; else 0
    proof: str = ""  # the argument that proves the moves

    @staticmethod
    def of_entries(entries: int, each: float, proof: str = "") -> Moves:
        """Return the moves of a vector: ``entries`` of its numbers move, each by at most ``each``.

        Numbers that no record can move are charged as if one of them did, so that noise has a
        scale.
        """
        charged = max(entries, 1)
        return Moves(each * charged, each * math.sqrt(charged), entries, proof)

    @staticmethod
    def between(
        neighbours: Neighbours, replaced: Callable[[], Moves], added: Callable[[], Moves]
    ) -> Moves:
        """Return how far neighbours are apart, by the steps of their relation.

        ``replaced`` and ``added`` give how far the vector moves when one row is replaced, or added
        or removed; asked only if a step of the relation may do that.
        """
        if neighbours.unit is None and neighbours.weight is None:
            return replaced() if neighbours.replaces else added()
        steps = [replaced(), added()] if neighbours.replaces else [added()]
        most = neighbours.steps
        # As many entries may move in each step, and no more than that is said of them.
        return Moves(
            most * max(step.l1 for step in steps),
            most * max(step.l2 for step in steps),
            most * max(step.entries for step in steps),
            f"{most} rows, {' or '.join(dict.fromkeys(step.proof for step in steps))}",
        )


def count_moves(queries: Statistic, neighbours: Neighbours) -> Moves:
    """Return how the vector of all counts moves, in steps; of complements, where there are any."""

    def replaced() -> Moves:
        differing = differing_queries(queries)
        return Moves.of_entries(differing.count, queries.spread, differing.method)

    def added() -> Moves:
        if isinstance(queries, Workload):
            contributing = contributing_queries(queries)
            return Moves.of_entries(contributing.count, 1, contributing.method)
        return Moves.of_entries(len(queries), _one_contribution(queries), "queries")

    return Moves.between(neighbours, replaced, added)


def one_count_move(queries: Statistic, neighbours: Neighbours) -> float:
    """Return how far one count moves, in steps."""
    return neighbours.furthest(queries.spread, _one_contribution(queries))


def _one_contribution(queries: Statistic) -> float:
    """Return how far one count moves when a record is added, in steps."""
    # Counts that nobody can move are charged for a step, so that noise has a scale.
    return max(1.0, abs(queries.low) / queries.step, abs(queries.high) / queries.step)


def score_move(queries: Statistic, neighbours: Neighbours) -> float:
    """Return how far the error of a public model on one query moves, in steps; centred."""
    middle = twice_the_middle(queries) / 2.0
    half = max(0.5, queries.high / queries.step - middle, middle - queries.low / queries.step)
    return neighbours.furthest(queries.spread, half)


def twice_the_middle(queries: Statistic) -> int:
    """Return twice the middle of the queries' range, rounded to whole steps."""
    return round((queries.low + queries.high) / queries.step)


def table_moves(neighbours: Neighbours) -> Moves:
    """Return how the cells of a partition move: of a histogram, a marginal or a 2^k table.

    A record lies in one cell: replacing it moves two of them, adding or removing it one.
    """
    return Moves.between(
        neighbours,
        lambda: Moves.of_entries(2, 1, "exclusive cells"),
        lambda: Moves.of_entries(1, 1, "exclusive cells"),
    )


def parity_moves(sets: Workload, neighbours: Neighbours) -> Moves:
    """Return how the numbers of rows with an odd sum move, one for each set of bits.

    Adding a record moves the *signed* count of a set, n less twice its odd rows, by 1 up or down,
    and half of it is what the room measures: every entry moves by 1/2.
    """
    return Moves.between(
        neighbours,
        lambda: Moves.of_entries(parities_apart(sets), 1, "parities"),
        lambda: Moves.of_entries(len(sets), 0.5, "parities"),
    )


@dataclass(frozen=True)
class Bound:
    """A proven bound on the queries that differ between two legal records, or hold on one."""

    count: int
    """Queries, at least 0. The counts of all queries (under add-remove those of f_q) have L1
    sensitivity at most ``count`` and L2 sensitivity at most ``sqrt(count)``."""
    method: str
    """The argument that proves it; of two with `` + `` between, the first is for the queries that
    the spectral bound covers, the second for the others."""


def differing_queries(workload: Statistic) -> Bound:
    """Bound the number of queries on which two legal records can differ; the same on every run.

    The smallest of the number of (non-constant) queries, `column_set_bound`, `pairwise_bound`, and
    `spectral_bound` for the queries on binary columns plus one of the former for the rest: two sets
    of queries differ on at most the sum of what each differs on. For records of few 1s also
    `few_ones_bound`. Of other families than conjunctions the bound is all queries. Results are kept
    for the last few workloads: a plan and the room see the same.
    """
    # Exactly: a family of a user's own may say of itself what it likes, also to a cache.
    if type(workload) is not Workload:
        return Bound(len(workload), "queries")
    return _smallest(workload, 2)


def contributing_queries(workload: Workload) -> Bound:
    """Bound the sum of f_q over all queries on one legal record; else as `differing_queries`."""
    return _smallest(workload, 1)


def complemented(workload: Statistic) -> NDArray[np.bool_]:
    """Return the queries with f_q = 1 - q: those without positive literals; bool, ``(m,)``.

    A literal on a column of two values asks for one of them, and is positive. Of other families
    none is complemented.
    """
    if not isinstance(workload, Workload):
        return np.zeros(len(workload), dtype=np.bool_)
    codes, domain = workload.literals, workload.domain
    two_valued = np.maximum(domain.sizes, 2)[domain.column_of_bit[codes >> 1]] == 2
    positive = (codes >= 0) & (two_valued | (codes & 1 == 0))
    return np.asarray(~positive.any(axis=1))


@lru_cache(maxsize=16)
def _smallest(workload: Workload, records: int) -> Bound:
    """Return the smallest bound on the sum of f_q over ``records`` records, two or one."""
    conjunctions = Conjunctions.of_workload(workload)
    binary = conjunctions.on_binary_columns
    parts = [(_spectral, binary), (_combinatorial, ~binary)] if binary.any() else []
    found = [_combinatorial(conjunctions, records)]
    addends = [bound(conjunctions.subset(part), records) for bound, part in parts if part.any()]
    if addends:
        methods = " + ".join(addend.method for addend in addends)
        found.append(Bound(sum(addend.count for addend in addends), methods))
    if workload.domain.max_ones is not None:
        found.append(Bound(few_ones_bound(workload, workload.domain.max_ones, records), "few ones"))
    return min(found, key=lambda bound: bound.count)


def _spectral(conjunctions: Conjunctions, records: int) -> Bound:
    from dualquery.room.sensitivity.spectral import spectral_bound

    count = spectral_bound(conjunctions, records)
    if count is None or count >= len(conjunctions):
        return Bound(len(conjunctions), "queries")
    return Bound(count, "spectral")


def _combinatorial(conjunctions: Conjunctions, records: int) -> Bound:
    bounds = [Bound(len(conjunctions), "queries")]
    if len(conjunctions):
        bounds.append(Bound(column_set_bound(conjunctions, records), "column sets"))
        if conjunctions.values <= MOST_VALUES:
            bounds.append(Bound(pairwise_bound(conjunctions, records), "pairwise"))
    return min(bounds, key=lambda bound: bound.count)


def few_ones_bound(workload: Workload, most: int, records: int = 2) -> int:
    """Bound the differing queries when every legal record has at most ``most`` ones.

    A conjunction with positive literals differs between two records only if one of them has all the
    bits that it asks for. A record of k ones has C(k, p) sets of p bits, and each is asked for by a
    known number of queries, so the record meets at most the sum of the C(k, p) largest of these
    numbers. Conjunctions of negated literals only gain nothing: they count in full.

    For m positive queries of p different bits each, none repeated, this is min(m, 2 C(most, p)).
    Columns are binary. With one of ``records`` it bounds what a record contributes.
    """
    literals = workload.literals
    wanted = np.sort(np.where((literals >= 0) & (literals & 1 == 0), literals, -1), axis=1)
    wanted[:, 1:][wanted[:, 1:] == wanted[:, :-1]] = -1
    wanted.sort(axis=1)
    positives = np.count_nonzero(wanted >= 0, axis=1)
    bound = int(np.count_nonzero(positives == 0))
    for count in np.unique(positives[positives > 0]).tolist():
        asked = wanted[positives == count]
        # How many queries ask for each different set of bits.
        _, repeats = np.unique(asked, axis=0, return_counts=True)
        largest = int(np.sort(repeats)[::-1][: comb(most, count)].sum())
        bound += min(len(asked), records * largest)
    return bound


_ENUMERATED_BITS = 20
"""Up to this many bits all differences of two records are looked at."""


@lru_cache(maxsize=8)
def parities_apart(sets: Workload) -> int:
    """Bound the number of sets of bits whose parities can differ between two legal records.

    Replacing one record moves each such o_b by 1: the vector of all of them has L1 sensitivity at
    most this number and L2 sensitivity at most its root. Parities differ where the records' bitwise
    difference has an odd number of bits of the set: with up to 20 bits asked about, all differences
    that legal records can have are looked at, and the number is exact; above, it is the number of
    sets.
    """
    asked = np.unique(sets.literals[sets.literals >= 0] >> 1)
    if len(asked) > _ENUMERATED_BITS:
        return len(sets)
    member = np.zeros((len(sets), len(asked)), np.int64)
    row, position = np.nonzero(sets.literals >= 0)
    member[row, np.searchsorted(asked, sets.literals[row, position] >> 1)] = 1
    signs = np.bincount(member @ (1 << np.arange(len(asked))), minlength=1 << len(asked))
    for bit in range(len(asked)):
        pair = signs.reshape(-1, 2, 1 << bit)
        signs = np.stack((pair[:, 0] + pair[:, 1], pair[:, 0] - pair[:, 1]), axis=1).ravel()
    apart = (len(sets) - signs) // 2
    domain = sets.domain
    columns = domain.column_of_bit[asked]
    differences = np.arange(1 << len(asked))
    possible = np.ones(len(apart), bool)
    for column in np.unique(columns[domain.sizes[columns] > 1]):
        bits = np.flatnonzero(columns == column)
        changed = np.bitwise_count(differences & int((1 << bits).sum()))
        # A difference in an asked bit alone: the other one is a bit that nobody asks about.
        alone = len(bits) < domain.sizes[column]
        possible &= (changed == 0) | (changed == 2) | ((changed == 1) & alone)
    return int(apart[possible].max())

"""Proven bounds on the number of queries of a workload that can differ between two records.

Replacing one record of a table changes the count of a query by at most 1, and only if the query
tells the two records apart. So the vector of all counts has L1 sensitivity at most B and L2
sensitivity at most sqrt(B) under replace-one, where B bounds

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

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.queries.family import Statistic
from dualquery.room.sensitivity.ones import few_ones_bound

Int64 = NDArray[np.int64]

# Units of the pairwise model in one query; divisible by 1 .. 12, so that its fractions are whole.
UNIT = 27_720
# The pairwise tables hold the square of this number of entries (32 MiB).
_PAIRWISE_VALUES = 2_048
# Entries of tables that message passing may visit, and its sweeps at most.
_PAIRWISE_VISITS = 2 * 10**9
_PAIRWISE_SWEEPS = 100


@dataclass(frozen=True)
class Bound:
    """A proven bound on the queries that differ between two legal records, or hold on one.

    Parameters
    ----------
    count
        Queries, at least 0. The counts of all queries (under add-remove those of f_q) have L1
        sensitivity at most ``count`` and L2 sensitivity at most ``sqrt(count)``.
    method
        The argument that proves it: ``"queries"`` (there are no more), ``"column sets"``,
        ``"pairwise"``, ``"spectral"``, ``"few ones"``; or two of them with `` + `` between: the
        first for the queries that the spectral bound covers, the second for the others.
    """

    count: int
    method: str


@lru_cache(maxsize=8)
def differing_queries(workload: Statistic, threads: int = 1) -> Bound:
    """Bound the number of queries on which two legal records can differ.

    Results are kept for the last few workloads, so that the plan of a measurement and the room that
    checks it see the same number even where the last digits of a proof could differ.

    The smallest of the number of (non-constant) queries, `column_set_bound`, `pairwise_bound`, and
    `sensitivity_spectral.spectral_bound` for the queries on binary columns plus one of the former
    for the rest: two sets of queries differ on at most the sum of what each differs on. For records
    of few 1s also `few_ones_bound`.

    Parameters
    ----------
    workload
        Conjunctions of any width over any domain; of another family the bound is all queries.
    threads
        Methods that may run at the same time; the result does not depend on it.

    Returns
    -------
    Bound
        The bound, at most the number of queries. The same on every run for the same workload, but
        for the last digits of floating point in the spectral bound, which all are valid.
    """
    if not isinstance(workload, Workload):
        return Bound(len(workload), "queries")
    return _smallest(workload, 2, threads)


@lru_cache(maxsize=8)
def contributing_queries(workload: Workload, threads: int = 1) -> Bound:
    """Bound the sum of f_q over all queries on one legal record: what it contributes to counts.

    Where f_q is the complement of the query: see `complemented`. The methods, parameters and the
    result are those of `differing_queries`, which is at least as large.
    """
    return _smallest(workload, 1, threads)


def complemented(workload: Statistic) -> NDArray[np.bool_]:
    """Return the queries with f_q = 1 - q: those without positive literals; bool, ``(m,)``.

    A literal on a column of two values asks for one of them, and is positive. Queries of other
    families have no literals, so that none of them is complemented.
    """
    if not isinstance(workload, Workload):
        return np.zeros(len(workload), dtype=np.bool_)
    codes, domain = workload.literals, workload.domain
    two_valued = np.maximum(domain.sizes, 2)[domain.column_of_bit[codes >> 1]] == 2
    positive = (codes >= 0) & (two_valued | (codes & 1 == 0))
    none: NDArray[np.bool_] = ~positive.any(axis=1)
    return none


def _smallest(workload: Workload, records: int, threads: int) -> Bound:
    """Return the smallest bound on the sum of f_q over so many records, two or one."""
    conjunctions = Conjunctions.of_workload(workload)
    binary = conjunctions.on_binary_columns
    parts = [(_spectral, binary), (_combinatorial, ~binary)]
    with ThreadPoolExecutor(threads) as pool:
        whole = pool.submit(_combinatorial, conjunctions, records)
        split = [
            pool.submit(bound, conjunctions.subset(part), records)
            for bound, part in parts
            if part.any()
        ]
    addends = [addend.result() for addend in split]
    total = Bound(
        sum(addend.count for addend in addends), " + ".join(addend.method for addend in addends)
    )
    found = [whole.result(), total]
    if workload.domain.max_ones is not None:
        found.append(Bound(few_ones_bound(workload, workload.domain.max_ones, records), "few ones"))
    return min(found, key=lambda bound: bound.count)


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Non-constant conjunctions over the values of columns; see the module's docstring.

    Parameters
    ----------
    positive, negative
        int32, shape ``(m, k)``: values that a query's columns must, or must not, have; no value
        twice in a row; the padding -1 stands on the left.
    offsets
        int64, shape ``(columns + 1,)``: column ``c`` has the values
        ``offsets[c] .. offsets[c + 1] - 1``, of which a legal record takes exactly one.
    """

    positive: NDArray[np.int32]
    negative: NDArray[np.int32]
    offsets: Int64

    def __len__(self) -> int:
        return len(self.positive)

    @staticmethod
    def of_workload(workload: Workload) -> Conjunctions:
        """Rewrite a workload over values, and leave out what no query can see.

        A query whose positive literals ask for two values of one column is false on all legal
        records and is dropped. Columns that no query uses are dropped, and of the values of a
        one-hot column that no query mentions, which are alike to all queries, one is kept.
        """
        codes, domain = workload.literals, workload.domain
        used, bit, negated = codes >= 0, codes >> 1, codes & 1
        sizes = np.maximum(domain.sizes, 2)
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        column = domain.column_of_bit[bit]
        within = bit - domain.offsets[column]
        two_valued = sizes[column] == 2
        # The first of a binary column's two values is that its bit is 1.
        within = np.where(two_valued, within ^ negated, within)
        value = (offsets[column] + within).astype(np.int32)
        asked = used & (two_valued | (negated == 0))
        positive = np.sort(np.where(asked, value, -1), axis=1)
        negative = np.sort(np.where(used & ~asked, value, -1), axis=1)

        repeated = (positive[:, 1:] == positive[:, :-1]) & (positive[:, 1:] >= 0)
        positive[:, 1:][repeated] = -1
        positive.sort(axis=1)
        column_of_value = np.repeat(np.arange(domain.columns), sizes)
        asked_column = np.where(positive >= 0, column_of_value[positive], -1)
        clash = (asked_column[:, 1:] == asked_column[:, :-1]) & (asked_column[:, 1:] >= 0)
        possible = ~clash.any(axis=1)
        return Conjunctions(positive[possible], negative[possible], offsets)._compressed()

    def _compressed(self) -> Conjunctions:
        values = int(self.offsets[-1])
        mentioned = np.zeros(values + 1, bool)
        mentioned[self.positive] = mentioned[self.negative] = True
        mentioned = mentioned[:-1]
        sizes, column = np.diff(self.offsets), self.column_of_value
        mentions = np.bincount(column[mentioned], minlength=len(sizes))
        kept = mentioned | ((sizes == 2) & (mentions > 0))[column]
        unmentioned = np.flatnonzero(~kept & ((sizes > 2) & (mentions > 0))[column])
        _, first = np.unique(column[unmentioned], return_index=True)
        kept[unmentioned[first]] = True
        renumbered = np.full(values + 1, -1, np.int32)
        renumbered[:-1][kept] = np.arange(np.count_nonzero(kept))
        new_sizes = np.bincount(column[kept], minlength=len(sizes))
        return Conjunctions(
            renumbered[self.positive],
            renumbered[self.negative],
            np.concatenate(([0], np.cumsum(new_sizes[new_sizes > 0]))),
        )

    def subset(self, chosen: NDArray[np.bool_]) -> Conjunctions:
        """Return the chosen queries, over the same values."""
        return Conjunctions(self.positive[chosen], self.negative[chosen], self.offsets)

    @property
    def values(self) -> int:
        """Number of values of all columns."""
        return int(self.offsets[-1])

    @cached_property
    def column_of_value(self) -> Int64:
        """Column of each value, int64, shape ``(values,)``."""
        columns = np.arange(len(self.offsets) - 1, dtype=np.int64)
        return np.repeat(columns, np.diff(self.offsets))

    @cached_property
    def positives(self) -> Int64:
        """Positive literals of each query, int64, shape ``(m,)``."""
        literals: Int64 = np.sum(self.positive >= 0, axis=1, dtype=np.int64)
        return literals

    @cached_property
    def negatives(self) -> Int64:
        """Negative literals of each query, int64, shape ``(m,)``."""
        literals: Int64 = np.sum(self.negative >= 0, axis=1, dtype=np.int64)
        return literals

    @cached_property
    def on_binary_columns(self) -> NDArray[np.bool_]:
        """Queries with a positive literal and all of these on columns of two values, shape (m,)."""
        wide = np.append((np.diff(self.offsets) > 2)[self.column_of_value], False)
        return (self.positives > 0) & ~wide[self.positive].any(axis=1)

    def positive_values(self, queries: NDArray[np.bool_] | Int64, count: int) -> NDArray[np.int32]:
        """Return the positive values of the chosen queries, which have ``count`` each."""
        return self.positive[queries][:, self.positive.shape[1] - count :]

    def count_values(self, values: NDArray[np.int32]) -> Int64:
        """Return how often each value occurs, leaving out padding; int64, shape ``(values,)``."""
        return np.bincount(values[values >= 0], minlength=self.values).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ColumnSets:
    """Queries with ``p`` positive literals, grouped by the columns of these.

    Parameters
    ----------
    set_of_query
        int64, shape ``(queries,)``.
    columns
        int64, shape ``(sets, p)``.
    fullest
        int64, shape ``(sets,)``: of the cells (one value a column) of each set, the number of
        queries in the fullest one, or in the two fullest, added: as many as there are records.
    """

    set_of_query: Int64
    columns: Int64
    fullest: Int64

    @staticmethod
    def of_values(
        values: NDArray[np.int32], column_of_value: Int64, records: int = 2
    ) -> ColumnSets:
        """Group the rows of ``values`` (sorted values, shape ``(queries, p)``, no padding)."""
        columns = column_of_value[values]
        _, cell_row, cell_of_query, count = np.unique(
            _row_keys(values, len(column_of_value)),
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        _, set_row, set_of_cell = np.unique(
            _row_keys(columns[cell_row], len(column_of_value)),
            return_index=True,
            return_inverse=True,
        )
        return ColumnSets(
            set_of_cell[cell_of_query],
            columns[cell_row][set_row],
            _largest(count, set_of_cell, len(set_row), records),
        )


def _row_keys(rows: NDArray[np.integer], base: int) -> Int64:
    """Return a number for each row, the same for equal rows only; entries are in [0, base)."""
    keys = rows[:, 0].astype(np.int64)
    for entry in rows.T[1:]:
        if keys.max(initial=0) >= 2**62 // base:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        keys = keys * base + entry
    return keys


def _largest(amount: Int64, owner: Int64, owners: int, number: int) -> Int64:
    """Return for each owner the sum of its ``number`` largest amounts (of all if it has fewer)."""
    order = np.lexsort((-amount, owner))
    start = np.searchsorted(owner[order], np.arange(owners + 1))
    rank = np.arange(len(order)) - start[owner[order]]
    leading = order[rank < number]
    return np.bincount(owner[leading], amount[leading], owners).astype(np.int64)


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
        if conjunctions.values <= _PAIRWISE_VALUES:
            bounds.append(Bound(pairwise_bound(conjunctions, records), "pairwise"))
    return min(bounds, key=lambda bound: bound.count)


def column_set_bound(conjunctions: Conjunctions, records: int = 2) -> int:
    """Bound the differing queries by a sum over the sets of columns that positive literals use.

    Take the queries whose positive literals lie on one set S of columns; x has a cell (one value
    for each column of S), and x' has one. A query can be true at x or x' only if it asks for that
    record's cell, so the queries of S that differ all lie in these at most two cells, and there are
    at most as many as in the two fullest ones.

    A query without positive literals differs only if one record has one of its excluded values A
    and the other has none of its excluded values; so for some literal, in some column c, exactly
    one of x_c and x'_c equals A. Count the query in the cell A of the set {c}, for each of its
    literals: again the two fullest cells of {c}, now holding both kinds, bound what c adds (if
    x_c = x'_c only the queries with a positive literal in that one cell count). Instead, all
    queries without positive literals may be counted as differing.

    A whole marginal has one query in each cell and adds 2.

    For one record it is the fullest cell alone: where f_q(x) = 1 for a query without positive
    literals, x_c = A for one of its literals.
    """
    positives = conjunctions.positives
    excluding = positives == 0
    excluded = conjunctions.count_values(conjunctions.negative[excluding])
    asked = conjunctions.count_values(conjunctions.positive[positives == 1])
    column, columns = conjunctions.column_of_value, len(conjunctions.offsets) - 1
    bound = min(
        int(_largest(excluded + asked, column, columns, records).sum()),
        int(_largest(asked, column, columns, records).sum()) + int(np.count_nonzero(excluding)),
    )
    for count in range(2, positives.max(initial=0) + 1):
        values = conjunctions.positive_values(positives == count, count)
        if len(values):
            bound += int(ColumnSets.of_values(values, column, records).fullest.sum())
    return bound


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """Terms in one and two columns whose sum U is at least the sum of f_q, see (1).

    f_q is at most, query by query,

    - no positive literal, excluded values A_1 .. A_j: the indicator of a union is at most
      sum A_i minus the pairs along any spanning tree on them (Hunter, "An upper bound for the
      probability of a union", J. Appl. Prob. 1976); the average over all trees is
      sum A_i - (2/j) sum A_i A_i';
    - one positive literal a, excluded B_1 .. B_r: a (1 - max B_i) <= a - (1/r) sum a B_i;
    - two: a b;
    - p >= 3: a product of p indicators is at most that of any two of them, so at most their mean
      over all C(p, 2) pairs.

    A record never has both values of a pair inside one column, so those entries are not read.
    Fractions of a query are rounded up when added, down when subtracted.

    Parameters
    ----------
    unary
        int64, shape ``(values,)``, in units of 1 / `UNIT` query.
    pairwise
        int64, shape ``(values, values)``, symmetric; the same unit.
    modelled
        bool, shape ``(m,)``: the queries that U covers.
    left_out
        Bound on the sum of f_q of the others, over all records.
    """

    unary: Int64
    pairwise: Int64
    modelled: NDArray[np.bool_]
    left_out: int

    @staticmethod
    def of_conjunctions(conjunctions: Conjunctions, records: int = 2) -> PairwiseModel:
        """Build the model; queries that fill many cells of one set of columns are left out.

        These, of three or more positive literals, cost at most the fullest cells of
        `column_set_bound`, which is little for the cells of a whole marginal. Any choice is valid:
        the one taken is cheaper for records that meet an average number of queries.
        """
        positives, negatives = conjunctions.positives, conjunctions.negatives
        values, column = conjunctions.values, conjunctions.column_of_value
        table = np.zeros(values * values, np.int64)

        def add(first: NDArray[np.int32], second: NDArray[np.int32], amount: int) -> None:
            places = np.minimum(first, second).astype(np.int64) * values + np.maximum(first, second)
            table[:] += amount * np.bincount(places, minlength=len(table))

        excluding, single = positives == 0, positives == 1
        for j in range(2, negatives[excluding].max(initial=0) + 1):
            excluded = conjunctions.negative[excluding & (negatives == j)]
            for first, second in combinations(excluded.T[-j:], 2):
                add(first, second, -(2 * UNIT // j))
        for r in range(1, negatives[single].max(initial=0) + 1):
            chosen = single & (negatives == r)
            for excluded in conjunctions.negative[chosen].T[-r:]:
                add(conjunctions.positive[chosen, -1], excluded, -(UNIT // r))
        modelled, left_out = np.ones(len(conjunctions), bool), 0
        for p in range(2, positives.max(initial=0) + 1):
            queries = np.flatnonzero(positives == p)
            asked = conjunctions.positive_values(queries, p)
            if p > 2 and len(queries):
                sets = ColumnSets.of_values(asked, column, records)
                cost = _average_pair_cost(sets, np.diff(conjunctions.offsets))
                apart = sets.fullest <= records * cost
                left_out += int(sets.fullest[apart].sum())
                modelled[queries] = inside = ~apart[sets.set_of_query]
                asked = asked[inside]
            for first, second in combinations(asked.T, 2):
                add(first, second, -(-UNIT // comb(p, 2)))
        unary = conjunctions.count_values(conjunctions.negative[excluding])
        unary += conjunctions.count_values(conjunctions.positive[single])
        pairwise = table.reshape(values, values)
        return PairwiseModel(UNIT * unary, pairwise + pairwise.T, modelled, left_out)


def pairwise_bound(conjunctions: Conjunctions, records: int = 2) -> int:
    """Bound the differing queries by a dual bound on `PairwiseModel`.

    By (1), D(x, x') <= U(x) + U(x') + left_out <= 2 max U + left_out, the maximum being over all
    choices of one value a column; it is at most the sum of the maxima of all tables, after any
    messages between them (`sensitivity_kernels.reparametrised_bound`).
    """
    from dualquery.room.sensitivity.kernels import pass_messages, reparametrised_bound

    model, offsets = PairwiseModel.of_conjunctions(conjunctions, records), conjunctions.offsets
    messages = np.zeros((len(offsets) - 1, conjunctions.values), np.int64)
    sweeps = min(_PAIRWISE_SWEEPS, 1 + _PAIRWISE_VISITS // (2 * model.pairwise.size))
    pass_messages(model.pairwise, model.unary, offsets, messages, sweeps)
    largest = int(reparametrised_bound(model.pairwise, model.unary, offsets, messages))
    return model.left_out + records * largest // UNIT


def _average_pair_cost(sets: ColumnSets, sizes: Int64) -> NDArray[np.float64]:
    """Return what the pairs of a set's queries add to an average record, by set."""
    queries = np.bincount(sets.set_of_query, minlength=len(sets.columns))
    cells = np.array([a * b for a, b in combinations(sizes[sets.columns].T, 2)])
    return queries * np.mean(1 / cells, axis=0, dtype=np.float64)

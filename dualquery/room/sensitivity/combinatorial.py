"""Two bounds on the queries that differ: by sets of columns, and by terms in one and two columns.

Both, and the spectral one, work on `Conjunctions` over the values of columns, as `moves` says; in
whole numbers, the compiled loops too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.array_types import kernel

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Non-constant conjunctions over the values of columns."""

    # (m, k): values that a query's columns must, or must not, have; none twice; padded on the left.
    positive: NDArray[np.int32]
    negative: NDArray[np.int32]
    # Column c has the values offsets[c] .. offsets[c + 1] - 1; a legal record takes one of them.
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
        sizes = np.diff(self.offsets)
        column = self.column_of_value
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
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))

    @cached_property
    def positives(self) -> Int64:
        """Positive literals of each query, int64, shape ``(m,)``."""
        return np.asarray(np.sum(self.positive >= 0, axis=1, dtype=np.int64))

    @cached_property
    def negatives(self) -> Int64:
        """Negative literals of each query, int64, shape ``(m,)``."""
        return np.asarray(np.sum(self.negative >= 0, axis=1, dtype=np.int64))

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
    column = conjunctions.column_of_value
    columns = len(conjunctions.offsets) - 1
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
class ColumnSets:
    """Queries with ``p`` positive literals, grouped by the columns of these."""

    set_of_query: Int64  # (queries,)
    columns: Int64  # (sets, p)
    # (sets,): of the cells (one value a column) of each set, the number of queries in the fullest
    # one, or in the two fullest, added: as many as there are records.
    fullest: Int64

    @staticmethod
    def of_values(
        values: NDArray[np.int32], column_of_value: Int64, records: int = 2
    ) -> ColumnSets:
        """Group the rows of ``values`` (sorted values, shape ``(queries, p)``, no padding)."""
        base = len(column_of_value)
        cell_row, cell_of_query, count = np.unique(
            first_occurrences(values, base), return_inverse=True, return_counts=True
        )
        columns = column_of_value[values[cell_row]]
        set_row, set_of_cell = np.unique(
            first_occurrences(columns.astype(np.int32), base), return_inverse=True
        )
        fullest = _largest(count, set_of_cell, len(set_row), records)
        return ColumnSets(set_of_cell[cell_of_query], columns[set_row], fullest)


def _largest(amount: Int64, owner: Int64, owners: int, number: int) -> Int64:
    """Return for each owner the sum of its ``number`` largest amounts (of all if it has fewer)."""
    order = np.lexsort((-amount, owner))
    start = np.searchsorted(owner[order], np.arange(owners + 1))
    rank = np.arange(len(order)) - start[owner[order]]
    leading = order[rank < number]
    return np.bincount(owner[leading], amount[leading], owners).astype(np.int64)


# Units of the pairwise model in one query; divisible by 1 .. 12, so that its fractions are whole.
UNIT = 27_720
MOST_VALUES = 2_048
"""Values of all columns, at most: the pairwise tables hold the square of this (32 MiB)."""
# Entries of tables that message passing may visit, and its sweeps at most.
_PAIRWISE_VISITS = 2 * 10**9
_PAIRWISE_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """Terms in one and two columns whose sum U is at least the sum of f_q, see (1) of `moves`.

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
    """

    unary: Int64  # (values,), in units of 1 / `UNIT` query
    pairwise: Int64  # (values, values), symmetric; the same unit
    modelled: NDArray[np.bool_]  # (m,): the queries that U covers
    left_out: int  # bound on the sum of f_q of the others, over all records

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

    By (1) of `moves`, D(x, x') <= U(x) + U(x') + left_out <= 2 max U + left_out, the maximum being
    over all choices of one value a column; it is at most the sum of the maxima of all tables, after
    any messages between them (`reparametrised_bound`).
    """
    model = PairwiseModel.of_conjunctions(conjunctions, records)
    offsets = conjunctions.offsets
    messages = np.zeros((len(offsets) - 1, conjunctions.values), np.int64)
    sweeps = min(_PAIRWISE_SWEEPS, 1 + _PAIRWISE_VISITS // (2 * model.pairwise.size))
    pass_messages(model.pairwise, model.unary, offsets, messages, sweeps)
    largest = int(reparametrised_bound(model.pairwise, model.unary, offsets, messages))
    return model.left_out + records * largest // UNIT


def _average_pair_cost(sets: ColumnSets, sizes: Int64) -> NDArray[np.float64]:
    """Return what the pairs of each set's queries add to an average record."""
    queries = np.bincount(sets.set_of_query, minlength=len(sets.columns))
    cells = np.array([a * b for a, b in combinations(sizes[sets.columns].T, 2)])
    return queries * np.mean(1 / cells, axis=0, dtype=np.float64)


@kernel("void(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1], int64)")
def pass_messages(
    pairwise: Int64, unary: Int64, offsets: Int64, messages: Int64, sweeps: int
) -> None:
    """Move mass between the pairwise tables and the columns, to lower the bound.

    Sequential tree-reweighted message passing (Kolmogorov, "Convergent tree-reweighted message
    passing for energy minimization", PAMI 2006) in integers: any integer messages give a valid
    bound, so rounding a share down costs tightness only.

    Tables and ``offsets`` are those of `PairwiseModel` and `Conjunctions`; the pairwise block of a
    column with itself is not read. ``messages[b, v]``, changed in place, is what the table of the
    pair of columns ``b`` and that of ``v`` has given to the value ``v``. A sweep is a forward pass
    and a backward pass.
    """
    columns = len(offsets) - 1
    largest = 0
    for column in range(columns):
        largest = max(largest, offsets[column + 1] - offsets[column])
    belief = np.empty(largest, np.int64)
    for step in range(2 * sweeps):
        forward = step % 2 == 0
        for position in range(columns):
            column = position if forward else columns - 1 - position
            start, stop = offsets[column], offsets[column + 1]
            for value in range(start, stop):
                total = unary[value]
                for other in range(columns):
                    if other == column:
                        continue
                    best = np.iinfo(np.int64).min
                    for w in range(offsets[other], offsets[other + 1]):
                        best = max(best, pairwise[value, w] - messages[column, w])
                    messages[other, value] = best
                    total += best
                belief[value - start] = total
            behind = column if forward else columns - 1 - column
            share = max(behind, columns - 1 - behind)
            for other in range(columns):
                ahead = other > column if forward else other < column
                if ahead:
                    for value in range(start, stop):
                        messages[other, value] -= belief[value - start] // share


@kernel("int64(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1])")
def reparametrised_bound(pairwise: Int64, unary: Int64, offsets: Int64, messages: Int64) -> int:
    """Return the sum of the maxima of all tables after the messages have moved their mass.

    For every choice of one value a column, the sum of the tables' entries does not depend on the
    messages (each is subtracted from a pairwise table and added to a column), so the sum of maxima
    bounds the largest sum of entries, whatever the messages are. Parameters: `pass_messages`.
    """
    columns = len(offsets) - 1
    bound = 0
    for a in range(columns):
        best = np.iinfo(np.int64).min
        for value in range(offsets[a], offsets[a + 1]):
            total = unary[value]
            for other in range(columns):
                if other != a:
                    total += messages[other, value]
            best = max(best, total)
        bound += best
        for b in range(a + 1, columns):
            best = np.iinfo(np.int64).min
            for value in range(offsets[a], offsets[a + 1]):
                given = messages[b, value]
                for w in range(offsets[b], offsets[b + 1]):
                    best = max(best, pairwise[value, w] - given - messages[a, w])
            bound += best
    return bound

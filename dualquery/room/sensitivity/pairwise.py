"""A bound on the queries that differ, by a model of terms in one and in two columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from dualquery.room.sensitivity.column_sets import ColumnSets
from dualquery.room.sensitivity.conjunctions import Conjunctions

Int64 = NDArray[np.int64]

# Units of the pairwise model in one query; divisible by 1 .. 12, so that its fractions are whole.
UNIT = 27_720
MOST_VALUES = 2_048
"""Values of all columns, at most: the pairwise tables hold the square of this (32 MiB)."""
# Entries of tables that message passing may visit, and its sweeps at most.
_PAIRWISE_VISITS = 2 * 10**9
_PAIRWISE_SWEEPS = 100


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """Terms in one and two columns whose sum U is at least the sum of f_q, see (1) of `bounds`.

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

    By (1) of `bounds`, D(x, x') <= U(x) + U(x') + left_out <= 2 max U + left_out, the maximum being
    over all choices of one value a column; it is at most the sum of the maxima of all tables, after
    any messages between them (`pairwise_kernels.reparametrised_bound`).
    """
    from dualquery.room.sensitivity.pairwise_kernels import pass_messages, reparametrised_bound

    model, offsets = PairwiseModel.of_conjunctions(conjunctions, records), conjunctions.offsets
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

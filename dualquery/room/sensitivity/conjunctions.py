"""Conjunctions rewritten over the values of columns, as `bounds` says: all bounds work on these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload

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

"""Queries as products of functions of single columns: the form in which families reach MWEM.

A conjunction, a parity or a box of intervals is ``q(x) = prod_c f_c(x_c)`` over a few columns, its
*scope*. Every f_c is written over the functions 1, [x_c = 1], [x_c = 2], ... of the column:

    f = f(0) + sum over v >= 1 of (f(v) - f(0)) [x = v],

so that the answer to q is a short sum of entries of *inclusive marginals*: tables over the scope
whose index 0 stands for "any value" and v >= 1 for "value v". Inclusive marginals of a whole
histogram come from one pass of additions an axis, and those of independent parts multiply. On a
*cumulative* column the functions are 1, [x_c >= 1], [x_c >= 2], ..., and the marginals' indices
stand for "at least v": an interval is two terms then, however long it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.queries.literals import LiteralRows


@dataclass(frozen=True, eq=False)
class Products:
    """``m`` products of functions of single columns.

    Factor i is the sum of ``coefficient * [x = index]`` over its terms ``indptr[i]`` and following,
    where index 0 stands for the constant 1.
    """

    sizes: NDArray[np.int64]  # (columns,): number of values of each column, at least 2
    columns: NDArray[np.int32]  # (m, k): increasing columns of each query, padded with -1
    factors: NDArray[np.int32]  # (m, k): the factor on each of them, padded with -1
    factor_column: NDArray[np.int32]  # (f,): column of each factor
    indptr: NDArray[np.int64]  # (f + 1,)
    index: NDArray[np.int32]  # (terms,)
    coefficient: NDArray[np.float64]  # (terms,)
    cumulative: NDArray[np.bool_]  # (columns,): where terms are coefficient * [x >= index] instead
    scale: NDArray[np.float64]  # (m,): query j is its product, in [-1, 1], times scale[j]

    @staticmethod
    def of_conjunctions(rows: LiteralRows) -> Products:
        """Rewrite conjunctions of literals; several literals on one column become one factor."""
        codes, owner = _one_factor_a_column(rows)
        used = np.unique(codes[codes >= 0])
        renumbered = np.full(len(owner.columns), -1, dtype=np.int32)
        renumbered[used] = np.arange(len(used))
        return Products.of_factors(
            axis_sizes(rows.domain),
            np.where(codes >= 0, owner.columns[codes], -1),
            np.where(codes >= 0, renumbered[codes], -1),
            owner.columns[used],
            [owner.values(int(code)) for code in used],
        )

    @staticmethod
    def of_factors(
        sizes: NDArray[np.int64],
        columns: NDArray[np.integer[Any]],
        factors: NDArray[np.integer[Any]],
        factor_column: NDArray[np.int32],
        values: Sequence[NDArray[np.float64]],
    ) -> Products:
        """Return products of factors that are given by their ``values`` (see the class).

        Each of the ``values`` is float64, shape ``(size of the factor's column,)``.
        """
        terms = list(map(terms_of, values))
        return Products(
            sizes=sizes,
            columns=columns.astype(np.int32),
            factors=factors.astype(np.int32),
            factor_column=factor_column,
            indptr=np.cumsum([0, *(len(index) for index, _ in terms)], dtype=np.int64),
            index=np.concatenate([i for i, _ in terms]),
            coefficient=np.concatenate([c for _, c in terms]),
            cumulative=np.zeros(len(sizes), dtype=np.bool_),
            scale=np.ones(len(columns)),
        )

    def with_terms(
        self,
        sizes: NDArray[np.int64],
        indptr: NDArray[np.int64],
        index: NDArray[np.int32],
        coefficient: NDArray[np.float64],
    ) -> Products:
        """Return the queries with other factors on the same columns, none of them cumulative."""
        cumulative = np.zeros(len(sizes), dtype=np.bool_)
        other = replace(
            self, sizes=sizes, cumulative=cumulative, indptr=indptr, index=index,
            coefficient=coefficient,
        )  # fmt: skip
        vars(other)["_scopes"] = self._scopes  # the same; finding them anew sorts all queries
        return other

    @property
    def scopes(self) -> NDArray[np.int32]:
        """The different scopes: int32, shape ``(s, k)``; increasing columns, padded with -1."""
        return self._scopes[0]

    @property
    def scope_of(self) -> NDArray[np.int32]:
        """Scope of each query: int32, shape ``(m,)``."""
        return self._scopes[1]

    @cached_property
    def _scopes(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return distinct_rows(self.columns, len(self.sizes))

    def __len__(self) -> int:
        return len(self.columns)

    def scope(self, query: int) -> tuple[int, ...]:
        """Return the columns that a query looks at, increasing."""
        columns = self.columns[query]
        return tuple(columns[columns >= 0].tolist())

    def table(self, query: int) -> NDArray[np.float64]:
        """Return the query's value on every cell of its scope: one axis a column."""
        result = np.ones(())
        for factor in self.factors[query][: len(self.scope(query))]:
            result = np.multiply.outer(result, self.values(int(factor)))
        return result

    def cells(self, columns: tuple[int, ...]) -> int:
        """Return the number of cells of a product of columns, exactly."""
        return math.prod(int(self.sizes[c]) for c in columns)

    @cached_property
    def counts_any(self) -> NDArray[np.bool_]:
        """Columns on which some query counts "any value" (index 0); bool, shape ``(columns,)``."""
        constant = np.add.reduceat(np.append(self.index == 0, False), self.indptr[:-1]) * (
            np.diff(self.indptr) > 0
        )
        result = np.zeros(len(self.sizes), dtype=np.bool_)
        result[self.factor_column[constant > 0]] = True
        return result

    def values(self, factor: int) -> NDArray[np.float64]:
        """Return a factor as a function of its column's value, float64, shape ``(size,)``."""
        terms = slice(self.indptr[factor], self.indptr[factor + 1])
        values = np.zeros(self.sizes[self.factor_column[factor]])
        np.add.at(values, self.index[terms], self.coefficient[terms])
        if self.cumulative[self.factor_column[factor]]:
            return np.cumsum(values)
        values[1:] += values[0]
        return values


def terms_of(values: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Write a function of a column as coefficients of 1, [x = 1], [x = 2], ..."""
    coefficient = np.concatenate((values[:1], values[1:] - values[0]))
    index = np.flatnonzero(coefficient).astype(np.int32)
    return index, coefficient[index]


def distinct_rows(
    rows: NDArray[np.int32], base: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the different rows, and for each row the number of the one it equals.

    ``rows`` is int32, shape ``(r, k)``, with entries in ``-1 .. base - 1``.
    """
    if (base + 1) ** rows.shape[1] < 2**62:
        keys = np.zeros(len(rows), dtype=np.int64)
        for column in rows.T:
            keys = keys * (base + 1) + (column + 1)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return np.ascontiguousarray(rows[first]), inverse.astype(np.int32)
    different, inverse = np.unique(rows, axis=0, return_inverse=True)
    return np.ascontiguousarray(different), inverse.ravel().astype(np.int32)


@dataclass(frozen=True, eq=False)
class _Indicators:
    """Sets of values of columns: one for each literal code, then the combined ones."""

    columns: NDArray[np.int32]
    rows: LiteralRows
    combined: tuple[tuple[int, ...], ...]

    def values(self, code: int) -> NDArray[np.float64]:
        """Return the indicator of a set over the values of its column."""
        domain = self.rows.domain
        literals = (code,) if code < 2 * domain.bits else self.combined[code - 2 * domain.bits]
        size = int(domain.sizes[self.columns[code]])
        result = np.ones(max(size, 2))
        for literal in literals:
            bit, negated = literal >> 1, literal & 1
            value = 1 if size == 1 else bit - int(domain.offsets[self.columns[code]])
            holds = np.zeros(len(result))
            holds[value] = 1.0
            result *= 1.0 - holds if negated else holds
        return result


def _one_factor_a_column(rows: LiteralRows) -> tuple[NDArray[np.int32], _Indicators]:
    """Return for each query the sets of values that it asks for, one a column, padded with -1."""
    domain, codes = rows.domain, rows.literals.copy()
    columns = np.where(codes >= 0, domain.column_of_bit[codes >> 1], -1)
    of_code = np.repeat(domain.column_of_bit, 2).astype(np.int32)
    again = (columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)
    combined: dict[tuple[int, ...], int] = {}
    for query in np.flatnonzero(again.any(axis=1)):
        by_column: dict[int, list[int]] = {}
        for code in codes[query][codes[query] >= 0].tolist():
            by_column.setdefault(int(of_code[code]), []).append(code)
        merged = [
            literals[0]
            if len(literals) == 1
            else combined.setdefault(tuple(literals), len(combined)) + 2 * domain.bits
            for literals in by_column.values()
        ]
        codes[query] = -1
        codes[query, : len(merged)] = merged
    sets = tuple(combined)
    of_combined = np.array([of_code[literals[0]] for literals in sets], dtype=np.int32)
    return codes, _Indicators(np.concatenate((of_code, of_combined)), rows, sets)

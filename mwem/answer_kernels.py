"""Numba kernels that put the answers of queries together from inclusive marginals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import Array, kernel


class Factors(NamedTuple):
    """Functions of single columns: sums of terms (see `dualquery.queries.products.Products`)."""

    column: NDArray[np.int32]  # (f,)
    indptr: NDArray[np.int64]  # (f + 1,): where the terms of each factor begin
    basis: NDArray[np.int32]
    coefficient: NDArray[np.float64]
    """The terms: ``coefficient * [x = basis]``, where 0 stands for the constant 1."""
    expected: NDArray[np.float64]
    """(f,): the expectation of each factor, to be filled by `expect_factors`."""


class Parts(NamedTuple):
    """The parts of scopes that hold two or more columns of one component."""

    first: NDArray[np.int64]  # (scopes + 1,): the number of the first part of each scope
    slots: NDArray[np.int64]  # (parts,): bit mask of a part's places in its scope


class TablePool(NamedTuple):
    """Tables in one array: the entry of table p at indices i is ``offset[p] + sum i stride[p]``."""

    pool: NDArray[np.float64]  # the entries of all tables
    offset: NDArray[np.int64]  # (p,)
    stride: NDArray[np.int64]  # (p, k)

    def of(self, chosen: NDArray[np.int64] | NDArray[np.int32] | NDArray[np.bool_]) -> TablePool:
        """Return some of the tables, by number or mask, in the same array."""
        return TablePool(self.pool, self.offset[chosen], self.stride[chosen])


FACTORS = types.NamedTuple(
    (int32[::1], int64[::1], int32[::1], float64[::1], float64[::1]), Factors
)
PARTS = types.NamedUniTuple(int64[::1], 2, Parts)
TABLE_POOL = types.NamedTuple((float64[::1], int64[::1], int64[:, ::1]), TablePool)


@kernel("int64(int32[:, ::1], int32[::1], int64[::1], int32[:, ::1], int64[::1])")
def list_parts(scopes: Array, component: Array, first: Array, columns: Array, slots: Array) -> int:
    """List the parts of scopes that hold two or more columns of one component; return how many.

    Fills ``first`` (scopes + 1 long) with the number of the first part of each scope; and the
    columns of each part (-1 before, and as padding) and a bit mask of its places in the scope.
    """
    part = 0
    for scope in range(len(scopes)):
        first[scope] = part
        seen = np.int64(0)
        for i in range(scopes.shape[1]):
            if scopes[scope, i] < 0:
                break
            if (seen >> i) & 1:
                continue
            mask = np.int64(1) << i
            for j in range(i + 1, scopes.shape[1]):
                if scopes[scope, j] < 0:
                    break
                if component[scopes[scope, j]] == component[scopes[scope, i]]:
                    mask |= np.int64(1) << j
            seen |= mask
            if mask & (mask - 1):
                slots[part] = mask
                filled = 0
                for j in range(i, scopes.shape[1]):
                    if (mask >> j) & 1:
                        columns[part, filled] = scopes[scope, j]
                        filled += 1
                part += 1
    first[len(scopes)] = part
    return part


@kernel(void(FACTORS, int64[::1], float64[::1]))
def expect_factors(factors: Factors, start: Array, marginals: Array) -> None:
    """Fill the expectations of factors from the inclusive marginals of single columns.

    Column c's marginal is ``marginals[start[c]:start[c + 1]]``.
    """
    for factor in range(len(factors.column)):
        low = start[factors.column[factor]]
        total = 0.0
        for term in range(factors.indptr[factor], factors.indptr[factor + 1]):
            total += factors.coefficient[term] * marginals[low + factors.basis[term]]
        factors.expected[factor] = total


@kernel(void(int32[::1], int32[:, ::1], FACTORS, PARTS, TABLE_POOL, float64[::1]))
def combine(
    scope_of: Array,
    factors_of: Array,
    factors: Factors,
    parts: Parts,
    tables: TablePool,
    answers: Array,
) -> None:
    """Fill the answers of queries: the expectations of parts and of single columns multiplied.

    ``scope_of`` and the rows of ``factors_of`` (padded with -1) are the queries' scopes and
    factors; ``tables`` holds the inclusive marginals of the parts.
    """
    first, slots = parts.first, parts.slots
    indptr, basis, coefficient = factors.indptr, factors.basis, factors.coefficient
    pool, offset, stride = tables.pool, tables.offset, tables.stride
    way = factors_of.shape[1]
    at = np.empty(way, np.int64)
    chosen = np.empty(way, np.int64)
    for query in range(len(answers)):
        answer = 1.0
        scope = scope_of[query]
        in_parts = np.int64(0)
        for part in range(first[scope], first[scope + 1]):
            in_parts |= slots[part]
            width = 0
            possible = True
            for i in range(way):
                if (slots[part] >> i) & 1:
                    chosen[width] = factors_of[query, i]
                    at[width] = indptr[chosen[width]]
                    possible &= at[width] < indptr[chosen[width] + 1]
                    width += 1
            total = 0.0
            while possible:
                weight = 1.0
                place = offset[part]
                for i in range(width):
                    weight *= coefficient[at[i]]
                    place += np.int64(basis[at[i]]) * stride[part, i]
                total += weight * pool[place]
                i = width - 1
                while i >= 0:
                    at[i] += 1
                    if at[i] < indptr[chosen[i] + 1]:
                        break
                    at[i] = indptr[chosen[i]]
                    i -= 1
                possible = i >= 0
            answer *= total
        for i in range(way):
            if factors_of[query, i] >= 0 and not (in_parts >> i) & 1:
                answer *= factors.expected[factors_of[query, i]]
        answers[query] = answer

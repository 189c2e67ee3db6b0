"""Numba kernels that put the answers of queries together from inclusive marginals."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit("int64(int32[:, ::1], int32[::1], int64[::1])", nogil=True, cache=True)
def count_parts(
    scopes: NDArray[np.int32], component: NDArray[np.int32], first: NDArray[np.int64]
) -> int:
    """Number the parts of scopes that hold two or more columns of one component.

    Fills ``first`` (scopes + 1 long) with the number of the first part of each scope; returns the
    number of all parts.
    """
    parts = 0
    for scope in range(len(scopes)):
        first[scope] = parts
        seen = np.int64(0)
        for i in range(scopes.shape[1]):
            if scopes[scope, i] < 0:
                break
            if (seen >> i) & 1:
                continue
            more = 0
            for j in range(i + 1, scopes.shape[1]):
                if scopes[scope, j] < 0:
                    break
                if component[scopes[scope, j]] == component[scopes[scope, i]]:
                    seen |= np.int64(1) << j
                    more += 1
            if more > 0:
                parts += 1
    first[len(scopes)] = parts
    return parts


@njit(
    "void(int32[:, ::1], int32[::1], int32[:, ::1], int64[::1])",
    nogil=True,
    cache=True,
)
def list_parts(
    scopes: NDArray[np.int32],
    component: NDArray[np.int32],
    columns: NDArray[np.int32],
    slots: NDArray[np.int64],
) -> None:
    """Fill the columns of each part (padded with -1) and a bit mask of its places in the scope."""
    part = 0
    for scope in range(len(scopes)):
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


@njit(
    "void(int32[::1], int64[::1], int32[::1], float64[::1], int64[::1], float64[::1],"
    " float64[::1])",
    nogil=True,
    cache=True,
)
def expect_factors(
    factor_column: NDArray[np.int32],
    indptr: NDArray[np.int64],
    index: NDArray[np.int32],
    coefficient: NDArray[np.float64],
    single_ptr: NDArray[np.int64],
    single: NDArray[np.float64],
    expected: NDArray[np.float64],
) -> None:
    """Fill the expectation of each factor from the inclusive marginals of single columns."""
    for factor in range(len(factor_column)):
        start = single_ptr[factor_column[factor]]
        total = 0.0
        for term in range(indptr[factor], indptr[factor + 1]):
            total += coefficient[term] * single[start + index[term]]
        expected[factor] = total


@njit(
    "void(int64, int64, int32[::1], int32[:, ::1], int64[::1], int32[::1], float64[::1],"
    " float64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], float64[::1], float64[::1])",
    nogil=True,
    cache=True,
)
def combine(
    start: int,
    stop: int,
    scope_of: NDArray[np.int32],
    factors: NDArray[np.int32],
    indptr: NDArray[np.int64],
    index: NDArray[np.int32],
    coefficient: NDArray[np.float64],
    expected: NDArray[np.float64],
    first: NDArray[np.int64],
    slots: NDArray[np.int64],
    offset: NDArray[np.int64],
    stride: NDArray[np.int64],
    pool: NDArray[np.float64],
    answers: NDArray[np.float64],
) -> None:
    """Fill the answers of queries ``start .. stop - 1``: parts and single columns multiplied.

    The entry of part p at indices i of its columns is ``pool[offset[p] + sum i * stride[p]]``.
    """
    way = factors.shape[1]
    at = np.empty(way, np.int64)
    chosen = np.empty(way, np.int64)
    for query in range(start, stop):
        answer = 1.0
        scope = scope_of[query]
        in_parts = np.int64(0)
        for part in range(first[scope], first[scope + 1]):
            in_parts |= slots[part]
            width = 0
            possible = True
            for i in range(way):
                if (slots[part] >> i) & 1:
                    chosen[width] = factors[query, i]
                    at[width] = indptr[chosen[width]]
                    possible &= at[width] < indptr[chosen[width] + 1]
                    width += 1
            total = 0.0
            while possible:
                weight = 1.0
                place = offset[part]
                for i in range(width):
                    weight *= coefficient[at[i]]
                    place += np.int64(index[at[i]]) * stride[part, i]
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
            if factors[query, i] >= 0 and not (in_parts >> i) & 1:
                answer *= expected[factors[query, i]]
        answers[query] = answer

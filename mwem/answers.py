"""Answers of all queries from a product of independent components."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from mwem import answer_kernels as kernels

_BLOCK = 1 << 16
"""Queries a task."""


@dataclass(frozen=True, eq=False)
class InclusiveMarginals:
    """Inclusive marginals of sets of columns, each inside one component.

    Parameters
    ----------
    pool
        float64: the entries.
    offset, stride
        int64, shapes ``(parts,)`` and ``(parts, k)``: the entry of part p at the indices i is
        ``pool[offset[p] + sum(i * stride[p])]``.
    """

    pool: NDArray[np.float64]
    offset: NDArray[np.int64]
    stride: NDArray[np.int64]


class ColumnMarginals:
    """Inclusive marginals of the single columns, one after another in one array."""

    def __init__(
        self, sizes: NDArray[np.int64], cumulative: NDArray[np.bool_] | None = None
    ) -> None:
        self.start = np.concatenate(([0], np.cumsum(sizes)))
        share = 1.0 / np.repeat(sizes, sizes)
        self.entries = share
        if cumulative is not None and cumulative.any():
            above = np.repeat(self.start[1:], sizes) - np.arange(len(share))
            self.entries = np.where(np.repeat(cumulative, sizes), above * share, share)
        self.entries[self.start[:-1]] = 1.0

    def set(self, column: int, marginal: NDArray[np.float64]) -> None:
        """Store a column's inclusive marginal: 1, then the shares of its values (or above)."""
        self.entries[self.start[column] : self.start[column + 1]] = marginal


def answer(
    queries: Products,
    component: NDArray[np.int32],
    columns: ColumnMarginals,
    tables: Callable[[NDArray[np.int32]], InclusiveMarginals],
    threads: int,
) -> NDArray[np.float64]:
    """Return the answer of every query under a product of components.

    Parameters
    ----------
    queries
        m queries.
    component
        int32, shape ``(columns,)``: columns with different numbers are independent.
    columns
        Marginals of the single columns.
    tables
        Finds the inclusive marginals of sets of two or more columns of one component: int32, shape
        ``(parts, k)``, padded with -1.
    threads
        Threads; the answers do not depend on it.

    Returns
    -------
    float64, shape ``(m,)``.
    """
    first = np.empty(len(queries.scopes) + 1, dtype=np.int64)
    parts = kernels.count_parts(queries.scopes, component, first)
    inside = np.full((parts, queries.scopes.shape[1]), -1, dtype=np.int32)
    slots = np.empty(parts, dtype=np.int64)
    kernels.list_parts(queries.scopes, component, inside, slots)
    found = tables(inside)
    expected = np.empty(len(queries.factor_column))
    terms = (queries.indptr, queries.index, queries.coefficient)
    kernels.expect_factors(queries.factor_column, *terms, columns.start, columns.entries, expected)
    answers = np.empty(len(queries))

    def combine(start: int) -> None:
        kernels.combine(
            start,
            min(start + _BLOCK, len(queries)),
            queries.scope_of,
            queries.factors,
            *terms,
            expected,
            first,
            slots,
            found.offset,
            found.stride,
            found.pool,
            answers,
        )

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(combine, range(0, len(queries), _BLOCK)))
    return answers

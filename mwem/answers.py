"""Answers of all queries from a product of independent components."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from dualquery.runtime.resources import workers
from mwem import answer_kernels as kernels
from mwem.answer_kernels import Factors, Parts, TablePool
from mwem.columns import Columns

_BLOCK = 1 << 16  # queries a task


class ColumnMarginals:
    """Inclusive marginals of the single columns, one after another in one array."""

    def __init__(self, columns: Columns, cumulative: NDArray[np.bool_]) -> None:
        self.start = columns.starts
        self.entries = columns.shares.copy()
        for column in np.flatnonzero(cumulative).tolist():
            self.set(column, np.cumsum(columns.of(column)[::-1])[::-1])
        self.entries[self.start[:-1]] = 1.0

    def set(self, column: int, marginal: NDArray[np.float64]) -> None:
        """Store a column's inclusive marginal: 1, then the shares of its values (or above)."""
        self.entries[self.start[column] : self.start[column + 1]] = marginal


def answer(
    queries: Products,
    component: NDArray[np.int32],
    columns: ColumnMarginals,
    tables: Callable[[NDArray[np.int32]], TablePool],
    threads: int,
) -> NDArray[np.float64]:
    """Return the answer of every query under a product of components: float64, shape ``(m,)``.

    Columns with different numbers in ``component``, int32 of shape ``(columns,)``, are independent.
    ``columns`` has the marginals of single columns; ``tables`` finds the inclusive marginals of
    sets of two or more columns of one component: int32, shape ``(parts, k)``, padded with -1. The
    answers do not depend on the threads.
    """
    scopes, way = queries.scopes, queries.scopes.shape[1]
    most = len(scopes) * (way // 2)
    parts = Parts(np.empty(len(scopes) + 1, np.int64), np.empty(most, np.int64))
    inside = np.full((most, way), -1, np.int32)
    count = kernels.list_parts(scopes, component, parts.first, inside, parts.slots)
    found = tables(inside[:count])
    factors = Factors(
        queries.factor_column,
        queries.indptr,
        queries.index,
        queries.coefficient,
        np.empty(len(queries.factor_column)),
    )
    kernels.expect_factors(factors, columns.start, columns.entries)
    answers = np.empty(len(queries))

    def combine(start: int) -> None:
        block = slice(start, start + _BLOCK)
        kernels.combine(
            queries.scope_of[block], queries.factors[block], factors, parts, found, answers[block]
        )

    with workers(threads, -(-len(queries) // _BLOCK)) as pool:
        list(pool.map(combine, range(0, len(queries), _BLOCK)))
    return answers

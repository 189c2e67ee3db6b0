"""The explicit vector over all cells of the domain.

Cells that no measured query tells apart form a *class*. All of them have been multiplied by the
same factors, so passes of multiplicative weights run on classes (t measurements of 0/1 queries
make at most 2^t), and cells are only visited to answer queries.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError
from mwem.answer_kernels import TablePool
from mwem.answers import ColumnMarginals, answer
from mwem.columns import Columns
from mwem.representations import dense_kernels as kernels
from mwem.representations.protocol import History

CELL_BYTES = 64
"""Memory of a cell: share, inclusive marginal, class, and what classes are sorted by."""
CLASS_BYTES = 24
"""Memory of a measured query's value on a class of cells, while it is copied twice."""

_NO_PRIOR = np.zeros(0)


class Histogram:
    """One explicit vector over the whole domain.

    Parameters
    ----------
    queries
        The queries to answer.
    memory
        Limit in bytes.
    threads
        Threads; the distribution does not depend on it.
    start
        The distribution A_0: independent columns, or float64, one axis a column, positive; None for
        the uniform one.

    Raises
    ------
    BadInputError
        If the vector would not fit the memory limit.
    """

    def __init__(
        self,
        queries: Products,
        memory: int,
        threads: int = 1,
        start: Columns | NDArray[np.float64] | None = None,
    ) -> None:
        require_memory(queries, 0, memory)
        self._queries, self._sizes = queries, queries.sizes
        self._memory, self._threads = memory, threads
        self._start = start if isinstance(start, Columns) else Columns.uniform(queries.sizes)
        self._history = History()
        self._cells = math.prod(self._sizes.tolist())
        self._classes = np.zeros(self._cells, dtype=np.int32)
        cells = self._start.cells(tuple(range(len(self._sizes))))
        prior = start.ravel() if isinstance(start, np.ndarray) else cells
        self._prior = _NO_PRIOR if prior is None else prior / math.fsum(prior)
        self._values = np.zeros((0, 1))
        self._initial: NDArray[Any] = np.ones(1)

    def answers(self) -> NDArray[np.float64]:
        """Return the answer of every query, float64, shape ``(m,)``."""
        inclusive = self._inclusive()
        columns = ColumnMarginals(self._start, self._queries.cumulative)
        # The padding -1 picks the stride 0 at the end.
        stride = np.append(np.cumprod(self._sizes[:0:-1])[::-1], [1, 0]).astype(np.int64)
        for column, size in enumerate(self._sizes.tolist()):
            columns.set(column, inclusive[: size * stride[column] : stride[column]])

        def tables(parts: NDArray[np.int32]) -> TablePool:
            return TablePool(inclusive, np.zeros(len(parts), np.int64), stride[parts])

        together = np.zeros(len(self._sizes), np.int32)
        return answer(self._queries, together, columns, tables, self._threads)

    def admits(self, together: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which queries could be measured within the memory limit; bool, ``(m,)``."""
        counts, which = np.unique(together, return_inverse=True)
        before = len(self._history)
        fits = [dense_bytes(self._queries, before + n) <= self._memory for n in counts.tolist()]
        return np.array(fits)[which.ravel()]

    def update(self, queries: NDArray[np.int64], targets: NDArray[np.float64]) -> None:
        """Enter measurements of one scope and multiply by ``exp(q (target - q(A)) / 2)``.

        Raises
        ------
        BadInputError
            If their values would not fit the memory limit.
        """
        require_memory(self._queries, len(self._history) + len(queries), self._memory)
        for query, target in zip(queries.tolist(), targets.tolist(), strict=True):
            self._add(query, target)
            self._pass(len(self._history) - 1, 1)

    def repeat(self, passes: int) -> None:
        """Run passes of multiplicative weights over all measurements, oldest first."""
        self._pass(0, passes)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw values of all columns: int64, shape ``(count, columns)``."""
        cumulative = np.cumsum(self.shares())
        cells = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
        return np.stack(np.unravel_index(cells, self._sizes), axis=1).astype(np.int64)

    def describe(self) -> dict[str, object]:
        """Return the size of the distribution, for the trace."""
        return {"components": 1, "cells": self._cells, "largest": self._cells}

    def shares(self) -> NDArray[np.float64]:
        """Return the share of every cell: one axis a column."""
        out, density = np.empty(self._cells), self._density()
        if not len(self._prior):
            density = density / self._cells
        kernels.spread(density, self._classes, self._prior, out)
        return out.reshape(tuple(self._sizes.tolist()))

    def _inclusive(self) -> NDArray[np.float64]:
        """Return all inclusive marginals at once (`dualquery.queries.products`): ``(cells,)``."""
        axes = self.shares()
        table = axes.ravel()
        cumulative = self._queries.cumulative
        if not cumulative.any():
            kernels.include_any(table, self._sizes)
            return table
        for axis, adds_up in enumerate(cumulative):
            moved = np.moveaxis(axes, axis, 0)
            if adds_up:
                moved[:] = np.cumsum(moved[::-1], axis=0)[::-1]
            else:
                moved[0] = moved.sum(axis=0)
        return table

    def _add(self, query: int, target: float) -> None:
        """Enter a measurement: split the classes."""
        self._history.add(query, target)
        scope = self._queries.scope(query)
        shape = [int(size) if column in scope else 1 for column, size in enumerate(self._sizes)]
        levels, level = np.unique(self._queries.table(query), return_inverse=True)
        count = np.int64(len(levels))
        pair = (self._classes * count).reshape(self._sizes)
        pair += level.reshape(shape)
        pairs, number = np.unique(pair, return_inverse=True)
        self._classes = number.ravel().astype(np.int32)
        parent, value = pairs // count, pairs % count
        self._values = np.ascontiguousarray(np.vstack((self._values[:, parent], levels[value])))
        weights = self._prior if len(self._prior) else np.full(self._cells, 1.0 / self._cells)
        self._initial = np.bincount(self._classes, weights, len(parent))

    def _pass(self, first: int, passes: int) -> None:
        """Run passes of multiplicative weights over the measurements from ``first`` on."""
        kernels.repeat(
            self._values,
            self._initial * self._density(),
            self._history.targets,
            first,
            passes,
            self._history.scales,
        )

    def _density(self) -> NDArray[np.float64]:
        """Return each class's factor on A_0, from logarithms: nothing overflows or drifts."""
        exponents = self._history.scales @ self._values
        density = np.exp(exponents - exponents.max())
        return np.asarray(density / math.fsum(self._initial * density))


def dense_bytes(queries: Products, measurements: int) -> int:
    """Return the bytes of the vector of all cells, with the values of measured queries on them."""
    cells = queries.cells(tuple(range(len(queries.sizes))))
    classes = min(cells, 1 << measurements) if _two_valued(queries) else cells
    return cells * CELL_BYTES + classes * measurements * CLASS_BYTES


def _two_valued(queries: Products) -> bool:
    """Return whether no query has more than two values: intervals, and one step on each column."""
    inner = queries.index > 0
    owner = np.repeat(np.arange(len(queries.factor_column)), np.diff(queries.indptr))[inner]
    step = np.zeros(len(queries.factor_column))
    step[owner] = queries.coefficient[inner]
    return bool(queries.cumulative.any() or (queries.coefficient[inner] == step[owner]).all())


def require_memory(queries: Products, measurements: int, memory: int) -> None:
    """Refuse a vector of all cells that would not fit after ``measurements`` measurements.

    Raises
    ------
    BadInputError
        If it needs more than ``memory`` bytes; says how much, and what would do.
    """
    columns = len(queries.sizes)
    cells = queries.cells(tuple(range(columns)))
    needed = dense_bytes(queries, measurements)
    if needed > memory:
        raise BadInputError(
            f"a histogram of {columns} columns has {_figure(cells)} cells and needs about "
            f"{_figure(needed)} bytes, above the limit of {memory:,}: use "
            "representation=junction-tree, fewer rounds or a larger memory_gib"
        )


def _figure(number: int) -> str:
    """Print a number that may have thousands of digits."""
    return f"{number:,}" if number < 10**15 else f"10^{len(str(number)) - 1}"

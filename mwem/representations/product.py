"""Products of explicit vectors: a whole `Histogram`, or `Factored` into independent components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from dualquery.runtime.errors import BadInputError
from mwem.answer_kernels import TablePool
from mwem.answers import ColumnMarginals, answer
from mwem.columns import Columns
from mwem.representations.dense import Dense

CELL_BYTES = 28
"""Memory of a cell: its share, its inclusive marginal, its class and what they are made from."""
CLASS_BYTES = 16
"""Memory of a measured query's value on a class of cells, while it is copied."""


class Factored:
    """A product of distributions over disjoint sets of columns (the MWEM paper, section 4).

    Components are merged only when a measured query spans several, and then rebuilt from their
    history with its scales: the distribution is exactly that of MWEM on the whole histogram. A
    merged component that would not fit the memory limit is refused before it is built.

    Parameters
    ----------
    queries
        The queries to answer.
    memory
        Limit in bytes.
    threads
        Threads; the distribution does not depend on it.
    start
        The distribution A_0; None for the uniform one.
    """

    name = "factored"

    def __init__(
        self, queries: Products, memory: int, threads: int = 1, start: Columns | None = None
    ) -> None:
        self._queries = queries
        self._start = Columns.uniform(queries.sizes) if start is None else start
        self._memory = memory
        self._threads = threads
        self._component = np.arange(len(queries.sizes), dtype=np.int32)
        self._dense: dict[int, Dense] = {}
        self._places: list[tuple[Dense, int]] = []

    def answers(self) -> NDArray[np.float64]:
        """Return the answer of every query, float64, shape ``(m,)``."""
        inclusive = {number: dense.inclusive() for number, dense in self._dense.items()}
        columns = ColumnMarginals(self._start, self._queries.cumulative)
        stride = np.zeros(len(self._queries.sizes) + 1, dtype=np.int64)
        start = np.zeros(len(self._queries.sizes), dtype=np.int64)
        used = 0
        for number, dense in self._dense.items():
            for column, step in zip(dense.columns, dense.strides(), strict=True):
                size = int(self._queries.sizes[column])
                columns.set(column, inclusive[number][: size * step : step])
                stride[column] = step
            start[number] = used
            used += len(inclusive[number])

        def tables(parts: NDArray[np.int32]) -> TablePool:
            pools = list(inclusive.values())
            pool = pools[0] if len(pools) == 1 else np.concatenate([*pools, np.zeros(0)])
            # The padding -1 picks the stride 0 at the end.
            return TablePool(pool, start[self._component[parts[:, 0]]], stride[parts])

        return answer(self._queries, self._component, columns, tables, self._threads)

    def admits(self, together: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which queries could be measured within the memory limit; bool, ``(m,)``."""
        log_size = np.log2(self._queries.sizes)
        log_cells = np.zeros(len(log_size))
        np.add.at(log_cells, self._component, log_size)
        measured = np.zeros(len(log_size), dtype=np.int64)
        for number, dense in self._dense.items():
            measured[number] = len(dense.history)
        scopes = self._queries.scopes
        components = np.where(scopes >= 0, self._component[scopes], -1)
        components.sort(axis=1)
        fresh = components >= 0
        fresh[:, 1:] &= components[:, 1:] != components[:, :-1]
        merged = np.where(fresh, log_cells[components], 0.0).sum(axis=1)
        count = np.where(fresh, measured[components], 0).sum(axis=1)
        count += most_of_scope(self._queries, together)
        different, of_scope = np.unique(np.stack((merged, count)), axis=1, return_inverse=True)
        fits = [
            dense_bytes(round(2.0 ** min(log, 100.0)), int(entries)) <= self._memory
            for log, entries in different.T
        ]
        result: NDArray[np.bool_] = np.array(fits)[of_scope.ravel()][self._queries.scope_of]
        return result

    def update(self, queries: NDArray[np.int64], targets: NDArray[np.float64]) -> None:
        """Enter measurements of one scope and multiply by ``exp(q (target - q(A)) / 2)``.

        Raises
        ------
        BadInputError
            If the merged component would not fit the memory limit.
        """
        dense = self._merge(self._queries.scope(int(queries[0])), len(queries))
        for query, target in zip(queries.tolist(), targets.tolist(), strict=True):
            dense.add(query, target)
            dense.repeat(len(dense.history) - 1, 1)
            self._places.append((dense, len(dense.history) - 1))

    def repeat(self, passes: int) -> None:
        """Run passes of multiplicative weights over all measurements, oldest first."""
        # Components are independent: the order of updates matters within each one only.
        for dense in self._dense.values():
            if len(dense.history):
                dense.repeat(0, passes)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[Any]:
        """Draw values of all columns: integers, shape ``(count, columns)``."""
        values = self._start.sample(count, generator)
        for dense in self._dense.values():
            values[:, list(dense.columns)] = dense.sample(count, generator)
        return values

    def describe(self) -> dict[str, object]:
        """Return the size of the distribution, for the trace."""
        sizes = [self._queries.cells(dense.columns) for dense in self._dense.values()]
        return {"components": len(sizes), "cells": sum(sizes), "largest": max(sizes, default=0)}

    def _merge(self, scope: tuple[int, ...], more: int) -> Dense:
        """Return the component for ``more`` queries of a scope, merging those that it spans."""
        numbers = sorted({int(self._component[column]) for column in scope})
        columns = tuple(np.flatnonzero(np.isin(self._component, numbers)).tolist())
        held = [self._dense[number] for number in numbers if number in self._dense]
        measured = sum(len(dense.history) for dense in held) + more
        require_memory(self._queries, columns, measured, self._memory)
        if len(numbers) == 1 and numbers[0] in self._dense:
            return self._dense[numbers[0]]
        merged = Dense(self._queries, columns, self._start.cells(columns))
        old = [self._dense.pop(number) for number in numbers if number in self._dense]
        for number, (dense, place) in enumerate(self._places):
            if any(dense is one for one in old):
                entry = dense.history
                merged.add(
                    entry.queries[place], float(entry.targets[place]), float(entry.scales[place])
                )
                self._places[number] = (merged, len(merged.history) - 1)
        self._component[list(columns)] = numbers[0]
        self._dense[numbers[0]] = merged
        return merged


class Histogram(Factored):
    """One explicit vector over the whole domain.

    Parameters
    ----------
    queries, memory, threads
        As for `Factored`.
    start
        The distribution A_0: independent columns, or float64, one axis a column, positive; None for
        the uniform one.

    Raises
    ------
    BadInputError
        If the vector would not fit the memory limit.
    """

    name = "histogram"

    def __init__(
        self,
        queries: Products,
        memory: int,
        threads: int = 1,
        start: Columns | NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(queries, memory, threads, start if isinstance(start, Columns) else None)
        columns = tuple(range(len(queries.sizes)))
        require_memory(queries, columns, 0, memory)
        cells = start.ravel() if isinstance(start, np.ndarray) else self._start.cells(columns)
        self._component[:] = 0
        self._dense = {0: Dense(queries, columns, cells)}

    def shares(self) -> NDArray[np.float64]:
        """Return the share of every cell: one axis a column."""
        return self._dense[0].shares().reshape(tuple(self._queries.sizes.tolist()))


def most_of_scope(queries: Products, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest of some counts, one a query, for every scope."""
    most = np.zeros(len(queries.scopes), np.int64)
    np.maximum.at(most, queries.scope_of, counts)
    return most


def dense_bytes(cells: int, measurements: int) -> int:
    """Return the bytes of an explicit vector with the values of its measured queries."""
    classes = min(cells, 1 << measurements)
    return cells * CELL_BYTES + classes * measurements * CLASS_BYTES


def require_memory(
    queries: Products, columns: Iterable[int], measurements: int, memory: int
) -> None:
    """Refuse a vector over ``columns`` that would not fit after ``measurements`` measurements.

    Raises
    ------
    BadInputError
        If it needs more than ``memory`` bytes; says how much, and what would do.
    """
    chosen = tuple(columns)
    cells = queries.cells(chosen)
    needed = dense_bytes(cells, measurements)
    if needed > memory:
        raise BadInputError(
            f"a histogram of {len(chosen)} columns has {_figure(cells)} cells and needs about "
            f"{_figure(needed)} bytes, above the limit of {memory:,}: use "
            "representation=junction-tree, too_large=exclude, fewer rounds or a larger memory_gib"
        )


def _figure(number: int) -> str:
    """Print a number that may have thousands of digits."""
    return f"{number:,}" if number < 10**15 else f"10^{len(str(number)) - 1}"

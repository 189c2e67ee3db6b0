"""MWEM's distribution by exact inference on a junction tree of the measured queries' scopes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products, distinct_rows
from dualquery.runtime.errors import BadInputError
from mwem.answer_kernels import TablePool
from mwem.answers import ColumnMarginals, answer
from mwem.coarsening import Coarsening
from mwem.columns import Columns
from mwem.representations import forest_kernels as kernels
from mwem.representations.forest_kernels import Beliefs, Forest, Supports
from mwem.representations.inference import Marginals
from mwem.representations.protocol import History
from mwem.representations.triangulation import (
    Elimination,
    components,
    eliminate,
    forest,
    grown_cells,
)

CELL_BYTES = 64
"""Memory of a clique's cell: its tables, and maps to separators."""
SUPPORT_BYTES = 12
"""Memory of a measured query's value on one cell of its clique."""
KNOWN_BYTES = 4
"""Memory of what a cell says about one value of a column elsewhere."""


class JunctionTree:
    """The exponential family of the measured queries; cost grows with the treewidth only.

    The distribution is the one that the explicit histogram would have: the log-weight of a record
    is the sum of ``scale * q`` over the measured queries, each inside one clique.

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

    def __init__(
        self, queries: Products, memory: int, threads: int = 1, start: Columns | None = None
    ) -> None:
        self._start = Columns.uniform(queries.sizes) if start is None else start
        self._coarsening = Coarsening(queries, self._start)
        self._memory = memory
        self._threads = threads
        self._history = History()
        self._scopes = np.zeros((0, queries.scopes.shape[1]), dtype=np.int32)
        self._shapes = np.ones(self._scopes.shape, dtype=np.int64)
        self._tables: list[NDArray[np.float64]] = []
        self._elimination: Elimination | None = None
        self._forest: Forest | None = None

    def answers(self) -> NDArray[np.float64]:
        """Return the answer of every query, float64, shape ``(m,)``."""
        queries = self._coarsening.queries
        component = np.arange(len(queries.sizes), dtype=np.int32)
        columns = ColumnMarginals(Columns.uniform(queries.sizes), queries.cumulative)
        if self._forest is None:
            return answer(queries, component, columns, _no_tables, self._threads)
        forest = self._forest
        marginals = Marginals(
            forest, self._beliefs, queries.counts_any[forest.columns], self._memory, self._threads
        )
        for node, column in enumerate(forest.columns.tolist()):
            columns.set(column, marginals.column(node))
        tops = forest.holder[forest.top]
        component[forest.columns] = len(component) + forest.root[tops]

        def tables(parts: NDArray[np.int32]) -> TablePool:
            if not len(parts):
                return _no_tables(parts)
            nodes = np.where(parts >= 0, np.searchsorted(forest.columns, parts), -1)
            different, which = distinct_rows(nodes.astype(np.int32), len(forest.columns))
            found = marginals.tables(different)
            return found.of(which)

        return answer(queries, component, columns, tables, self._threads)

    def admits(self, together: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which queries could be measured within the memory limit; bool, ``(m,)``."""
        queries = self._coarsening.queries
        scopes = queries.scopes
        more = np.zeros(len(queries.scopes), np.int64)
        np.maximum.at(more, queries.scope_of, together)
        sizes = self._coarsening.sizes_after(scopes, more)
        values = int(queries.sizes[np.unique(self._scopes[self._scopes >= 0])].sum())
        values += int(sizes.sum(axis=1).max())
        most = self._memory / tree_cell_bytes(values, len(self._scopes) + more)
        fits = self._grown_cells(scopes, sizes) <= most
        for scope in np.flatnonzero(~fits):
            wanted = np.vstack((self._scopes, np.tile(scopes[scope], (int(more[scope]), 1))))
            after, used = queries.sizes.copy(), scopes[scope] >= 0
            after[scopes[scope][used]] = sizes[scope][used]
            tried = self._eliminated(wanted, after, effort=0)
            fits[scope] = tree_bytes(tried, wanted) <= self._memory
        return np.asarray(fits[queries.scope_of])

    def update(self, queries: NDArray[np.int64], targets: NDArray[np.float64]) -> None:
        """Enter measurements of one scope and multiply by ``exp(q (target - q(A)) / 2)``.

        Raises
        ------
        BadInputError
            If the cliques would not fit the memory limit.
        """
        scope = self._coarsening.queries.columns[queries[0]]
        scopes = np.vstack((self._scopes, np.tile(scope, (len(queries), 1))))
        refined = self._coarsening
        for query in queries.tolist():
            refined = refined.refined(query)
        if refined is not self._coarsening or not self._holds(scope):
            sizes = refined.queries.sizes
            elimination = self._eliminated(scopes, sizes)
            needed = tree_bytes(elimination, scopes)
            if needed > self._memory:
                raise BadInputError(
                    f"the junction tree of {len(scopes)} measured queries has up to "
                    f"{elimination.cells:.3g} cells and needs about "
                    f"{needed:.3g} bytes, above the limit of "
                    f"{self._memory:,}: use fewer rounds or a larger memory_gib"
                )
            self._elimination = elimination
            self._forest = forest(elimination)
        self._coarsening = refined
        self._scopes = scopes
        first = len(self._history)
        for query, target in zip(queries.tolist(), targets.tolist(), strict=True):
            self._history.add(query, target)
        self._place()
        self._calibrate()
        self._pass(first, 1)

    def repeat(self, passes: int) -> None:
        """Run passes of multiplicative weights over all measurements, oldest first."""
        self._pass(0, passes)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[Any]:
        """Draw values of all columns: integers, shape ``(count, columns)``."""
        values = self._start.sample(count, generator)
        if self._forest is None:
            return values
        forest = self._forest
        classes = np.zeros(values.shape, dtype=values.dtype)
        for clique in range(len(forest.parent)):
            entries = slice(forest.start[clique], forest.start[clique + 1])
            columns = forest.columns[forest.members[entries]]
            stride = forest.stride[entries]
            block = int(forest.block[clique])
            shared = stride >= block
            below = classes[:, columns[shared]].astype(np.int64) @ stride[shared]
            cells = slice(forest.cell_ptr[clique], forest.cell_ptr[clique + 1])
            cumulative = np.append(0.0, np.cumsum(self._beliefs.cliques[cells]))
            low, high = cumulative[below], cumulative[below + block]
            point = low + generator.random(count) * (high - low)
            cell = np.searchsorted(cumulative, point, side="right") - 1
            cell, new = np.clip(cell, below, below + block - 1), columns[~shared]
            sizes = self._coarsening.queries.sizes[new]
            classes[:, new] = (cell[:, None] // stride[~shared]) % sizes
        self._coarsening.expand(classes, values, generator)
        return values

    def describe(self) -> dict[str, object]:
        """Return the size of the distribution, for the trace."""
        if self._forest is None:
            return {"components": 0, "cells": 0, "largest": 0}
        cells = np.diff(self._forest.cell_ptr)
        return {
            "components": int(np.count_nonzero(self._forest.parent < 0)),
            "cells": int(cells.sum()),
            "largest": int(cells.max()),
        }

    def _eliminated(
        self, scopes: NDArray[np.int32], sizes: NDArray[np.int64], **effort: int
    ) -> Elimination:
        """Return an elimination that keeps each of some scopes in one clique."""
        return eliminate(scopes, sizes, self._elimination, **effort)

    def _grown_cells(
        self, scopes: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return upper bounds on the cells with each of some scopes more, of columns so large."""
        del scopes  # each step's set grows by the scope at most, whichever it is
        return grown_cells(self._elimination, sizes.astype(np.float64).prod(axis=1))

    def _holds(self, scope: NDArray[np.int32]) -> bool:
        """Return whether some clique holds all columns of a scope already."""
        if self._forest is None:
            return False
        columns = scope[scope >= 0]
        if not np.isin(columns, self._forest.columns).all():
            return False
        found = np.empty(1, dtype=np.int32)
        node = np.searchsorted(self._forest.columns, columns).astype(np.int32)[None, :]
        kernels.find_cliques(self._forest, node, found)
        return bool(found[0] >= 0)

    def _place(self) -> None:
        """Give every measured query to the smallest clique that holds its scope."""
        forest = self._forest
        assert forest is not None
        nodes = np.where(self._scopes >= 0, np.searchsorted(forest.columns, self._scopes), -1)
        nodes = nodes.astype(np.int32)
        clique = np.empty(len(nodes), dtype=np.int32)
        kernels.find_cliques(forest, nodes, clique)
        self._update_tables()
        sizes = np.where(nodes >= 0, forest.sizes[nodes], 1)
        strides = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1] // sizes
        tables = TablePool(
            np.concatenate([table.ravel() for table in self._tables]),
            np.cumsum([0, *(table.size for table in self._tables[:-1])]).astype(np.int64),
            np.ascontiguousarray(strides, dtype=np.int64),
        )
        start = np.empty(len(nodes) + 1, dtype=np.int64)
        none = Supports(clique, start, np.empty(0, dtype=np.int32), np.empty(0))
        length = kernels.list_supports(forest, nodes, tables, none)
        self._supports = none._replace(
            cells=np.empty(length, dtype=np.int32), values=np.empty(length)
        )
        kernels.list_supports(forest, nodes, tables, self._supports)

    def _update_tables(self) -> None:
        """Tabulate the measured queries over the classes that they are measured on now."""
        queries = self._coarsening.queries
        used = self._scopes >= 0
        shapes = np.where(used, queries.sizes[self._scopes], 1)
        stale = (self._shapes != shapes[: len(self._shapes)]).any(axis=1)
        for place in np.flatnonzero(stale).tolist():
            self._tables[place] = queries.table(self._history.queries[place])
        for place in range(len(self._tables), len(self._history)):
            self._tables.append(queries.table(self._history.queries[place]))
        self._shapes = shapes

    def _calibrate(self) -> None:
        """Compute the marginals of all cliques from the scales, in logarithms."""
        forest = self._forest
        assert forest is not None
        logs = np.zeros(int(forest.cell_ptr[-1]))
        for column, log_weights in self._coarsening.log_weights.items():
            entry = forest.top[np.searchsorted(forest.columns, column)]
            clique = forest.holder[entry]
            table = logs[forest.cell_ptr[clique] : forest.cell_ptr[clique + 1]]
            stride = int(forest.stride[entry])
            table.reshape(-1, len(log_weights), stride)[...] += log_weights[:, None]
        kernels.add_potentials(forest, self._supports, self._history.scales, logs)
        self._beliefs = Beliefs(np.empty(len(logs)), np.empty(int(forest.sep_ptr[-1])))
        kernels.calibrate(forest, logs, self._beliefs)

    def _pass(self, first: int, passes: int) -> None:
        """Run passes over the measurements from ``first`` on, then calibrate afresh."""
        forest = self._forest
        if forest is None or passes == 0:
            return
        kernels.repeat(
            forest,
            self._beliefs,
            self._supports,
            self._history.targets,
            first,
            passes,
            self._history.scales,
        )
        self._calibrate()


class Factored(JunctionTree):
    """A product of distributions over disjoint sets of columns (the MWEM paper, section 4).

    The columns that measured queries tie together, directly or not, are one clique.
    """

    def _eliminated(
        self, scopes: NDArray[np.int32], sizes: NDArray[np.int64], **_: int
    ) -> Elimination:
        return eliminate(components(scopes), sizes, effort=0)

    def _grown_cells(
        self, scopes: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        held = components(self._scopes)
        now = np.log2(self._coarsening.queries.sizes)
        of = np.full(len(now), -1)
        rows, places = np.nonzero(held >= 0)
        of[held[rows, places]] = rows
        logs = np.where(held >= 0, now[held], 0.0).sum(axis=1)
        # A component's columns count once, as large as they get.
        cells = (
            np.log2(sizes) - np.where((scopes >= 0) & (of[scopes] >= 0), now[scopes], 0.0)
        ).sum(axis=1)
        touched = np.where(scopes >= 0, of[scopes], -1)
        touched.sort(axis=1)
        fresh = touched >= 0
        fresh[:, 1:] &= touched[:, 1:] != touched[:, :-1]
        cells += np.where(fresh, np.append(logs, 0.0)[touched], 0.0).sum(axis=1)
        # The steps of an elimination have at most twice the cells of its cliques.
        return np.asarray(2.0 * (np.exp2(logs).sum() + np.exp2(np.minimum(cells, 100.0))))


def tree_cell_bytes(values: int, measurements: NDArray[np.int64] | int) -> Any:
    """Return the memory of a clique's cell, by its values of columns and measured queries."""
    return CELL_BYTES + SUPPORT_BYTES * measurements + KNOWN_BYTES * values


def tree_bytes(elimination: Elimination, scopes: NDArray[np.int32]) -> float:
    """Return an upper bound on the memory of a junction tree of measured scopes."""
    cell: float = tree_cell_bytes(int(elimination.sizes.sum()), len(scopes))
    return elimination.cells * cell


def _no_tables(parts: NDArray[np.int32]) -> TablePool:
    """Return the tables of no parts at all."""
    return TablePool(
        np.zeros(1), np.zeros(0, dtype=np.int64), np.zeros(parts.shape, dtype=np.int64)
    )

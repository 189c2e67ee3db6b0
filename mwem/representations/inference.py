"""Marginals of any few columns from a calibrated forest of cliques, many at once.

Columns that share a clique are read off it. Two or three that do not are independent given some
clique, the *hub*, on the paths between theirs: their marginal is a sum over its cells. More columns
are reduced to fewer by fixing the last one to each of its values in turn.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import workers
from mwem.answer_kernels import TablePool
from mwem.representations import forest_kernels as kernels
from mwem.representations.forest_kernels import Beliefs, Forest

_AT_HUB = 3  # parts of at most this many columns always have a hub


class Marginals:
    """Inclusive marginals of a calibrated forest.

    ``counts_any``, bool of shape ``(v,)``, are the columns whose index 0 is read; ``memory`` limits
    the bytes of the tables of sets of columns that no clique holds. The marginals do not depend on
    the threads.
    """

    def __init__(
        self,
        forest: Forest,
        beliefs: Beliefs,
        counts_any: NDArray[np.bool_],
        memory: int,
        threads: int,
    ) -> None:
        self._forest = forest
        self._beliefs = beliefs
        self._counts_any = counts_any
        self._memory = memory
        self._threads = threads
        self._inside = beliefs.cliques.copy()
        kernels.include_any_in_cliques(forest, self._inside)

    def column(self, node: int) -> NDArray[np.float64]:
        """Return one column's inclusive marginal, float64, shape ``(size,)``."""
        entry = self._forest.top[node]
        base = self._forest.cell_ptr[self._forest.holder[entry]]
        step = self._forest.stride[entry]
        return self._inside[base : base + self._forest.sizes[node] * step : step]

    def tables(self, parts: NDArray[np.int32]) -> TablePool:
        """Return the inclusive marginals of different parts.

        Parameters
        ----------
        parts
            int32, shape ``(p, k)``: two or more nodes of one tree, increasing, padded with -1.

        Raises
        ------
        BadInputError
            If the tables would exceed the memory limit; they have not been made then.
        """
        clique = np.empty(len(parts), dtype=np.int32)
        kernels.find_cliques(self._forest, parts, clique)
        used = parts >= 0
        sizes = np.where(used, self._forest.sizes[parts], 1)
        # Own tables, in C order, for the parts that no clique holds.
        stride = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1] // sizes * used
        outside = clique < 0
        lengths = np.where(outside, sizes.prod(axis=1), 0)
        offset = len(self._inside) + np.cumsum(lengths) - lengths
        offset[~outside] = self._forest.cell_ptr[clique[~outside]]
        stride[~outside] = self._strides(clique[~outside], parts[~outside])
        length = math.fsum(lengths)
        if length * 8 > self._memory:
            raise BadInputError(
                f"the marginals of {np.count_nonzero(outside):,} sets of columns that lie in no "
                f"clique need {length * 8:.3g} bytes, above the limit of {self._memory:,}: use "
                "fewer rounds, a smaller workload or a larger memory_gib"
            )
        extra = np.zeros(int(length))
        if len(extra):
            own = TablePool(extra, offset[outside] - len(self._inside), stride[outside])
            self._fill(parts[outside], own)
        pool = np.concatenate((self._inside, extra)) if len(extra) else self._inside
        return TablePool(pool, offset, np.ascontiguousarray(stride))

    def _strides(self, clique: NDArray[np.int32], parts: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the strides of the columns of parts in cliques that hold them."""
        keys = self._forest.holder.astype(np.int64) * len(self._forest.sizes)
        keys += self._forest.members
        order = np.argsort(keys)
        wanted = clique.astype(np.int64)[:, None] * len(self._forest.sizes) + parts
        found = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
        return np.where(parts >= 0, self._forest.stride[found], 0)

    def _fill(self, parts: NDArray[np.int32], tables: TablePool) -> None:
        """Fill the tables of parts that no clique holds."""
        width = np.count_nonzero(parts >= 0, axis=1)
        few = width <= _AT_HUB
        if few.any():
            narrow = np.ascontiguousarray(parts[few][:, :_AT_HUB])
            self._fill_at_hubs(narrow, tables.of(few))
        for count in np.unique(width[~few]):
            chosen = np.flatnonzero(width == count)
            for last in np.unique(parts[chosen, count - 1]):
                of_last = chosen[parts[chosen, count - 1] == last]
                rest = np.ascontiguousarray(parts[of_last, : count - 1])
                self._fill_by_value(int(last), rest, tables.of(of_last))

    def _fill_by_value(self, last: int, parts: NDArray[np.int32], tables: TablePool) -> None:
        """Fill tables of ``parts`` and a last column: fix the column to each of its values."""
        rest = tables.stride[:, : parts.shape[1]]
        step = tables.stride[:, parts.shape[1]]
        shape = tuple(self._forest.sizes[parts].max(axis=0).tolist())
        index = np.indices(shape).reshape(len(shape), -1)
        legal = (index[None] < self._forest.sizes[parts][:, :, None]).all(axis=1)
        for value in range(0 if self._counts_any[last] else 1, int(self._forest.sizes[last])):
            fixed = self if value == 0 else self._fixed(last, value)
            found = fixed.tables(parts)
            read = found.offset[:, None] + found.stride @ index
            write = (tables.offset + value * step)[:, None] + rest @ index
            tables.pool[write[legal]] = found.pool[read[legal]]

    def _fixed(self, node: int, value: int) -> Marginals:
        """Return the marginals times the indicator of a column's value."""
        beliefs = self._beliefs.copy()
        kernels.restrict(self._forest, node, value, beliefs)
        return Marginals(self._forest, beliefs, self._counts_any, self._memory, self._threads)

    def _fill_at_hubs(self, parts: NDArray[np.int32], tables: TablePool) -> None:
        """Fill the tables of parts of two or three columns."""
        forest, hub = self._forest, self._hubs(parts)
        nodes = np.unique(parts[parts >= 0])
        sources: dict[int, NDArray[np.int32]] = {}
        known: dict[int, NDArray[np.float64]] = {}

        def spread(node: int) -> None:
            sources[node] = np.empty(len(forest.parent), dtype=np.int32)
            known[node] = np.empty((int(forest.sizes[node]) - 1, int(forest.sep_ptr[-1])))
            kernels.spread_column(forest, self._beliefs, node, sources[node], known[node])

        def sum_at(number: int) -> None:
            chosen = np.flatnonzero(hub == number)
            chosen = chosen[np.lexsort(parts[chosen].T[::-1])]
            here = np.unique(parts[chosen])
            here = here[here >= 0]
            row_of = np.zeros(len(forest.sizes), dtype=np.int64)
            row_of[here] = np.cumsum(forest.sizes[here] - 1) - (forest.sizes[here] - 1)
            cells = slice(forest.cell_ptr[number], forest.cell_ptr[number + 1])
            rows = np.empty((int((forest.sizes[here] - 1).sum()), cells.stop - cells.start))
            for node in here.tolist():
                kernels.expand(
                    forest,
                    number,
                    node,
                    int(sources[node][number]),
                    known[node],
                    rows[row_of[node] : row_of[node] + forest.sizes[node] - 1],
                )
            kernels.hub_tables(
                self._beliefs.cliques[cells],
                rows,
                row_of,
                parts[chosen],
                forest.sizes,
                self._counts_any,
                tables.of(chosen),
            )

        with workers(self._threads) as pool:
            list(pool.map(spread, nodes.tolist()))
            list(pool.map(sum_at, np.unique(hub).tolist()))

    def _hubs(self, parts: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a clique on all paths between the columns' top cliques, for each part."""
        forest = self._forest
        tops = forest.holder[forest.top]
        cells = np.diff(forest.cell_ptr)
        first, second = tops[parts[:, 0]], tops[parts[:, 1]]
        hub = np.where(cells[first] <= cells[second], first, second)
        if parts.shape[1] > 2:
            three = parts[:, 2] >= 0
            first, second, third = first[three], second[three], tops[parts[three, 2]]
            meets = np.stack(
                [self._meet(first, second), self._meet(first, third), self._meet(second, third)]
            )
            deepest = forest.depth[meets].argmax(axis=0)
            hub[three] = meets[deepest, np.arange(len(deepest))]
        return hub.astype(np.int32)

    def _meet(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the lowest common ancestors of pairs of cliques of one tree."""
        one, other = one.copy(), other.copy()
        while (apart := one != other).any():
            deeper = self._forest.depth[one] >= self._forest.depth[other]
            up_one, up_other = apart & deeper, apart & ~deeper
            one[up_one] = self._forest.parent[one[up_one]]
            other[up_other] = self._forest.parent[other[up_other]]
        return one

"""An explicit vector over all cells of some columns: a whole histogram, or a component of one.

Cells that no measured query tells apart form a *class*. All of them have been multiplied by the
same factors, so passes of multiplicative weights run on classes, of which t measurements of 0/1
queries make at most 2^t, and cells are only visited to answer queries.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.products import Products
from mwem.history import History
from mwem.representations import dense_kernels as kernels

_NO_PRIOR = np.zeros(0)

_MOST_LEVELS = 16
"""Values of a query up to which its levels and classes are paired in a table."""


class Dense:
    """A distribution on the cells of ``columns``.

    Parameters
    ----------
    queries
        The queries that may be measured.
    columns
        Increasing column numbers; every measured query's scope must lie among them.
    prior
        float64, shape ``(cells,)``: the distribution A_0, positive; None for the uniform one.
    """

    def __init__(
        self,
        queries: Products,
        columns: tuple[int, ...],
        prior: NDArray[np.float64] | None = None,
    ) -> None:
        self.columns = columns
        self.history = History()
        self._queries = queries
        self._sizes = queries.sizes[list(columns)]
        self._cells = math.prod(self._sizes.tolist())
        self._classes = np.zeros(self._cells, dtype=np.int32)
        self._prior = _NO_PRIOR if prior is None else prior / math.fsum(prior)
        self._values = np.zeros((0, 1))
        self._initial: NDArray[Any] = np.ones(1)

    def add(self, query: int, target: float, scale: float = 0.0) -> None:
        """Enter a measurement: split the classes, and multiply by ``exp(scale * q)``."""
        self.history.add(query, target)
        self.history.scales[-1] = scale
        scope = self._queries.scope(query)
        shape = [
            int(s) if c in scope else 1 for c, s in zip(self.columns, self._sizes, strict=True)
        ]
        levels, level = np.unique(self._queries.table(query), return_inverse=True)
        level = level.reshape(shape)
        if len(levels) <= _MOST_LEVELS:
            parent, value = self._refine(level, len(levels))
        else:
            parent, value = self._refine_by_sorting(level, len(levels))
        self._values = np.ascontiguousarray(np.vstack((self._values[:, parent], levels[value])))
        weights = self._prior if len(self._prior) else np.full(self._cells, 1.0 / self._cells)
        self._initial = np.bincount(self._classes, weights, len(parent))

    def repeat(self, first: int, passes: int) -> None:
        """Run passes of multiplicative weights over the measurements from ``first`` on."""
        kernels.repeat(
            self._values,
            self._initial * self._density(),
            self.history.targets,
            first,
            passes,
            self.history.scales,
        )

    def shares(self) -> NDArray[np.float64]:
        """Return the share of every cell, float64, shape ``(cells,)``, C order of the columns."""
        out = np.empty(self._cells)
        density = self._density()
        if not len(self._prior):
            density = density / self._cells
        kernels.spread(density, self._classes, self._prior, out)
        return out

    def inclusive(self) -> NDArray[np.float64]:
        """Return all inclusive marginals at once (`dualquery.queries.products`): ``(cells,)``."""
        table = self.shares()
        cumulative = self._queries.cumulative[list(self.columns)]
        if not cumulative.any():
            kernels.include_any(table, self._sizes)
            return table
        axes = table.reshape(self._sizes)
        for axis, adds_up in enumerate(cumulative):
            moved = np.moveaxis(axes, axis, 0)
            if adds_up:
                moved[:] = np.cumsum(moved[::-1], axis=0)[::-1]
            else:
                moved[0] = moved.sum(axis=0)
        return table

    def strides(self) -> NDArray[np.int64]:
        """Return the stride of each column in the vectors of cells, int64."""
        return np.append(np.cumprod(self._sizes[:0:-1])[::-1], 1).astype(np.int64)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw values of the columns: int64, shape ``(count, columns)``."""
        cumulative = np.cumsum(self.shares())
        cells = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
        return np.stack(np.unravel_index(cells, self._sizes), axis=1).astype(np.int64)

    def _refine(self, level: NDArray[np.int64], levels: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split the classes by a query of few levels; return each one's old class and level."""
        cell_level = np.broadcast_to(level.astype(np.uint8), self._sizes).flatten()
        pairs = len(self._initial) * levels
        most = min(pairs, self._cells)
        parent, value = np.empty(most, np.int32), np.empty(most, np.uint8)
        number = np.full(pairs, -1, np.int32)
        count = kernels.refine(self._classes, cell_level, levels, number, parent, value)
        return parent[:count], value[:count]

    def _refine_by_sorting(
        self, level: NDArray[np.int64], levels: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Do the same for a query whose table of all pairs of levels would be large."""
        cell_level = np.broadcast_to(level, self._sizes).flatten()
        pairs, number = np.unique(
            self._classes * np.int64(levels) + cell_level, return_inverse=True
        )
        self._classes = number.ravel().astype(np.int32)
        return pairs // levels, pairs % levels

    def _density(self) -> NDArray[np.float64]:
        """Return each class's factor on A_0, from logarithms: nothing overflows or drifts."""
        exponents = self.history.scales @ self._values
        density = np.exp(exponents - exponents.max())
        result: NDArray[np.float64] = density / math.fsum(self._initial * density)
        return result

"""Independent columns, from which a run starts: uniform ones, or such as were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Independent columns: the distribution A_0.

    Parameters
    ----------
    sizes
        int64, shape ``(columns,)``: number of values of each.
    shares
        float64, shape ``(sum(sizes),)``: the chances of the values of all columns, laid end to end;
        above 0, and those of a column add up to 1.
    """

    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]

    @staticmethod
    def uniform(sizes: NDArray[np.int64]) -> Columns:
        """Return columns each of whose values are equally likely."""
        return Columns(sizes, 1.0 / np.repeat(sizes, sizes))

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's values begin: int64, shape ``(columns + 1,)``."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @cached_property
    def are_uniform(self) -> NDArray[np.bool_]:
        """Which columns' values are all equally likely: bool, shape ``(columns,)``."""
        alike: NDArray[np.bool_] = np.maximum.reduceat(
            self.shares, self.starts[:-1]
        ) == np.minimum.reduceat(self.shares, self.starts[:-1])
        return alike

    def of(self, column: int) -> NDArray[np.float64]:
        """Return the chances of a column's values."""
        return self.shares[self.starts[column] : self.starts[column + 1]]

    def cells(self, columns: tuple[int, ...]) -> NDArray[np.float64] | None:
        """Return the chance of each cell of some columns, C order; None where all are alike."""
        if self.are_uniform[list(columns)].all():
            return None
        product = np.ones(1)
        for column in columns:
            product = np.multiply.outer(product, self.of(column)).ravel()
        return product / math.fsum(product)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.unsignedinteger]:
        """Draw values of all columns.

        Returns
        -------
        Unsigned integers as narrow as the sizes allow, shape ``(count, columns)``.
        """
        kind = np.min_scalar_type(int(self.sizes.max()) - 1)
        values = np.empty((count, len(self.sizes)), dtype=kind)
        for size in np.unique(self.sizes[self.are_uniform]).tolist():
            columns = np.flatnonzero(self.are_uniform & (self.sizes == size))
            values[:, columns] = generator.integers(0, size, (count, len(columns)), dtype=kind)
        for column in np.flatnonzero(~self.are_uniform).tolist():
            reached = np.cumsum(self.of(column))
            point = generator.random(count) * reached[-1]
            values[:, column] = np.searchsorted(reached, point, side="right")
        return values

"""A population of synthetic records as rows that the shared counting pass reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.row_sums import BLOCK_ROWS, BLOCK_WORDS
from mwem.layout import Layout
from mwem.sampled import gibbs_kernels as kernels


@dataclass(frozen=True, eq=False)
class PopulationRows:
    """Rows (`dualquery.rows.row_sums.BlockRows`) whose bits are packed when they are asked for.

    Parameters
    ----------
    layout
        The columns held.
    population
        uint16, shape ``(n, columns held)``: the value of every column.
    """

    layout: Layout
    population: NDArray[np.uint16]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.population)

    @property
    def bits(self) -> int:
        """Number of bits of a record."""
        return self.layout.domain.bits

    def stream(self) -> Iterator[PopulationBlock]:
        """Yield the records in blocks."""
        for first in range(0, self.n, BLOCK_ROWS):
            yield PopulationBlock(self.layout, self.population[first : first + BLOCK_ROWS])


@dataclass(frozen=True, eq=False)
class PopulationBlock:
    """A block of a population (`dualquery.rows.row_sums.Block`)."""

    layout: Layout
    population: NDArray[np.uint16]

    @property
    def nbytes(self) -> int:
        """Memory of the block in bytes."""
        return self.population.nbytes

    def pack(self, attributes: NDArray[np.int32]) -> NDArray[np.uint64]:
        """Return the packed bits of increasing ``attributes``, all of them held."""
        words = np.zeros((len(attributes), BLOCK_WORDS), np.uint64)
        column, value = self.layout.column[attributes], self.layout.value[attributes]
        kernels.pack_values(self.population, column, value, words)
        return words

    def unpack(self, first_row: int, out: NDArray[np.uint8]) -> None:
        """Write the held bits of the rows from ``first_row`` of the block on into ``out``."""
        rows = self.population[first_row:][: len(out)]
        bits = self.layout.bits
        out[: len(rows), bits] = rows[:, self.layout.column[bits]] == self.layout.value[bits]

    def add_ones(self, counts: NDArray[np.int64]) -> None:
        """Add the number of 1s of each held bit to ``counts``."""
        bits = self.layout.bits
        column, value = self.layout.column[bits], self.layout.value[bits]
        counts[bits] += (self.population[:, column] == value).sum(axis=0)

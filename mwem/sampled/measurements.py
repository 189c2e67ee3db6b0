"""Pools noisy tables that share bits: a number measured twice is known more precisely.

In the Walsh-Hadamard basis a table over w bits is 2^w characters, one for each set of its bits, and
independent noise of variance s^2 a cell is independent noise of variance 2^w s^2 a character.
Tables that share bits measure the same characters; means weighted by inverse variances are their
best linear unbiased estimates (as in Barak et al., PODS 2007).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Measurements:
    """Estimates of characters, and the tables that are made of them.

    Parameters
    ----------
    n
        Number of private rows, public: the character of the empty set, known without noise.
    way
        Bits of a table; smaller tables are padded.
    """

    n: int
    way: int
    _place: dict[tuple[int, ...], int] = field(init=False, default_factory=dict)
    _sums: list[float] = field(init=False, default_factory=list)
    _precisions: list[float] = field(init=False, default_factory=list)
    _tables: list[NDArray[np.int64]] = field(init=False, default_factory=list)
    _signs: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self._signs = walsh(self.way)

    def add_bits(self, bits: NDArray[np.int32], counts: NDArray[np.float64], scale: float) -> None:
        """Take in noisy counts of the rows in which single bits are 1; ``scale`` is in rows."""
        for bit, count in zip(bits.tolist(), counts.tolist(), strict=True):
            self._take((bit,), self.n - 2.0 * count, 4.0 * scale**2)

    def add_table(self, bits: NDArray[np.int32], counts: NDArray[np.float64], scale: float) -> None:
        """Take in a noisy table.

        Its bits, int32 of shape ``(way,)``, are padded with -1 on the right; ``w`` bits have
        ``2^w`` noisy counts. ``scale`` is the standard deviation of the noise, in rows.
        """
        present = bits[bits >= 0].tolist()
        cells = len(counts)
        characters = self._signs[:cells, :cells] @ counts
        table = np.full(1 << self.way, -1)
        for subset in range(1, cells):
            key = tuple(sorted(bit for i, bit in enumerate(present) if subset >> i & 1))
            table[subset] = self._take(key, float(characters[subset]), cells * scale**2)
        self._tables.append(table)

    def tables(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return all tables, pooled.

        Returns
        -------
        counts
            float64, shape ``(tables, 2^way)``: estimated counts; 0 in the cells of padded bits.
        scales
            float64, shape ``(tables,)``: standard deviation of each of a table's counts, in rows.
        """
        places = np.stack(self._tables)
        measured = places >= 0
        precisions = np.append(self._precisions, np.inf)
        means = np.append(np.divide(self._sums, self._precisions), 0.0)
        characters = means[places]
        characters[:, 0] = self.n
        cells = measured.sum(axis=1) + 1
        counts = characters @ self._signs / cells[:, None]
        counts[np.arange(len(self._signs)) >= cells[:, None]] = 0.0
        scales = np.sqrt((1.0 / precisions[places]).sum(axis=1)) / cells
        return counts, scales

    def _take(self, bits: tuple[int, ...], value: float, variance: float) -> int:
        """Add a measurement of a character; return the character's place."""
        place = self._place.setdefault(bits, len(self._sums))
        if place == len(self._sums):
            self._sums.append(0.0)
            self._precisions.append(0.0)
        self._sums[place] += value / variance
        self._precisions[place] += 1.0 / variance
        return place


def walsh(bits: int) -> NDArray[np.float64]:
    """Return the matrix of ``(-1)^(common 1s of row and column)``, ``(2^bits, 2^bits)``."""
    matrix = np.ones((1, 1))
    for _ in range(bits):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix

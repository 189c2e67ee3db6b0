"""The exponential family of MWEM over measured tables, and a population kept in step with it.

MWEM multiplies its distribution by an exponential of every query that it measures, so after any
number of rounds the distribution is its start times ``exp`` of a sum of factors, one a measured
cell. That is all there is to hold: the factors, and a population of records that Gibbs sweeps
draw from the family (Geman and Geman 1984). Nothing here is private: measurements are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.counting import CountingPass
from mwem.sampled import gibbs_kernels as kernels
from mwem.sampled.layout import Layout
from mwem.sampled.population import PopulationRows
from mwem.sampled.tables import Tables, possible_cells
from mwem.sampled.targets import target_shares

_LEAST_PART = 1024
"""Records that a thread sweeps at least: starting it costs as much as a few."""


@dataclass(eq=False)
class SampledFamily:
    """Factors on measured cells, the shares that they are to meet, and a population.

    Parameters
    ----------
    layout
        The columns held.
    base
        float64: the distribution of every column at the start (see `Layout.base`).
    population
        uint16, shape ``(records, columns held)``: records of the family. `sweep` updates them.
    tables
        The measured tables, none at the start.
    generator
        Source of public randomness.
    threads
        Number of threads; results do not depend on it.
    factors
        float64, shape ``tables.shape``: log-factors of the cells.
    targets
        float64, shape ``tables.shape``: the measured shares (see `targets`).
    """

    layout: Layout
    base: NDArray[np.float64]
    population: NDArray[np.uint16]
    tables: Tables
    generator: np.random.Generator
    threads: int
    factors: NDArray[np.float64] = field(init=False)
    targets: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.factors = np.zeros(self.tables.shape)
        self.targets = np.zeros(self.tables.shape)

    @staticmethod
    def independent(
        layout: Layout,
        base: NDArray[np.float64],
        way: int,
        records: int,
        generator: np.random.Generator,
        threads: int,
    ) -> SampledFamily:
        """Return the family without factors, of independent columns, for tables of ``way`` bits."""
        return SampledFamily(
            layout=layout,
            base=base,
            population=layout.draw(base, records, generator),
            tables=Tables(layout, np.empty((0, way), np.int32)),
            generator=generator,
            threads=threads,
        )

    def add(
        self, bits: NDArray[np.int32], counts: NDArray[np.float64], n: int, scale: float
    ) -> NDArray[np.float64]:
        """Take in a measured table; return the shares that its cells are to have.

        Parameters
        ----------
        bits
            int32, shape ``(way,)``, padded with -1: the table's bits.
        counts
            float64, shape ``(2^w,)`` for ``w`` bits without padding: noisy counts of the cells.
        n, scale
            Number of private rows, and standard deviation of the noise, in rows.
        """
        possible = possible_cells(self.layout, bits)
        padded = np.zeros(len(possible))
        padded[: len(counts)] = counts
        target = target_shares(padded, possible, n, scale)
        self.tables = self.tables.add(bits)
        self.targets = np.concatenate((self.targets, target[None]))
        self.factors = np.concatenate((self.factors, np.zeros((1, len(target)))))
        return target

    def enlarge(self, times: int) -> None:
        """Hold every record ``times`` times; sweeps then make them differ."""
        self.population = np.repeat(self.population, times, axis=0)

    def answers(self, counting: CountingPass) -> NDArray[np.float64]:
        """Return the share of the population on which each query holds, float64, ``(m,)``."""
        rows = PopulationRows(self.layout, self.population)
        shares: NDArray[np.float64] = counting.run(rows, self.threads) / rows.n
        return shares

    def sweep(self) -> NDArray[np.int64]:
        """Draw every column of every record once; return the new counts of the cells."""
        seed = self.generator.integers(2**64, dtype=np.uint64)
        tables, touches = self.tables, self.tables.touches

        def part(first: int, last: int, tally: NDArray[np.int64]) -> None:
            kernels.sweep(
                self.population,
                first,
                last,
                seed,
                self.factors,
                self.layout.starts,
                self.base,
                tables.columns,
                tables.values,
                touches.columns,
                touches.indptr,
                touches.table,
                touches.value,
                touches.sets,
                touches.all,
                tally,
            )

        return self._tally(part)

    def count(self) -> NDArray[np.int64]:
        """Return how many records lie in each cell, int64, shape ``tables.shape``."""
        tables = self.tables

        def part(first: int, last: int, tally: NDArray[np.int64]) -> None:
            kernels.count_cells(self.population, first, last, tables.columns, tables.values, tally)

        return self._tally(part)

    def force(self, table: int, cell: int, records: int) -> None:
        """Move some random records into a cell, changing no other bits than the table's.

        Parameters
        ----------
        table, cell
            A cell that is possible.
        records
            How many, at most as many as there are.
        """
        rows = self.generator.choice(len(self.population), records, replace=False)
        columns, values = self.tables.columns[table], self.tables.values[table]
        for column in np.unique(columns[columns >= 0]):
            here = columns == column
            one = here & (cell >> np.arange(len(columns)) & 1).astype(bool)
            if one.any():
                self.population[rows, column] = values[one][0]
                continue
            wrong = rows[np.isin(self.population[rows, column], values[here])]
            shares = self.base[self.layout.values_of(column)].copy()
            shares[values[here]] = 0.0
            shares /= shares.sum()
            self.population[wrong, column] = self.generator.choice(
                len(shares), len(wrong), p=shares
            )

    def _tally(self, part: Callable[[int, int, NDArray[np.int64]], None]) -> NDArray[np.int64]:
        """Add up what ``part`` counts in runs of records, several at a time."""
        records = len(self.population)
        step = max(_LEAST_PART, -(-records // (4 * self.threads)))
        starts = range(0, records, step)
        tallies = [np.zeros(self.tables.shape, np.int64) for _ in starts]
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [
                pool.submit(part, first, min(first + step, records), tally)
                for first, tally in zip(starts, tallies, strict=True)
            ]
            for future in futures:
                future.result()
        total: NDArray[np.int64] = np.sum(tallies, axis=0)
        return total

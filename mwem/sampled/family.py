"""The exponential family of MWEM over measured tables, and a population kept in step with it.

After any number of rounds MWEM's distribution is its start times ``exp`` of a sum of factors, one a
measured cell. Held are the factors, and records that Gibbs sweeps draw from the family (Geman and
Geman 1984). Nothing here is private: measurements are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.counting import CountingPass
from dualquery.runtime.resources import workers
from mwem.layout import Layout
from mwem.sampled import gibbs_kernels as kernels
from mwem.sampled.measured_tables import MeasuredTables
from mwem.sampled.population import PopulationRows

FLOOR = 0.25
"""Standard deviations of the noise below which no possible cell is believed to lie."""

_LEAST_PART = 1024
"""A thread sweeps at least this many records: starting it takes as long as sweeping a few."""

_PASSES = 4  # turns of every table in a fit of weights; the next fit starts from the result
_SLACK = 0.1
"""Standard deviations of the noise by which a cell may miss its target for a factor of e.

The floor (see `target_shares`) makes tables contradict each other by fractions of their noise;
exact fits would drive their factors apart for ever. Maximum entropy under relaxed constraints
has finite ones (Dudik, Phillips and Schapire 2007)."""

_COPIES = 2  # copies for each record of the population, when weights are rounded to whole copies


@dataclass(eq=False)
class SampledFamily:
    """Factors on measured cells, the shares that they are to meet, and a population."""

    layout: Layout  # the columns held
    base: NDArray[np.float64]  # every column's distribution at the start (see `Layout.base`)
    population: NDArray[np.uint16]
    """Shape ``(records, columns held)``: records of the family, which `sweep` updates."""
    tables: MeasuredTables  # none at the start
    generator: np.random.Generator  # public randomness
    threads: int  # results do not depend on it
    factors: NDArray[np.float64] = field(init=False)  # log-factors of the cells: ``tables.shape``
    targets: NDArray[np.float64] = field(init=False)  # shares to meet (see `target_shares`)
    slack: NDArray[np.float64] = field(init=False)
    """Shape ``(tables,)``: the share by which a cell may miss its target, a unit of its factor."""

    def __post_init__(self) -> None:
        self.factors = np.zeros(self.tables.shape)
        self.targets = np.zeros(self.tables.shape)
        self.slack = np.zeros(len(self.tables))

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
            tables=MeasuredTables(layout, np.empty((0, way), np.int32)),
            generator=generator,
            threads=threads,
        )

    def add(self, bits: NDArray[np.int32]) -> None:
        """Add a table without factors, over ``bits``: int32, ``(way,)``, padded with -1."""
        self.tables = self.tables.add(bits)
        self.factors = np.concatenate((self.factors, np.zeros((1, self.factors.shape[1]))))

    def aim(self, counts: NDArray[np.float64], scales: NDArray[np.float64], n: int) -> None:
        """Set the shares that the cells are to have.

        From noisy counts, float64 of shape ``tables.shape``, the standard deviations of their
        noise, one a table, and the number of private rows.
        """
        tables = zip(counts, self.tables.possible, scales, strict=True)
        shares = [target_shares(held, possible, n, scale) for held, possible, scale in tables]
        self.targets = np.stack(shares)
        self.slack = _SLACK * scales / n

    def rake(self) -> NDArray[np.float64]:
        """Move the factors until the population, reweighted likewise, meets the targets.

        Returns
        -------
        float64, shape ``(records,)``: weights of the population's records; their sum is 1.
        """
        weights, moved = self._rake()
        self.factors += moved
        return weights

    def resample(self, weights: NDArray[np.float64], records: int) -> None:
        """Draw the population anew by weight, systematically: each expected number +-1."""
        self.population = self._resampled(weights, records)

    def raked_answers(self, counting: CountingPass) -> NDArray[np.float64]:
        """Return the answers of the population, reweighted to the targets; the family stays.

        The measured tables are control variates of all other queries: what the population has of
        a cell by chance does not count.

        Returns
        -------
        float64, shape ``(m,)``.
        """
        if not len(self.tables):
            return self._answers_of(self.population, counting)
        weights, _ = self._rake()
        return self._answers_of(self._resampled(weights, _COPIES * len(self.population)), counting)

    def enlarge(self, times: int) -> None:
        """Hold ``times`` copies of every record; later sweeps make them differ."""
        self.population = np.repeat(self.population, times, axis=0)

    def sweep(self) -> NDArray[np.int64]:
        """Draw every column of every record once; return the new counts of the cells."""
        seed = self.generator.integers(2**64, dtype=np.uint64)
        family = kernels.Family(
            self.layout.starts, self.base, self.factors, self.tables.places, self.tables.touches
        )

        def part(first: int, last: int, tally: NDArray[np.int64]) -> None:
            kernels.sweep(self.population, first, last, seed, family, tally)

        return self._tally(part)

    def count(self) -> NDArray[np.int64]:
        """Return how many records lie in each cell, int64, shape ``tables.shape``."""

        def part(first: int, last: int, tally: NDArray[np.int64]) -> None:
            kernels.count_cells(self.population[first:last], self.tables.places, tally)

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
        places = self.tables.places
        columns, values = places.columns[table], places.values[table]
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

    def _rake(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return weights of the records that meet the targets, and how far factors must move."""
        records = len(self.population)
        cells = np.empty((len(self.tables), records), np.uint8)
        kernels.write_cells(self.population, self.tables.places, cells)
        weights = np.full(records, 1.0 / records)
        moved = np.zeros_like(self.factors)
        kernels.rake(cells, self.targets, self.slack, self.factors, _PASSES, moved, weights)
        return weights / weights.sum(), moved

    def _resampled(self, weights: NDArray[np.float64], records: int) -> NDArray[np.uint16]:
        """Return records of the population at evenly spaced points of the weights' sums."""
        points = (np.arange(records) + self.generator.random()) / records
        rows = np.searchsorted(np.cumsum(weights), points)
        return self.population[np.minimum(rows, len(weights) - 1)]

    def _answers_of(
        self, population: NDArray[np.uint16], counting: CountingPass
    ) -> NDArray[np.float64]:
        """Return the share of some records on which each query holds."""
        rows = PopulationRows(self.layout, population)
        return counting.run(rows, self.threads) / rows.n

    def _tally(self, part: Callable[[int, int, NDArray[np.int64]], None]) -> NDArray[np.int64]:
        """Add up what ``part`` counts in runs of records, several at a time."""
        records = len(self.population)
        step = max(_LEAST_PART, -(-records // (4 * self.threads)))
        starts = range(0, records, step)
        tallies = [np.zeros(self.tables.shape, np.int64) for _ in starts]
        with workers(self.threads, len(starts)) as pool:
            futures = [
                pool.submit(part, first, min(first + step, records), tally)
                for first, tally in zip(starts, tallies, strict=True)
            ]
            for future in futures:
                future.result()
        return np.asarray(np.sum(tallies, axis=0))


def target_shares(
    counts: NDArray[np.float64], possible: NDArray[np.bool_], n: int, scale: float
) -> NDArray[np.float64]:
    """Return the shares of the cells, a distribution over the possible ones; float64, their shape.

    They are the nearest point, in Euclidean distance, to the noisy counts (of this ``scale``, in
    rows) among the tables of n rows whose possible cells hold at least `FLOOR` standard deviations
    each: what the counts add up to beyond n, which is public, is taken off all cells above the
    floor alike. What noise cannot tell from zero is not zero; without a floor the family becomes
    nearly deterministic there, and its Gibbs sampler stops moving.
    """
    cells = np.count_nonzero(possible)
    floor = min(FLOOR * scale, 0.5 * n / cells)
    above = np.sort(counts[possible] - floor)[::-1]
    # With the k largest cells above the floor, each gives up an equal part of the excess.
    excess = (np.cumsum(above) - (n - cells * floor)) / np.arange(1, cells + 1)
    taken = excess[np.flatnonzero(above > excess)[-1]]
    shares = np.where(possible, np.maximum(counts - taken, floor), 0.0)
    return shares / n

"""Statistics: vectors of exact whole numbers with a proven bound on how far they move.

The set is closed: the room measures these types and no others, so that nobody can hand it a
statistic whose moves are not what is proven here. Each has ``moves(queries, neighbours)``, for a
plan; ``exact(data)``, the vector itself and its moves, for the room only; and
``published(noisy, data)``, what a noisy vector stands for, by public facts.

**Counts** (`AllQueries`, `SomeQueries`, `OneQuery`). Their moves are those of
`dualquery.room.sensitivity.moves`: of `count_moves` for several queries, which bounds how many of
them can move, and of `one_count_move` for one. When a record is added or removed, conjunctions
without positive literals are counted on the rows where they do *not* hold (`complemented`); the
public N less the noisy count is given out.

**Tables** (`OneCuboid`, `QueryTable`, `EveryCell`). The cells exclude each other, so a record lies
in one of them at most: `table_moves`. `dualquery.queries.derived_queries.Cuboids` checks that, and
for the other two it follows from how their cells are made.

**Parities** (Barak et al., PODS 2007): in how many rows each set of bits has an odd sum. Replacing
a record moves the number of a set by 1 at most, and only where the parities of the two records
differ: at most `dualquery.room.sensitivity.moves.parities_apart` of them. Adding a record moves
``2 o_b + N - n``, o_b being the rows with an odd sum, by +1 or -1 in every set b: the room adds
noise of twice the scale to it, and gives out the half.

**FeatureSums**. ``Strategy.sensitivity`` bounds the Euclidean length by which the sums over their
scales move (`dualquery.room.strategy`). No L1 bound is proven, so Laplace noise is refused.

**ColumnSums**. A row's number is one of 0 .. M steps of its column's grid, and the room sums twice
the number less M: from -M to M. Replacing a record moves the sum of a column by at most 2 M, adding
or removing one by at most M. Each sum has noise in proportion to M; so over these scales k sums
move by at most 2 k, or k, in L1, and ``2 sqrt(k)``, or ``sqrt(k)``, in L2. That a number is at most
M is a property of encoded rows, as their legality is: `Grid.encode` refuses or clips others.

**RowTotal**. Replacing a record leaves the number of rows as it is; adding or removing one moves it
by 1. Units of several rows move everything by as many steps (`dualquery.privacy.neighbours`).
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.grids import Grid, digit_offsets
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload, table_cells
from dualquery.queries.counting import ConjunctionCounts
from dualquery.queries.derived_queries import odd_counts
from dualquery.queries.family import Statistic
from dualquery.room.features import Features
from dualquery.room.ground import Ground
from dualquery.room.private_data import PrivateData, as_conjunctions
from dualquery.room.sensitivity.moves import (
    Moves,
    complemented,
    count_moves,
    one_count_move,
    parity_moves,
    table_moves,
)
from dualquery.room.strategy import Strategy
from dualquery.rows.histogram import Histogram

Numbers = NDArray[np.int64] | NDArray[np.float64]
"""Noisy numbers: int64 with Laplace noise (or halves, float64), float64 with Gaussian noise."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What a statistic is on the private rows. Never leaves the room."""

    statistic: str  # its name
    numbers: NDArray[np.int64]
    moves: Moves  # how far ``numbers / scales`` moves between neighbours
    scales: float | NDArray[np.float64] = 1.0  # of the noise, multiplied: for all, or one a number
    unit: float = 1.0  # what one of ``numbers`` is worth, in answers times rows

    def ground(
        self, lemma: str, sensitivity: float, scale: float, deviation: Callable[[float], float]
    ) -> Ground:
        """Return why noise of ``scale`` covers the numbers, with what noise each then has.

        ``deviation`` returns the standard deviation of noise of a scale. Public.
        """
        own, counts = np.unique(self.scales, return_counts=True)
        if isinstance(self.scales, float):
            counts = np.array([self.numbers.size])
        variances = [(self.unit * deviation(scale * each)) ** 2 for each in own.tolist()]
        proof, size = self.moves.proof, self.numbers.size
        noise = math.fsum(counts * variances), math.fsum(counts / variances)
        return Ground(lemma, self.statistic, sensitivity, scale, proof, size, *noise)

    def noise_scales(self, scale: float) -> list[float]:
        """Return the different scales that noise of ``scale * scales`` is drawn with."""
        return [scale * own for own in np.unique(self.scales).tolist()]

    def noisy(
        self, scale: float, draw: Callable[[NDArray[np.int64], float], NDArray[Any]]
    ) -> Numbers:
        """Return the numbers with noise of ``scale * scales``, drawn for equal scales together."""
        if isinstance(self.scales, float):
            return draw(self.numbers, scale * self.scales)
        noisy = np.empty(self.numbers.shape)
        for own in np.unique(self.scales):
            chosen = self.scales == own
            noisy[chosen] = draw(self.numbers[chosen], scale * own)
        return noisy


class _Statistic:
    """What statistics share: their numbers are given out as they come, unless they say else."""

    __slots__ = ()

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how far the vector moves between neighbours."""
        raise NotImplementedError

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:  # noqa: ARG002
        """Return what a noisy vector stands for; by public facts."""
        return noisy

    def _exact(self, data: PrivateData, numbers: NDArray[np.int64], **how: Any) -> Exact:
        moves = self.moves(data.queries, data.neighbours)
        return Exact(type(self).__name__, numbers, moves, **how)


class _Counts(_Statistic):
    """The counts of several queries; of complements where these hold on fewer records."""

    __slots__ = ()

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the counts, or those of complements, move."""
        return count_moves(self._of(queries), neighbours)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:
        """Return the counts that noisy ones stand for."""
        return _as_counts(data, self._of(data.queries), noisy)

    def _of(self, queries: Statistic) -> Statistic:
        """Return those of the queries that are counted."""
        return queries

    def _contributed(self, data: PrivateData, counts: NDArray[np.int64]) -> Exact:
        queries = self._of(data.queries)
        if not data.rows_public:
            counts = np.where(complemented(queries), data.rows.n - counts, counts)
        return self._exact(data, counts, unit=queries.step)


@dataclass(frozen=True, slots=True)
class AllQueries(_Counts):
    """The counts of all queries, in steps."""

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts."""
        return self._contributed(data, data.counts)


@dataclass(frozen=True, eq=False, slots=True)
class SomeQueries(_Counts):
    """The counts of some conjunctions, in rows; they move as these alone."""

    positions: NDArray[np.int64]  # public

    def __post_init__(self) -> None:
        given = np.asarray(self.positions)
        if given.ndim != 1 or given.dtype.kind not in "iu":  # a mask would choose other queries
            raise ValueError("the queries to measure must be a list of positions")
        object.__setattr__(self, "positions", np.array(given, np.int64))

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts."""
        return self._contributed(data, data.counts[self.positions])

    def _of(self, queries: Statistic) -> Workload:
        """Return the same object each time, whose bounds are then known."""
        return _some(as_conjunctions(queries), self.positions.tobytes())


@dataclass(frozen=True, slots=True)
class OneQuery(_Statistic):
    """The count of one query, in steps: a vector of one number."""

    position: int  # of the query; public

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how one count moves."""
        return Moves.of_entries(1, one_count_move(queries, neighbours), "definition")

    def exact(self, data: PrivateData) -> Exact:
        """Return the count."""
        count = data.counts[[operator.index(self.position)]]
        return self._exact(data, count, unit=data.queries.step)


class _Table(_Statistic):
    """What all tables share."""

    __slots__ = ()

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the cells move, whatever the queries are."""
        return table_moves(neighbours)


@dataclass(frozen=True, slots=True)
class OneCuboid(_Table):
    """The counts of a cuboid's queries, in rows."""

    number: int  # of the cuboid, by `Cuboids.of` the queries; public

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells."""
        cells = data.cuboids.queries(operator.index(self.number))
        return self._exact(data, data.counts[cells])


@dataclass(frozen=True, slots=True)
class QueryTable(_Table):
    """The rows in every cell of a query's table, in another pass over the rows."""

    position: int  # of the query (`dualquery.queries.conjunctions.table_cells`); public

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells."""
        cells = table_cells(data.conjunctions, operator.index(self.position))
        return self._exact(data, data.total(ConjunctionCounts(cells)))


@dataclass(frozen=True, slots=True)
class EveryCell(_Table):
    """The rows in every cell of the whole domain, in another pass over the rows."""

    def exact(self, data: PrivateData) -> Exact:
        """Return the counts of the cells, an axis a column."""
        return self._exact(data, data.total(Histogram(data.queries.domain)))


@dataclass(frozen=True, slots=True)
class OddCounts(_Statistic):
    """The rows with an odd sum of each query's bits.

    The queries are positive conjunctions and hold all their subsets.
    """

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the numbers move, in rows."""
        return parity_moves(as_conjunctions(queries), neighbours)

    def exact(self, data: PrivateData) -> Exact:
        """Return the numbers of rows, or twice these and the excess of the public number."""
        odd = odd_counts(data.conjunctions, data.counts)
        moves = self.moves(data.queries, data.neighbours)  # "Parities": the name in proofs so far
        if data.rows_public:
            return Exact("Parities", odd, moves, unit=2.0)
        return Exact("Parities", 2 * odd + data.excess, moves, scales=2.0)

    def published(self, noisy: Numbers, data: PrivateData) -> Numbers:
        """Return the numbers of rows that noisy ones stand for."""
        return noisy if data.rows_public else noisy / 2


@dataclass(frozen=True, slots=True)
class FeatureSums(_Statistic):
    """The sums of features, each with noise of its own scale, in another pass over the rows."""

    strategy: Strategy  # public: features, scales up to a factor, a limit to leave rows out above

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:
        """Return how the sums over their scales move."""
        return _strategy_moves(self._remade(queries, neighbours))

    def exact(self, data: PrivateData) -> Exact:
        """Return the sums."""
        strategy = self._remade(data.queries, data.neighbours)
        sums = strategy.sums(data.rows, data.threads)
        return Exact(type(self).__name__, sums, _strategy_moves(strategy), strategy.scales)

    def _remade(self, queries: Statistic, neighbours: Neighbours) -> Strategy:
        """Make the strategy anew: its sensitivity is what the room's own code makes of it."""
        given = self.strategy
        features = Features(given.features.bits, queries.domain, given.features.centred)
        return Strategy(features, given.scales, neighbours, given.limit)


@dataclass(frozen=True, slots=True)
class ColumnSums(_Statistic):
    """The centred sums of the numbers that rows carry, in another pass over the rows."""

    grids: tuple[Grid, ...]  # some of those that rows were encoded with; public, none twice

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the sums over their grids' steps move, whatever the queries are."""
        return Moves.of_entries(len(self.grids), neighbours.furthest(2.0, 1.0), "clipped numbers")

    def exact(self, data: PrivateData) -> Exact:
        """Return the sums.

        Raises
        ------
        ValueError
            If the rows carry other numbers: they could move further.
        """
        starts = digit_offsets(data.grids, data.queries.domain.bits)
        carried = dict(zip(data.grids, starts, strict=False))
        if not self.grids or not carried.keys() >= set(self.grids):
            raise ValueError("the sums are not those of the numbers that the rows carry")
        if len(set(self.grids)) < len(self.grids):
            raise ValueError("a column is summed once")
        places = [carried[grid] + np.arange(grid.digits) for grid in self.grids]
        bits = np.concatenate(places).astype(np.int32)
        ones = data.total(ConjunctionCounts(2 * bits[:, None]))
        parts = np.split(ones, np.cumsum([grid.digits for grid in self.grids])[:-1])
        sums = [grid.centred(own, data.rows.n) for grid, own in zip(self.grids, parts, strict=True)]
        scales = np.array([grid.steps for grid in self.grids], np.float64)
        return self._exact(data, np.array(sums, np.int64), scales=scales)


@dataclass(frozen=True, slots=True)
class RowTotal(_Statistic):
    """The number of rows: a vector of one number."""

    def moves(self, queries: Statistic, neighbours: Neighbours) -> Moves:  # noqa: ARG002
        """Return how the number moves, whatever the queries are."""
        return Moves.of_entries(1, neighbours.steps, "definition")

    def exact(self, data: PrivateData) -> Exact:
        """Return the number of rows."""
        return self._exact(data, np.array([data.rows.n], np.int64))


PrivateStatistic = (
    AllQueries
    | SomeQueries
    | OneQuery
    | OneCuboid
    | QueryTable
    | EveryCell
    | OddCounts
    | FeatureSums
    | ColumnSums
    | RowTotal
)
"""What can be measured."""

STATISTICS = get_args(PrivateStatistic)
"""Their types: a statistic must be exactly one of them, not a subclass."""


def _strategy_moves(strategy: Strategy) -> Moves:
    return Moves(math.inf, strategy.sensitivity, proof="dualquery.room.strategy")


@lru_cache(maxsize=4)
def _some(queries: Workload, positions: bytes) -> Workload:
    """Return the queries at some positions, int64."""
    return queries.take(np.frombuffer(positions, np.int64))


def _as_counts(data: PrivateData, queries: Statistic, noisy: Numbers) -> Numbers:
    """Return the counts that noisy ones of complements stand for."""
    if data.rows_public:
        return noisy
    return np.where(complemented(queries), data.public_rows - noisy, noisy)

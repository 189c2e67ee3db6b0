"""The private room: the only code that reads private rows and holds exact answers.

To audit the privacy of a release, read this file, ``sensitivity.py``, ``weights.py``,
``selection.py``, ``gaussian.py``, ``row_count.py``, the sensitivity of features (``features.py``,
``strategy.py`` and ``loads.py`` of ``dualquery.mechanisms.matrix``, which are part of the room) and
the ``schedule`` that the accountant was given. A ``Curator`` reads the rows once, keeps the exact
counts to itself and gives out differentially private results only; each is charged to the ledger
*before* it is drawn. Everything that happens elsewhere is post-processing of these results and of
public inputs.

Neighbours: one row replaced by another, the number of rows n public; or one row added or removed,
and a public number in place of n.
"""

from __future__ import annotations

import logging
import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.events import (
    RANGE_SLACK,
    GaussianNoise,
    LaplaceNoise,
    Neighbours,
    RandomizedReport,
    SampledQueries,
    Schedule,
    events_of,
)
from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting.planner import ConjunctionCounts
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Statistic
from dualquery.queries.forms.contingency import table_cells
from dualquery.queries.forms.cuboids import Cuboids
from dualquery.queries.forms.fourier import odd_counts
from dualquery.room.draws.databases import SmallDatabases
from dualquery.room.draws.noisy_max import report_noisy_max
from dualquery.room.draws.randomized import RandomizedCounts, asked_columns
from dualquery.room.draws.selection import GRID, error_scores, select_largest
from dualquery.room.exclusive import require_exclusive
from dualquery.room.features import Features
from dualquery.room.ledger import Ledger
from dualquery.room.noise.gaussian import add_gaussian
from dualquery.room.randomness import Randomness
from dualquery.room.sensitivity.conjunctions import complemented
from dualquery.room.sensitivity.moves import (
    Moves,
    count_moves,
    one_count_move,
    parity_moves,
    score_move,
    table_moves,
    twice_the_middle,
)
from dualquery.room.strategy import Strategy
from dualquery.room.weights import QueryWeights, Sample
from dualquery.rows.histogram import Histogram
from dualquery.rows.protocol import Rows
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)


class Curator:
    """Holds the exact answers to a workload and sells private results about them.

    Parameters
    ----------
    records
        The private rows, in memory or elsewhere. They are read here, to the end: in one pass for
        the queries' answers, in another for features or a histogram, as far as these are needed.
    workload
        The queries whose answers are held: whole numbers of their own ``step`` a row, which
        replacing a record moves by at most their own ``spread`` (see `dualquery.queries.family`).
    schedule
        The events that the release's guarantee was computed for.
    randomness
        Source of the private draws.
    threads
        Threads for the pass over the rows.
    neighbours
        What neighbouring tables differ in.
    public_rows
        With `Neighbours.ADD_REMOVE`: the public number that stands in for the number of rows.

    Raises
    ------
    ValueError
        If there is no such number, or one that is not the number of rows although that is public;
        or if the rows are not those of the queries' domain.
    """

    def __init__(
        self,
        records: Rows,
        workload: Statistic,
        schedule: Schedule,
        randomness: Randomness,
        *,
        threads: int = 1,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
        public_rows: int | None = None,
    ) -> None:
        public = neighbours is Neighbours.REPLACE_ONE
        if public_rows is None and not public:
            raise ValueError("a public number of rows is needed where the true one is private")
        if public and public_rows not in (None, records.n):
            raise ValueError(f"there are {records.n} rows, not {public_rows}")
        if records.bits != workload.domain.bits:
            raise ValueError(f"rows of {workload.domain.bits} bits expected, not {records.bits}")
        self._neighbours = neighbours
        self._records = records
        self._workload = workload
        self._n = records.n if public_rows is None else public_rows
        # By how much the public number is too large. Private, unless it is 0 by definition.
        self._excess = self._n - records.n
        self._ledger = Ledger(schedule)
        self._randomness = randomness
        self._threads = threads
        self._weights: QueryWeights | None = None

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The exact answers, counted when first needed: before a charge, for a source may fail."""
        return self._workload.counts(self._records, threads=self._threads)

    def evaluate(self) -> None:
        """Count the queries now, in one pass over the rows; nothing comes out.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end, or the pass does not fit into memory.
        """
        _ = self._counts

    def begin_game(self, step: float) -> None:
        """Start multiplicative weights over the queries, uniform, with learning rate ``step``."""
        step = _positive("step", step)
        queries = _require_game(self._workload)
        if isinstance(queries, Disjunctions):
            require_exclusive(queries)
        if self._neighbours is Neighbours.REPLACE_ONE:
            self._weights = QueryWeights(self._counts, self._n, step)
        else:
            self._weights = QueryWeights.centred(self._counts, self._records.n, self._n, step)

    def reweight(self, record: NDArray[np.uint8]) -> None:
        """Raise the weights of queries that a public record under-serves; nothing comes out.

        Parameters
        ----------
        record
            uint8, shape ``(d,)``: the round's best response.
        """
        self._game.update(_require_game(self._workload).on_record(record))

    def sample_queries(self, draws: int) -> Sample:
        """Draw queries from the weights: each draw an exponential mechanism of bounded range."""
        self._ledger.charge(SampledQueries(self._game.range + RANGE_SLACK, draws))
        return self._game.sample(draws, self._randomness)

    def measure_gaussian(self, scale: float) -> NDArray[np.float64]:
        """Return all counts plus Gaussian noise of the given scale, both in steps."""
        scale = _positive("scale", scale)
        counts = self._contributed(self._workload, self._counts)
        self._ledger.charge(GaussianNoise(self._moves(self._workload).l2, scale))
        noisy = add_gaussian(counts, scale, self._randomness)
        return self._as_counts(self._workload, noisy)

    def measure_laplace(self, scale: float) -> NDArray[np.int64]:
        """Return all counts plus discrete Laplace noise of the given scale, both in steps."""
        scale = _positive("scale", scale)
        counts = self._contributed(self._workload, self._counts)
        self._ledger.charge(LaplaceNoise(self._moves(self._workload).l1 / scale))
        noise = self._randomness.discrete_laplace(scale, len(counts))
        return self._as_counts(self._workload, counts + noise)

    def select_worst(
        self,
        model: NDArray[np.float64],
        epsilon: float,
        allowed: NDArray[np.bool_] | None = None,
    ) -> int:
        """Select a query that a public model answers badly, by the exponential mechanism.

        Parameters
        ----------
        model
            float64, shape ``(m,)``: the model's answers.
        epsilon
            Range of the draw: the log-weight of a query is ``epsilon / 2`` for as much error as
            one record can make.
        allowed
            bool, shape ``(m,)``: the queries to choose from, by a public rule; None for all.
        """
        epsilon = _positive("epsilon", epsilon)
        scores = self._scores(model)
        self._ledger.charge(SampledQueries(epsilon + RANGE_SLACK, 1))
        return select_largest(scores, allowed, epsilon, self._score_move, self._randomness)

    def report_worst(
        self,
        model: NDArray[np.float64],
        epsilon: float,
        allowed: NDArray[np.bool_] | None = None,
    ) -> int:
        """Select a query that a public model answers badly, by report noisy max.

        Parameters
        ----------
        model, allowed
            As for `select_worst`.
        epsilon
            Pure cost of the report: Laplace noise on every score, of scale ``2 / epsilon`` times
            as much error as one record can make.
        """
        epsilon = _positive("epsilon", epsilon)
        scores = self._scores(model)
        self._ledger.charge(LaplaceNoise(epsilon))
        return report_noisy_max(scores, allowed, epsilon, self._score_move, self._randomness)

    def select_database(self, size: int, epsilon: float) -> NDArray[np.uint8]:
        """Select a database that answers the workload well, by the exponential mechanism.

        Parameters
        ----------
        size
            Records of the database; all databases of so many legal records are looked at.
        epsilon
            Range of the draw: the log-weight of a database is ``-epsilon / 2`` a row of its
            largest error.

        Returns
        -------
        uint8, shape ``(size, bits)``.
        """
        epsilon = _positive("epsilon", epsilon)
        if size < 1:
            raise ValueError(f"size is {size}; at least 1 record is needed")
        databases = SmallDatabases(self._conjunctions, size)
        counts = self._counts
        self._ledger.charge(SampledQueries(epsilon + RANGE_SLACK, 1))
        return databases.select(counts, self._n, epsilon, self._randomness)

    def count_randomized(self, epsilon: float) -> NDArray[np.int64]:
        """Return in how many records' randomized reports each query holds.

        Parameters
        ----------
        epsilon
            Pure cost of a record's report of one column; each column that a query looks at is
            reported.
        """
        epsilon = _positive("epsilon", epsilon)
        if self._neighbours is not Neighbours.REPLACE_ONE:
            raise BadInputError("randomized response gives away the number of reports")
        for _ in asked_columns(self._conjunctions):
            self._ledger.charge(RandomizedReport(epsilon))
        statistic = RandomizedCounts(self._conjunctions, epsilon, self._randomness)
        return self._records.total(statistic, self._threads)

    def measure_parities_laplace(self, scale: float) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the rows with an odd sum of each query's bits plus discrete Laplace noise.

        The queries are positive conjunctions and hold all their subsets; `scale` is in rows.
        """
        scale = _positive("scale", scale)
        odd = odd_counts(self._conjunctions, self._counts)
        self._ledger.charge(LaplaceNoise(self._parity_moves.l1 / scale))
        if self._neighbours is Neighbours.REPLACE_ONE:
            return odd + self._randomness.discrete_laplace(scale, len(odd))
        return (2 * odd + self._excess + self._randomness.discrete_laplace(2 * scale, len(odd))) / 2

    def measure_parities_gaussian(self, scale: float) -> NDArray[np.float64]:
        """Return the same counts of odd sums plus Gaussian noise of the scale in rows."""
        scale = _positive("scale", scale)
        odd = odd_counts(self._conjunctions, self._counts)
        self._ledger.charge(GaussianNoise(self._parity_moves.l2, scale))
        if self._neighbours is Neighbours.REPLACE_ONE:
            return add_gaussian(odd, scale, self._randomness)
        return add_gaussian(2 * odd + self._excess, 2 * scale, self._randomness) / 2

    def select_worst_cuboid(
        self,
        model: NDArray[np.float64],
        epsilon: float,
        allowed: NDArray[np.bool_] | None = None,
    ) -> int:
        """Select a cuboid (`dualquery.queries.forms.cuboids`) that a public model answers badly.

        The score of a cuboid is the sum of its cells' absolute errors less the number of its cells
        (Hardt, Ligett and McSherry 2012, section 3.3); the counts move by 2 in all when a record is
        replaced (1 when one is added or removed), and so does it.

        Parameters
        ----------
        model
            float64, shape ``(m,)``: the model's answers to all queries.
        epsilon
            As for `select_worst`.
        allowed
            bool, one a cuboid, by a public rule; None for all.
        """
        epsilon = _positive("epsilon", epsilon)
        groups = self._cuboids
        cells = np.diff(groups.indptr)
        errors = np.add.reduceat(
            self._scores(model, centred=False)[groups.members], groups.indptr[:-1]
        )
        # Statistic from the most cells: no score is negative.
        scores = errors + GRID * (cells.max() - cells)
        self._ledger.charge(SampledQueries(epsilon + RANGE_SLACK, 1))
        move = table_moves(self._neighbours).l1
        return select_largest(scores, allowed, epsilon, move, self._randomness)

    def measure_cuboid_laplace(self, cuboid: int, scale: float) -> NDArray[np.int64]:
        """Return a cuboid's counts plus discrete Laplace noise of the given scale (in rows)."""
        scale = _positive("scale", scale)
        counts = self._counts[self._cuboids.queries(cuboid)]
        self._ledger.charge(LaplaceNoise(table_moves(self._neighbours).l1 / scale))
        return counts + self._randomness.discrete_laplace(scale, len(counts))

    def measure_cuboid_gaussian(self, cuboid: int, scale: float) -> NDArray[np.float64]:
        """Return a cuboid's counts plus Gaussian noise of the given scale (in rows)."""
        scale = _positive("scale", scale)
        counts = self._counts[self._cuboids.queries(cuboid)]
        self._ledger.charge(GaussianNoise(table_moves(self._neighbours).l2, scale))
        return add_gaussian(counts, scale, self._randomness)

    def measure_part_gaussian(
        self, queries: NDArray[np.int64], scale: float
    ) -> NDArray[np.float64]:
        """Return the counts of some conjunctions plus Gaussian noise, both in rows.

        Parameters
        ----------
        queries
            int64: their positions, public. The sensitivity is that of these queries alone.
        scale
            Standard deviation of the noise.
        """
        scale = _positive("scale", scale)
        if queries.ndim != 1 or queries.dtype.kind not in "iu":
            raise ValueError("the queries to measure must be a list of positions")
        part = self._conjunctions.take(queries)
        counts = self._contributed(part, self._counts[queries])
        self._ledger.charge(GaussianNoise(self._moves(part).l2, scale))
        return self._as_counts(part, add_gaussian(counts, scale, self._randomness))

    def measure_features(self, strategy: Strategy, scale: float) -> NDArray[np.float64]:
        """Return the sums of features over the rows plus Gaussian noise, each with its own scale.

        They take another pass over the rows, in which rows above the strategy's limit are left out.

        Parameters
        ----------
        strategy
            The features, the scales of their noise up to a factor, and the limit, all public.
        scale
            The factor: standard deviations are ``scale * strategy.scales``.
        """
        scale = _positive("scale", scale)
        # Made anew, so that its sensitivity is what this room's own code makes of the features.
        checked = Strategy(
            Features(strategy.features.bits, self._workload.domain), strategy.scales, strategy.limit
        )
        sums = checked.sums(self._records, self._threads)
        self._ledger.charge(GaussianNoise(checked.sensitivity(self._neighbours), scale))
        noisy = np.empty(len(sums))
        for own in np.unique(checked.scales):
            chosen = checked.scales == own
            noisy[chosen] = add_gaussian(sums[chosen], scale * own, self._randomness)
        return noisy

    def measure_table_gaussian(self, query: int, scale: float) -> NDArray[np.float64]:
        """Return the rows in every cell of a query's table plus Gaussian noise, in rows.

        The cells are those of `dualquery.queries.forms.contingency.table_cells`; they take another
        pass over the rows.
        """
        scale = _positive("scale", scale)
        cells = ConjunctionCounts(table_cells(self._conjunctions, query))
        counts = self._records.total(cells, self._threads)
        self._ledger.charge(GaussianNoise(table_moves(self._neighbours).l2, scale))
        return add_gaussian(counts, scale, self._randomness)

    def measure_one_laplace(self, query: int, scale: float) -> int:
        """Return one query's count plus discrete Laplace noise, both in steps."""
        scale = _positive("scale", scale)
        count = self._counts[query]
        self._ledger.charge(LaplaceNoise(self._one_move / scale))
        return int(count + self._randomness.discrete_laplace(scale, 1)[0])

    def measure_one_gaussian(self, query: int, scale: float) -> float:
        """Return one query's count plus Gaussian noise, both in steps."""
        scale = _positive("scale", scale)
        count = self._counts[[query]]
        self._ledger.charge(GaussianNoise(self._one_move, scale))
        return float(add_gaussian(count, scale, self._randomness)[0])

    def measure_cells_laplace(self, scale: float) -> NDArray[np.int64]:
        """Return the count of every cell plus discrete Laplace noise (see `histogram`)."""
        scale = _positive("scale", scale)
        cells = self._cells()
        self._ledger.charge(LaplaceNoise(table_moves(self._neighbours).l1 / scale))
        return cells + self._randomness.discrete_laplace(scale, cells.size).reshape(cells.shape)

    def measure_cells_gaussian(self, scale: float) -> NDArray[np.float64]:
        """Return the count of every cell plus Gaussian noise (see `histogram`)."""
        scale = _positive("scale", scale)
        cells = self._cells()
        self._ledger.charge(GaussianNoise(table_moves(self._neighbours).l2, scale))
        return add_gaussian(cells, scale, self._randomness)

    def log_errors(self, model: NDArray[np.float64], label: str) -> None:
        """Show a model's true errors to the operator, by the log. Not private; returns nothing."""
        off = np.abs(model - self._counts * (self._workload.step / self._n))
        _log.warning(
            "NOT PRIVATE, for the operator only: %s: max error %.4f, mean error %.4f",
            label,
            off.max(),
            off.mean(),
        )

    def _cells(self) -> NDArray[np.int64]:
        """Count the rows in every cell: before the charge, for a source may fail."""
        return self._records.total(Histogram(self._workload.domain), self._threads)

    def _scores(self, model: NDArray[np.float64], *, centred: bool = True) -> NDArray[np.int64]:
        """Return the model's errors in steps of the queries (see `error_scores`)."""
        queries = self._workload
        step = queries.step
        offset = (GRID // 2) * twice_the_middle(queries) * self._excess if centred else 0
        return error_scores(
            self._counts, model / step, self._n, queries.low / step, queries.high / step, offset
        )

    def _moves(self, statistics: Statistic) -> Moves:
        """Return how `_contributed` moves between neighbours."""
        return count_moves(statistics, self._neighbours)

    def _contributed(self, statistics: Statistic, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts to be measured: of complements, where these hold on fewer records."""
        flipped = self._flipped(statistics)
        return counts if flipped is None else np.where(flipped, self._records.n - counts, counts)

    def _as_counts(self, statistics: Statistic, noisy: NDArray[Any]) -> NDArray[Any]:
        """Return the counts that noisy ones of complements stand for; public."""
        flipped = self._flipped(statistics)
        return noisy if flipped is None else np.where(flipped, self._n - noisy, noisy)

    def _flipped(self, statistics: Statistic) -> NDArray[np.bool_] | None:
        if self._neighbours is Neighbours.REPLACE_ONE or not isinstance(statistics, Workload):
            return None
        return complemented(statistics)

    @cached_property
    def _cuboids(self) -> Cuboids:
        """The cells of marginals among the queries, checked here to exclude each other."""
        return Cuboids.of(self._workload)

    @property
    def _one_move(self) -> float:
        """Steps by which one count moves between neighbours, from the queries themselves."""
        return one_count_move(self._workload, self._neighbours)

    @property
    def _score_move(self) -> float:
        """Steps by which one score moves between neighbours."""
        return score_move(self._workload, self._neighbours)

    @property
    def _parity_moves(self) -> Moves:
        return parity_moves(self._conjunctions, self._neighbours)

    @property
    def _conjunctions(self) -> Workload:
        if not isinstance(self._workload, Workload):
            raise TypeError(f"conjunctions are needed, not {type(self._workload).__name__}")
        return self._workload

    @property
    def _game(self) -> QueryWeights:
        if self._weights is None:
            raise RuntimeError("begin_game must come before the first round")
        return self._weights


def _positive(name: str, value: float) -> float:
    """Return a parameter as a Python float: what is charged is computed in double precision.

    Raises
    ------
    ValueError
        If it is not finite and above 0.
    """
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} is {number}; a finite number above 0 is needed")
    return number


def _require_game(queries: Statistic) -> Workload | Disjunctions:
    """Return queries that the game can be played with: their values are 0 and 1."""
    if not isinstance(queries, Workload | Disjunctions):
        raise TypeError(f"the game is played with conjunctions, not {type(queries).__name__}")
    return queries


def numerical_assumptions(schedule: Schedule) -> tuple[str, ...]:
    """Return what the room's arithmetic takes for granted, a sentence each, for the release."""
    sentences = []
    events = events_of(schedule)
    if any(isinstance(event, SampledQueries) for event in events):
        sentences.append(
            "Draws by weight are exact, from 80-bit integer weights by AES-256-CTR words seeded "
            "by the operating system; arithmetic is IEEE double precision, and the rounding of the "
            "weights, 2^-44 of each, is charged."
        )
    if any(isinstance(event, RandomizedReport) for event in events):
        sentences.append(
            "Each randomized report is one 64-bit word of AES-256-CTR seeded by the operating "
            "system; its probabilities are whole multiples of 2^-64, rounded towards more privacy."
        )
    if any(isinstance(event, GaussianNoise) for event in events):
        sentences.append(
            "Gaussian noise is discrete Gaussian noise from OpenDP's exact sampler on a grid of "
            "2^-39 of its scale or less; its distance from rounded continuous noise is charged "
            "where the accountant needs the latter. Scales and sensitivities are computed in "
            "double precision."
        )
    if any(type(event) is LaplaceNoise for event in events):
        sentences.append(
            "Laplace noise is integer noise from OpenDP's exact sampler, added to integer counts; "
            "its scale is computed in double precision."
        )
    return tuple(sentences)

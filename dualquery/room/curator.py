"""The private room's door: the one object that reads private rows and holds exact answers.

A `Curator` reads the rows, keeps the exact counts to itself and gives out differentially private
results only; each is charged to the ledger *before* it is drawn. Everything that happens elsewhere
is post-processing of these results and of public inputs. To audit the privacy of a release, read
this folder, from its ``README.md`` on.
"""

import threading
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.grids import Grid
from dualquery.privacy.events import Schedule
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Statistic
from dualquery.room.draws.databases import select_database
from dualquery.room.draws.exact_draws import Sample
from dualquery.room.draws.exponential import Exponential
from dualquery.room.draws.noisy_max import NoisyMax
from dualquery.room.draws.randomized import count_reports
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.ledger import Ledger
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.private_data import PrivateData
from dualquery.room.private_errors import show_errors
from dualquery.room.randomness import Randomness, positive
from dualquery.room.scores import SCORES, PrivateScores
from dualquery.room.statistics import STATISTICS, Numbers, PrivateStatistic, RowTotal
from dualquery.room.weights import QueryWeights, sample_queries
from dualquery.rows.row_sums import Rows

_BELOW = 1.0 - 2.0**-50
"""Less than 1 by more than the rounding of a product and a quotient."""


class Curator:
    """Holds the exact answers to a workload and sells private results about them.

    Parameters
    ----------
    records
        The private rows, in memory or elsewhere. They are read here, to the end, in one pass for
        the queries' answers, and others for features or a histogram.
    workload
        The queries whose answers are held: whole numbers of their own ``step`` a row, which
        replacing a record moves by at most their own ``spread`` (`dualquery.queries.family`).
    schedule
        The events that the release's guarantee was computed for.
    randomness
        Source of the private draws.
    threads
        Of a pass over the rows.
    neighbours
        What neighbouring tables differ in.
    public_rows
        Where the number of rows is private: the public number that stands in for it, until that is
        measured (`dualquery.room.statistics.RowTotal`). A game keeps its planned step over it.
    journal
        Keeps what is drawn, and gives it back to a run that goes on (`dualquery.room.journal`).
    show_private_errors
        The operator's explicit word that `log_errors` may log; nothing private is logged else.
    grids
        Of the numbers that the rows carry behind the bits of the queries' domain.

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
        journal: Journal = NO_JOURNAL,
        show_private_errors: bool = False,
        grids: tuple[Grid, ...] = (),
    ) -> None:
        if public_rows is None and not neighbours.rows_public:
            raise ValueError("a public number of rows is needed where the true one is private")
        rows = records.n if public_rows is None else public_rows
        self._data = PrivateData(records, workload, neighbours, rows, threads, grids)
        self._planned_rows = rows
        self._ledger = Ledger(schedule, journal)
        self._randomness = randomness
        self._weights: QueryWeights | None = None
        self._show_private_errors = show_private_errors
        # One verb at a time: nothing changes between a charge and its draw. A lock cannot be copied
        # or pickled either, so there is no second ledger.
        self._turn = threading.Lock()

    def grounds(self) -> tuple[Ground | None, ...]:
        """Return why each charged event covers what was drawn, None if nothing was; public."""
        return self._ledger.grounds

    def cut_short(self, draws: int = 1) -> bool:
        """Return whether draws that an interruption lost leave fewer than ``draws``. Public.

        A mechanism of many rounds asks it before each: the next ``draws`` may then be lost, and a
        run goes on without them, but without no others.
        """
        return self._ledger.cut_short(draws)

    def evaluate(self) -> None:
        """Count the queries now, in one pass over the rows; nothing comes out.

        Raises
        ------
        BadInputError
            If the rows cannot be read to the end, or the pass does not fit into memory.
        """
        with self._turn:
            _ = self._data.counts

    def measure(self, statistic: PrivateStatistic, noise: Gaussian | Laplace) -> Numbers:
        """Return a statistic of the private rows with noise; charged.

        Parameters
        ----------
        statistic
            One of `dualquery.room.statistics`.
        noise
            Its scale is in the statistic's own unit: steps of the queries, or rows.

        Returns
        -------
        The statistic's shape: int64 with Laplace noise (float64 where it has halves), else float64.

        Raises
        ------
        TypeError
            If the statistic or the noise is not of the room's own types.
        RuntimeError
            If the schedule does not provide for the charge; nothing is drawn then.
        """
        _require("statistic", statistic, STATISTICS)
        _require("noise", noise, (Gaussian, Laplace))
        with self._turn:
            # Counted before the charge: a source may fail.
            exact = statistic.exact(self._data)
            noisy = noise.measure(exact, self._ledger, self._randomness)
            if isinstance(statistic, RowTotal) and not self._data.rows_public:
                # What was measured is public, and takes the place of the number so far.
                self._data = replace(self._data, public_rows=whole_rows(float(noisy[0])))
            return statistic.published(noisy, self._data)

    def select(
        self,
        scores: PrivateScores,
        choice: Exponential | NoisyMax,
        allowed: NDArray[np.bool_] | None = None,
    ) -> int:
        """Return the position of an alternative with a large score; charged.

        Parameters
        ----------
        scores
            Of queries or of cuboids, by a public model's errors (`dualquery.room.scores`).
        choice
            How one is selected, and what it costs.
        allowed
            bool, one an alternative: those to choose from, by a public rule; None for all.

        `TypeError` and `RuntimeError` as `measure`.
        """
        _require("scores", scores, SCORES)
        _require("choice", choice, (Exponential, NoisyMax))
        with self._turn:
            exact = scores.exact(self._data)
            return choice.select(exact, allowed, self._ledger, self._randomness)

    def begin_game(self, step: float) -> None:
        """Start multiplicative weights over the queries, uniform, with learning rate ``step``."""
        step = positive("step", step)
        _ = self._played  # refuses queries that the game is not played with
        data, n = self._data, self._data.public_rows
        with self._turn:
            if data.rows_public:
                self._weights = QueryWeights(data.counts, n, step)
            else:
                move = data.neighbours.furthest(2.0, 1.0)
                # A draw's range goes with the step over the rows that it was planned for.
                step *= n / self._planned_rows * (1.0 if n == self._planned_rows else _BELOW)
                self._weights = QueryWeights.centred(data.counts, data.rows.n, n, step, move)

    def reweight(self, record: NDArray[np.uint8]) -> None:
        """Raise the weights of queries that a public record under-serves; nothing comes out.

        Parameters
        ----------
        record
            uint8, shape ``(d,)``: the round's best response.
        """
        with self._turn:
            self._game.update(self._played.on_record(record))

    def sample_queries(self, draws: int) -> Sample:
        """Draw a number of queries from the weights, independently; charged."""
        with self._turn:
            return sample_queries(self._game, draws, self._ledger, self._randomness)

    def select_database(self, size: int, epsilon: float) -> NDArray[np.uint8]:
        """Return a database of ``size`` records that answers the workload well; charged.

        All databases of ``size`` legal records are looked at; ``epsilon`` > 0 is the range of the
        draw. The result is uint8, shape ``(size, bits)``.
        """
        with self._turn:
            return select_database(self._data, size, epsilon, self._ledger, self._randomness)

    def randomize(self, epsilon: float) -> NDArray[np.int64]:
        """Return in how many records' randomized reports each query holds; charged.

        ``epsilon`` > 0 is the pure cost of a record's report of one column; each column that a
        query looks at is reported.
        """
        with self._turn:
            return count_reports(self._data, epsilon, self._ledger, self._randomness)

    def log_errors(
        self, model: NDArray[np.float64], label: str, queries: Statistic | None = None
    ) -> None:
        """Show a model's true errors in the operator's log if the operator asked; return nothing.

        ``model`` has answers, float64 ``(m,)``, to ``queries``, or to the held ones; ``label`` says
        what they are, and is public.
        """
        if self._show_private_errors is not True:  # a text that says "no" is no permission
            return
        with self._turn:
            held = self._data.queries if queries is None else queries
            show_errors(self._data, model, label, held)

    @property
    def _played(self) -> Workload | Disjunctions:
        """The queries of the game: their values are 0 and 1."""
        queries = self._data.queries
        if not isinstance(queries, Workload | Disjunctions):
            raise TypeError(f"the game is played with conjunctions, not {type(queries).__name__}")
        return queries

    @property
    def _game(self) -> QueryWeights:
        if self._weights is None:
            raise RuntimeError("begin_game must come before the first round")
        return self._weights


def whole_rows(noisy: float) -> int:
    """Return the public number of rows that a noisy one gives: a whole one, at least 1."""
    return max(1, round(noisy))


def _require(what: str, given: object, known: tuple[type, ...]) -> None:
    """Refuse every type but the room's own: a subclass could lie about its moves."""
    if type(given) not in known:
        names = ", ".join(each.__name__ for each in known)
        raise TypeError(f"{type(given).__name__} is no {what} of the private room: {names}")

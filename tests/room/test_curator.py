"""The private room charges before it draws, and refuses; tiny games by exact enumeration."""

import copy
import itertools
import math
import os
import pickle
import threading
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.data.schema.grids import Grid
from dualquery.privacy.accountants.choice import ACCOUNTANTS
from dualquery.privacy.events import GameSchedule, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals
from dualquery.room import statistics
from dualquery.room.curator import Curator
from dualquery.room.draws import weighted_kernels as kernels
from dualquery.room.draws.exponential import Exponential
from dualquery.room.ground import Ground
from dualquery.room.ledger import Ledger, covers
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness, SystemRandomness
from dualquery.room.scores import WorstCuboid, WorstQuery
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import AllQueries, ColumnSums, OneCuboid, OneQuery, QueryTable
from dualquery.room.weights import QueryWeights
from dualquery.rules.constraints import groups_of
from solvers import BestResponse, get_solver
from tests.cases import domain_of, records_of, refused
from tests.noise import NoNoise
from tests.room.test_weights import integer_weight, scores_of

DOMAIN = Domain(np.array([0, 1, 2, 5]))  # two binary columns and one of three values
WORKLOAD = Workload(np.array([[0, 2], [1, 4], [3, 6]], np.int32), DOMAIN)
ROWS = np.array([[1, 1, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1]], np.uint8)
ONE = Neighbours.of_options({"unit": {"column": "home", "max_rows": 1}})


def curator(schedule, rows=ROWS, workload=WORKLOAD, **more) -> Curator:
    return Curator(records_of(rows), workload, schedule, SeededRandomness(0), **more)


def test_the_game_runs_on_its_schedule_and_not_a_draw_further() -> None:
    room = curator(GameSchedule(rounds=3, samples=4, step=0.7, n=3))
    room.begin_game(0.7)
    for _ in range(2):
        room.reweight(ROWS[0])
        assert len(room.sample_queries(4).queries) == 4
    room.reweight(ROWS[0])
    refused(room.sample_queries, 4, why="the budget is spent")


@pytest.mark.parametrize("relation", [Neighbours.REPLACE_ONE, ONE])
@pytest.mark.parametrize(("step", "seen", "draws"), [(0.71, 1, 4), (0.7, 2, 4), (0.7, 1, 5)])
def test_more_than_was_planned_is_refused_before_the_draw(step, seen, draws, relation) -> None:
    schedule = GameSchedule(rounds=3, samples=4, step=0.7, n=3)
    room = curator(schedule, neighbours=relation, public_rows=3)
    room.begin_game(step)
    for _ in range(seen):
        room.reweight(ROWS[0])
    with pytest.raises(RuntimeError, match="would cost more than the scheduled"):
        room.sample_queries(draws)


def test_a_refused_charge_is_not_entered() -> None:
    ledger, ground = Ledger((LaplaceNoise(1.0),)), Ground("a test", "counts", 1.0)
    refused(ledger.charge, LaplaceNoise(1.5), ground)
    assert ledger.spent == 0
    ledger.charge(LaplaceNoise(1.0), ground)
    assert ledger.spent == 1
    assert ledger.grounds == (ground,)


@pytest.mark.parametrize(
    ("planned", "event", "covered"),
    [
        (SampledQueries(0.5, 10), SampledQueries(0.5, 10), True),
        (SampledQueries(0.5, 10), SampledQueries(0.4, 9), True),
        (SampledQueries(0.5, 10), SampledQueries(0.6, 1), False),
        (GaussianNoise(2, 5), GaussianNoise(2, 6), True),
        (GaussianNoise(2, 5), GaussianNoise(3, 6), False),
        (GaussianNoise(2, 5), GaussianNoise(2, 4), False),
        # The cost depends on the ratio alone.
        (GaussianNoise(2, 5), GaussianNoise(4, 10), True),
        (GaussianNoise(2, 5), GaussianNoise(4, math.nextafter(10, 0)), False),
        (LaplaceNoise(1.0), SampledQueries(0.1, 1), False),
    ],
)
def test_what_covers_what(planned, event, covered) -> None:
    assert covers(planned, event) is covered


def test_noise_is_charged_at_the_sensitivity_that_the_room_computes() -> None:
    room = curator((LaplaceNoise(0.5),), workload=Workload(np.array([[0]], np.int32), DOMAIN))
    with pytest.raises(RuntimeError, match="would cost more"):
        room.measure(AllQueries(), Laplace(1.0))  # one count moves by 1: scale 1 costs epsilon 1
    noisy = room.measure(AllQueries(), Laplace(2.0))
    assert noisy.shape == (1,)
    assert noisy.dtype == np.int64


def test_a_mask_does_not_buy_many_measurements_for_one() -> None:
    room = curator((GaussianNoise(1.0, 10.0),))
    with pytest.raises(ValueError, match="a list of positions"):
        room.measure(statistics.SomeQueries(np.array([True, False, False])), Gaussian(10.0))


@pytest.mark.parametrize("epsilon", [0.0, -1e-13, float("nan"), float("inf")])
def test_a_selection_that_is_no_selection_is_refused(epsilon) -> None:
    room = curator((SampledQueries(1.0, 1),))
    with pytest.raises(ValueError, match="epsilon is"):
        room.select(WorstQuery(np.zeros(3)), Exponential(epsilon))


def test_of_cuboids_that_are_answered_a_small_one_is_selected() -> None:
    cells = all_marginals(DOMAIN, 1)
    room = curator((SampledQueries(99.0, 1),), workload=cells)
    assert room.select(WorstCuboid(cells.answers_on(ROWS)), Exponential(98.0)) < 2


def test_charges_are_computed_in_double_precision() -> None:
    planned = float(np.float16(1e-4)) + 2.0**-42
    room = curator((SampledQueries(planned, 1), SampledQueries(planned, 1)))
    room.select(WorstQuery(np.zeros(3, np.float16)), Exponential(np.float16(1e-4)))
    refused(room.select, WorstQuery(np.zeros(3)), Exponential(float(np.float16(1e-4)) * (1 + 1e-6)))


@pytest.mark.parametrize("statistic", [OneQuery, OneCuboid, QueryTable])
def test_a_list_of_positions_does_not_buy_many_numbers_for_one(statistic) -> None:
    room = curator((GaussianNoise(9.0, 1.0),), workload=all_marginals(DOMAIN, 1))
    with pytest.raises(TypeError):
        room.measure(statistic([0, 1]), Gaussian(1.0))
    assert room._ledger.spent == 0


def test_the_room_gives_out_no_counts() -> None:
    room = curator(GameSchedule(rounds=2, samples=1, step=0.1, n=3))
    public = [name for name in dir(room) if not name.startswith("_")]
    assert sorted(public) == [
        "begin_game", "cut_short", "evaluate", "grounds", "log_errors", "measure", "randomize",
        "reweight", "sample_queries", "select", "select_database",
    ]  # fmt: skip
    assert all(callable(getattr(room, name)) for name in public)


class Still(AllQueries):
    """A statistic that says it does not move."""

    def moves(self, queries, neighbours) -> Moves:
        return Moves(1e-9, 1e-9)


class Louder(Laplace):
    """Noise that charges less than it should."""


class Model(WorstQuery):
    """Scores that may say that they move less."""


def test_only_the_room_s_own_statistics_noise_and_scores_are_taken() -> None:
    room = curator((LaplaceNoise(1e-3), SampledQueries(1.0, 1)))
    with pytest.raises(TypeError, match="Still is no statistic of the private room: AllQueries, "):
        room.measure(Still(), Laplace(1.0))
    with pytest.raises(TypeError, match="Louder is no noise of the private room"):
        room.measure(AllQueries(), Louder(1.0))
    with pytest.raises(TypeError, match="Model is no scores of the private room"):
        room.select(Model(np.zeros(3)), Exponential(0.5))
    with pytest.raises(TypeError, match="Laplace is no choice of the private room"):
        room.select(WorstQuery(np.zeros(3)), Laplace(0.5))  # type: ignore[arg-type]
    assert room._ledger.spent == 0


class Interrupted(SeededRandomness):
    """Lets another thread act, if it can, between a charge and its draw."""

    def __init__(self) -> None:
        super().__init__(0)
        self.other = threading.Thread()
        self.waited: list[bool] = []

    def words(self, count):
        self._let_the_other_try()
        return super().words(count)

    def discrete_laplace(self, scale, count):
        self._let_the_other_try()
        return super().discrete_laplace(scale, count)

    def _let_the_other_try(self) -> None:
        if not self.waited:
            self.other.start()
            self.other.join(0.05)
            self.waited.append(self.other.is_alive())


def test_weights_do_not_change_between_a_charge_and_its_draw() -> None:
    """A round more would widen the range of the draw beyond what was charged."""
    source = Interrupted()
    schedule = GameSchedule(rounds=2, samples=4, step=0.7, n=len(ROWS))
    room = Curator(records_of(ROWS), WORKLOAD, schedule, source)
    room.begin_game(0.7)
    room.reweight(ROWS[0])
    source.other = threading.Thread(target=room.reweight, args=(ROWS[0],))
    room.sample_queries(4)
    source.other.join()
    assert source.waited == [True]


def test_threads_share_what_is_left() -> None:
    source, told = Interrupted(), []
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), source)
    noise = Laplace(float(AllQueries().moves(WORKLOAD, room._data.neighbours).l1))

    def measure_too() -> None:
        refused(room.measure, AllQueries(), noise, why="the budget is spent")
        told.append(True)

    source.other = threading.Thread(target=measure_too)
    room.measure(AllQueries(), noise)
    source.other.join()
    assert (source.waited, told) == ([True], [True])


@pytest.mark.parametrize("source", [SeededRandomness(0), SystemRandomness()])
def test_a_room_cannot_be_copied(source) -> None:
    """A copy would have a ledger of its own."""
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), source)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle"):
            copied(room)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_spends_nothing() -> None:
    room = Curator(records_of(ROWS), WORKLOAD, (LaplaceNoise(1.0),), SystemRandomness())
    room.evaluate()
    noise = Laplace(float(AllQueries().moves(WORKLOAD, room._data.neighbours).l1))
    child = os.fork()
    if child == 0:
        try:
            room.measure(AllQueries(), noise)
        except RuntimeError as error:
            os._exit(0 if "forked process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(room.measure(AllQueries(), noise)) == len(WORKLOAD)


CLASSES = tuple((query, sign) for query in range(len(WORKLOAD)) for sign in (1, -1))
"""The signed queries that a draw may give."""


@cache
def best_response(drawn: tuple[int, ...]) -> np.ndarray:
    """Return the record that a solver finds for these drawn classes. It sees nothing else."""
    sampled = WORKLOAD.literals[[CLASSES[each][0] for each in drawn]]
    signs = np.array([CLASSES[each][1] for each in drawn], np.float64)
    problem = BestResponse.merging(DOMAIN.bits, sampled, signs, groups_of(DOMAIN))
    return get_solver("exhaustive").solve(problem).record


def weights_of_classes(weights: QueryWeights, unit: float) -> list[int]:
    """Return the whole weight of each signed query, by which it is drawn."""
    largest, scores = kernels.largest_score(weights.scores, 2), scores_of(weights)
    return [integer_weight(sign * scores[query], largest, unit) for query, sign in CLASSES]


def transcripts(rows, schedule: GameSchedule, start: np.ndarray) -> dict[tuple, Fraction]:
    """Return the exact probability of every transcript of the real weights and a real solver."""
    counts = WORKLOAD.counts(records_of(rows), threads=1)
    unit = schedule.step / schedule.n
    found: dict[tuple, Fraction] = {}

    def play(played: list[np.ndarray], shown: tuple, chance: Fraction) -> None:
        if len(played) == schedule.rounds:
            found[shown] = found.get(shown, Fraction(0)) + chance
            return
        weights = QueryWeights(counts, schedule.n, schedule.step)
        for record in played:
            weights.update(WORKLOAD.on_record(record))
        integers = weights_of_classes(weights, unit)
        total = sum(integers)
        for drawn in itertools.product(range(len(CLASSES)), repeat=schedule.samples):
            likely = math.prod(Fraction(integers[outcome], total) for outcome in drawn)
            play([*played, best_response(drawn)], (*shown, drawn), chance * likely)

    play([start], (), Fraction(1))
    return found


def true_delta(one: dict, other: dict, epsilon: float) -> float:
    factor = Fraction(np.exp(epsilon))
    return float(sum(max(Fraction(0), p - factor * other[key]) for key, p in one.items()))


@pytest.mark.parametrize(
    ("rounds", "samples", "step"), [(2, 1, 0.5), (3, 1, 1.0), (3, 2, 0.4), (4, 1, 3.0), (2, 3, 2.0)]
)
def test_no_accountant_states_less_than_the_true_loss(rounds, samples, step) -> None:
    """Every transcript of a tiny DualQuery, on all neighbours of one table, both ways round."""
    neighbours = [ROWS.copy() for _ in range(4)]
    neighbours[0][0] = [0, 0, 0, 0, 1]
    neighbours[1][1] = [1, 0, 1, 0, 0]
    neighbours[2][2] = [0, 0, 0, 1, 0]
    neighbours[3][0] = [0, 1, 0, 1, 0]
    check_all(GameSchedule(rounds, samples, step, n=3), neighbours)


def check_all(schedule: GameSchedule, neighbours: list[np.ndarray]) -> None:
    ours = transcripts(ROWS, schedule, start=ROWS[0])
    assert sum(ours.values()) == 1
    stated = cache(lambda accountant, epsilon: accountant.delta(schedule, epsilon))
    checked = 0
    for rows in neighbours:
        theirs = transcripts(rows, schedule, start=ROWS[0])
        for epsilon in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2):
            truth = max(true_delta(ours, theirs, epsilon), true_delta(theirs, ours, epsilon))
            for accountant in ACCOUNTANTS:
                if accountant.supports(schedule, max(truth, 1e-9)) is None:
                    assert stated(accountant, epsilon) >= truth
                    assert truth == 0 or accountant.epsilon(schedule, truth) <= 50
                    checked += truth > 0
    assert checked > 10


GRIDS = (Grid("a", 0.0, 3.0, 3, True), Grid("b", -1.0, 1.0, 2, True))
QUERIES = Workload(np.array([[0]], np.int32), domain_of(1))


def carrying(grids=GRIDS) -> Curator:
    """Return a room of two rows: a bit, and the digits of a number of each grid."""
    rows = records_of(np.array([(0, 0, 1, 1, 0), (1, 1, 0, 0, 1)], np.uint8))
    schedule = (GaussianNoise(10.0, 10.0),)
    return Curator(rows, QUERIES, schedule, NoNoise(0), public_rows=rows.n, grids=grids)


@pytest.mark.parametrize("column", [0, 1])
def test_one_of_the_columns_is_summed_by_itself(column: int) -> None:
    """Its sum is that of all columns' measurement, and moves as one column does."""
    found = [
        carrying().measure(ColumnSums(grids), Gaussian(10.0))
        for grids in (GRIDS, GRIDS[column : column + 1])
    ]
    assert found[1].tolist() == found[0][column : column + 1].tolist()
    assert ColumnSums(GRIDS[:1]).moves(QUERIES, Neighbours.REPLACE_ONE).l2 == 2.0


def test_sums_of_other_numbers_than_the_rows_carry_are_refused() -> None:
    narrower = (Grid("a", 0.0, 3.0, 2, True), GRIDS[1])  # as many digits, and moves that are less
    for grids in (narrower, narrower[:1], (Grid("c", 0.0, 3.0, 3, True),), ()):
        with pytest.raises(ValueError, match="not those of the numbers"):
            carrying().measure(ColumnSums(grids), Gaussian(99.0))
    with pytest.raises(ValueError, match="summed once"):
        carrying().measure(ColumnSums((GRIDS[0], GRIDS[0])), Gaussian(99.0))
    for grids in (GRIDS[:1], ()):
        with pytest.raises(ValueError, match="bits expected"):
            carrying(grids)

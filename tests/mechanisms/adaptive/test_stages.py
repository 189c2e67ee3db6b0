"""Stages: what they cost whatever is chosen, how they are chosen, and what intervals cover."""

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dualquery
from dualquery.data.domain import Domain, rows_of_values
from dualquery.data.given_table import Unit
from dualquery.mechanisms.adaptive import evidence
from dualquery.mechanisms.adaptive.expansion import Expansion
from dualquery.mechanisms.adaptive.measurement import QueryMeasurement, plan_columns
from dualquery.mechanisms.adaptive.mechanism import COLUMNS_ALONE, Adaptive, Matrix, Probed, Staged
from dualquery.mechanisms.adaptive.mixture_fit import Fitting
from dualquery.mechanisms.adaptive.stage_planner import ColumnEvidence, PairEvidence
from dualquery.mechanisms.baselines.independent import Independent
from dualquery.mechanisms.baselines.noisy_answers import GaussianAnswers
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Session, Task
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import random_conjunctions, random_marginals
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.randomness import SeededRandomness
from dualquery.room.statistics import FeatureSums
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, records_of, refused, values_on

SMALL = Domain(np.array([0, 1, 2, 3, 6]))  # three binary columns and one of three values
MIXED = Domain(np.array([0, 1, 2, 3, 6, 10, 11, 12, 17, 18]))
"""Six binary columns, and columns of three, four and five values."""


def table(rows: int, tied: float, seed: int = 3) -> np.ndarray:
    """Return rows of `MIXED`; a column is the one before it with chance ``tied``."""
    generator = np.random.default_rng(seed)
    ranks = generator.random((rows, MIXED.columns))
    for column in range(1, MIXED.columns):
        same = generator.random(rows) < tied
        ranks[same, column] = ranks[same, column - 1]
    binary = ranks < 0.2 + 0.05 * np.arange(MIXED.columns)
    values = np.where(MIXED.sizes == 1, binary, MIXED.sizes * ranks**2).astype(int)
    return rows_of_values(values, MIXED)


def runs(
    seeds: range,
    records: np.ndarray,
    work: Workload,
    epsilon: float,
    mechanism: Mechanism,
    relation: Neighbours = Neighbours.REPLACE_ONE,
) -> Iterator[tuple[Outcome, np.ndarray]]:
    """Yield what runs of one plan give, and the true answers; all of the schedule is spent."""
    rows, n = records_of(records), len(records)
    asked, truth = Task(work, n), work.counts(rows, threads=1) / n
    plan = mechanism.plan(asked, Budget(epsilon, 1e-3, neighbours=relation))
    held = mechanism.statistics(work)
    for seed in seeds:
        room = Curator(
            rows, held, plan.schedule, SeededRandomness(seed), neighbours=relation, public_rows=n
        )
        outcome = mechanism.run(asked, plan, room, Session(public_seed=1))
        with pytest.raises(RuntimeError, match="spent"):
            room.measure(FeatureSums(NOTHING), Gaussian(1.0))
        assert ((outcome.answers >= 0) & (outcome.answers <= 1)).all()
        yield outcome, truth


def released(*asked: Any, **more: Any) -> tuple[Outcome, np.ndarray]:
    """Return what one run gives, and the true answers (see `runs`)."""
    return next(runs(range(1, 2), *asked, **more))


CELLS = (40, 192, 6, 0.9), (41, 192, 6, 0.9), (200, 1200, 6, 0.9)  # of whole marginals
NOTHING = Strategy(Features(np.empty((0, 1), np.int32), SMALL), np.ones(0), Neighbours.REPLACE_ONE)


def furthest(strategy: Strategy, records: np.ndarray, relation: Neighbours) -> float:
    """Return the largest distance between neighbours' numbers over their scales, by enumeration."""
    own = values_on(strategy.features, records) / strategy.scales
    moves = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
    return float(np.sqrt((moves**2).sum(axis=-1).max()))


@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_is_chosen_costs_the_planned_ratio_at_most(relation: Neighbours) -> None:
    """By enumeration: all sets of features that an adversary may choose, all pairs of records."""
    work, records, ratio = random_conjunctions(SMALL, 30, 2), all_records(SMALL), 0.37
    features = Expansion.of(work).features
    chosen = [set_ for size in (1, 2, 3) for set_ in combinations(range(len(features)), size)]
    chosen += [tuple(range(size)) for size in range(4, len(features) + 1)]
    strategies = [Strategy.uniform(features.part(np.array(p)), relation) for p in chosen]
    strategies += [
        plan_columns(work, np.random.default_rng(seed).random(SMALL.bits), relation)
        for seed in range(20)
    ]
    for strategy in strategies:
        scale = evidence.scale_for(strategy.sensitivity, ratio)
        assert furthest(strategy, records, relation) / scale <= ratio
        # The noise is no larger than what is proven of the features asks for.
        assert strategy.sensitivity / scale == pytest.approx(ratio, rel=1e-12)


def test_the_room_refuses_a_later_stage_that_costs_more_than_was_planned() -> None:
    features = Expansion.of(random_conjunctions(SMALL, 30, 2)).features
    rows, work, ratio = records_of(all_records(SMALL)), random_conjunctions(SMALL, 5, 2), 0.5
    for places in (np.arange(0), np.arange(2), np.arange(len(features))):  # an empty one charges
        strategy = Strategy.uniform(features.part(places), Neighbours.REPLACE_ONE)
        scale = evidence.scale_for(strategy.sensitivity, ratio) if len(places) else 1.0
        room = Curator(rows, work, (GaussianNoise(ratio, 1.0),), SeededRandomness(0))
        if len(places):
            refused(room.measure, FeatureSums(strategy), Gaussian(scale * (1 - 1e-12)))
        assert room.measure(FeatureSums(strategy), Gaussian(scale)).size == len(places)
        with pytest.raises(RuntimeError, match="spent"):
            room.measure(FeatureSums(strategy), Gaussian(scale))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("wins", [False, True])
def test_the_schedule_pays_for_either_choice_after_pairs(relation, wins, monkeypatch) -> None:
    work = random_conjunctions(MIXED, 60, 3)
    columns = plan_columns(work, np.full(MIXED.bits, 0.5), relation)
    monkeypatch.setattr(PairEvidence, "next_stage", lambda _, full, __: full if wins else columns)
    outcome, _ = released(table(500, 0.3), work, 1.0, Probed(records=3), relation=relation)
    assert [line["stage"] for line in outcome.trace if "stage" in line] == [1, 2]
    assert outcome.trace[1]["products"] == 0 or wins
    assert outcome.remarks == (() if wins else (COLUMNS_ALONE,))
    # A literal that another implies is no trouble: that bit is in no feature.
    work = Workload(np.array([[6, 9], [2, -1], [6, 14], [17, -1]], np.int32), MIXED)
    outcome, truth = released(table(1_000, 0.3), work, 1e4, Probed(records=3), relation=relation)
    np.testing.assert_allclose(outcome.answers[[0, 1, 3]], truth[[0, 1, 3]], atol=0.02)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("places", "told"), [([0], (2, 0)), (range(92), (92, 0)), ([], (0, 200))])
def test_the_schedule_pays_for_each_choice_after_columns(
    relation: Neighbours, places: Any, told: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, chosen = random_conjunctions(Domain.binary(8), 200, 3), np.array(places, np.int64)
    assert len(Expansion.of(work).features) == 92
    queries = None if len(chosen) else QueryMeasurement(work, relation)
    monkeypatch.setattr(ColumnEvidence, "all_at_once", lambda *_, **__: queries)
    monkeypatch.setattr(ColumnEvidence, "worth_measuring", lambda _: chosen)
    records = np.full((500, 8), len(chosen) > 1, np.uint8)
    outcome, _ = released(records, work, 1.0, Staged(records=5), relation=relation)
    last = [line for line in outcome.trace if "stage" in line][-1]  # of [0], with one group
    assert (last["columns"] + last["products"], last["queries"]) == told


@pytest.mark.parametrize(("sizes", "most"), [(0.5, 0.9), (1.5, 1.1)])
def test_groups_of_columns_lower_errors(sizes: float, most: float, monkeypatch) -> None:
    """Means of four runs; where rows differ less in size, errors are three quarters."""
    generator, means = np.random.default_rng(5), []
    shares = 0.02 * generator.random(100) * generator.lognormal(0.0, sizes, (20_000, 1))
    records = (generator.random((20_000, 100)) < np.minimum(shares, 0.9)).astype(np.uint8)
    work = random_conjunctions(Domain.binary(100), 10_000, 3, seed=1)
    for _ in range(2):
        found = runs(range(4), records, work, 1.0, Staged(records=3))
        errors = [np.abs(outcome.answers - truth) for outcome, truth in found]
        means.append((np.mean(errors), np.max(errors, axis=1).mean()))
        alone = lambda seen, chosen, _: seen.expansion.features.bits[chosen]  # noqa: E731
        monkeypatch.setattr(ColumnEvidence, "with_groups", alone)
    assert means[0][0] < most * means[1][0]
    assert means[0][1] < 1.2 * most * means[1][1]


def test_a_look_at_columns_leaves_more_to_products_that_more_rows_can_tell_apart() -> None:
    work = random_conjunctions(Domain.binary(60), 30_000, 3, signed=False)
    looks = [Staged().plan(Task(work, n), Budget(1.0, 1e-6)).schedule for n in (1_000, 100_000)]
    few, many = (look[0].sensitivity / look[0].scale for look in looks)
    assert many < 0.75 * few


@pytest.mark.parametrize("first", ["everything", "pairs"])
def test_a_fit_suits_the_noise_in_shares_whatever_a_unit_is(first: str) -> None:
    """Ten times the rows, and ten rows a unit."""
    work, made = random_conjunctions(MIXED, 400, 3), Adaptive(first=first)
    relations = [Neighbours.parse("replace-one", Unit("person", most)) for most in (1, 10)]
    one, ten = (
        made.plan(Task(work, 1_000 * each.steps), Budget(1.0, 1e-6, neighbours=each)).details
        for each in relations
    )
    assert one.fitting.pull == pytest.approx(ten.fitting.pull, rel=0.01)
    assert one.fitting.components == ten.fitting.components


def test_a_look_at_pairs_leaves_out_rows_that_would_cost_too_much() -> None:
    work = random_conjunctions(Domain(np.arange(0, 1001, 20)), 3_000, 2)
    looked = Probed().plan(Task(work, 5_000), Budget(1.0, 1e-6)).details.looked
    assert looked.note
    assert looked.sensitivity < 0.6 * replace(looked, limit=None).sensitivity


def test_what_a_fit_misses_by_more_than_noise_keeps_its_noisy_mean() -> None:
    """Six kinds of rows for six components; two columns are equal, and independent of the kind."""
    generator, domain = np.random.default_rng(3), Domain(np.append(np.arange(0, 61, 6), (61, 62)))
    kind, at = generator.integers(6, size=(20_000, 1)), np.arange(10)
    drawn = np.where(generator.random((20_000, 10)) < 0.8, kind, generator.integers(6, size=10))
    values, equal = np.eye(6)[(drawn + at) % 6], generator.random((20_000, 1)) < 0.5
    records = np.hstack((values.reshape(-1, 60), equal, equal)).astype(np.uint8)
    work = random_conjunctions(domain, 2_000, 3, seed=1)
    outcome, truth = released(records, work, 1.0, Matrix(components=6, records=3))
    assert np.abs(outcome.answers - truth)[(work.literals >= 120).sum(axis=1) == 2].max() < 0.007


@pytest.mark.parametrize("mechanism", [Matrix(), Probed()])
@pytest.mark.parametrize("asked", [[6, 8], [7, 9, 11]])
def test_queries_that_nothing_satisfies_have_nothing_to_measure(mechanism, asked) -> None:
    with pytest.raises(BadInputError, match="nothing to measure"):
        mechanism.plan(Task(Workload(np.array([asked], np.int32), MIXED), 100), Budget(1.0, 1e-3))


@pytest.mark.parametrize("asked", [[25, 27], [25, 27, 13, 15], [24, 27]])
@pytest.mark.parametrize("mechanism", [Matrix(records=2_000), Probed(records=2_000)])
def test_records_fit_a_query_with_several_literals_on_a_column(mechanism, asked) -> None:
    records, work = table(2_000, 0.7), Workload(np.array([asked], np.int32), MIXED)
    outcome, truth = released(records, work, 30.0, mechanism)
    assert work.answers_on(outcome.records) == pytest.approx(truth, abs=0.01)


def test_a_query_with_several_literals_on_a_column_is_left_out_of_a_fit_of_long_ones() -> None:
    """It is answered by its own noise."""
    work = random_conjunctions(MIXED, 30, 9)
    odd = Workload(np.vstack((work.literals, [[25, 27, *[-1] * 7]])).astype(np.int32), MIXED)
    outcome, truth = released(table(2_000, 0.7), odd, 3.0, Matrix(records=2_000))
    assert len(outcome.measurements.values) == 31  # the queries themselves
    assert outcome.answers == pytest.approx(truth, abs=0.02)
    two = Workload(np.array([[0, 3], [2, 1]], np.int32), Domain(np.array([0, 2])))
    outcome, truth = released(np.eye(2, dtype="u1").repeat(900, 0), two, 3.0, Staged(records=5))
    assert outcome.answers == pytest.approx(truth, abs=0.02)


def test_records_of_nine_literals_on_a_column_are_refused() -> None:
    work = Workload(np.arange(1, 19, 2, dtype=np.int32)[None], Domain(np.array([0, 12])))
    with pytest.raises(BadInputError, match="the queries name a column twice"):
        Matrix().plan(Task(work, 100), Budget(5.0, 1e-3))
    assert Matrix(components=0).plan(Task(work, 100), Budget(5.0, 1e-3))


def test_records_keep_all_values_of_columns_of_which_some_are_tied() -> None:
    """Values that no product is about came out equally likely, up to 0.15 off."""
    generator = np.random.default_rng(0)
    values = generator.choice(6, (5_000, 12), p=[0.4, 0.26, 0.15, 0.1, 0.06, 0.03])
    values[generator.random(5_000) < 0.4, :6] = 0
    table, asked = pl.DataFrame(values.astype(str)), {"queries": 5_000, "schema_from_data": True}
    made = dualquery.release(table, mechanism="staged", seed=0, **asked)
    records = made.synthetic.cast(pl.Int64).to_numpy()
    for value in range(6):
        assert np.abs((records == value).mean(axis=0) - (values == value).mean(axis=0)).max() < 0.04


def test_the_rows_decide() -> None:
    """The same plan mostly measures columns again of independent ones, everything of tied ones."""
    work, look = random_conjunctions(MIXED, 400, 3), Probed(records=3)
    products = [
        [outcome.trace[1]["products"] for outcome, _ in runs(range(4), rows, work, 0.3, look)]
        for rows in (table(1_500, 0.0), table(1_500, 0.7))
    ]
    assert np.count_nonzero(products[0]) <= 1
    assert np.count_nonzero(products[1]) == 4


def excess_error(look, n: int, records, work: Workload, epsilon: float) -> float:
    """Return the mean error of n runs over that of independent columns."""
    found = (runs(range(n), records, work, epsilon, of(records=3)) for of in (look, Independent))
    means = [np.mean([np.abs(each.answers - truth) for each, truth in of_one]) for of_one in found]
    return float(means[0] / means[1])


def test_errors_are_hardly_above_those_of_independent_columns() -> None:
    work = random_conjunctions(MIXED, 400, 3)
    assert excess_error(Probed, 48, table(1_500, 0.0), work, 0.1) <= 1.1


def test_pairs_of_nearly_empty_columns_are_taken_to_share_little() -> None:
    """Where c is 0 and was believed, errors were 1.46 times those of independent columns."""
    generator = np.random.default_rng(5)
    records = (generator.random((20_000, 100)) < 0.05 * generator.random(100)).astype(np.uint8)
    work = random_conjunctions(Domain.binary(100), 4_000, 2, signed=False)
    assert excess_error(Staged, 16, records, work, 1.0) <= 1.35


def test_the_memory_of_many_features_is_told() -> None:
    """Of columns of many values only the queries were counted: 0.6 of it."""
    domain, look = Domain(np.arange(0, 241, 60)), Probed(records=3)
    work = random_conjunctions(domain, 12_000, 2)
    rows = rows_of_values(np.random.default_rng(0).integers(0, 60, (500, 4)), domain)
    told = look.bytes_needed(asked := Task(work, 500), look.plan(asked, Budget(1.0, 1e-3)))
    tracemalloc.start()
    released(rows, work, 1.0, look)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 1.1 * told


def test_records_hold_what_pairs_have_in_common() -> None:
    """Rows of very unequal sizes: of pairs that were not measured records had 1.75 the error."""
    generator = np.random.default_rng(14)
    size = np.minimum(generator.pareto(0.9, (5_000, 1)) * 2.0 + 1.0, 160.0)
    chances = 1.0 - np.exp(-size * generator.dirichlet(np.full(200, 0.5)))
    records = (generator.random((5_000, 200)) < chances).astype(np.uint8)
    work = random_conjunctions(Domain.binary(200), 10_000, 2, signed=False)
    outcome, truth = released(records, work, 1.0, Staged(records=5_000))
    assert outcome.records is not None
    drawn = work.counts(records_of(outcome.records), threads=1) / 5_000
    assert np.abs(drawn - truth).mean() < 1.2 * np.abs(outcome.answers - truth).mean()


def test_triples_of_tied_columns_follow_their_mixture_or_are_measured() -> None:
    """Three of a hundred rows hold five columns together: their pairs alone say half of it."""
    generator = np.random.default_rng(4)
    records = (generator.random((20_000, 30)) < 0.02).astype(np.uint8)
    records[generator.random(20_000) < 0.03, :5] = 1
    triples = np.array(list(combinations(range(30), 3)), np.int32)
    work, products = Workload(2 * triples, Domain.binary(30)), []
    for epsilon in (0.5, 100.0):
        outcome, truth = released(records, work, epsilon, Staged(records=20))
        assert np.abs(outcome.answers - truth).max() < 0.3 * truth.max()
        products.append(outcome.trace[1]["products"])
    assert products[0] < 200
    assert products[1] == 30 * 29 // 2 + len(triples)
    # Four of them have what their triples have; three and a stranger are hardly ever together.
    work = Workload(2 * np.array(list(combinations(range(30), 4)), np.int32), Domain.binary(30))
    outcome, truth = released(records, work, 1.0, Staged(records=20))
    errors = np.abs(outcome.answers - truth)
    assert errors.max() < 0.3 * truth.max()
    assert errors[truth < 0.01].max() < 0.1 * truth.max()


@pytest.mark.parametrize(
    ("filled", "epsilon", "products"), [(0.5, 2.0, 300), (0.5, 0.05, 0), (0.002, 2.0, 0)]
)
def test_products_of_full_columns_are_measured_where_noise_is_small(
    filled: float, epsilon: float, products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = np.random.default_rng(8).random((4_000, 30)) < filled
    records[:, 1] |= records[:, 0]
    work = random_conjunctions(Domain.binary(30), 300, 2, signed=False)
    outcome, truth = released(records, work, epsilon, Staged(records=20))
    groups = outcome.trace[1]["columns"] if filled < 0.5 else 0  # and no pairs
    assert outcome.trace[1]["products"] == products + groups
    assert np.abs(outcome.answers - truth).mean() < 0.02 / min(epsilon, 1.0)
    assert outcome.records.shape == (20, 30)
    monkeypatch.setattr("dualquery.mechanisms.adaptive.stage_planner.is_wide", lambda _: True)
    ends = released(records, work, epsilon, Staged(records=20))[0].intervals  # in two parts
    assert ((ends.lower <= truth) & (truth <= ends.upper)).mean() > 0.9


@pytest.mark.parametrize(
    ("columns", "queries", "kinds", "most"),
    [(2000, 800, 1, 1), (60, 60, 3, 1.4), (300, 300, 3, 1.1), (150, 20, 5, 1.9), *CELLS],
)
def test_few_queries_are_measured_themselves(columns, queries, kinds, most) -> None:
    """Their noise is that of plain noise on answers, but for the look; records follow them."""
    first, epsilon = "pairs" if columns in (40, 300) else "columns", 0.1 if columns == 150 else 1.0
    generator, both = np.random.default_rng(9), (Adaptive(first=first), GaussianAnswers())
    shares = np.repeat(generator.random((kinds, columns)) ** (2 / kinds), 10_000 // kinds, axis=0)
    records = (generator.random(shares.shape) < shares).astype(np.uint8)
    work = random_conjunctions(Domain.binary(columns), queries, 3, signed=columns > 150)
    if kinds == 6:  # cells that outnumber their features: a mixture is fitted to them
        work = random_marginals(work.domain, queries // 8, 3, 8)
        plan = Adaptive().plan(Task(work, 1_000), Budget(0.1, 1e-6))
        assert plan.details.first == ("columns" if columns > 128 else "pairs")
    (outcome, truth), (plain, _) = (released(records, work, epsilon, each) for each in both)
    assert [line["queries"] for line in outcome.trace if "queries" in line] == [0, queries]
    errors, usual = (np.abs(each.answers - truth) for each in (outcome, plain))
    assert errors.mean() < most * usual.mean()
    assert errors.max() < 1.2 * most * usual.max()
    assert ((outcome.intervals.lower <= truth) & (truth <= outcome.intervals.upper)).mean() > 0.9
    of_records = work.counts(records_of(outcome.records), threads=1) / len(outcome.records)
    assert np.abs(of_records - outcome.answers).mean() < 0.003 / epsilon
    assert np.abs(of_records - outcome.answers).max() < 0.03 / epsilon


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_values_that_nobody_asks_about_may_stand_beside_others(epsilon: float) -> None:
    domain = Domain(np.arange(0, 13, 4))
    records = rows_of_values(np.arange(6_000).reshape(-1, 3) * 7 % 4, domain)
    bits = combinations([0, 1, 2, 4, 5, 6, 8, 9, 10], 2)
    work = Workload(2 * np.array([(a, b) for a, b in bits if a // 4 != b // 4], np.int32), domain)
    outcome, truth = released(records, work, epsilon, Probed(records=50))
    assert np.abs(outcome.answers - truth).max() < 0.01 / epsilon


@pytest.mark.parametrize("signed", [True, False])
def test_intervals_cover_through_the_choice(signed: bool, monkeypatch) -> None:
    """Each query by a binomial test, corrected for their number; a fit of a few steps will do."""
    brief = Fitting(components=1, steps=3, pull=1.0, tried=False)
    monkeypatch.setattr(Fitting, "suited", staticmethod(lambda *_, **__: brief))
    generator = np.random.default_rng(4)
    records = (generator.random((2_000, 12)) < np.linspace(0.0, 0.5, 12)).astype(np.uint8)
    records[:, 11] |= records[:, 10]
    work = random_conjunctions(Domain.binary(12), 150 if signed else 60, 2, signed=signed)
    covered, times = np.zeros(len(work)), 60
    for outcome, truth in runs(range(times), records, work, 0.5, Staged(records=1)):
        covered += (outcome.intervals.lower <= truth) & (truth <= outcome.intervals.upper)
    assert binom.cdf(covered.min(), times, 0.95) > 0.001 / len(work)
    assert (covered / times).mean() >= 0.94


@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_intervals_cover_after_pairs(tied: float) -> None:
    """Of columns alone and of everything; answers of a run share their noise."""
    records, work = table(800, tied), random_conjunctions(MIXED, 300, 3)
    covered = []
    for outcome, truth in runs(range(6), records, work, 1.0, Probed(records=3)):
        found = outcome.intervals
        covered.append(np.mean((found.lower <= truth) & (truth <= found.upper)))
    assert np.mean(covered) >= 0.93


def test_noisy_numbers_of_rows_leave_two_wide_columns_no_lower_end() -> None:
    """A share that is measured itself moves by all of the number's error, a sign by half of it."""
    shares = evidence.Shares(np.arange(18, dtype=np.int32), np.full(18, 0.9), np.full(18, 1e-6))
    work = Workload(np.array([[0, 2], [0, 6], [6, 14], [6, -1]], np.int32), MIXED)
    ends = {
        relation: evidence.share_intervals(work, (shares,), relation).lower > 0
        for relation in RELATIONS
    }
    np.testing.assert_array_equal(ends[Neighbours.REPLACE_ONE], [True, True, True, True])
    np.testing.assert_array_equal(ends[Neighbours.ADD_REMOVE], [True, False, False, True])


@pytest.mark.parametrize("mechanism", [Probed(records=3), Matrix(records=3)])
@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_errors_are_where_the_forecast_says(mechanism: Mechanism, tied: float) -> None:
    """At three budgets, 5 of 6 at least; and the ranges are not everything."""
    records, work = table(3_000, tied), random_conjunctions(MIXED, 1_000, 3)
    asked, inside = Task(work, len(records)), 0
    for epsilon in (0.1, 1.0, 5.0):
        told = mechanism.expected_error(asked, mechanism.plan(asked, Budget(epsilon, 1e-3)))
        outcome, truth = released(records, work, epsilon, mechanism)
        errors = np.abs(outcome.answers - truth)
        assert told.mean_error.high < 0.5
        inside += told.mean_error.low <= errors.mean() <= told.mean_error.high
        inside += told.max_error.low <= errors.max() <= told.max_error.high
    assert inside >= 5

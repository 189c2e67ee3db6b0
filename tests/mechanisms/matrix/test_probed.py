"""A first look that decides: what it costs, how it decides, and what is made of it."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import Independent
from dualquery.mechanisms.matrix.columns import (
    drawn_together,
    learned,
    plan_columns,
    spread_after,
    spread_of_noise,
)
from dualquery.mechanisms.matrix.dependence import EXPECTED, Pairs, posterior, spread_of_departures
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.looks import Shares, scale_for
from dualquery.mechanisms.matrix.mechanism import Matrix
from dualquery.mechanisms.matrix.probed import COLUMNS_ALONE, Probed, Seen
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.mechanisms.matrix.share_intervals import share_intervals
from dualquery.mechanisms.protocol import Budget, Mechanism, Outcome, Session, Task
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import random_marginals
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.runtime.errors import BadInputError
from tests.mechanisms.matrix.test_staged import SMALL, legal_records, packed, values_on

MIXED = Domain(np.array([0, 1, 2, 3, 6, 10, 11, 12, 17, 18]))
"""Six binary columns, and columns of three, four and five values."""


def table(rows: int, tied: float, seed: int = 3) -> np.ndarray:
    """Return rows of `MIXED`; a column is the one before it with chance ``tied``."""
    generator = np.random.default_rng(seed)
    ranks = generator.random((rows, MIXED.columns))
    for column in range(1, MIXED.columns):
        same = generator.random(rows) < tied
        ranks[same, column] = ranks[same, column - 1]
    found = np.zeros((rows, MIXED.bits), np.uint8)
    for column, size in enumerate(MIXED.sizes):
        first = MIXED.offsets[column]
        if size == 1:
            found[:, first] = ranks[:, column] < 0.2 + 0.05 * column
        else:
            found[np.arange(rows), first + (size * ranks[:, column] ** 2).astype(int)] = 1
    return found


def released(
    records: np.ndarray,
    work: Workload,
    epsilon: float,
    seed: int = 1,
    mechanism: Mechanism | None = None,
    relation: Neighbours = Neighbours.REPLACE_ONE,
) -> tuple[Outcome, np.ndarray]:
    """Return what a run gives, and the true answers; the schedule is spent."""
    rows, n = packed(records), len(records)
    asked, mechanism = Task(work, n), mechanism or Probed(records=3)
    plan = mechanism.plan(asked, Budget(epsilon, 1e-3, neighbours=relation))
    held = mechanism.statistics(work)
    room = Curator(
        rows, held, plan.schedule, SeededRandomness(seed), neighbours=relation, public_rows=n
    )
    outcome = mechanism.run(asked, plan, room, Session(public_seed=1))
    assert room._ledger.spent == len(plan.schedule)
    return outcome, work.counts(rows, threads=1) / n


@pytest.mark.parametrize("relation", RELATIONS)
def test_columns_cost_the_planned_ratio_at_most(relation: Neighbours) -> None:
    """By enumeration over all pairs of records, whatever shares chose the columns' noise."""
    work, records, ratio = random_conjunctions(SMALL, 12, 2, seed=3), legal_records(SMALL), 0.37
    for seed in range(20):
        chances = np.random.default_rng(seed).random(SMALL.bits)
        strategy = plan_columns(work, chances, relation)
        scale = scale_for(strategy.sensitivity, ratio)
        own = values_on(strategy.features, records) / strategy.scales
        moves = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
        furthest = np.sqrt((moves**2).sum(axis=-1).max())
        assert furthest / scale <= ratio
        assert furthest / scale == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("everything", [False, True])
def test_the_schedule_pays_for_either_choice(
    relation: Neighbours, everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seen, "everything_leaves_less", lambda *_: everything)
    outcome, _ = released(
        table(500, 0.3), random_conjunctions(MIXED, 60, 3), 1.0, relation=relation
    )
    assert [line["stage"] for line in outcome.trace if "stage" in line] == [1, 2]
    assert ((outcome.answers >= 0) & (outcome.answers <= 1)).all()
    assert outcome.trace[1]["products"] == 0 or everything
    assert outcome.remarks == (() if everything else (COLUMNS_ALONE,))


@pytest.mark.parametrize("everything", [False, True])
def test_a_literal_that_another_implies_is_no_trouble(
    everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has one value of a column has none of its others: that bit is in no feature."""
    monkeypatch.setattr(Seen, "everything_leaves_less", lambda *_: everything)
    records = table(1_000, 0.3)
    work = Workload(np.array([[6, 9], [2, -1], [6, 14], [17, -1]], np.int32), MIXED)
    outcome, truth = released(records, work, 1e4)
    np.testing.assert_allclose(outcome.answers[[0, 1, 3]], truth[[0, 1, 3]], atol=0.02)
    assert outcome.intervals is not None
    assert (outcome.intervals.lower <= truth).all()
    assert (truth <= outcome.intervals.upper).all()


def test_queries_that_nothing_satisfies_have_nothing_to_measure(
    recwarn: pytest.WarningsRecorder,
) -> None:
    work = Workload(np.array([[6, 8]], np.int32), MIXED)
    with pytest.raises(BadInputError, match="nothing to measure"):
        Probed().plan(Task(work, 100), Budget(1.0, 1e-3))
    assert not len(recwarn)


def test_noisy_numbers_of_rows_leave_two_wide_columns_no_lower_end() -> None:
    """A share that is measured itself moves by all of the number's error, a sign by half of it."""
    shares = Shares(np.arange(18, dtype=np.int32), np.full(18, 0.9), np.full(18, 1e-6))
    work = Workload(np.array([[0, 2], [0, 6], [6, 14], [6, -1]], np.int32), MIXED)
    ends = {
        relation: share_intervals(work, (shares,), relation).lower > 0 for relation in RELATIONS
    }
    np.testing.assert_array_equal(ends[Neighbours.REPLACE_ONE], [True, True, True, True])
    np.testing.assert_array_equal(ends[Neighbours.ADD_REMOVE], [True, False, False, True])


def test_the_rows_decide() -> None:
    """The same plan mostly measures columns again of independent ones, everything of tied ones."""
    work = random_conjunctions(MIXED, 400, 3)
    products = [
        [released(table(1_500, tied), work, 1.0, seed)[0].trace[1]["products"] for seed in range(6)]
        for tied in (0.0, 0.7)
    ]
    assert np.count_nonzero(products[0]) <= 1
    assert np.count_nonzero(products[1]) == 6


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_errors_are_hardly_above_those_of_independent_columns(epsilon: float) -> None:
    """On columns that are independent; means of three runs each."""
    records, work = table(1_500, 0.0), random_conjunctions(MIXED, 400, 3)
    means = []
    for mechanism in (Probed(records=3), Independent(records=3)):
        runs = [released(records, work, epsilon, seed, mechanism) for seed in range(3)]
        means.append(np.mean([np.abs(outcome.answers - truth) for outcome, truth in runs]))
    assert means[0] <= 1.1 * means[1]


@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_intervals_cover(tied: float) -> None:
    """Of columns alone and of everything; answers of a run share their noise."""
    records, work = table(800, tied), random_conjunctions(MIXED, 300, 3)
    covered = []
    for seed in range(8):
        outcome, truth = released(records, work, 1.0, seed)
        found = outcome.intervals
        assert found is not None
        covered.append(np.mean((found.lower <= truth) & (truth <= found.upper)))
    assert np.mean(covered) >= 0.93


def test_answers_of_exact_pairs_are_exact() -> None:
    """Departures without noise give every pair of literals its share."""
    records = table(2_000, 0.4)
    work = random_conjunctions(MIXED, 500, 2)
    features = Expansion.of(work).in_blocks().features
    both = features.part(np.flatnonzero((features.bits >= 0).sum(axis=1) == 2))
    exact = np.ones((len(records), len(both)))
    for place in range(2):
        held = records[:, both.bits[:, place]].astype(float)
        contrast = 1.0 - both.values[:, place] * held
        exact *= np.where(both.contrasts[:, place], contrast, held)
    shares = records.mean(axis=0)
    pairs = Pairs.of(
        ProductTerms.of_features(both), exact.mean(axis=0), np.full(len(both), 1e-9), shares,
        np.zeros(len(shares)),
    )  # fmt: skip
    truth = work.counts(packed(records), threads=1) / len(records)
    np.testing.assert_allclose(pairs.answers(work, shares), truth, atol=1e-6)


def test_strength_is_found_in_noise() -> None:
    """Pairs of which each is below its noise tell together how far they depart."""
    generator = np.random.default_rng(0)
    count, noise = 20_000, 0.15
    pair = np.zeros((count, 2), np.int64)
    found = []
    for strength in (0.0, 0.25, 1.0):
        apart = 0.1 * strength * generator.standard_normal(count)
        noisy = apart + noise * generator.standard_normal(count)
        pairs = Pairs(pair, noisy, np.full(count, 0.1), np.full(count, noise**2), np.ones(count))
        found.append(pairs.left().whole ** 0.5)
    assert found[0] < 0.2
    assert found[1] == pytest.approx(0.25, abs=0.05)
    assert found[2] == pytest.approx(1.0, abs=0.05)


def test_noise_alone_seldom_leaves_a_departure() -> None:
    """In a twentieth of all draws: more than 5 of 40 have a chance of a percent and a half."""
    kept = []
    for seed in range(40):
        noisy = np.random.default_rng(seed).standard_normal(20_000)
        expected, variances = np.full(20_000, 0.4), np.ones(20_000)
        kept.append(np.abs(posterior(noisy, expected, variances)[0]).max())
    assert np.count_nonzero(np.array(kept) > 0.5) <= 5


def test_the_resolution_is_the_spread_of_what_noise_alone_tells() -> None:
    """Mean squares of noise less what is known of it, over the expected: 4,000 draws."""
    generator = np.random.default_rng(5)
    count, expected, slopes = 30, generator.uniform(0.1, 0.3, 30), generator.uniform(1.0, 4.0, 30)
    variances = generator.uniform(0.5, 1.5, count)
    bits = np.stack((np.arange(count), np.arange(count) + 1), axis=1)
    pairs = Pairs(bits, np.zeros(count), expected, variances, slopes)
    noise = np.sqrt(variances) * generator.standard_normal((4_000, count))
    told = ((noise**2 - variances) / slopes**2).sum(axis=1) / (expected**2 / slopes**2).sum()
    assert told.std() == pytest.approx(pairs.resolution, rel=0.06)  # five of its deviations
    assert Pairs(bits[:0], *np.zeros((4, 0))).resolution == np.inf


def test_a_sharp_look_needs_less_of_the_budget() -> None:
    """The more rows there are, the less it takes to see how far pairs depart."""
    work = random_conjunctions(MIXED, 500, 3)
    parts = []
    for n in (500, 20_000, 2_000_000):
        first, second = Probed().plan(Task(work, n), Budget(1.0, 1e-6)).schedule
        looks = (first.sensitivity / first.scale) ** 2, (second.sensitivity / second.scale) ** 2
        parts.append(looks[0] / sum(looks))
    assert 0.1 < parts[0] < 0.2
    assert parts[0] > parts[1] > parts[2]
    assert parts[2] == pytest.approx(0.01)


def test_departures_that_stand_out_are_known_and_no_longer_count() -> None:
    generator = np.random.default_rng(0)
    apart = np.zeros(1_000)
    apart[:20] = 0.4
    noisy = apart + 0.02 * generator.standard_normal(1_000)
    pairs = Pairs(
        np.zeros((1_000, 2), np.int64), noisy, np.full(1_000, 0.1), np.full(1_000, 4e-4),
        np.ones(1_000),
    )  # fmt: skip
    np.testing.assert_allclose(pairs.departures[:20], 0.4, atol=0.07)
    left = pairs.left()
    assert left.unknown < 0.1 * left.whole


def test_shares_that_only_noise_sets_apart_become_equal() -> None:
    domain = Domain.binary(200)
    generator = np.random.default_rng(0)
    bits = np.arange(200, dtype=np.int32)
    for apart in (0.0, 0.2):
        truth = 0.4 + apart * (2 * generator.random(200) - 1)
        noisy = truth + 0.1 * generator.standard_normal(200)
        found = drawn_together(Shares(bits, noisy, np.full(200, 0.1)), domain)
        errors = [np.mean((values - truth) ** 2) for values in (found.values, noisy)]
        assert errors[0] < (0.8 if apart else 0.1) * errors[1]
    # Shares that are known stay where they are.
    known = drawn_together(Shares(bits, truth, np.full(200, 1e-6)), domain)
    np.testing.assert_allclose(known.values, truth, atol=3e-6)


@pytest.mark.parametrize("full", [0.0, 0.05])
def test_many_columns_are_told_from_the_few_that_hold_much(full: float) -> None:
    """Drawn to their mean, all would keep the noise that the few make room for."""
    domain, generator = Domain.binary(400), np.random.default_rng(1)
    truth = np.where(generator.random(400) < full, 0.6, 0.01)
    noisy = truth + 0.1 * generator.standard_normal(400)
    shares = Shares(np.arange(400, dtype=np.int32), noisy, np.full(400, 0.1))
    found = drawn_together(shares, domain)
    errors = [np.mean((values - truth) ** 2) for values in (found.values, noisy)]
    assert errors[0] < 0.1 * errors[1]
    fewer = drawn_together(Shares(shares.bits[:100], noisy[:100], np.full(100, 0.1)), domain)
    if full:
        assert np.mean((fewer.values - truth[:100]) ** 2) > 0.4 * errors[1]


def test_a_first_look_at_many_columns_leaves_less_than_its_noise() -> None:
    """Where most are alike; a few columns tell nothing of each other."""
    for columns, less in ((200, True), (100, False)):
        domain, generator = Domain.binary(columns), np.random.default_rng(2)
        work = random_conjunctions(domain, 500, 3, signed=True)
        bits, noise = np.arange(columns, dtype=np.int32), np.full(columns, 0.2)
        first = Shares(bits, 0.02 + 0.2 * generator.standard_normal(columns), noise)
        again = Shares(bits, np.zeros(columns), noise / 2.0)
        chances, uncertain = learned(first, domain)
        both = spread_of_noise(work, chances, first.combined(again))
        after = spread_after(work, chances, uncertain, first, again)
        assert after < 0.7 * both if less else after == both


def test_values_that_nobody_asks_about_share_what_is_left() -> None:
    shares = Shares(np.array([0, 3], np.int32), np.array([0.3, 0.5]), np.full(2, 1e-9))
    chances, uncertain = learned(shares, SMALL)
    np.testing.assert_allclose(chances, [0.3, 0.5, 0.5, 0.5, 0.25, 0.25])
    assert (uncertain[[1, 2, 4, 5]] == 0).all()


def test_what_the_draw_of_rows_makes_of_triples() -> None:
    """Of independent columns a triple departs from what shares and pairs say by chance alone."""
    n, chances = 50, np.array([0.3, 0.5, 0.6])
    work = Workload(np.array([[0, 2, 4]], np.int32), Domain.binary(3))
    generator = np.random.default_rng(0)
    rows = (generator.random((20_000, n, 3)) < chances).astype(float) - chances
    spread = np.sqrt(np.mean(rows.prod(axis=2).mean(axis=1) ** 2))
    none = type(EXPECTED)(0.0, 0.0)
    assert spread_of_departures(work, chances, n, none) == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("mechanism", [Probed(records=3), Matrix(records=3)])
@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_errors_lie_where_they_were_told_to_lie(mechanism: Mechanism, tied: float) -> None:
    """Of conjunctions and whole marginals, at three budgets; and the ranges are not everything."""
    records = table(3_000, tied)
    for work in (random_conjunctions(MIXED, 1_000, 3), random_marginals(MIXED, 8, 3, 3_000, 0)):
        asked = Task(work, len(records))
        for epsilon in (0.1, 1.0, 5.0):
            told = mechanism.expected_error(asked, mechanism.plan(asked, Budget(epsilon, 1e-3)))
            assert told is not None
            outcome, truth = released(records, work, epsilon, mechanism=mechanism)
            errors = np.abs(outcome.answers - truth)
            assert told.mean_error.low <= errors.mean() <= told.mean_error.high < 0.5
            assert told.max_error.low <= errors.max() <= told.max_error.high


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_query_of_rare_values_whose_shares_are_taken_to_be_0(epsilon: float) -> None:
    """Then no column seems to be worth measuring; all are, alike."""
    domain = Domain(np.arange(0, 16, 3))
    work = Workload(np.array([[2, 8, 14]], np.int32), domain, {"kind": "one"})
    for seed in range(8):
        records = np.zeros((100, 15), np.uint8)
        values = np.where(np.random.default_rng(seed).random((100, 5)) < 0.02, 1, 0)
        records[np.arange(100)[:, None], np.arange(0, 15, 3) + values] = 1
        outcome, _ = released(records, work, epsilon, seed)
        assert ((outcome.answers >= 0.0) & (outcome.answers <= 1.0)).all()

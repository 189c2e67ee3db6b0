"""Two stages: what is chosen, what it costs whatever is chosen, and what the intervals cover."""

from __future__ import annotations

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from dualquery.data.domain import Domain
from dualquery.mechanisms.matrix import staged
from dualquery.mechanisms.matrix.departures import Departures
from dualquery.mechanisms.matrix.drawn import Drawn
from dualquery.mechanisms.matrix.everything import departures_of, everything, with_shares
from dualquery.mechanisms.matrix.expansion import Expansion
from dualquery.mechanisms.matrix.fitting import Fitting
from dualquery.mechanisms.matrix.looks import Shares, alike, scale_for, singles_of, worth_measuring
from dualquery.mechanisms.matrix.second_look import SecondLook, second_look, standing_out
from dualquery.mechanisms.matrix.shares import posterior
from dualquery.mechanisms.matrix.staged import Staged
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.randomness import SeededRandomness
from dualquery.room.statistics import FeatureSums
from dualquery.room.strategy import Strategy
from dualquery.rows.packed import RecordsBuilder

SMALL = Domain(np.array([0, 1, 2, 3, 6]))
"""Three binary columns and one of three values."""


def packed(records: np.ndarray):
    builder = RecordsBuilder(records.shape[1])
    builder.append_dense(np.asarray(records, np.uint8))
    return builder.build()


def legal_records(domain: Domain) -> np.ndarray:
    choices = [
        [[0], [1]] if size == 1 else np.eye(size, dtype=int).tolist()
        for size in domain.sizes.tolist()
    ]
    return np.array([np.concatenate(row) for row in product(*choices)], np.uint8)


def values_on(features: Features, records: np.ndarray) -> np.ndarray:
    """Return each feature's value on each record, straight from the definition."""
    values = np.ones((len(records), len(features)), np.int64)
    for f, bits in enumerate(features.bits):
        for bit in bits[bits >= 0]:
            held = records[:, bit].astype(np.int64)
            binary = features.domain.sizes[features.domain.column_of_bit[bit]] <= 2
            values[:, f] *= 1 - 2 * held if binary else held
    return values


@pytest.mark.parametrize("relation", RELATIONS)
def test_whatever_is_chosen_costs_the_planned_ratio_at_most(relation: Neighbours) -> None:
    """By enumeration: all sets of features that an adversary may choose, all pairs of records."""
    features = Expansion.of(random_conjunctions(SMALL, 30, 2)).features
    records, ratio = legal_records(SMALL), 0.37
    values = values_on(features, records).astype(float)
    chosen = [set_ for size in (1, 2, 3) for set_ in combinations(range(len(features)), size)]
    chosen += [tuple(range(size)) for size in range(4, len(features) + 1)]
    for places in chosen:
        strategy = alike(features.part(np.array(places)), relation)
        scale = scale_for(strategy.sensitivity, ratio)
        own = values[:, places]
        moves = own if relation is Neighbours.ADD_REMOVE else own[:, None] - own[None]
        furthest = np.sqrt((moves**2).sum(axis=-1).max())
        assert furthest / scale <= ratio
        # The noise is no larger than what is proven of the features asks for.
        assert strategy.sensitivity / scale == pytest.approx(ratio, rel=1e-12)


def test_the_room_refuses_a_second_stage_that_costs_more_than_was_planned() -> None:
    features = Expansion.of(random_conjunctions(SMALL, 30, 2)).features
    work, ratio = random_conjunctions(SMALL, 5, 2), 0.5
    for places in (np.arange(2), np.arange(len(features))):
        strategy = alike(features.part(places), Neighbours.REPLACE_ONE)
        scale = scale_for(strategy.sensitivity, ratio)
        room = Curator(
            packed(legal_records(SMALL)), work, (GaussianNoise(ratio, 1.0),), SeededRandomness(0)
        )
        with pytest.raises(RuntimeError, match="would cost more"):
            room.measure(FeatureSums(strategy), Gaussian(scale * (1 - 1e-12)))
        room.measure(FeatureSums(strategy), Gaussian(scale))
        with pytest.raises(RuntimeError, match="spent"):
            room.measure(FeatureSums(strategy), Gaussian(scale))


def test_an_empty_stage_charges_too() -> None:
    features = Features(np.empty((0, 1), np.int32), SMALL)
    work = random_conjunctions(SMALL, 5, 2)
    room = Curator(
        packed(legal_records(SMALL)), work, (GaussianNoise(0.5, 1.0),), SeededRandomness(0)
    )
    nothing = FeatureSums(Strategy(features, np.ones(0), Neighbours.REPLACE_ONE))
    assert room.measure(nothing, Gaussian(1.0)).size == 0
    with pytest.raises(RuntimeError, match="spent"):
        room.measure(nothing, Gaussian(1.0))


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_schedule_is_fixed_beforehand_and_spent_whatever_the_rows_are(
    relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Choosers that take nothing but one feature, or all: the same two events pay for both."""
    work = random_conjunctions(Domain.binary(8), 60, 3)
    asked = Task(work, 500)
    plan = Staged(records=5).plan(asked, Budget(1.0, 1e-6, neighbours=relation))
    assert len(plan.schedule) == 2
    first, second = plan.schedule
    total = sum((event.sensitivity / event.scale) ** 2 for event in (first, second))
    others = len(plan.details.expansion.features)
    assert (first.sensitivity / first.scale) ** 2 == pytest.approx(
        total / (1 + (others / 8) ** 0.5)
    )
    choosers = (
        lambda features, expected, _: np.array([int(expected.argmin())]),
        lambda features, expected, _: np.arange(len(features)),
    )
    for number, chooser in enumerate(choosers):
        monkeypatch.setattr(staged, "standing_out", chooser)
        room = Curator(
            packed(np.full((500, 8), number)), work, plan.schedule, SeededRandomness(number),
            neighbours=relation, public_rows=500,
        )  # fmt: skip
        outcome = Staged(records=5).run(asked, plan, room, Session(public_seed=1))
        assert room._ledger.spent == 2
        assert ((outcome.answers >= 0) & (outcome.answers <= 1)).all()


def test_features_that_are_worth_their_noise_are_chosen() -> None:
    """Of m features each has the noise root m: three may differ by 2 or more, and 2 > root 3."""
    expected = np.array([0.1, 5.0, 2.0, 1.9, 2.0, 0.0])
    assert worth_measuring(expected, 1.0).tolist() == [1, 2, 4]
    assert worth_measuring(expected, 0.9).tolist() == [1, 2, 3, 4]
    assert worth_measuring(expected, 100.0).tolist() == [1]


def test_products_are_measured_where_they_may_depart_by_twice_their_noise() -> None:
    """Two columns, three pairs: columns that may differ by as much as a pair come before it."""
    bits = np.array([[0, -1], [1, -1], [0, 1], [0, 2], [1, 2]], np.int32)
    features = Features(bits, Domain.binary(3))
    expected = np.array([1.5, 0.1, 3.0, 6.0, 2.0])
    assert standing_out(features, expected, 0.8).tolist() == [0, 2, 3]
    assert standing_out(features, expected, 1.0).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("left", "factors", "what"),
    [
        (0.7, 3, SecondLook.EVERYTHING),
        (1.0, 3, SecondLook.STANDING_OUT),
        (0.1, 2, SecondLook.STANDING_OUT),
    ],
)
def test_everything_is_measured_of_nearly_empty_columns_where_triples_gain_by_it(
    left: float, factors: int, what: SecondLook
) -> None:
    """``left``: what a fit leaves, a tenth of the mean noise, over what independent columns do."""
    known = SimpleNamespace(
        planned=SimpleNamespace(ratio=0.5), n=1000, columns_full=False, departures=np.full(9, 1e-3)
    )
    noise = 10.0 * left * 1e-3
    full = SimpleNamespace(
        sensitivity=2.0,
        mean_deviation=noise / (2.0 / 0.5 / 1000),
        strategy=SimpleNamespace(features=SimpleNamespace(bits=np.zeros((1, factors)))),
    )
    assert second_look(known, full) is what  # type: ignore[arg-type]
    assert second_look(known, None) is SecondLook.STANDING_OUT  # type: ignore[arg-type]


def test_shares_are_shrunk_where_noise_hides_them_and_believed_where_it_does_not() -> None:
    generator = np.random.default_rng(1)
    truth = np.concatenate((np.zeros(4_000), np.full(200, 0.05), [0.4, 0.9]))
    noisy = truth + 0.01 * generator.standard_normal(len(truth))
    shares, uncertain = posterior(noisy, np.full(len(noisy), 0.01))
    off = np.abs(shares - truth)
    # Noise alone is off by 0.008 in the mean.
    assert off[:4_000].mean() < 0.0005
    assert off[4_000:4_200].mean() < 0.008
    # A share that lies apart is as uncertain as its noise.
    np.testing.assert_allclose(shares[-2:], noisy[-2:], atol=0.004)
    np.testing.assert_allclose(uncertain[-2:], 0.01, rtol=0.25)
    assert np.median(uncertain[:4_000]) < 0.002


@pytest.mark.parametrize("exponent", [0.9, 1.1])
def test_shares_in_a_long_tail_are_as_far_off_as_they_are_said_to_be(exponent: float) -> None:
    """Where others are few the prior knows their places no better than their noise."""
    generator = np.random.default_rng(4)
    truth = np.minimum(0.8, 2.0 / np.arange(1, 501) ** exponent)
    off = []
    for _ in range(20):
        noisy = truth + 0.05 * generator.standard_normal(500)
        shares, uncertain = posterior(noisy, np.full(500, 0.05))
        told = shares > 0.1
        off.append(((shares - truth) / uncertain)[told])
        assert np.sqrt(np.mean((shares - truth) ** 2)) < 0.05
    # Were others where the search for the prior puts them, it would be 1.7 times as far.
    assert np.sqrt(np.mean(np.concatenate(off) ** 2)) < 1.5


def test_departures_are_bahadurs_where_all_pairs_are_known_and_nothing_without() -> None:
    """Exact means of pairs give the means of triples up to their own departure, measured or not."""
    domain = Domain.binary(4)
    bits = [row for size in (1, 2, 3) for row in combinations(range(4), size)]
    rows = np.array([(*row, -1, -1)[:3] for row in bits], np.int32)
    features = Features(rows, domain)
    generator = np.random.default_rng(2)
    records = legal_records(domain)
    truth = generator.dirichlet(np.ones(len(records))) @ values_on(features, records)
    means = truth[:4]
    known = np.zeros(4)
    departures = Departures(features, means, known, np.full(len(rows), 1e6))
    nothing = departures.products(np.arange(0), np.empty(0), 1e-9)
    np.testing.assert_allclose(nothing, [means[list(row)].prod() for row in bits])
    every = np.arange(4, len(rows))
    np.testing.assert_allclose(departures.products(every, truth[every], 1e-9), truth, atol=1e-9)
    pairs = np.arange(4, 10)
    found = departures.products(pairs, truth[pairs], 1e-9)
    a, b, c = means[:3]
    ab, ac, bc = (truth[bits.index(pair)] for pair in ((0, 1), (0, 2), (1, 2)))
    expected = a * b * c + (ab - a * b) * c + (ac - a * c) * b + (bc - b * c) * a
    assert found[bits.index((0, 1, 2))] == pytest.approx(expected)
    # Noise as large as what is expected halves a departure.
    halved = Departures(features, means, known, np.full(len(rows), 0.1)).products(
        np.array([4]), truth[[4]], 0.1
    )
    assert halved[4] == pytest.approx((truth[4] + a * b) / 2)


@pytest.mark.parametrize("signed", [True, False])
def test_intervals_cover_through_the_choice(signed: bool, monkeypatch) -> None:
    """Each query's own share of runs, by a binomial test, corrected for their number.

    Intervals rest on what was measured, not on the fit: one of a few steps will do.
    """
    brief = Fitting(components=1, steps=3, pull=1.0, tried=False)
    monkeypatch.setattr(Fitting, "suited", staticmethod(lambda *_, **__: brief))
    generator = np.random.default_rng(4)
    records = (generator.random((2_000, 12)) < np.linspace(0.0, 0.5, 12)).astype(np.uint8)
    records[:, 11] |= records[:, 10]
    work = random_conjunctions(Domain.binary(12), 150 if signed else 60, 2, signed=signed)
    asked, rows = Task(work, 2_000), packed(records)
    truth = work.counts(rows, threads=1) / 2_000
    mechanism = Staged(records=1)
    plan = mechanism.plan(asked, Budget(0.5, 1e-4))
    covered = np.zeros(len(work))
    runs = 400
    for seed in range(runs):
        room = Curator(rows, work, plan.schedule, SeededRandomness(seed))
        found = mechanism.run(asked, plan, room, Session(public_seed=0)).intervals
        covered += (found.lower <= truth) & (truth <= found.upper)
    assert binom.cdf(covered.min(), runs, 0.95) > 0.001 / len(work)
    assert (covered / runs).mean() >= 0.945  # those near 0 and 1 do not make up for others


def test_nearly_empty_columns_are_answered_better_than_by_independent_noise_or_zero() -> None:
    """Two thousand columns, of which twenty hold something, two of them always together."""
    generator = np.random.default_rng(5)
    records = np.zeros((3_000, 1_000), np.uint8)
    records[:, :20] = generator.random((3_000, 20)) < 0.3
    records[:, 1] = records[:, 0]
    work = random_conjunctions(Domain.binary(1_000), 2_000, 2, seed=3)
    asked, rows = Task(work, 3_000), packed(records)
    truth = work.counts(rows, threads=1) / 3_000
    plan = Staged(records=50).plan(asked, Budget(2.0, 1e-3))
    room = Curator(rows, work, plan.schedule, SeededRandomness(1))
    outcome = Staged(records=50).run(asked, plan, room, Session(public_seed=1))
    zero = work.on_record(np.zeros(1_000, np.uint8))
    assert np.abs(outcome.answers - truth).mean() < 0.5 * np.abs(zero - truth).mean()
    assert np.abs(outcome.answers - truth).max() < 0.5 * np.abs(zero - truth).max()
    again = Staged(records=50).run(
        asked, plan, Curator(rows, work, plan.schedule, SeededRandomness(1)),
        Session(threads=3, public_seed=1),
    )  # fmt: skip
    np.testing.assert_array_equal(outcome.answers, again.answers)
    np.testing.assert_array_equal(outcome.records, again.records)


def test_departures_of_answers_are_those_of_pairs_where_the_others_hold() -> None:
    work = Workload(np.array([[0, 2, 5], [0, 2, -1], [1, 3, -1]], np.int32), Domain.binary(3))
    found = departures_of(work, np.array([0.2, 0.5, 0.1]))
    a, b, c = (0.2 * 0.8) ** 0.5, 0.5, (0.1 * 0.9) ** 0.5
    pairs = (a * b * 0.9) ** 2 + (a * c * 0.5) ** 2 + (b * c * 0.2) ** 2
    assert found[0] == pytest.approx(0.1 * (pairs + (0.5 * a * b * c) ** 2) ** 0.5)
    np.testing.assert_allclose(found[1:], 0.1 * a * b)


def test_a_share_measured_twice_is_believed_as_both_looks_together_tell() -> None:
    """A first look that says nothing does not draw what the second found towards the others."""
    generator = np.random.default_rng(1)
    truth = np.append(np.full(190, 0.01), np.full(10, 0.25))
    noise = generator.standard_normal((2, 200))
    first = Shares(np.arange(200, dtype=np.int32), truth + 0.3 * noise[0], np.full(200, 0.3))
    again = np.arange(100, 200, dtype=np.int32)
    later = Shares(again, (truth + 0.03 * noise[1])[again], np.full(100, 0.03))
    shares, uncertain = first.combined(later).posterior()
    off = np.abs(shares - truth)[again]
    # Weighed with what the first look alone makes of the ten, .1 is left.
    assert off[-10:].mean() < 0.03
    assert off[:-10].mean() < 0.01
    assert (uncertain[-10:] < 0.03).all()


@pytest.mark.parametrize(
    ("filled", "epsilon", "columns", "products"),
    [(0.5, 2.0, 30, 300), (0.5, 0.1, 30, 3), (0.5, 0.05, 30, 0), (0.002, 2.0, 17, 0)],
)
def test_products_of_full_columns_are_all_measured_or_hardly_any(
    filled: float, epsilon: float, columns: int, products: int
) -> None:
    """The noisy shares decide, and how much noise everything would have; the schedule is fixed."""
    generator = np.random.default_rng(8)
    records = generator.random((4_000, 30)) < filled
    records[:, 1] |= records[:, 0]
    work = random_conjunctions(Domain.binary(30), 300, 2, signed=False)
    asked = Task(work, 4_000)
    plan = Staged(records=20).plan(asked, Budget(epsilon, 1e-3))
    assert len(plan.details.expansion.features) == 330
    room = Curator(packed(records), work, plan.schedule, SeededRandomness(1))
    outcome = Staged(records=20).run(asked, plan, room, Session(public_seed=1))
    assert (outcome.trace[1]["columns"], outcome.trace[1]["products"]) == (columns, products)
    assert room._ledger.spent == 2
    truth = work.counts(packed(records), threads=1) / 4_000
    assert np.abs(outcome.answers - truth).mean() < 0.02 / min(epsilon, 1.0)
    assert outcome.records is not None
    assert outcome.records.shape == (20, 30)


def test_a_thousand_full_columns_are_told_from_empty_ones_by_a_glance() -> None:
    """Of full ones everything is measured, of empty ones what stands out: on the same schedule."""
    generator = np.random.default_rng(5)
    work = random_conjunctions(Domain.binary(1_100), 1_500, 3)
    asked = Task(work, 4_000)
    plan = Staged(records=20).plan(asked, Budget(20.0, 1e-6))
    assert len(plan.schedule) == 3
    hidden = generator.normal(size=(4_000, 4)) @ generator.normal(size=(4, 1_100))
    found = {}
    for kind, centre in (("full", 0.0), ("empty", 7.0)):
        records = hidden + generator.normal(size=(4_000, 1_100)) > centre
        room = Curator(packed(records), work, plan.schedule, SeededRandomness(1))
        outcome = Staged(records=20).run(asked, plan, room, Session(public_seed=1))
        assert room._ledger.spent == 3
        found[kind] = outcome.trace[1]["products"]
        truth = work.counts(packed(records), threads=1) / 4_000
        assert np.abs(outcome.answers - truth).mean() < 0.01
    assert found["full"] == len(plan.details.expansion.features) - len(plan.details.looked)
    assert found["empty"] < 100


def test_what_both_looks_say_of_a_share_is_weighed_by_their_noise() -> None:
    work = random_conjunctions(Domain.binary(4), 6, 2, signed=False)
    full = everything(work, Expansion.of(work), Neighbours.REPLACE_ONE)
    assert full is not None
    number = len(full.scales)
    drawn = Drawn(full, np.zeros(number), np.full(number, 0.2))
    first = Shares(np.arange(4, dtype=np.int32), np.full(4, 0.25), np.full(4, 0.05))
    known = with_shares(drawn.known, first)
    alone = singles_of(full.strategy.features)
    # Signs of 0.5 with noise 0.1, and of 0 with noise 0.2.
    np.testing.assert_allclose(known.means[alone], 0.4)
    np.testing.assert_allclose(known.deviations[alone], 0.2 / 5**0.5)
    np.testing.assert_allclose(np.delete(known.means, alone), 0.0)

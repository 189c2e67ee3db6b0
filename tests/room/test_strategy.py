"""Strategies of features: their sensitivity by enumeration, loads, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive.expansion import Expansion
from dualquery.mechanisms.adaptive.measurement import plan_strategy, with_limit
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.randomness import SeededRandomness
from dualquery.room.statistics import FeatureSums
from dualquery.room.strategy import LightCounts, LightRows, Strategy
from tests import cases

REPLACED, ADDED = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("most_tried", [20, 2])
def test_sensitivity_bounds_every_pair_of_records(
    domain: Domain, seed: int, blocks: bool, most_tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of legal records, with scales that differ from feature to feature."""
    monkeypatch.setattr("dualquery.room.sensitivity.contrasts.MOST_TRIED", most_tried)
    expansion = Expansion.of(random_conjunctions(domain, 40, 3, seed=seed))
    features = expansion.in_blocks().features if blocks else expansion.features
    records, scales = cases.all_records(domain), cases.any_scales(features, seed)
    values = cases.values_on(features, records) / scales
    gram = values @ values.T
    norms = np.diag(gram)
    replaced = (norms[:, None] + norms[None] - 2 * gram).max()
    for relation, largest in ((REPLACED, replaced), (ADDED, (values**2).sum(axis=1).max())):
        strategy = Strategy(features, scales, relation)
        assert largest <= strategy.sensitivity**2
        loads = strategy.loads
        limit = 0.8 * loads.largest_found(20)
        limited = replace(strategy, limit=limit)
        loaded = features.kinds[:, 0] > 0
        heavy = cases.values_on(features, records) ** 2 @ (loads.weights * loaded)
        kept = values.copy()
        kept[np.ix_(heavy > limit, loaded)] = 0.0
        gram = kept @ kept.T
        norms = np.diag(gram)
        apart = norms[:, None] + norms[None] - 2 * gram if relation is REPLACED else norms
        assert apart.max() <= limited.sensitivity**2 <= strategy.sensitivity**2


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_an_added_record_costs(domain: Domain, planned: bool, blocks: bool, seed: int) -> None:
    """Of planned scales and random ones, over all legal records: neither less nor more."""
    expansion = Expansion.of(cases.any_conjunctions(domain, seed, way=seed % 4 + 1))
    expansion = expansion.in_blocks() if blocks else expansion
    features = expansion.features
    strategy = with_limit(Strategy(features, cases.any_scales(features, seed), ADDED))
    if planned:
        strategy = plan_strategy(expansion, ADDED)
    moves = cases.values_on(features, cases.all_records(domain)) / strategy.scales
    assert (moves**2).sum(axis=1).max() <= strategy.sensitivity**2
    assert (moves**2).sum(axis=1).max() == pytest.approx(strategy.sensitivity**2, rel=1e-9)


def test_mixed_features_of_an_added_record_cost_half() -> None:
    """An indicator times a sign is 1 or -1 on a record: two records differ by 2, one moves by 1."""
    features = Features(np.array([[0, 3], [0, 4], [0, 5]], np.int32), cases.MIXED)
    ones = np.ones(3)
    assert Strategy(features, ones, REPLACED).sensitivity == pytest.approx(2.0)
    assert Strategy(features, ones, ADDED).sensitivity == pytest.approx(1.0)
    # The room charges for its own neighbours, whatever the strategy was planned for.
    queries = cases.any_conjunctions(cases.MIXED, 0)
    for planned in RELATIONS:
        statistic = FeatureSums(Strategy(features, ones, planned))
        assert statistic.moves(queries, REPLACED).l2 == pytest.approx(2.0)
        assert statistic.moves(queries, ADDED).l2 == pytest.approx(1.0)
    flags = Features(np.arange(12, dtype=np.int32)[:, None], cases.domain_of(*[1] * 12, max_ones=1))
    one = Neighbours.of_options({"unit": {"column": "home", "max_rows": 1}})
    found = [Strategy(flags, np.ones(12), each).sensitivity ** 2 for each in (*RELATIONS, one)]
    assert found == pytest.approx([8.0, 12.0, 12.0])  # a row has one flag, and 12 signs


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE])
def test_largest_load_is_found_and_not_above_the_bound(domain: Domain) -> None:
    features = Expansion.of(random_conjunctions(domain, 30, 3, seed=4)).features
    strategy = plan_strategy(Expansion.of(random_conjunctions(domain, 30, 3, seed=4)), REPLACED)
    held = cases.values_on(features, cases.all_records(domain)) ** 2
    truth = (held @ (strategy.loads.weights * (features.kinds[:, 0] > 0))).max()
    assert strategy.loads.largest_found(50) == pytest.approx(truth)
    assert truth <= strategy.loads.proven() * (1 + 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("blocks", [False, True])
def test_sums_leave_out_heavy_rows_only(domain: Domain, relation: Neighbours, blocks: bool) -> None:
    expansion = Expansion.of(random_conjunctions(domain, 40, 3, seed=5))
    features = expansion.in_blocks().features if blocks else expansion.features
    scales = cases.any_scales(features, 3).round(1)
    records = cases.all_records(domain)
    records = records[np.random.default_rng(3).integers(len(records), size=5000)]
    loads = Strategy(features, scales, relation).loads
    limit, loaded = 0.7 * loads.largest_found(20), features.kinds[:, 0] > 0
    values = cases.values_on(features, records)
    heavy = values**2 @ (loads.weights * loaded) > limit
    assert heavy.any() == bool(loaded.any())
    expected = values.copy()
    expected[np.ix_(heavy, loaded)] = 0
    limited = Strategy(features, scales, relation, limit)
    np.testing.assert_array_equal(limited.sums(cases.records_of(records), 2), expected.sum(axis=0))
    unlimited = Strategy(features, scales, relation)
    np.testing.assert_array_equal(unlimited.sums(cases.records_of(records), 1), values.sum(axis=0))


def test_light_rows_read_as_dense_rows_do() -> None:
    features = Expansion.of(random_conjunctions(cases.WIDE, 12, 3, seed=5)).features
    loads = Strategy(features, np.ones(len(features)), REPLACED).loads
    records = np.tile(cases.all_records(cases.WIDE), (3, 1))
    light = LightRows(cases.records_of(records), loads, 0.7 * loads.largest_found(20))
    (block,) = light.stream()
    dense = np.zeros_like(records)
    block.unpack(0, dense)
    ones = np.zeros(cases.WIDE.bits, np.int64)
    block.add_ones(ones)
    np.testing.assert_array_equal(ones, dense.sum(axis=0))
    assert 0 < (dense.sum(axis=1) == 0).sum() < len(dense)
    assert block.nbytes > 0
    literals = np.array([[0], [2]], np.int32)
    counts = LightCounts(loads, light.limit, literals, literals)(cases.records_of(records), 1)
    assert counts.tolist() == [*dense[:, :2].sum(axis=0), *records[:, :2].sum(axis=0)]


def test_the_room_charges_what_it_computes_and_scales_each_feature() -> None:
    work = random_conjunctions(cases.WIDE, 30, 3, seed=6)
    strategy = plan_strategy(Expansion.of(work), REPLACED)
    records = cases.records_of(cases.all_records(cases.WIDE))
    due = GaussianNoise(strategy.sensitivity, 50.0)
    for schedule in ((GaussianNoise(strategy.sensitivity * 0.99, 50.0),), ()):
        room = Curator(records, work.take([0]), schedule, SeededRandomness(0))
        with pytest.raises(RuntimeError):
            room.measure(FeatureSums(strategy), Gaussian(50.0))
    draws = []
    for seed in range(200):
        room = Curator(records, work.take([0]), (due,), SeededRandomness(seed))
        draws.append(room.measure(FeatureSums(strategy), Gaussian(50.0)))
    spread = (np.array(draws) - strategy.sums(records, 1)) / (50.0 * strategy.scales)
    # Mean and variance of some thousand standard normal numbers: 5 standard errors.
    assert abs(spread.mean()) < 5 / spread.size**0.5
    assert abs((spread**2).mean() - 1) < 5 * (2 / spread.size) ** 0.5


@pytest.mark.parametrize(
    ("bits", "complaint"),
    [
        ([[0, 1]], "different columns"),
        ([[3, 0]], "increasing"),
        ([[-1, -1]], "one at least"),
        ([[0, 3], [0, 3]], "twice"),
        ([[0, 10]], "of the domain"),
        ([[0, -2], [0, -1]], "of the domain"),
    ],
)
def test_features_that_would_break_the_proof_are_refused(bits, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Features(np.array(bits, np.int32), cases.WIDE)


def test_blocks_that_would_break_the_proof_are_refused() -> None:
    whole = np.array([[0, 3], [0, 4], [0, 5], [1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]])
    whole, centred = whole.astype(np.int32), np.ones(9, np.bool_)
    features = Features(whole, cases.WIDE, centred)
    with pytest.raises(ValueError, match="all values"):
        Features(whole[:8], cases.WIDE, centred[:8])
    with pytest.raises(ValueError, match="all values"):
        Features(whole, cases.WIDE, np.arange(9) > 0)
    with pytest.raises(ValueError, match="one scale"):
        Strategy(features, np.where(np.arange(9) > 0, 1.0, 1.1), REPLACED)
    with pytest.raises(ValueError, match="centred or not"):
        Features(whole, cases.WIDE, centred[:8])


def test_the_sign_of_two_bits_has_one_name() -> None:
    """Both hold on the same records, and `Loads.proven` would count one of them."""
    with pytest.raises(ValueError, match="first bit"):
        Features(np.array([[1, 3], [2, 3]], np.int32), cases.MIXED)


def test_scales_and_limit_are_checked() -> None:
    features = Expansion.of(random_conjunctions(cases.WIDE, 5, 2)).features
    # The square of 1e-200 has no reciprocal, and that of 1e200 has the reciprocal 0.
    for scale in (0.0, -1.0, np.inf, np.nan, 1e-200, 1e200):
        with pytest.raises(ValueError, match="scale"):
            Strategy(features, np.full(len(features), scale), REPLACED)
    with pytest.raises(ValueError, match="limit"):
        Strategy(features, np.ones(len(features)), REPLACED, float("nan"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_sensitivity_is_computed_in_double_precision(relation: Neighbours) -> None:
    features = Expansion.of(random_conjunctions(cases.MIXED, 40, 3)).features
    scales, limit = np.full(len(features), 1.1), np.float16(2.4)
    exact = Strategy(features, scales, relation, float(limit)).sensitivity
    assert Strategy(features, scales, relation, limit).sensitivity == exact


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_extreme_scales_cost_what_ordinary_ones_do(scale: float) -> None:
    features = Expansion.of(random_conjunctions(cases.MIXED, 40, 3)).features
    ones = np.ones(len(features))
    for relation in RELATIONS:
        ordinary = Strategy(features, ones, relation).sensitivity
        found = Strategy(features, scale * ones, relation).sensitivity
        assert found * scale == pytest.approx(ordinary, rel=1e-12)

"""Features, their sensitivity by enumeration, and the mixture that is fitted to them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.adaptive.expansion import Expansion
from dualquery.mechanisms.adaptive.measurement import QueryMeasurement, choose_measurement
from dualquery.mechanisms.adaptive.mechanism import Matrix
from dualquery.mechanisms.adaptive.mixture import MixtureFit
from dualquery.mechanisms.adaptive.product_terms import ProductTerms
from dualquery.mechanisms.adaptive.scales import FIT, plan_strategy, with_limit
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals, random_marginals
from dualquery.queries.generate.random import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.features import Features
from dualquery.room.loads import LightCounts
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.randomness import SeededRandomness
from dualquery.room.statistics import FeatureSums
from dualquery.room.strategy import Strategy
from dualquery.rows.packed import RecordsBuilder
from dualquery.runtime.errors import BadInputError

REPLACED, ADDED = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
# Binary columns of one bit and of two, and wide ones.
MIXED = Domain(np.array([0, 1, 3, 6, 7, 11]))
WIDE = Domain(np.array([0, 3, 6, 10]))
BINARY = Domain.binary(6)


def legal_records(domain: Domain) -> np.ndarray:
    """Return every legal record: uint8, shape (records, bits)."""
    choices = []
    for size in domain.sizes.tolist():
        choices.append([[0], [1]] if size == 1 else np.eye(size, dtype=int).tolist())
    return np.array([np.concatenate(row) for row in product(*choices)], np.uint8)


def values_on(features: Features, records: np.ndarray) -> np.ndarray:
    """Return each feature's value on each record, straight from the definition."""
    values = np.ones((len(records), len(features)), np.int64)
    for f, bits in enumerate(features.bits):
        for bit in bits[bits >= 0]:
            held = records[:, bit].astype(np.int64)
            size = max(int(features.domain.sizes[features.domain.column_of_bit[bit]]), 2)
            contrast = size == 2 or features.centred[f]
            values[:, f] *= 1 - size * held if contrast else held
    return values


def any_scales(features: Features, seed: int) -> np.ndarray:
    """Return scales that differ from feature to feature, but not within a block of contrasts."""
    scales = np.random.default_rng(seed).uniform(0.5, 3.0, len(features))
    blocks = features.blocks
    scales[blocks.features] = scales[blocks.features][
        np.unique(blocks.of, return_index=True)[1][blocks.of]
    ]
    return scales


def packed(records: np.ndarray):
    builder = RecordsBuilder(records.shape[1])
    builder.append_dense(records)
    return builder.build()


def any_conjunctions(domain: Domain, seed: int, m: int = 60, way: int = 3) -> Workload:
    """Return conjunctions of any bits: several on one column, impossible ones and short ones."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(m):
        bits = generator.choice(domain.bits, generator.integers(1, way + 1), replace=False)
        codes = 2 * bits + generator.integers(0, 2, len(bits))
        rows.append(np.pad(codes, (0, way - len(codes)), constant_values=-1))
    return Workload(np.array(rows, np.int32), domain, {}, repeats=True)


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
@pytest.mark.parametrize("way", [1, 2, 3, 4])
@pytest.mark.parametrize("blocks", [False, True])
def test_queries_are_the_sums_of_their_features(domain: Domain, way: int, blocks: bool) -> None:
    work = any_conjunctions(domain, seed=way, way=way)
    records = legal_records(domain)
    expansion = Expansion.of(work).in_blocks() if blocks else Expansion.of(work)
    assert expansion.features.centred.any() == (blocks and domain is not BINARY)
    truth = np.stack([work.on_record(record) for record in records])
    features = values_on(expansion.features, records)
    found = np.stack([expansion.answers(row.astype(float)) for row in features])
    np.testing.assert_allclose(found, truth, atol=1e-12)


def test_features_hold_the_products_of_their_factors() -> None:
    work = random_conjunctions(WIDE, 20, 3, signed=False)
    features = Expansion.of(work).features
    rows = {tuple(row[row >= 0]) for row in features.bits}
    for row in list(rows):
        assert {row[:i] + row[i + 1 :] for i in range(len(row)) if len(row) > 1} <= rows


def test_a_long_query_is_refused() -> None:
    work = Workload(np.arange(0, 18, 2, dtype=np.int32)[None], Domain.binary(9))
    with pytest.raises(BadInputError, match="9 literals"):
        Expansion.of(work)


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
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
    records = legal_records(domain)
    scales = any_scales(features, seed)
    values = values_on(features, records) / scales
    gram = values @ values.T
    norms = np.diag(gram)
    replaced = (norms[:, None] + norms[None] - 2 * gram).max()
    added = (values**2).sum(axis=1).max()
    for relation, largest in ((REPLACED, replaced), (ADDED, added)):
        strategy = Strategy(features, scales, relation)
        assert largest <= strategy.sensitivity**2

        loads = strategy.loads
        limit = 0.8 * loads.largest_found(20)
        limited = replace(strategy, limit=limit)
        heavy = values_on(features, records) ** 2 @ (loads.weights * (features.kinds[:, 0] > 0))
        kept = values.copy()
        kept[np.ix_(heavy > limit, features.kinds[:, 0] > 0)] = 0.0
        gram = kept @ kept.T
        norms = np.diag(gram)
        apart = norms[:, None] + norms[None] - 2 * gram if relation is REPLACED else norms
        assert apart.max() <= limited.sensitivity**2 <= strategy.sensitivity**2


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_what_an_added_record_costs_is_exact(
    domain: Domain, planned: bool, blocks: bool, seed: int
) -> None:
    """Of planned scales and random ones, over all legal records: neither less nor more."""
    expansion = Expansion.of(any_conjunctions(domain, seed, way=seed % 4 + 1))
    expansion = expansion.in_blocks() if blocks else expansion
    features = expansion.features
    scales = any_scales(features, seed)
    strategy = with_limit(Strategy(features, scales, ADDED))
    if planned:
        strategy = plan_strategy(expansion, ADDED, FIT)
    moves = values_on(features, legal_records(domain)) / strategy.scales
    assert (moves**2).sum(axis=1).max() <= strategy.sensitivity**2
    assert (moves**2).sum(axis=1).max() == pytest.approx(strategy.sensitivity**2, rel=1e-9)


def test_mixed_features_of_an_added_record_cost_half() -> None:
    """An indicator times a sign is 1 or -1 on a record: two records differ by 2, one moves by 1."""
    features = Features(np.array([[0, 3], [0, 4], [0, 5]], np.int32), MIXED)
    ones = np.ones(3)
    assert Strategy(features, ones, REPLACED).sensitivity == pytest.approx(2.0)
    assert Strategy(features, ones, ADDED).sensitivity == pytest.approx(1.0)
    # The room charges for its own neighbours, whatever the strategy was planned for.
    queries = any_conjunctions(MIXED, 0)
    for planned in RELATIONS:
        statistic = FeatureSums(Strategy(features, ones, planned))
        assert statistic.moves(queries, REPLACED).l2 == pytest.approx(2.0)
        assert statistic.moves(queries, ADDED).l2 == pytest.approx(1.0)


def test_sensitivity_of_all_parities_and_of_whole_marginals_is_exact() -> None:
    pairs = Expansion.of(random_conjunctions(BINARY, 60, 2, seed=0)).features
    assert len(pairs) == 6 + 15
    records = legal_records(BINARY)
    values = values_on(pairs, records)
    largest = ((values[:, None] - values[None]) ** 2).sum(axis=2).max()
    found = Strategy(pairs, np.ones(len(pairs)), REPLACED).sensitivity ** 2
    assert found == pytest.approx(largest, rel=1e-6)

    marginals = Expansion.of(random_marginals(WIDE, 1, 3, 100)).features
    found = Strategy(marginals, np.ones(len(marginals)), REPLACED).sensitivity ** 2
    assert found == pytest.approx(2 * (3 + 3 + 1), rel=1e-6)


@pytest.mark.parametrize("domain", [MIXED, WIDE])
@pytest.mark.parametrize("way", [1, 2, 3])
@pytest.mark.parametrize("relation", RELATIONS)
def test_whole_marginals_cost_exactly_what_is_charged(
    domain: Domain, way: int, relation: Neighbours
) -> None:
    features = Expansion.of(all_marginals(domain, way)).in_blocks().features
    assert not features.kinds[:, 0].any()
    scales = any_scales(features, way)
    values = values_on(features, legal_records(domain)) / scales
    if relation is REPLACED:
        squares = ((values[:, None] - values[None]) ** 2).sum(axis=2)
    else:
        squares = (values**2).sum(axis=1)
        assert np.ptp(squares) <= 1e-9 * squares.max()
    found = Strategy(features, scales, relation).sensitivity ** 2
    assert squares.max() <= found == pytest.approx(squares.max(), rel=1e-9)


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
@pytest.mark.parametrize("kind", ["any", "marginals"])
def test_deviations_are_those_of_the_answers(domain: Domain, kind: str) -> None:
    """Of every combination of noisy features that answers are, columns asked twice or not."""
    work = any_conjunctions(domain, 3) if kind == "any" else all_marginals(domain, 2)
    expansion = Expansion.of(work).in_blocks()
    scales = any_scales(expansion.features, 1)
    zero = expansion.answers(np.zeros(len(scales)))
    loadings = np.stack([expansion.answers(unit) - zero for unit in np.diag(scales)])
    np.testing.assert_allclose(
        expansion.variances(scales**2), (loadings**2).sum(axis=0), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_on_whole_marginals_is_the_least_that_can_be(relation: Neighbours) -> None:
    """Of unbiased answers, in the mean: the closed form of ResidualPlanner, on 4-valued columns."""
    domain = Domain(np.arange(0, 25, 4))
    work = all_marginals(domain, 2)
    asked = choose_measurement(work, relation, fitted=False)
    assert not asked.of_queries
    found = (asked.sensitivity * asked.mean_deviation) ** 2 * len(work)
    # Traces of pairs (15 of 9 contrasts), columns (6 of 3, in 5 pairs each), and of the total.
    parts = [(15, 9.0, (3 / 4) ** 2), (6, 3 * 5 / 4, 3 / 4)]
    parts += [(1, 15 / 16, 1.0)] if relation is ADDED else []
    best = sum(count * np.sqrt(trace * cost) for count, trace, cost in parts) ** 2
    twice = 2.0 if relation is REPLACED else 1.0
    # The worst pair of records differs more than pairs do in the mean.
    assert 0.95 * twice * best <= found <= 1.1**2 * twice * best


def test_records_of_few_ones_change_fewer_signs() -> None:
    few = Domain(np.arange(9), max_ones=1)
    pairs = Expansion.of(random_conjunctions(few, 112, 2, seed=0)).features
    assert len(pairs) == 8 + 28
    records = legal_records(few)
    values = values_on(pairs, records[records.sum(axis=1) <= 1])
    largest = ((values[:, None] - values[None]) ** 2).sum(axis=2).max()
    unlimited = Features(pairs.bits, Domain.binary(8))
    found, loose = (
        Strategy(features, np.ones(len(pairs)), REPLACED).sensitivity ** 2
        for features in (pairs, unlimited)
    )
    assert found == pytest.approx(largest, rel=1e-6)
    assert found < 0.8 * loose


@pytest.mark.parametrize("domain", [MIXED, WIDE])
def test_largest_load_is_found_and_not_above_the_bound(domain: Domain) -> None:
    features = Expansion.of(random_conjunctions(domain, 30, 3, seed=4)).features
    strategy = plan_strategy(
        Expansion.of(random_conjunctions(domain, 30, 3, seed=4)), REPLACED, FIT
    )
    held = values_on(features, legal_records(domain)) ** 2
    truth = (held @ (strategy.loads.weights * (features.kinds[:, 0] > 0))).max()
    assert strategy.loads.largest_found(50) == pytest.approx(truth)
    assert truth <= strategy.loads.proven() * (1 + 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
@pytest.mark.parametrize("blocks", [False, True])
def test_sums_leave_out_heavy_rows_and_nothing_else(
    domain: Domain, relation: Neighbours, blocks: bool
) -> None:
    generator = np.random.default_rng(3)
    expansion = Expansion.of(random_conjunctions(domain, 40, 3, seed=5))
    features = expansion.in_blocks().features if blocks else expansion.features
    scales = any_scales(features, 3).round(1)
    records = legal_records(domain)
    records = records[generator.integers(len(records), size=5000)]
    loads = Strategy(features, scales, relation).loads
    limit = 0.7 * loads.largest_found(20)
    loaded = features.kinds[:, 0] > 0
    values = values_on(features, records)
    heavy = values**2 @ (loads.weights * loaded) > limit
    assert heavy.any() == bool(loaded.any())
    expected = values.copy()
    expected[np.ix_(heavy, loaded)] = 0
    limited = Strategy(features, scales, relation, limit)
    np.testing.assert_array_equal(limited.sums(packed(records), 2), expected.sum(axis=0))
    unlimited = Strategy(features, scales, relation)
    np.testing.assert_array_equal(unlimited.sums(packed(records), 1), values.sum(axis=0))


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
@pytest.mark.parametrize("public", [80, 100, 150])
def test_answers_are_off_by_the_error_of_the_public_number_of_rows_at_most(
    domain: Domain, public: int
) -> None:
    work = any_conjunctions(domain, seed=8)
    records = legal_records(domain)
    records = records[np.random.default_rng(4).integers(len(records), size=100)]
    shares = np.mean([work.on_record(record) for record in records], axis=0)
    expansion = Expansion.of(work)
    ones = np.ones(len(expansion.features))
    sums = Strategy(expansion.features, ones, ADDED).sums(packed(records), 1)
    off = np.abs(expansion.answers(sums / public) - shares)
    assert off.max() <= abs(public - 100) / public + 1e-12


def test_light_rows_read_as_dense_rows_do() -> None:
    from dualquery.room.loads import LightRows

    features = Expansion.of(random_conjunctions(WIDE, 12, 3, seed=5)).features
    loads = Strategy(features, np.ones(len(features)), REPLACED).loads
    records = np.tile(legal_records(WIDE), (3, 1))
    light = LightRows(packed(records), loads, 0.7 * loads.largest_found(20))
    (block,) = light.stream()
    dense = np.zeros_like(records)
    block.unpack(0, dense)
    ones = np.zeros(WIDE.bits, np.int64)
    block.add_ones(ones)
    np.testing.assert_array_equal(ones, dense.sum(axis=0))
    assert 0 < (dense.sum(axis=1) == 0).sum() < len(dense)
    assert block.nbytes > 0
    literals = np.array([[0], [2]], np.int32)
    counts = LightCounts(loads, light.limit, literals, literals)(packed(records), 1)
    assert counts.tolist() == [*dense[:, :2].sum(axis=0), *records[:, :2].sum(axis=0)]


@pytest.mark.parametrize("relation", [REPLACED, ADDED])
def test_a_list_of_pairs_alone_needs_no_single_column_and_measures_it_a_little(
    relation: Neighbours,
) -> None:
    pairs = Workload(np.array([[0, 6], [0, 8], [2, 12]], np.int32), WIDE)
    expansion = Expansion.of(pairs)
    singles = (expansion.features.bits >= 0).sum(axis=1) == 1
    assert singles.any()
    assert not np.isin(np.flatnonzero(singles), expansion.feature).any()
    scales = plan_strategy(expansion, relation, FIT).scales
    assert np.isfinite(scales).all()
    assert scales[singles].min() > scales[~singles].max()
    plan = Matrix().plan(Task(pairs, 1_000), Budget(1.0, 1e-6, neighbours=relation))
    assert plan.details.deviation > 0


def test_the_room_charges_what_it_computes_and_scales_each_feature() -> None:
    work = random_conjunctions(WIDE, 30, 3, seed=6)
    strategy = plan_strategy(Expansion.of(work), REPLACED, FIT)
    records = packed(legal_records(WIDE))
    due = GaussianNoise(strategy.sensitivity, 50.0)
    cheap = GaussianNoise(strategy.sensitivity * 0.99, 50.0)
    for schedule in ((cheap,), ()):
        room = Curator(records, work.take([0]), schedule, SeededRandomness(0))
        with pytest.raises(RuntimeError):
            room.measure(FeatureSums(strategy), Gaussian(50.0))
    draws = []
    for seed in range(200):
        room = Curator(records, work.take([0]), (due,), SeededRandomness(seed))
        draws.append(room.measure(FeatureSums(strategy), Gaussian(50.0)))
    exact = strategy.sums(records, 1)
    spread = (np.array(draws) - exact) / (50.0 * strategy.scales)
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
        Features(np.array(bits, np.int32), WIDE)


def test_blocks_that_would_break_the_proof_are_refused() -> None:
    whole = np.array([[0, 3], [0, 4], [0, 5], [1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]])
    whole = whole.astype(np.int32)
    centred = np.ones(9, np.bool_)
    features = Features(whole, WIDE, centred)
    with pytest.raises(ValueError, match="all values"):
        Features(whole[:8], WIDE, centred[:8])
    with pytest.raises(ValueError, match="all values"):
        Features(whole, WIDE, np.arange(9) > 0)
    with pytest.raises(ValueError, match="one scale"):
        Strategy(features, np.where(np.arange(9) > 0, 1.0, 1.1), REPLACED)
    with pytest.raises(ValueError, match="centred or not"):
        Features(whole, WIDE, centred[:8])


def test_the_sign_of_two_bits_has_one_name() -> None:
    """Both hold on the same records, and `Loads.proven` would count one of them."""
    with pytest.raises(ValueError, match="first bit"):
        Features(np.array([[1, 3], [2, 3]], np.int32), MIXED)


def test_scales_and_limit_are_checked() -> None:
    features = Expansion.of(random_conjunctions(WIDE, 5, 2)).features
    # The square of 1e-200 has no reciprocal, and that of 1e200 has the reciprocal 0.
    for scale in (0.0, -1.0, np.inf, np.nan, 1e-200, 1e200):
        with pytest.raises(ValueError, match="scale"):
            Strategy(features, np.full(len(features), scale), REPLACED)
    with pytest.raises(ValueError, match="limit"):
        Strategy(features, np.ones(len(features)), REPLACED, float("nan"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_sensitivity_is_computed_in_double_precision(relation: Neighbours) -> None:
    features = Expansion.of(random_conjunctions(MIXED, 40, 3)).features
    scales = np.full(len(features), 1.1)
    limit = np.float16(2.4)
    exact = Strategy(features, scales, relation, float(limit)).sensitivity
    assert Strategy(features, scales, relation, limit).sensitivity == exact


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_extreme_scales_cost_what_ordinary_ones_do(scale: float) -> None:
    features = Expansion.of(random_conjunctions(MIXED, 40, 3)).features
    ones = np.ones(len(features))
    for relation in RELATIONS:
        ordinary = Strategy(features, ones, relation).sensitivity
        found = Strategy(features, scale * ones, relation).sensitivity
        assert found * scale == pytest.approx(ordinary, rel=1e-12)


@pytest.mark.parametrize("domain", [MIXED, WIDE, BINARY])
def test_mixture_recovers_what_it_is_fitted_to(domain: Domain) -> None:
    """Means of one product distribution are met to a hundredth; samples are legal and agree."""
    features = Expansion.of(random_conjunctions(domain, 60, 3, seed=7)).features
    generator = np.random.default_rng(1)
    records = legal_records(domain)
    weights = generator.dirichlet(np.full(len(records), 0.3))
    truth = weights @ values_on(features, records)
    fit = MixtureFit(
        ProductTerms.of_features(features),
        truth,
        np.full(len(truth), 0.01),
        components=32,
        steps=800,
        pull=0.01,
    )
    mixture = fit.run(np.random.default_rng(2), threads=2)
    assert np.abs(mixture.means(ProductTerms.of_features(features)) - truth).max() < 0.02
    sample = mixture.model().sample(20_000, generator)
    assert {tuple(row) for row in sample} <= {tuple(row) for row in records}
    # Standard errors are below 0.008; 5 of them.
    assert np.abs(values_on(features, sample).mean(axis=0) - truth).max() < 0.02 + 0.04


@pytest.mark.parametrize(("noise", "taken"), [(0.05, 80), (0.0005, 160)])
def test_a_fit_ends_where_noise_explains_what_is_left(
    noise: float, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers that no mixture has take all steps, unless their noise is large."""
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._LEG", 40)
    monkeypatch.setattr("dualquery.mechanisms.adaptive.mixture._FEWEST", 80)
    features = Expansion.of(random_conjunctions(Domain.binary(16), 1_000, 3)).features
    products = ProductTerms.of_features(features)
    targets = 0.03 * np.random.default_rng(1).standard_normal(len(features))
    fit = MixtureFit(products, targets, np.full(len(targets), noise), 16, 160, 0.01)
    told: list[tuple[int, int]] = []
    mixture = fit.run(np.random.default_rng(2), 1, lambda *step: told.append(step))
    distance = np.mean(((mixture.means(products) - targets) / noise) ** 2)
    assert (distance < 1.0) == (taken == 80)
    ends = [] if taken == 160 else [(160, 160)]
    assert told == [(step, 160) for step in range(1, taken + 1)] + ends


def test_whole_marginals_are_measured_by_contrasts() -> None:
    """They have less noise than the cells themselves have, and no limit."""
    work = all_marginals(WIDE, 2)
    plan = Matrix().plan(Task(work, 1000), Budget(1.0, 1e-6))
    kinds = [(kind["indicators"], kind["contrasts"]) for kind in plan.parameters["kinds"]]
    assert kinds == [(0, 1), (0, 2)]
    assert plan.parameters["largest_load"] is None
    measured = plan.details.full
    cells = QueryMeasurement(work, REPLACED).sensitivity
    assert measured.sensitivity * measured.mean_deviation < 0.95 * cells


def test_features_are_measured_where_their_noise_is_hardly_larger() -> None:
    """Conjunctions drawn at random do not add up to the shares of single bits."""
    work = random_conjunctions(Domain.binary(60), 1_000, 3)
    strategy = plan_strategy(Expansion.of(work), REPLACED, FIT)
    # Its scales make the answers' mean variance 1.
    ratio = strategy.sensitivity / QueryMeasurement(work, REPLACED).sensitivity
    assert 1.0 < ratio < 1.3
    assert not choose_measurement(work, REPLACED, fitted=True).of_queries
    assert choose_measurement(work, REPLACED, fitted=False).of_queries


@pytest.mark.parametrize("tied", [False, True])
def test_a_trial_says_how_far_to_trust_the_fit(tied: bool) -> None:
    """Hardly where columns are independent; mostly where six kinds of rows differ in all of them.

    Records follow the answers either way.
    """
    generator = np.random.default_rng(3)
    domain, n = Domain(np.arange(0, 61, 6)), 20_000
    kind = generator.integers(6, size=n) if tied else np.zeros(n, np.int64)
    drawn = np.where(
        generator.random((n, 10)) < 0.8, kind[:, None], generator.integers(6, size=(n, 10))
    )
    records = np.zeros((n, 60), np.uint8)
    records[np.arange(n)[:, None], domain.offsets[:-1] + (drawn + np.arange(10)) % 6] = 1
    mechanism, work = Matrix(), random_conjunctions(domain, 2_000, 3)
    plan = mechanism.plan(Task(work, n), Budget(1.0, 1e-6))
    curator = Curator(packed(records), work, plan.schedule, SeededRandomness(2))
    outcome = mechanism.run(Task(work, n), plan, curator, Session(public_seed=1))
    (line,) = outcome.trace
    assert line["trust"] > 0.7 if tied else line["trust"] < 0.3
    of_records = work.counts(packed(outcome.records), threads=1) / len(outcome.records)
    assert np.abs(of_records - outcome.answers).mean() < 0.002
    truth = work.counts(packed(records), threads=1) / n
    assert np.abs(outcome.answers - truth).mean() < 0.002


@pytest.mark.parametrize("pull", [None, 0.25])
def test_a_given_pull_takes_no_trial(pull: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[tuple[float, int]] = []
    run = MixtureFit.run

    def noted(fit: MixtureFit, *rest: object) -> object:
        fitted.append((fit.pull, fit.steps))
        return run(fit, *rest)

    monkeypatch.setattr(MixtureFit, "run", noted)
    mechanism = Matrix(pull=pull, steps=700, components=4)
    work = random_conjunctions(Domain.binary(8), 100, 3)
    asked = Task(work, 3_000)
    plan = mechanism.plan(asked, Budget(1.0, 1e-6))
    records = np.random.default_rng(1).random((3_000, 8)) < np.linspace(0.1, 0.9, 8)
    curator = Curator(packed(records.astype(np.uint8)), work, plan.schedule, SeededRandomness(2))
    outcome = mechanism.run(asked, plan, curator, Session(public_seed=1))
    if pull is not None:
        assert fitted == [(pull, 700)]
        assert outcome.trace == ()
    else:
        # To all, to the half that is shown, and, if not trusted, for the records.
        again = outcome.trace[0]["trust"] < 0.5
        assert fitted == (2 + again) * [(plan.parameters["pull"], 700)]


def test_queries_are_not_counted_where_features_are_measured() -> None:
    for fitted, components in ((True, None), (False, 0)):
        mechanism = Matrix(components=components)
        work = random_conjunctions(Domain.binary(60), 1_000, 3)
        plan = mechanism.plan(Task(work, 100), Budget(1.0, 1e-6))
        assert plan.needs_answers is not fitted


def test_the_pull_falls_with_the_signal() -> None:
    work = random_conjunctions(MIXED, 50, 3)
    pulls = [
        Matrix().plan(Task(work, n), Budget(1.0, 1e-6)).parameters["pull"]
        for n in (2, 1_000, 1_000_000)
    ]
    assert pulls[0] == 1.0 > pulls[1] > pulls[2] > 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"components": -1},
        {"steps": 0},
        {"records": 0},
        {"pull": 2.0},
        {"pull": True},
        {"pull": "x"},
    ],
)
def test_faulty_options_are_refused(options) -> None:
    with pytest.raises(BadInputError, match=next(iter(options))):
        Matrix(**options)


def test_beats_independent_noise_on_a_workload_of_many_queries() -> None:
    """Thirty thousand queries about ten columns: the answers get less than half the noise."""
    from dualquery.mechanisms.baselines.noisy_answers import Gaussian

    domain = Domain(np.arange(0, 61, 6))
    work = random_conjunctions(domain, 30_000, 3)
    budget = Budget(1.0, 1e-6)
    matrix = Matrix().plan(Task(work, 10_000), budget)
    gaussian = Gaussian().plan(Task(work, 10_000), budget)
    expansion = Expansion.of(work)
    strategy = plan_strategy(expansion, REPLACED, FIT)
    variances = expansion.variances((strategy.scales * matrix.parameters["scale"]) ** 2)
    assert np.sqrt(variances.mean()) < 0.4 * gaussian.parameters["scale"]

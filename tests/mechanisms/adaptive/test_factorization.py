"""Queries as sums of features, and the mixture that is fitted to them."""

import numpy as np
import pytest

from dualquery.data.domain import Domain, rows_of_values
from dualquery.mechanisms.adaptive import measurement
from dualquery.mechanisms.adaptive.expansion import Expansion, ProductTerms
from dualquery.mechanisms.adaptive.mechanism import Matrix
from dualquery.mechanisms.adaptive.mixture_fit import Fitting, MixtureFit
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.neighbours import RELATIONS, Neighbours
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate import workloads
from dualquery.queries.generate.workloads import all_marginals, random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.room.strategy import Strategy
from dualquery.runtime.errors import BadInputError
from tests import cases

REPLACED, ADDED = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("way", [1, 2, 3, 4])
@pytest.mark.parametrize("blocks", [False, True])
def test_queries_are_the_sums_of_their_features(domain: Domain, way: int, blocks: bool) -> None:
    work, records = cases.any_conjunctions(domain, seed=way, way=way), cases.all_records(domain)
    expansion = Expansion.of(work).in_blocks() if blocks else Expansion.of(work)
    assert expansion.features.centred.any() == (blocks and domain is not cases.BINARY)
    truth = np.stack([work.on_record(record) for record in records])
    features = cases.values_on(expansion.features, records)
    found = np.stack([expansion.answers(row.astype(float)) for row in features])
    np.testing.assert_allclose(found, truth, atol=1e-12)


def test_a_long_query_is_refused() -> None:
    with pytest.raises(BadInputError, match="9 literals"):
        Expansion.of(Workload(np.arange(0, 18, 2, dtype=np.int32)[None], Domain.binary(9)))


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("kind", ["any", "marginals"])
def test_deviations_are_those_of_the_answers(domain: Domain, kind: str) -> None:
    """Of every combination of noisy features that answers are, columns asked twice or not."""
    work = cases.any_conjunctions(domain, 3) if kind == "any" else all_marginals(domain, 2)
    expansion = Expansion.of(work).in_blocks()
    scales = cases.any_scales(expansion.features, 1)
    zero = expansion.answers(np.zeros(len(scales)))
    loadings = np.stack([expansion.answers(unit) - zero for unit in np.diag(scales)])
    np.testing.assert_allclose(
        expansion.variances(scales**2), (loadings**2).sum(axis=0), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_on_whole_marginals_is_the_least_that_can_be(relation: Neighbours) -> None:
    """Of unbiased answers, in the mean: the closed form of ResidualPlanner, on 4-valued columns."""
    work = all_marginals(Domain(np.arange(0, 25, 4)), 2)
    asked = measurement.choose_measurement(work, relation, fitted=False)
    assert not asked.of_queries
    found = (asked.sensitivity * asked.mean_deviation) ** 2 * len(work)
    # Traces of pairs (15 of 9 contrasts), columns (6 of 3, in 5 pairs each), and of the total.
    parts = [(15, 9.0, (3 / 4) ** 2), (6, 3 * 5 / 4, 3 / 4)]
    parts += [(1, 15 / 16, 1.0)] if relation is ADDED else []
    best = sum(count * np.sqrt(trace * cost) for count, trace, cost in parts) ** 2
    twice = 2.0 if relation is REPLACED else 1.0
    # The worst pair of records differs more than pairs do in the mean.
    assert 0.95 * twice * best <= found <= 1.1**2 * twice * best


def test_precision_goes_where_less_is_known_and_half_of_it_stays() -> None:
    full = measurement.choose_measurement(all_marginals(cases.WIDE, 2), REPLACED, fitted=True)
    alone = (full.products.bits >= 0).sum(axis=1) == 1
    unknown = np.where(alone, 1.0, 1e-12)
    noise, less, same = (
        found.sensitivity * found.scales
        for found in (full, full.refined(unknown, 1e6), full.refined(np.ones(len(alone)), 1e6))
    )
    assert (less < 0.9 * noise)[alone].all()
    assert (less <= 1.1 * np.sqrt(2.0) * noise).all()
    np.testing.assert_allclose(same, noise, rtol=0.2)
    nothing = full.refined(np.zeros(len(alone)), 1e6)
    assert (nothing.sensitivity * nothing.scales <= 1.6 * noise).all()


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
@pytest.mark.parametrize("public", [80, 100, 150])
def test_answers_are_off_by_the_public_number_of_rows_at_most(domain: Domain, public: int) -> None:
    work = cases.any_conjunctions(domain, seed=8)
    records = cases.all_records(domain)
    records = records[np.random.default_rng(4).integers(len(records), size=100)]
    shares = np.mean([work.on_record(record) for record in records], axis=0)
    expansion = Expansion.of(work)
    ones = np.ones(len(expansion.features))
    sums = Strategy(expansion.features, ones, ADDED).sums(cases.records_of(records), 1)
    off = np.abs(expansion.answers(sums / public) - shares)
    assert off.max() <= abs(public - 100) / public + 1e-12


@pytest.mark.parametrize("domain", [cases.MIXED, cases.WIDE, cases.BINARY])
def test_mixture_recovers_what_it_is_fitted_to(domain: Domain) -> None:
    """Means of one product distribution are met to a hundredth; samples are legal and agree."""
    features = Expansion.of(random_conjunctions(domain, 60, 3, seed=7)).features
    generator, records = np.random.default_rng(1), cases.all_records(domain)
    truth = generator.dirichlet(np.full(len(records), 0.3)) @ cases.values_on(features, records)
    products, how = ProductTerms.of_features(features), Fitting(32, steps=800, pull=0.01)
    fit = MixtureFit(products, truth, np.full(len(truth), 0.01), how)
    mixture = fit.run(np.random.default_rng(2), Session(threads=2))
    assert np.abs(mixture.means(products) - truth).max() < 0.02
    empty = ProductTerms(domain, np.full((1, 3), -1), np.zeros((1, 3), np.bool_), literals=False)
    assert mixture.means(empty) == 1.0
    sample = mixture.model().sample(20_000, generator)
    assert {tuple(row) for row in sample} <= {tuple(row) for row in records}
    # Standard errors are below 0.008; 5 of them.
    assert np.abs(cases.values_on(features, sample).mean(axis=0) - truth).max() < 0.02 + 0.04


def test_features_are_measured_where_their_noise_is_hardly_larger() -> None:
    """Conjunctions drawn at random do not add up to the shares of single bits."""
    work = random_conjunctions(Domain.binary(60), 1_000, 3)
    strategy = measurement.plan_strategy(Expansion.of(work), REPLACED)
    # Its scales make the answers' mean variance 1.
    ratio = strategy.sensitivity / measurement.QueryMeasurement(work, REPLACED).sensitivity
    assert 1.0 < ratio < 1.3
    for fitted, mechanism in ((True, Matrix()), (False, Matrix(components=0))):
        measured = measurement.choose_measurement(work, REPLACED, fitted=fitted)
        assert measured.of_queries is not fitted
        plan = mechanism.plan(Task(work, 100), Budget(1.0, 1e-6))
        assert plan.needs_answers is not fitted  # queries are counted only where they are measured


def test_cells_that_outnumber_their_features_are_measured_if_that_has_less_noise() -> None:
    work = workloads.random_marginals(Domain.binary(60), 64, 3, 1_000, seed=1)
    noise = measurement.plan_strategy(Expansion.of(work), REPLACED).sensitivity
    assert 1.0 < noise / measurement.QueryMeasurement(work, REPLACED).sensitivity < 1.3
    assert measurement.choose_measurement(work, REPLACED, fitted=True).of_queries


@pytest.mark.parametrize("tied", [False, True])
def test_a_trial_says_how_far_to_trust_the_fit(tied: bool) -> None:
    """Hardly where columns are independent; mostly where six kinds of rows differ in all."""
    rng = np.random.default_rng(3)
    domain, n = Domain(np.arange(0, 61, 6)), 20_000
    kind = rng.integers(6, size=n) if tied else np.zeros(n, np.int64)
    drawn = np.where(rng.random((n, 10)) < 0.8, kind[:, None], rng.integers(6, size=(n, 10)))
    records = rows_of_values((drawn + np.arange(10)) % 6, domain)
    mechanism, work = Matrix(), random_conjunctions(domain, 2_000, 3)
    plan = mechanism.plan(Task(work, n), Budget(1.0, 1e-6))
    curator = Curator(cases.records_of(records), work, plan.schedule, SeededRandomness(2))
    outcome = mechanism.run(Task(work, n), plan, curator, Session(public_seed=1))
    (line,) = outcome.trace
    assert line["trust"] > 0.7 if tied else line["trust"] < 0.3
    of_records = work.counts(cases.records_of(outcome.records), threads=1) / len(outcome.records)
    assert np.abs(of_records - outcome.answers).mean() < 0.002
    truth = work.counts(cases.records_of(records), threads=1) / n
    assert np.abs(outcome.answers - truth).mean() < 0.002

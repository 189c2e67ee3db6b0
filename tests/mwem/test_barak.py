"""The Fourier mechanism: its noise, its fits, and what it refuses."""

import math

import numpy as np
import pytest
from scipy import stats

from dualquery.data.schema.items import ItemSchema
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.queries.derived_queries import answers_of, asked_sets, odd_counts
from dualquery.queries.generate.workloads import all_marginals, random_conjunctions
from dualquery.releases.make.making import run
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness
from dualquery.room.sensitivity.moves import parities_apart
from dualquery.room.statistics import OddCounts
from dualquery.runtime.errors import BadInputError
from mwem import Barak
from mwem.barak import Cells
from tests.cases import domain_of, records_of, refused
from tests.tables import SCHEMA, dataset, random_records

BITS = domain_of(*[1] * 6)
MARGINALS = all_marginals(BITS, 2)


def skewed(rows: int, seed: int = 0) -> np.ndarray:
    """Return records of six bits, each a noisy copy of the one before."""
    rng = np.random.default_rng(seed)
    columns = [rng.random(rows) < 0.3]
    for _ in range(5):
        columns.append(columns[-1] ^ (rng.random(rows) < 0.1))
    return np.stack(columns, axis=1).astype(np.uint8)


def exact(workload, rows) -> tuple[np.ndarray, np.ndarray]:
    """Return exact coefficients and answers."""
    records, sets = records_of(rows), asked_sets(workload).workload
    odd = odd_counts(sets, sets.counts(records, threads=1))
    return 1 - 2 * odd / len(rows), workload.counts(records, threads=1) / len(rows)


def test_an_update_is_the_multiplicative_weights_rule() -> None:
    sets = asked_sets(MARGINALS).workload
    targets = np.random.default_rng(1).uniform(-1, 1, len(sets))
    rows = ((np.arange(64)[:, None] >> np.arange(5, -1, -1)) & 1).astype(np.uint8)
    signs = 1.0 - 2.0 * np.array([rows[:, s[s >= 0] >> 1].sum(axis=1) % 2 for s in sets.literals])
    expected = np.full(64, 1 / 64)
    for sign, target in [*zip(signs, targets, strict=True)] * 2:
        expected = expected * np.exp(sign * (target - sign @ expected) / 2)
        expected /= expected.sum()
    np.testing.assert_allclose(Cells(sets).multiply_weights(targets, 2), expected, rtol=1e-9)


@pytest.mark.parametrize("fit", ["weights", "program"])
def test_exact_coefficients_are_fitted(fit) -> None:
    coefficients, answers = exact(MARGINALS, skewed(500))
    cells = Cells(asked_sets(MARGINALS).workload)
    if fit == "weights":
        shares = cells.multiply_weights(coefficients, 400)
    else:
        shares = cells.nearest(coefficients)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(cells.coefficients(shares), coefficients, atol=1e-3)
    found = answers_of(MARGINALS, asked_sets(MARGINALS), cells.coefficients(shares))
    np.testing.assert_allclose(found, answers, atol=1e-3)


def test_the_program_is_nearest_in_the_largest_difference() -> None:
    cells = Cells(asked_sets(MARGINALS).workload)
    rng = np.random.default_rng(3)
    coefficients, _ = exact(MARGINALS, skewed(300))
    noisy = np.clip(coefficients + rng.normal(0, 0.3, len(coefficients)), -1, 1)
    best = np.abs(cells.coefficients(cells.nearest(noisy)) - noisy).max()
    assert best > 1e-3  # no table has the noisy coefficients
    others = [cells.multiply_weights(noisy, 30), cells.nearest(coefficients)]
    for shares in (*others, *rng.dirichlet(np.full(64, 0.3), 50)):
        assert np.abs(cells.coefficients(shares) - noisy).max() >= best - 1e-9


@pytest.mark.parametrize(("delta", "law"), [(0.0, stats.laplace), (1e-6, stats.norm)])
def test_coefficients_get_the_planned_noise(delta, law) -> None:
    """Kolmogorov-Smirnov at a fixed seed (false alarm 1e-4)."""
    domain = domain_of(*[1] * 16)
    workload = all_marginals(domain, 3)
    rows = random_records(domain, 50_000, np.random.default_rng(1))
    mechanism = Barak(fit="none")
    plan = mechanism.plan(Task(workload, 50_000), Budget(1.0, delta))
    scale, sets = plan.parameters["scale"], mechanism.statistics(workload)
    room = Curator(records_of(rows), sets, plan.schedule, SeededRandomness(2))
    planned = Gaussian(scale) if delta else Laplace(scale)
    noise = room.measure(OddCounts(), planned) - (1 - exact(workload, rows)[0]) * 25_000
    assert stats.kstest(noise, law(scale=scale).cdf).pvalue > 1e-4
    assert stats.kstest(noise, law(scale=2 * scale).cdf).pvalue < 1e-4
    refused(room.measure, OddCounts(), planned, why="the budget is spent")


def test_the_schedule_is_the_proven_sensitivity() -> None:
    work = Task(MARGINALS, 100)
    apart = parities_apart(Barak().statistics(MARGINALS))
    (event,) = Barak().plan(work, Budget(1.0, 0.0)).schedule
    assert 1.0 - 1e-9 < event.epsilon <= 1.0
    plan = Barak().plan(work, Budget(1.0, 1e-6))
    (event,) = plan.schedule
    assert event.sensitivity == math.sqrt(apart)
    assert plan.parameters["moving_parities"] == apart == 3 + 9  # three bits differ


@pytest.mark.parametrize("fit", ["weights", "program", "none"])
def test_a_large_budget_gives_the_truth(fit) -> None:
    rows = skewed(4000)
    data = dataset(ItemSchema.numbered(6, "bits"), rows)
    work, mechanism = Task(MARGINALS, 4000), Barak(fit=fit, repetitions=100)
    outcome = run(data, work, mechanism, mechanism.plan(work, Budget(50.0, 0.0)), 1, 1)
    _, answers = exact(MARGINALS, rows)
    assert np.abs(outcome.answers - answers).max() < 0.01
    if fit == "none":
        assert outcome.records is None
    else:
        assert np.abs(MARGINALS.answers_on(outcome.records) - answers).max() < 0.06


def test_auto_fits_where_it_can() -> None:
    small = Task(random_conjunctions(SCHEMA.domain, 40, 2), 100)
    large = Task(random_conjunctions(domain_of(*[1] * 30), 40, 2), 100)
    budget = Budget(1.0, 0.0)
    assert Barak().plan(small, budget).parameters["fit"] == "weights"
    assert Barak().plan(large, budget).parameters["fit"] == "none"
    with pytest.raises(BadInputError, match="records only where it fits"):
        Barak(records=5).plan(large, budget)
    for fit in ("weights", "program"):
        with pytest.raises(BadInputError, match=f"fit={fit} .*1.07374e\\+09 cells"):
            Barak(fit=fit).plan(large, budget)

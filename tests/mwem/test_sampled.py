"""MWEM on a sampled distribution: kernels, the sampler, its charges, and what a fit gains."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dualquery.data.domain import Domain, column_values
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.formulas import rho_of
from dualquery.privacy.events import GaussianNoise, SampledQueries
from dualquery.queries.conjunctions import Workload
from dualquery.queries.counting import CountingPass
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.room.curator import Curator
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.sensitivity.moves import Moves, differing_queries
from dualquery.room.statistics import SomeQueries
from dualquery.runtime.errors import BadInputError
from mwem.layout import Layout, WithSingleBits
from mwem.sampled.family import FLOOR, SampledFamily, target_shares
from mwem.sampled.sampled_mechanism import MwemSampled
from mwem.spending import Shares, split_rho
from tests.cases import all_records, domain_of, random_case, records_of, refused
from tests.mwem.test_barak import skewed
from tests.mwem.test_mechanism import run
from tests.noise import NoNoise
from tests.tables import legal, random_records


def family_of(
    workload: Workload, records: int, seed: int = 0, threads: int = 1, tables: int | None = None
) -> SampledFamily:
    """Return a family with tables over the first queries' bits and random factors."""
    generator, layout = np.random.default_rng(seed), Layout.of(workload)
    base = layout.base(generator.random(len(layout.bits)), 0.5)
    family = SampledFamily.independent(layout, base, workload.way, records, generator, threads)
    for query in range(len(workload) if tables is None else tables):
        family.add(bits_of(workload)[query])
    family.factors = generator.normal(size=family.factors.shape)
    return family


def bits_of(workload: Workload) -> np.ndarray:
    return np.where(workload.literals >= 0, workload.literals >> 1, np.int32(-1))


def cells_by_hand(rows: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Return the cell of each row's table, shape (rows, tables)."""
    values = np.where(bits >= 0, rows[:, bits], 0)
    return (values.astype(np.int64) << np.arange(bits.shape[1])).sum(axis=2)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_population_answers_and_cells_are_those_of_its_rows(seed) -> None:
    workload = random_case(seed)
    family = family_of(workload, 150, seed)
    rows = family.layout.to_rows(family.population, np.random.default_rng(0))
    assert legal(workload.domain, rows)
    by_hand = np.stack([workload.on_record(row) for row in rows]).mean(axis=0)
    found = family._answers_of(family.population, CountingPass(workload.literals))
    np.testing.assert_allclose(found, by_hand)
    cells = cells_by_hand(rows, bits_of(workload))
    tally = np.stack([np.bincount(column, minlength=1 << workload.way) for column in cells.T])
    np.testing.assert_array_equal(family.count(), tally)
    np.testing.assert_array_equal(family.sweep(), family.count())


def test_columns_of_too_many_values_are_refused() -> None:
    with pytest.raises(BadInputError, match="70,000 values"):
        Layout.of(Workload(np.array([[0, 4]], np.int32), Domain(np.array([0, 1, 70_001]))))


def exact_shares(family: SampledFamily, domain: Domain) -> np.ndarray:
    """Return the family's probability of every legal record, in the order of `all_records`."""
    rows = all_records(domain)
    values = column_values(rows, domain)[:, family.layout.columns]
    log = np.log(family.base[family.layout.starts[:-1] + values]).sum(axis=1)
    cells = cells_by_hand(rows, family.tables.bits)
    log += family.factors[np.arange(len(family.tables)), cells].sum(axis=1)
    shares = np.exp(log - log.max())
    return shares / shares.sum()


@pytest.mark.parametrize("seed", range(4))
def test_sweeps_leave_and_reach_the_exact_family(seed) -> None:
    """Chi-square of 40,000 records after 30 sweeps: fails with a chance of 1e-4 a seed."""
    domain = domain_of(1, 3, 2, 1)
    literals = [[0, 2, 13], [2, 4, 8], [5, 7, 10], [1, 8, 11], [3, 12, -1]]
    family = family_of(Workload(np.array(literals, np.int32), domain), 40_000, seed)
    for _ in range(30):
        family.sweep()
    expected = exact_shares(family, domain) * 40_000
    values = column_values(family.layout.to_rows(family.population, family.generator), domain)
    cells = np.ravel_multi_index(tuple(values.T), (2, 3, 2, 2))
    found = np.bincount(cells, minlength=len(expected))
    assert ((found - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, len(expected) - 1)


def test_sweeps_do_not_depend_on_threads() -> None:
    workload = random_conjunctions(domain_of(1, 4, 1, 3, 1, 1), 20, 3, True, 0)
    one, other = (family_of(workload, 9000, threads=threads) for threads in (1, 3))
    for _ in range(3):
        np.testing.assert_array_equal(one.sweep(), other.sweep())
    np.testing.assert_array_equal(one.population, other.population)


def test_targets_are_the_nearest_distribution_with_a_floor() -> None:
    possible = np.array([True, True, True, False])
    shares = target_shares(np.array([95.0, -7.0, 30.0, 8.0]), possible, 100, 6.0)
    # -7 is raised to the floor of 1.5; 126.5 rows are 26.5 too many: 13.25 off each of two.
    np.testing.assert_allclose(shares, np.array([81.75, FLOOR * 6, 16.75, 0]) / 100)
    # Noise that is larger than the data leaves at least half of each equal share.
    shares = target_shares(np.array([900.0, -700.0, 0.0, 0.0]), possible, 100, 600.0)
    np.testing.assert_allclose(shares, np.array([200 / 3, 50 / 3, 50 / 3, 0]) / 100)


def test_a_part_is_measured_at_its_own_sensitivity_and_charged_before_the_draw() -> None:
    workload = random_conjunctions(domain_of(1, 3, 1, 4, 1), 40, 2, True, 0)
    statistics = MwemSampled().statistics(workload)
    part = np.arange(len(workload), len(statistics))
    count = differing_queries(WithSingleBits.of(workload).single).count
    assert count == 7  # three binary columns, and two bits of each of two one-hot columns
    rows = random_records(workload.domain, 50, np.random.default_rng(0))

    def room(sensitivity: float) -> Curator:
        return Curator(records_of(rows), statistics, (GaussianNoise(sensitivity, 3.0),), NoNoise(0))

    refused(room(np.sqrt(6.9)).measure, SomeQueries(part), Gaussian(3.0))
    refused(room(np.sqrt(7)).measure, SomeQueries(part), Gaussian(2.9))
    found = room(np.sqrt(7)).measure(SomeQueries(part), Gaussian(3.0))
    np.testing.assert_array_equal(found, rows[:, Layout.of(workload).bits].sum(axis=0))


def test_spending_adds_up_to_the_budget() -> None:
    start, table = Moves.of_entries(28, 1), Moves.of_entries(2, 1)
    spending = split_rho(Shares(33, select=0.4, start=0.07, growth=0.5), 0.05, table, start)
    schedule = spending.schedule()
    assert len(schedule) == 1 + 2 * 33
    assert rho_of(schedule) == pytest.approx(0.05)
    assert rho_of(schedule[:1]) == pytest.approx(0.05 * 0.07)
    draws = tuple(event for event in schedule if isinstance(event, SampledQueries))
    assert rho_of(draws) == pytest.approx(0.05 * 0.93 * 0.4)
    first, last = rho_of(schedule[1:3]), rho_of(schedule[-2:])
    assert last / first == pytest.approx(33**0.5)


def test_queries_of_too_many_literals_are_refused() -> None:
    workload = Workload(2 * np.arange(9, dtype=np.int32)[None], Domain.binary(9))
    with pytest.raises(BadInputError, match="has 9 literals"):
        MwemSampled().plan(Task(workload, 100), Budget(1.0, 1e-3))
    few = Workload(workload.literals[:, :2], Domain.binary(9))
    with pytest.raises(BadInputError, match="rounds is 2"):
        MwemSampled(rounds=2).plan(Task(few, 100), Budget(1.0, 1e-3))


def test_a_run_is_far_better_than_independent_columns() -> None:
    """Correlated bits at a budget where noise is small: the start's largest error is above 0.1."""
    data = skewed(20_000, seed=7)
    workload = random_conjunctions(Domain.binary(6), 120, 3, True, 0)
    _, outcome = run(MwemSampled(rounds=12, population=5000), Budget(2.0, 1e-3), 1, workload, data)
    truth = workload.answers_on(data)
    assert outcome.trace[0]["residual"] < 0.1
    assert np.abs(outcome.answers - truth).max() < 0.03
    assert np.abs(workload.answers_on(outcome.records) - truth).max() < 0.05
    assert outcome.remarks == ()
    _, lost = run(MwemSampled(rounds=12, population=50), Budget(2.0, 1e-3), 1, workload, data)
    assert [remark for remark in lost.remarks if "take a larger one" in remark]
    few = skewed(50, seed=7)  # what is measured is noise, which no population can meet
    _, noisy = run(MwemSampled(rounds=4), Budget(0.01, 1e-3), 1, workload, few)
    assert noisy.remarks == ()
    assert noisy.solver["last_residual"] > 0.2

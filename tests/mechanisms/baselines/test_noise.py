"""Noise on answers: as much as the proven sensitivity asks for, of the right distribution."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dualquery.data.domain import Domain
from dualquery.data.schema.columns import Categorical
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.baselines.independent import Independent
from dualquery.mechanisms.baselines.noisy_answers import GaussianAnswers, LaplaceAnswers
from dualquery.mechanisms.protocol import Budget, Session, Task
from dualquery.privacy.calibrate import calibrate_gaussian_scale, rho_for
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.workloads import all_marginals, random_conjunctions
from dualquery.releases.make.making import run
from dualquery.room.curator import Curator
from dualquery.room.randomness import SeededRandomness
from dualquery.room.sensitivity.moves import differing_queries
from dualquery.runtime.errors import BadInputError
from tests.tables import SCHEMA, dataset, random_records

ALARM = 1e-4
BUDGET = Budget(epsilon=1.0, delta=1e-6)
PURE = Budget(epsilon=0.5, delta=0.0)


def test_gaussian_scale_is_the_proven_sensitivity_by_the_accountant() -> None:
    work = Task(all_marginals(SCHEMA.domain, 2), 300)
    plan = GaussianAnswers().plan(work, BUDGET)
    (event,) = plan.schedule
    assert plan.accountant == "exact"
    assert event.sensitivity == math.sqrt(differing_queries(work.workload).count)
    assert event.scale == calibrate_gaussian_scale(1.0, 1e-6, event.sensitivity)
    (zcdp,) = GaussianAnswers().plan(work, replace(BUDGET, accountant="zcdp")).schedule
    by_rho = event.sensitivity / math.sqrt(2 * rho_for(1.0, 1e-6))
    assert zcdp.scale == pytest.approx(by_rho, rel=1e-5)
    assert event.scale < 0.95 * zcdp.scale


def test_sensitivity_is_far_below_sqrt_m_where_a_proof_allows() -> None:
    """All cells of a partition: a record is in one cell of each marginal, so two of them move."""
    workload = all_marginals(Domain(np.array([0, 20, 40, 60])), 2)
    assert len(workload) == 3 * 400
    (event,) = GaussianAnswers().plan(Task(workload, 300), BUDGET).schedule
    assert event.sensitivity == math.sqrt(6)
    (event,) = LaplaceAnswers().plan(Task(workload, 300), PURE).schedule
    assert event.epsilon == pytest.approx(0.5)
    assert LaplaceAnswers().plan(Task(workload, 300), PURE).parameters["scale"] == pytest.approx(12)


def test_independent_measures_at_two_bits_a_column() -> None:
    (event,) = Independent().plan(Task(all_marginals(SCHEMA.domain, 2), 300), BUDGET).schedule
    assert event.sensitivity == math.sqrt(np.minimum(SCHEMA.domain.sizes, 2).sum())


def test_queries_that_nobody_can_change_are_answered() -> None:
    """A column of two values is never "neither of the two", so the bound is 0."""
    constant = Workload(np.array([[1, 3]], np.int32), Domain(np.array([0, 2])))
    schema = TableSchema((Categorical("either", (("a",), ("b",))),), declared=True)
    records = dataset(schema, random_records(schema.domain, 50, np.random.default_rng(0))).records
    for mechanism, budget in ((GaussianAnswers(), BUDGET), (LaplaceAnswers(), PURE)):
        plan = mechanism.plan(Task(constant, 50), budget)
        assert plan.parameters["differing_queries"] == 0
        room = Curator(records, constant, plan.schedule, SeededRandomness(0))
        assert mechanism.run(Task(constant, 50), plan, room, Session()).answers.shape == (1,)


@pytest.mark.parametrize(
    ("mechanism", "budget", "law"),
    [(GaussianAnswers(), BUDGET, stats.norm), (LaplaceAnswers(), PURE, stats.laplace)],
)
def test_answers_are_off_by_noise_of_the_planned_scale(mechanism, budget, law) -> None:
    """Kolmogorov-Smirnov at a fixed seed (false alarm 1e-4), on counts away from the clip."""
    rng, domain = np.random.default_rng(1), Domain.binary(20)
    workload = random_conjunctions(domain, 600, 2, seed=1)
    data = dataset(ItemSchema.numbered(20, "bits"), random_records(domain, 200_000, rng))
    work = Task(workload, 200_000)
    plan = mechanism.plan(work, budget)
    answers = run(data, work, mechanism, plan, 3, 1).answers
    noise = answers * work.n - workload.counts(data.records, threads=1)
    assert stats.kstest(noise, law(scale=plan.parameters["scale"]).cdf).pvalue > ALARM
    # A scale off by half is found out: the test can fail.
    assert stats.kstest(noise, law(scale=1.5 * plan.parameters["scale"]).cdf).pvalue < ALARM


def test_answers_are_clipped() -> None:
    tiny = Budget(epsilon=0.01, delta=0.0)
    work = Task(random_conjunctions(SCHEMA.domain, 60, 2), 30)
    data = dataset(SCHEMA, random_records(SCHEMA.domain, 30, np.random.default_rng(0)))
    answers = run(data, work, LaplaceAnswers(), LaplaceAnswers().plan(work, tiny), 0, 1).answers
    assert {0.0, 1.0} <= {*answers.tolist()}
    assert answers.min() == 0
    assert answers.max() == 1


def test_gaussian_at_delta_0_is_told_what_to_do() -> None:
    with pytest.raises(BadInputError, match="--delta above 0; with delta 0 use laplace"):
        GaussianAnswers().plan(Task(random_conjunctions(SCHEMA.domain, 10, 2), 30), PURE)


def test_a_hopeless_budget_is_bad_input() -> None:
    work = Task(random_conjunctions(SCHEMA.domain, 10, 2), 30)
    data = dataset(SCHEMA, random_records(SCHEMA.domain, 30, np.random.default_rng(0)))
    plan = LaplaceAnswers().plan(work, Budget(1e-300, 0.0))
    with pytest.raises(BadInputError, match="larger --epsilon"):
        run(data, work, LaplaceAnswers(), plan, None, 1)

"""What error to expect: a formula for noise, a measured range for the game, nothing elsewhere."""

import numpy as np
import pytest

import dualquery
from dualquery.api import expected_error
from dualquery.estimates.expected import noise_error
from dualquery.mechanisms.protocol import Budget, Mechanism, Task
from dualquery.mechanisms.registry import configure, mechanism_class
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.releases.make.making import run
from tests.tables import SCHEMA, dataset, random_records

WORKLOAD = random_conjunctions(SCHEMA.domain, 200, 2)


@pytest.mark.parametrize("noise", ["gaussian", "discrete laplace"])
def test_the_formula_of_noise(noise) -> None:
    """400 draws of the largest of 5,000: its mean is known to 1%, and the formula is that good."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(400, 5000)) if noise == "gaussian" else rng.laplace(size=(400, 5000))
    found = noise_error(noise, 1e-3, 5000, 1.0)
    assert found.max_error.about == pytest.approx(1e-3 * np.abs(draws).max(axis=1).mean(), rel=0.03)
    mean = 1e-3 * np.abs(draws).mean()
    assert found.mean_error.about < mean < found.mean_error.high < 1.15 * mean


@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [("gaussian", 1e-6), ("laplace", 1e-6), ("dualquery", 1e-6), ("dualquery", 0.0)],
)
def test_a_release_is_within_the_range(mechanism, delta) -> None:
    """Mean of three fixed seeds on a small table, for which no constant was chosen."""
    n = 5000
    records = dataset(SCHEMA, random_records(SCHEMA.domain, n, np.random.default_rng(0)))
    budget = Budget(1.0, delta, "zcdp" if mechanism == "dualquery" and delta else "auto")
    asked = {"mechanism": mechanism, "delta": delta, "accountant": budget.accountant}
    expected = expected_error(WORKLOAD, n, **asked)
    configured, task = configure(mechanism, {}), Task(WORKLOAD, n)
    plan, truth = configured.plan(task, budget), WORKLOAD.counts(records.records, threads=1) / n
    off = [np.abs(run(records, task, configured, plan, s, 1).answers - truth) for s in range(3)]
    assert np.mean([each.max() for each in off]) <= expected.max_error.high
    assert np.mean([each.mean() for each in off]) <= expected.mean_error.high
    if mechanism != "dualquery":
        assert np.mean([each.max() for each in off]) >= expected.max_error.low


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "dualquery"])
def test_more_budget_or_rows_means_less_error(mechanism) -> None:
    def about(**changes) -> float:
        arguments = {"n": 30_000, "epsilon": 0.5, "delta": 1e-6, **changes}
        arguments["accountant"] = "zcdp" if mechanism == "dualquery" else "auto"
        found = expected_error(WORKLOAD, mechanism=mechanism, **arguments)
        for each in (found.max_error, found.mean_error):
            assert 0 < each.low <= each.about <= each.high <= 1
        return found.max_error.about

    assert about() > about(epsilon=1.0) > about(epsilon=1.0, n=100_000)
    assert about(weight=dualquery.Weight("w", 4.0), n=120_000) == pytest.approx(about(), rel=0.1)


def test_a_mechanism_without_a_model_says_nothing() -> None:
    for mechanism in (
        "independent", "uniform", "zero", "smalldb", "randomized-response", "mwem", "mwem-sampled",
        "barak",
    ):  # fmt: skip
        assert mechanism_class(mechanism).expected_error is Mechanism.expected_error, mechanism
    assert dualquery.expected_error(WORKLOAD, 1000, mechanism="uniform") is None
    with pytest.raises(dualquery.BadInputError, match="queries is 100"):
        dualquery.expected_error(100, 1000)  # type: ignore[arg-type]
    for own in ({"memory": 1}, {"mixture": "equal"}, {"rounds": 9}):  # measured without these
        asked = {"mechanism": "dualquery", "options": own}
        assert dualquery.expected_error(WORKLOAD, 1000, **asked) is None


def test_a_fit_is_expected_to_leave_less_than_the_noise() -> None:
    asked = {"mechanism": "matrix", "delta": 1e-3, "epsilon": 1.0}
    fitted = dualquery.expected_error(WORKLOAD, 2_000, **asked)
    noise = dualquery.expected_error(WORKLOAD, 2_000, options={"components": 0}, **asked)
    assert fitted.mean_error.about < noise.mean_error.about
    assert fitted.max_error.low <= fitted.max_error.about <= fitted.max_error.high

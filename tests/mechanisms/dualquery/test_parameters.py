"""Rounds, samples and step: the user's, Theorem 4.2's or the policy's; never from the data."""

import inspect
import math

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery import parameters
from dualquery.mechanisms.dualquery.game import DualQuery
from dualquery.mechanisms.dualquery.parameters import (
    FEWEST_ROUNDS,
    MOST_ROUNDS,
    choose_parameters,
    log_records,
    theory_parameters,
)
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.choice import best
from dualquery.queries.generate.workloads import random_conjunctions
from dualquery.runtime.errors import BadInputError
from tests.tables import task

BUDGET = Budget(epsilon=1.0, delta=1e-6)
ALL = {"rounds": 20, "samples": 10, "eta": 0.4}
QUICK = ["zcdp", "advanced", "paper"]


def chosen(budget: Budget = BUDGET, n: int = 3000, **options):
    return choose_parameters(DualQuery(**options), task(n=n), budget)


@pytest.mark.parametrize("accountant", ["auto", *QUICK])
@pytest.mark.parametrize(
    "given",
    [{}, *({k: ALL[k]} for k in ALL), *({k: ALL[k] for k in ALL if k != out} for out in ALL)],
)
def test_what_is_given_is_kept_and_the_rest_spends_the_budget(given, accountant) -> None:
    if accountant in ("paper", "advanced") and len(given) > 0:
        given = {k: v if k != "eta" else 0.05 for k, v in given.items()}
    budget = Budget(1.0, 1e-6, accountant)
    found = chosen(budget, **given)
    schedule = found.schedule
    values = {"rounds": schedule.rounds, "samples": schedule.samples, "eta": schedule.step}
    assert {k: values[k] for k in given} == given
    assert schedule.n == 3000
    name, cost = best(schedule, budget.delta, accountant)
    assert cost <= 1.0
    assert found.accountant == name.name
    if "eta" not in given:  # the step is continuous, so it spends all
        assert cost > 0.999
    assert found.reason == ("the practical policy" if len(given) < 2 else "the user and the budget")


def test_one_more_sample_or_round_would_not_fit() -> None:
    for given in ({"rounds": 20, "eta": 0.4}, {"samples": 10, "eta": 0.4}):
        schedule = chosen(Budget(1.0, 1e-6, "zcdp"), **given).schedule
        more = {"rounds": schedule.rounds, "samples": schedule.samples, "eta": schedule.step}
        more["samples" if "rounds" in given else "rounds"] += 1
        with pytest.raises(BadInputError, match="above the budget"):
            chosen(Budget(1.0, 1e-6, "zcdp"), **more)


def test_all_three_that_fit_are_taken_as_they_are() -> None:
    found = chosen(rounds=5, samples=3, eta=0.1)
    assert (found.schedule.rounds, found.schedule.samples, found.schedule.step) == (5, 3, 0.1)
    assert found.reason == "the user"


def test_over_budget_is_told_with_the_cost_and_the_way_out() -> None:
    with pytest.raises(BadInputError) as error:
        chosen(rounds=100, samples=1000, eta=1.0)
    message = str(error.value)
    for part in ("rounds 100", "samples 1000", "eta 1", "the user", "cost epsilon", "leave one"):
        assert part in message


def test_theorem_4_2() -> None:
    """T = 16 ln|Q| / a^2, s = 48 ln(2 |X| T / b) / a^2, eta = a / 4, with complements in Q."""
    work = task(queries=50, n=1000)
    rounds, samples, eta = theory_parameters(0.3, 0.1, work)
    assert rounds == math.ceil(16 * math.log(100) / 0.09)
    universe = float(np.prod(np.maximum(work.workload.domain.sizes, 2)))
    assert samples == math.ceil(48 * math.log(2 * universe * rounds / 0.1) / 0.09)
    assert eta == pytest.approx(0.075)
    assert math.exp(log_records(work)) == pytest.approx(universe)


def test_alpha_is_played_when_there_are_rows_enough() -> None:
    work = task(queries=50, n=10**9)
    found = choose_parameters(DualQuery(alpha=0.5, beta=0.1), work, BUDGET)
    assert found.reason == "Theorem 4.2"
    expected = theory_parameters(0.5, 0.1, work)
    assert (found.schedule.rounds, found.schedule.samples, found.schedule.step) == expected


def test_alpha_beyond_the_budget_is_told() -> None:
    with pytest.raises(BadInputError, match=r"\(from Theorem 4.2\) cost epsilon"):
        chosen(alpha=0.1)


def test_nothing_here_can_see_data() -> None:
    """The functions take options, public facts and the budget; `Task` has no field for rows."""
    for name, function in inspect.getmembers(parameters, inspect.isfunction):
        if function.__module__ == parameters.__name__:
            assert {*inspect.signature(function).parameters} <= {
                "options", "task", "budget", "alpha", "beta", "n", "rounds", "samples", "eta",
                "reason", "schedule", "who", "weights", "mean",
            }, name  # fmt: skip
    facts = {"queries", "n", "copies", "rules", "frequent", "scores"}
    assert {*Task.__dataclass_fields__} == facts | {"_known"}


@pytest.mark.parametrize("n", [2, 50, 10**4, 10**7])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_policy_copes_with_all_sizes(n, epsilon) -> None:
    found = choose_parameters(DualQuery(), task(n=n), Budget(epsilon, min(1e-5, 1 / n**2), "zcdp"))
    assert FEWEST_ROUNDS <= found.schedule.rounds <= MOST_ROUNDS
    assert found.schedule.samples >= 1


def test_more_budget_means_more_draws() -> None:
    small, large = (chosen(Budget(e, 1e-6, "zcdp"), n=30_000).schedule for e in (0.3, 3.0))
    assert small.rounds * small.samples < large.rounds * large.samples


def test_a_tiny_step_is_bounded_in_rounds() -> None:
    """It used to ask for millions of rounds, and a minute of accounting, to no avail."""
    assert chosen(Budget(1.0, 1e-6, "zcdp"), n=30_000, eta=1e-5).schedule.rounds == MOST_ROUNDS


@pytest.mark.parametrize("queries", [1, 2])
def test_a_workload_of_one_query_is_a_workload(queries) -> None:
    work = Task(random_conjunctions(Domain.binary(3), queries, 1), 100)
    assert choose_parameters(DualQuery(), work, BUDGET).schedule.rounds >= FEWEST_ROUNDS


def test_effort_divides_the_step_and_multiplies_the_work() -> None:
    work = Task(random_conjunctions(Domain.binary(40), 5_000, 3), 20_000)
    budget = Budget(1.0, 1e-6, "zcdp")
    found = {
        effort: choose_parameters(DualQuery(effort=effort), work, budget)
        for effort in (0.25, 1.0, 4.0)
    }

    def looked_at(effort: float) -> int:
        game = found[effort].schedule
        return game.samples * (game.rounds - 1) * found[effort].remembered_rounds

    assert 0.15 < looked_at(0.25) / looked_at(1.0) < 0.4
    assert 2.5 < looked_at(4.0) / looked_at(1.0) < 6
    # All of them spend the budget, and none more.
    for each in found.values():
        _, cost = best(each.schedule, budget.delta, each.accountant)
        assert 0.97 < cost <= 1.0

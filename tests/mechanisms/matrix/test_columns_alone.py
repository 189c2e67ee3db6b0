"""When columns alone may do: what the formulas say, and that simulated tables agree."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from dualquery.data.domain import Domain
from dualquery.mechanisms.baselines.independent import Independent
from dualquery.mechanisms.matrix.columns_alone import columns_may_do, public_spreads
from dualquery.mechanisms.matrix.dependence import spread_of_chance
from dualquery.mechanisms.matrix.mechanism import Matrix
from dualquery.mechanisms.protocol import Budget, Mechanism, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.generate.marginals import all_marginals
from dualquery.queries.generate.random import random_conjunctions
from tests.mechanisms.matrix.test_probed import MIXED, released, table

SIGNED = random_conjunctions(Domain.binary(20), 500, 3)


def test_chance_is_what_the_draw_of_rows_leaves_of_products() -> None:
    """Against all tables of two rows: what is left of an answer after its best columns' fit.

    The part of an answer that changes with each column on its own is the columns'.
    """
    domain, shares = Domain.binary(3), np.array([0.2, 0.4, 0.7])
    # The second one is its column's share: it adds nothing, and counts among the queries.
    work = Workload(np.array([[0, 3, 4], [0, -1, -1]], np.int32), domain, {"kind": "two"})
    records = np.array(list(product((0, 1), repeat=3)))
    chances = np.where(records == 1, shares, 1.0 - shares).prod(axis=1)
    holds = (records == (1, 0, 1)).all(axis=1).astype(float)
    factors = np.array([0.2, 0.6, 0.7])
    whole = float(factors.prod())
    left = 0.0
    for first, second in product(range(8), repeat=2):
        drawn = records[[first, second]]
        columns = np.array([drawn[:, 0].mean(), 1.0 - drawn[:, 1].mean(), drawn[:, 2].mean()])
        told = whole + sum(
            (columns[at] - factors[at]) * np.delete(factors, at).prod() for at in range(3)
        )
        answer = (holds[first] + holds[second]) / 2.0
        left += chances[first] * chances[second] * (answer - told) ** 2
    assert spread_of_chance(work, shares, 2) == pytest.approx(np.sqrt(left / 2))


def test_there_is_nothing_to_gain_where_no_query_is_about_two_columns() -> None:
    alone = Task(random_conjunctions(Domain.binary(20), 10, 1), 100)
    assert public_spreads(alone, Budget(0.05, 1e-6)).chance == pytest.approx(0.0)
    assert not columns_may_do(alone, Budget(0.05, 1e-6))
    # Nor where both literals are about one column: neither of its first two values.
    same = Workload(np.array([[13, 15]], np.int32), MIXED, {"kind": "one"})
    assert not columns_may_do(Task(same, 5), Budget(0.01, 1e-6))


def test_weights_bring_noise_and_no_rows() -> None:
    """A row of weight up to 8 is up to 8 copies; chance goes by rows."""
    plain, weighted = Task(SIGNED, 1_000), Task(SIGNED, 8_000, copies=8)
    budget = Budget(1.0, 1e-6)
    assert public_spreads(weighted, budget).chance == public_spreads(plain, budget).chance


@pytest.mark.parametrize("work", [SIGNED, all_marginals(MIXED, 2)], ids=["signed", "marginals"])
def test_more_rows_or_budget_tell_more_of_products(work: Workload) -> None:
    """Noise falls with rows times epsilon, chance with the root of rows."""
    few, many = (public_spreads(Task(work, n), Budget(1.0, 1e-6)) for n in (1_000, 4_000))
    assert many.columns == pytest.approx(few.columns / 4)
    assert many.product == pytest.approx(few.product / 4)
    assert many.chance == pytest.approx(few.chance / 2)
    assert columns_may_do(Task(work, 100), Budget(0.1, 1e-6))
    assert not columns_may_do(Task(work, 1_000_000), Budget(5.0, 1e-6))


@pytest.mark.parametrize(("epsilon", "nearer"), [(0.1, True), (20.0, False)])
def test_what_it_says_of_independent_columns_is_so(epsilon: float, nearer: bool) -> None:
    """`matrix` and independent columns on a table of these: mean errors of four seeds each."""
    work, records = random_conjunctions(MIXED, 2_000, 3), table(3_000, tied=0.0)
    assert columns_may_do(Task(work, len(records)), Budget(epsilon, 1e-3)) is nearer
    everything, columns = (
        np.mean([_error(records, work, epsilon, seed, mechanism) for seed in range(4)])
        for mechanism in (Matrix(records=3), Independent())
    )
    assert bool(everything > 1.1 * columns) is nearer


def _error(
    records: np.ndarray, work: Workload, epsilon: float, seed: int, mechanism: Mechanism[Any]
) -> float:
    outcome, truth = released(records, work, epsilon, seed, mechanism)
    return float(np.abs(outcome.answers - truth).mean())

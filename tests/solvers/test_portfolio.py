"""What ``auto`` promises beside its parts: at least as good, and no false proof."""

import numpy as np
import pytest

from solvers import BestResponse, LinearConstraint, Status, get_solver
from tests.solvers.instances import constrained_problem, random_problem, weighted_maxsat


def binary_program(seed: int, constrained: bool) -> BestResponse:
    """Return a random 0-1 problem: conjunctions of either sign, under knapsacks or ranges."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 201))
    terms = np.full((int(rng.integers(2, 7)) * n, 3), -1, np.int32)
    for row in terms:
        width = int(rng.integers(1, 4))
        row[:width] = 2 * np.sort(rng.choice(n, width, replace=False)) + rng.integers(0, 2, width)
    whole = rng.integers(-30, 31, len(terms)).astype(np.float64)
    weights = whole if seed % 3 else np.round(10.0 * rng.normal(size=len(terms)), 3)
    rows = []
    for _ in range(int(rng.integers(3, 15)) if constrained else 0):
        of = np.sort(rng.choice(n, int(rng.integers(5, n // 2)), replace=False)).astype(np.int32)
        costs = rng.integers(1, 20, len(of)) if seed % 2 else rng.integers(-9, 10, len(of))
        middle = float(costs @ rng.integers(0, 2, len(of)))
        least = -np.inf if seed % 2 else middle - 5.0
        rows.append(LinearConstraint(of, costs.astype(np.float64), least, middle + 5.0))
    return BestResponse.merging(n, terms, weights, constraints=tuple(rows))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_auto_is_at_least_as_good_as_its_parts(seed: int) -> None:
    """60 problems, 45 with linear constraints, 10 s a call: half an hour in all."""
    instance = weighted_maxsat(seed) if seed < 30 else binary_program(seed, seed % 2 == 0)
    auto, cpsat, local = (
        get_solver(name).solve(instance, time_limit=10.0)
        for name in ("auto", "cpsat", "local-search:anytime")
    )
    slack = 1e-9 * float(np.abs(instance.weights).sum())
    assert auto.objective >= max(cpsat.objective, local.objective) - slack
    assert auto.bound >= max(each.objective for each in (auto, cpsat, local)) - slack


def check_proofs(seeds: range) -> None:
    reference = get_solver("exhaustive")
    for seed in seeds:
        instance = (random_problem, constrained_problem)[seed % 2](seed)
        optimum = reference.solve(instance).objective
        for gap in ("auto", "auto:0.05", "auto:0.3"):
            found = get_solver(gap).solve(instance)
            slack = 1e-9 * (1.0 + float(np.abs(instance.weights).sum()))
            assert instance.feasible(found.record)
            assert found.objective <= optimum + slack <= found.bound + 2 * slack
            if found.status is Status.OPTIMAL:
                assert found.objective >= optimum - slack


def test_no_false_proof() -> None:
    check_proofs(range(3000, 3040))


@pytest.mark.slow
def test_no_false_proof_in_a_thousand_problems() -> None:
    check_proofs(range(4000, 5000))

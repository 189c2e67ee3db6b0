"""The local search: quality, determinism, and its tracked value."""

import numpy as np
import pytest

from solvers import compact, get_solver
from solvers import local_search_kernels as kernels
from solvers.limits import SearchLimits
from solvers.local_search import first_record, greedy_record, initial_state
from tests.solvers import instances


@pytest.mark.parametrize("column", [None, 12])
def test_within_three_thousandths_of_the_best_of_long_searches(column: int | None) -> None:
    instance = instances.sampled_problem(240, 1000, 0, column)
    kernel, best = compact(instance).problem, -np.inf
    for seed in range(1, 4):
        state = initial_state(kernel, greedy_record(kernel), seed)
        kernels.initialise(state)
        kernels.tabu_search(state, 60_000, 20, 100)
        best = max(best, kernel.constant + state.value[1])
    reached = [get_solver("local-search").solve(instance, seed=seed).objective for seed in range(5)]
    assert np.mean(reached) >= 0.997 * best


def test_annealing_beats_the_greedy_record_by_far() -> None:
    instance = instances.sampled_problem(3000, 6000, 0)
    kernel = compact(instance).problem
    assert kernel.attributes > 1000
    greedy = kernel.value(greedy_record(kernel))
    assert get_solver("local-search").solve(instance).objective >= 1.03 * greedy


def test_annealing_at_one_temperature_keeps_metropolis_odds() -> None:
    """A literal of weight 1 is true with odds e: of 400 within four standard errors."""
    instance = instances.problem(400, {(attribute,): 1.0 for attribute in range(400)})
    state = initial_state(instance, greedy_record(instance), 0)
    kernels.initialise(state)
    kernels.anneal(state, 40_000, 1.0, 1.0)
    assert 0.64 < state.record.mean() < 0.82


def test_tracked_value_and_scores_are_true_after_any_moves() -> None:
    for seed in range(60):
        kernel = compact(instances.random_problem(seed)).problem
        start = greedy_record(kernel)
        if len(kernel.terms) == 0 or not kernel.feasible(start):
            continue
        state = initial_state(kernel, start, seed)
        kernels.initialise(state)
        kernels.tabu_search(state, 300, 10, 20)
        kernels.anneal(state, 300, 1.0, 1.0)
        assert kernel.feasible(state.best_record)
        assert np.isclose(kernel.constant + state.value[0], kernel.value(state.record))
        assert np.isclose(kernel.constant + state.value[1], kernel.value(state.best_record))
        for attribute in range(kernel.attributes):
            flipped = state.record.copy()
            flipped[attribute] ^= 1
            change = kernel.value(flipped) - kernel.value(state.record)
            assert np.isclose(state.scores[attribute], change)


def test_exchanges_cross_equalities() -> None:
    # Exactly three of six: no single move is legal.
    three = instances.row(list(range(6)), [1.0] * 6, 3.0, 3.0)
    instance = instances.problem(6, {(0, 1): 1.0, (3, 4, 5): 4.0}, None, (three,))
    hint = np.array([1, 1, 1, 0, 0, 0], np.uint8)
    assert get_solver("local-search").solve(instance, hint=hint).objective == 4.0


def test_a_first_record_is_feasible_and_follows_the_seed() -> None:
    found = 0
    for seed in range(60):
        instance = compact(instances.constrained_problem(seed)).problem
        if len(instance.terms) == 0:
            continue
        limits = SearchLimits(0.0, np.inf, 1, seed)
        (one, violated), (other, _) = (first_record(instance, limits, 5_000) for _ in range(2))
        assert (one is None) == (violated > 0)
        if one is not None:
            np.testing.assert_array_equal(one, other)
            assert instance.feasible(one)
            found += 1
    assert found >= 50

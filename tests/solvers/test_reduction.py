"""Reductions keep the optimum, values and feasibility, and reach a fixpoint."""

from dataclasses import replace

import numpy as np
import pytest

from solvers import BestResponse, Reducing, Status, get_solver, reduce, reduction
from solvers.errors import InfeasibleProblemError
from tests.solvers import instances
from tests.solvers.instances import problem, random_problem, random_record, row, sampled_problem


def check(instance: BestResponse, seed: int) -> int:
    """Check all that a reduction promises; return how many attributes are left."""
    reference = get_solver("exhaustive")
    tolerance = 1e-9 * (1.0 + float(np.abs(instance.weights).sum()))
    reduced = reduce(instance)
    small, optimum = reduced.problem, reference.solve(instance).objective
    best = reference.solve(small)
    assert abs(best.objective - optimum) <= tolerance, seed
    full = reduced.expand(best.record)
    assert instance.feasible(full), seed
    assert abs(instance.value(full) - optimum) <= tolerance, seed
    rng = np.random.default_rng(seed)
    for _ in range(5):
        record = random_record(small.attributes, small.groups, rng)
        default = random_record(instance.attributes, instance.groups, rng)
        full = reduced.expand(record, default)
        assert instance.feasible(full) == small.feasible(record), seed
        assert abs(instance.value(full) - small.value(record)) <= tolerance, seed
        np.testing.assert_array_equal(small.value(reduced.restrict(full)), small.value(record))
        if instance.feasible(default):
            restricted = reduced.restrict(default)
            assert small.feasible(restricted), seed
            assert small.value(restricted) >= instance.value(default) - tolerance, seed
    return small.attributes


@pytest.mark.parametrize("work", [0, 2**21])
def test_optimum_value_and_feasibility_are_kept(work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "_ENUMERATION_WORK", work)
    left = [check(random_problem(seed), seed) for seed in range(300)]
    # Both kinds of instances occur: solved by reductions, and not.
    assert left.count(0) >= 100
    assert left.count(0) <= 290


def test_fixpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "_ENUMERATION_WORK", 0)
    problems = [random_problem(seed) for seed in range(150)]
    problems += [sampled_problem(90, 140, seed, column=5) for seed in range(5)]
    left = 0
    for instance in problems:
        once = reduce(instance).problem
        twice = reduce(once)
        assert twice.problem.attributes == once.attributes
        assert len(twice.problem.terms) == len(once.terms)
        left += once.attributes
    assert left > 200


def test_separate_parts_with_linear_constraints_are_enumerated() -> None:
    # Two of the three; the best three alone would be worth 6, and the part without a constraint 1.
    instance = problem(
        5, {(0, 1): 1.0, (1, 2): 3.0, (0, 2): 2.0, (~0, 3): 0.5, (3, ~1): 0.5, (4,): 1.0},
        constraints=(row([0, 1, 2], [1.0, 1.0, 1.0], 0.0, 2.0),),
    )  # fmt: skip
    reduced = reduce(instance)
    assert reduced.solved
    assert instance.feasible(reduced.expand(np.zeros(0, np.uint8)))
    assert reduced.problem.constant == get_solver("exhaustive").solve(instance).objective == 4.5
    # Sums of other coefficients drift on the way from record to record: not enumerated.
    third = row([0, 1, 2], [1 / 3, 1 / 3, 1 / 3], 0.0, 2 / 3)
    assert reduce(replace(instance, constraints=(third,))).problem.attributes > 0


def test_an_infeasible_part_is_left() -> None:
    odd = (row([0, 1], [2.0, 2.0], 1.0, 3.0), row([0, 1], [1.0, -1.0], 0.0, 0.0))
    left = reduce(problem(3, {(0, 1): 1.0, (0, ~2): -1.0, (1, 2): -1.0}, constraints=odd)).problem
    assert len(left.constraints) > 0
    with pytest.raises(InfeasibleProblemError):
        get_solver("auto").solve(left)


def test_linear_constraints_lock_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "_ENUMERATION_WORK", 0)
    # Attribute 0 is only ever wanted, but the constraint asks for one of the two.
    one = row([0, 1], [1.0, 1.0], 1.0, 1.0)
    reduced = reduce(problem(3, {(0, 2): 1.0, (1, 2): 2.0}, constraints=(one,)))
    assert reduced.problem.attributes == 2
    assert get_solver("exhaustive").solve(reduced.problem).objective == 2.0
    # A bound in the harmless direction locks nothing.
    open_side = problem(2, {(0, 1): 1.0}, constraints=(row([0, 1], [1.0, 1.0], 1.0, np.inf),))
    assert reduce(open_side).solved


@pytest.mark.parametrize("column", [None, 8])
def test_samples_over_many_attributes_are_solved(column: int | None) -> None:
    attributes, draws = 128_000, 17_500
    rng = np.random.default_rng(0)
    terms = rng.integers(0, 2 * attributes, (draws, 3)).astype(np.int32)
    members = () if column is None else np.arange(attributes).reshape(-1, column)
    groups = instances.groups_of(*members)
    instance = instances.from_sample(attributes, terms, rng.choice([-1, 1], draws), groups)
    reduced = reduce(instance)
    assert reduced.solved
    record = reduced.expand(np.zeros(0, np.uint8))
    assert instance.feasible(record)
    assert instance.value(record) == reduced.problem.constant
    assert get_solver("local-search").solve(instance).objective <= instance.value(record)


def test_reducing_wraps_any_solver() -> None:
    for seed in range(60):
        instance = random_problem(seed)
        hint = random_record(instance.attributes, instance.groups, np.random.default_rng(seed))
        plain = get_solver("exhaustive").solve(instance)
        wrapped = Reducing(get_solver("exhaustive")).solve(instance, hint=hint)
        assert wrapped.objective == pytest.approx(plain.objective)
        assert wrapped.objective == instance.value(wrapped.record)
        assert wrapped.bound >= wrapped.objective
        assert wrapped.status is Status.OPTIMAL
        assert wrapped.steps

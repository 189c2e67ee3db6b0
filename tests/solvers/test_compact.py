"""Compaction keeps values, feasibility and the optimum."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import BestResponse, Groups, compact, get_solver
from solvers.terms import is_canonical
from tests.solvers.instances import groups_of, problem, random_problem, random_record


def widened(seed: int) -> BestResponse:
    """Return a random problem among attributes and group members that nothing mentions."""
    small = random_problem(seed)
    rng = np.random.default_rng(seed)
    attributes = small.attributes + 10
    spare = list(range(small.attributes, attributes))
    rng.shuffle(spare)
    members = [
        [*small.groups[g], *spare[2 * g : 2 * g + 2]] for g in range(min(len(small.groups), 3))
    ]
    members += [list(small.groups[g]) for g in range(3, len(small.groups))]
    members.append(spare[6:9])
    for group in members:
        rng.shuffle(group)
    return BestResponse(
        attributes,
        small.terms,
        small.weights,
        groups_of(*members),
        small.constraints,
        small.constant,
    )


@given(st.integers(0, 10_000))
@settings(max_examples=200, deadline=None)
def test_every_record_of_the_kernel_expands_to_its_value(seed: int) -> None:
    instance = widened(seed)
    compacted = compact(instance)
    kernel = compacted.problem
    rng = np.random.default_rng(seed)
    for _ in range(5):
        record = random_record(kernel.attributes, kernel.groups, rng)
        default = random_record(instance.attributes, instance.groups, rng)
        for full in (compacted.expand(record), compacted.expand(record, default)):
            assert instance.legal(full)
            assert instance.feasible(full) == kernel.feasible(record)
            assert np.isclose(instance.value(full), kernel.value(record))
            np.testing.assert_array_equal(compacted.restrict(full), record)


@given(st.integers(0, 10_000))
@settings(max_examples=200, deadline=None)
def test_restricting_keeps_the_value(seed: int) -> None:
    instance = widened(seed)
    compacted = compact(instance)
    record = random_record(instance.attributes, instance.groups, np.random.default_rng(seed))
    kernel_record = compacted.restrict(record)
    assert compacted.problem.feasible(kernel_record) == instance.feasible(record)
    assert np.isclose(compacted.problem.value(kernel_record), instance.value(record))
    # A record is its own best default.
    np.testing.assert_array_equal(compacted.expand(kernel_record, record), record)


def test_optimum_is_that_of_all_full_records() -> None:
    solver = get_solver("exhaustive")
    left_out = 0
    for seed in range(300):
        full = random_problem(seed)
        if full.attributes > 8:
            continue
        # With few terms, many attributes and group members are mentioned nowhere.
        instance = replace(full, terms=full.terms[:4], weights=full.weights[:4])
        records = (
            np.array(bits, np.uint8)
            for bits in itertools.product((0, 1), repeat=instance.attributes)
        )
        best = max(instance.value(record) for record in records if instance.feasible(record))
        assert np.isclose(solver.solve(instance).objective, best)
        left_out += instance.attributes - compact(instance).problem.attributes
    assert left_out > 100


def test_kernel_is_canonical_and_mentions_all_it_keeps() -> None:
    for seed in range(100):
        instance = widened(seed)
        compacted = compact(instance)
        kernel = compacted.problem
        assert is_canonical(kernel.terms)
        mentioned = np.zeros(kernel.attributes, bool)
        mentioned[kernel.terms[kernel.terms >= 0] >> 1] = True
        for constraint in kernel.constraints:
            mentioned[constraint.attributes] = True
        assert set(np.flatnonzero(~mentioned)) == set(compacted.rest)


def test_group_shapes() -> None:
    instance = problem(
        12,
        {(1, ~5): 1.0, (7,): -1.0, (8,): 1.0, (9,): 1.0},
        groups_of([0, 1, 2], [3, 4], [7, 8, 9], [11, 6, 10, 5]),
    )
    compacted = compact(instance)
    assert compacted.attributes.tolist() == [0, 1, 5, 7, 8, 9, 11]
    assert compacted.rest.tolist() == [0, 6]
    groups = compacted.problem.groups
    assert [groups[g].tolist() for g in range(len(groups))] == [[0, 1], [3, 4, 5], [6, 2]]

    rest = np.array([1, 0, 0, 0, 1, 0, 1], np.uint8)
    default = np.zeros(12, np.uint8)
    default[[2, 4, 7, 10]] = 1
    assert np.flatnonzero(compacted.expand(rest, default)).tolist() == [2, 4, 8, 10]
    default[[2, 1, 10, 5]] = [0, 1, 0, 1]
    # The default's members are mentioned ones: the first unmentioned one stands in.
    assert np.flatnonzero(compacted.expand(rest, default)).tolist() == [0, 4, 8, 11]
    assert np.flatnonzero(compacted.expand(rest)).tolist() == [0, 3, 8, 11]


def test_large_problem_has_a_small_kernel() -> None:
    rng = np.random.default_rng(0)
    attributes = 512_000
    terms = rng.integers(0, 2 * attributes, (70_000, 3)).astype(np.int32)
    groups = Groups(
        np.arange(0, attributes + 1, 8, dtype=np.int64), np.arange(attributes, dtype=np.int32)
    )
    instance = BestResponse.from_sample(attributes, terms, rng.choice([-1, 1], 70_000), groups)
    compacted = compact(instance)
    kernel = compacted.problem
    record = random_record(kernel.attributes, kernel.groups, rng)
    full = compacted.expand(record)
    assert kernel.attributes < 2 * 210_000
    assert instance.feasible(full)
    assert instance.value(full) == kernel.value(record)

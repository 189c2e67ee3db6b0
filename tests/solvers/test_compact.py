"""Compaction keeps values, feasibility and the optimum."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import BestResponse, compact
from tests.solvers.instances import groups_of, random_problem, random_record


def widened(seed: int) -> BestResponse:
    """Return a random problem among attributes and group members that nothing mentions."""
    small, rng = random_problem(seed), np.random.default_rng(seed)
    attributes = small.attributes + 10
    spare = list(range(small.attributes, attributes))
    rng.shuffle(spare)
    given = [list(small.groups[g]) for g in range(len(small.groups))]
    members = [[*own, *spare[2 * g : 2 * g + 2]] for g, own in enumerate(given[:3])] + given[3:]
    members.append(spare[6:9])
    for group in members:
        rng.shuffle(group)
    return replace(small, attributes=attributes, groups=groups_of(*members))


@given(st.integers(0, 10_000))
@settings(max_examples=200, deadline=None)
def test_every_record_of_the_kernel_expands_to_its_value(seed: int) -> None:
    instance = widened(seed)
    compacted = compact(instance)
    kernel, rng = compacted.problem, np.random.default_rng(seed)
    for _ in range(5):
        record = random_record(kernel.attributes, kernel.groups, rng)
        default = random_record(instance.attributes, instance.groups, rng)
        for full in (compacted.expand(record), compacted.expand(record, default)):
            assert instance.legal(full)
            assert instance.feasible(full) == kernel.feasible(record)
            assert np.isclose(instance.value(full), kernel.value(record))
            np.testing.assert_array_equal(compacted.restrict(full), record)
        restricted = compacted.restrict(default)
        assert kernel.feasible(restricted) == instance.feasible(default)
        assert np.isclose(kernel.value(restricted), instance.value(default))
        # A record is its own best default.
        np.testing.assert_array_equal(compacted.expand(restricted, default), default)

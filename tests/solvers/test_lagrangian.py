"""The Lagrangian dual: its bounds hold, and reach those of the linear relaxation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from solvers import compact
from solvers.lagrangian import LagrangianDual
from solvers.local_search import greedy_record
from tests.solvers.instances import random_problem, random_record, relaxed_optimum, sampled_problem


def test_bounds_hold_at_any_iteration() -> None:
    for seed in range(150):
        kernel = compact(random_problem(seed)).problem
        if kernel.attributes > 9:
            continue
        rng = np.random.default_rng(seed)
        dual = LagrangianDual(kernel, random_record(kernel.attributes, kernel.groups, rng))
        every = (np.array(bits, np.uint8) for bits in product((0, 1), repeat=kernel.attributes))
        records = [record for record in every if kernel.feasible(record)]
        values = np.array([kernel.value(record) for record in records])
        table = np.array(records).reshape(len(records), kernel.attributes)
        tolerance = 1e-9 * (1.0 + np.abs(kernel.weights).sum())
        for iterations in (1, 3, 30):
            dual.descend(iterations, -np.inf)
            assert dual.bound >= values.max() - tolerance
            bounds = dual.bounds()
            for attribute, value in product(range(kernel.attributes), (0, 1)):
                of_these = values[table[:, attribute] == value]
                assert bounds[value, attribute] >= of_these.max(initial=-np.inf) - tolerance


@pytest.mark.parametrize("column", [None, 8])
def test_reaches_the_bound_of_the_linear_program(column: int | None) -> None:
    whole = sampled_problem(120, 320, 1, column)
    # Real weights, so that no bound is rounded to an integer.
    weights = whole.weights * np.random.default_rng(1).uniform(0.5, 1.5, len(whole.weights))
    kernel = compact(replace(whole, weights=weights)).problem
    dual = LagrangianDual(kernel, greedy_record(kernel))
    dual.descend(4000, -np.inf)
    assert dual.bound == pytest.approx(relaxed_optimum(kernel), rel=2e-4)


def test_a_descent_by_weights_near_zero_ends() -> None:
    kernel = sampled_problem(40, 400, 0, 4)
    kernel = replace(kernel, weights=kernel.weights * 1e-320)
    LagrangianDual(kernel, greedy_record(kernel)).descend(30, -np.inf)

"""The MIP formulations, and the scaling of weights."""

import itertools

import numpy as np
import pytest

from solvers import compact
from solvers.formulation import Formulation, formulate
from solvers.scaling import integer_scaled
from tests.solvers.instances import random_problem


@pytest.mark.parametrize("form", Formulation)
def test_the_best_completion_of_a_record_has_its_value(form: Formulation) -> None:
    checked = 0
    for seed in range(60):
        kernel = compact(random_problem(seed)).problem
        if not 0 < kernel.attributes <= 8 or kernel.constraints:
            continue
        program = formulate(kernel, form)
        matrix, given = program.sparse_matrix(), program.constraints
        for bits in itertools.product((0, 1), repeat=kernel.attributes):
            record = np.array(bits, np.uint8)
            columns = program.assignment(kernel, record)
            rows = matrix @ columns
            fits = bool(((rows >= given.lower) & (rows <= given.upper)).all())
            assert fits == kernel.feasible(record)
            value = program.constant + float(program.objective @ columns)
            assert np.isclose(value, kernel.value(record))
            # No column of a term can be moved in the direction that its weight wants.
            for column in range(kernel.attributes, program.columns):
                better = columns.copy()
                better[column] = 1 if program.objective[column] > 0 else 0
                if fits and better[column] != columns[column]:
                    moved = matrix @ better
                    assert ((moved < given.lower) | (moved > given.upper)).any()
                    checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("values", "integers", "scale"),
    [([0.1, 0.25, -0.3], [2, 5, -6], 20), ([2e18, 1e18], [2, 1], 1e-18), ([0.0, 0.0], [0, 0], 1)],
)
def test_exact_scaling(values: list[float], integers: list[int], scale: float) -> None:
    scaled, factor, error = integer_scaled(np.array(values))
    assert scaled.tolist() == integers
    assert factor == pytest.approx(scale, rel=1e-15)
    assert error == 0.0


@pytest.mark.parametrize("size", [1e-250, 1e-15, 1.0, 1e15, 1e250])
def test_rounded_scaling_states_its_error(size: float) -> None:
    values = np.random.default_rng(0).normal(size=50) * size
    scaled, factor, error = integer_scaled(values)
    assert np.abs(scaled).sum() < 2**52
    assert np.abs(scaled - factor * values).sum() <= error * (1 + 1e-9)
    assert error <= 50 / 2
    assert np.allclose(scaled / factor, values, rtol=0, atol=1e-12 * size)

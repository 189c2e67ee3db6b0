"""Departures that were measured with noise, shrunk by a prior that they tell themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dualquery.mechanisms.matrix.departures import shrunk

RISKS = {"as expected": 0.60, "a tenth of that": 0.05, "none": 0.05}
"""Largest mean square that is left of noise of mean square 1, by what the departures are."""


def departures(kind: str, expected: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Draw departures."""
    normal = expected * generator.standard_normal(len(expected))
    return {"as expected": normal, "a tenth of that": 0.1 * normal, "none": 0.0 * normal}[kind]


@pytest.mark.parametrize("kind", RISKS)
@pytest.mark.parametrize("seed", range(3))
def test_noise_stays_out(kind: str, seed: int) -> None:
    """With weights fixed beforehand, .35 and more of the noise is left in each case."""
    generator = np.random.default_rng(seed)
    expected = generator.uniform(0.5, 2.0, 10_000)
    true = departures(kind, expected, generator)
    noisy = true + generator.standard_normal(len(true))
    assert np.mean((shrunk(noisy, expected, np.ones(len(noisy))) - true) ** 2) < RISKS[kind]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_are_shrunk_as_expected(count: int) -> None:
    """Within a tenth of the weight that the expectation gives a single one."""
    expected, noisy = np.full(count, 2.0), np.linspace(0.5, 1.5, count)
    np.testing.assert_allclose(shrunk(noisy, expected, np.ones(len(noisy))), 0.8 * noisy, rtol=0.1)


def test_units_do_not_matter_and_signs_do_not_change() -> None:
    generator = np.random.default_rng(0)
    expected = generator.uniform(0.5, 2.0, 500)
    noisy = 3.0 * generator.standard_normal(500)
    found = shrunk(noisy, expected, np.ones(len(noisy)))
    np.testing.assert_allclose(
        shrunk(1e-6 * noisy, 1e-6 * expected, np.full(500, 1e-12)), 1e-6 * found
    )
    np.testing.assert_allclose(shrunk(-noisy, expected, np.ones(500)), -found)
    most = expected**2 / (expected**2 + 1.0)
    assert (np.abs(found) <= most * np.abs(noisy) + 1e-12).all()


def test_none_were_measured() -> None:
    assert shrunk(*np.zeros((3, 0))).shape == (0,)


def test_a_departure_that_cannot_be_is_none() -> None:
    """A column without 1s departs from nothing, whatever the noise."""
    assert shrunk(np.array([5.0, 0.1]), np.array([0.0, 1.0]), np.ones(2))[0] == 0.0

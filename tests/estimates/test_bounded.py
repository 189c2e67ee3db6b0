"""Intervals near the ends of a range cover as often as they say, by integrals over the noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dualquery.estimates.bounded import bounded_interval

STEPS = np.linspace(-8, 8, 160_001)
CHANCES = norm.pdf(STEPS) / norm.pdf(STEPS).sum()


@pytest.mark.parametrize("level", [0.8, 0.95, 0.9999])
@pytest.mark.parametrize("length", [1.0, 2.01, 2.5, 7.0, 1e6])
def test_they_cover_every_number_of_the_range(level: float, length: float) -> None:
    """Exactly, but where the range is short beside the noise, which covers more often."""
    z = float(norm.ppf((1 + level) / 2))
    width = length * z
    for part in (0.0, 1e-3, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0):
        for number in {part * width, min(3 * z * part, width)}:
            low, high = bounded_interval(number + STEPS, np.ones_like(STEPS), z, 0.0, width)
            held = CHANCES[(low <= number) & (number <= high)].sum()
            assert held >= level - 2e-4
            if length > 2:
                assert held <= level + 2e-4
            assert np.all(low < high)
            assert low.min() >= 0
            assert high.max() <= width


def test_they_are_equal_at_both_ends_and_in_any_unit() -> None:
    estimates = np.linspace(-0.5, 1.5, 201)
    low, high = bounded_interval(estimates, np.full(201, 0.05), 1.96, 0.0, 1.0)
    again = bounded_interval(1.0 - estimates, np.full(201, 0.05), 1.96, 0.0, 1.0)
    np.testing.assert_allclose(low, 1.0 - again[1], atol=1e-12)
    np.testing.assert_allclose(high, 1.0 - again[0], atol=1e-12)
    moved = bounded_interval(30 * estimates - 7, np.full(201, 1.5), 1.96, -7.0, 23.0)
    np.testing.assert_allclose(30 * low - 7, moved[0], atol=1e-9)
    np.testing.assert_allclose(30 * high - 7, moved[1], atol=1e-9)
    inner = (estimates > 0.2) & (estimates < 0.8)
    np.testing.assert_allclose(low[inner], estimates[inner] - 0.098, atol=1e-12)
    np.testing.assert_allclose(high[inner], estimates[inner] + 0.098, atol=1e-12)
    exact = bounded_interval(np.array([0.0, 0.4, np.nan]), np.zeros(3), 1.96, 0.0, 1.0)
    np.testing.assert_array_equal(exact, [[0.0, 0.4, np.nan]] * 2)

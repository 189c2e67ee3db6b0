"""Intervals within a range cover as often as they say, whatever the guess, by integrals."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from dualquery.estimates.intervals import Guesses, bounded_interval

STEPS = np.linspace(-8, 8, 2_001)
CHANCES = norm.pdf(STEPS) / norm.pdf(STEPS).sum()
Z = float(norm.ppf(0.975))


def ends(
    estimates: NDArray[np.float64], noise: float, guess: float, spread: float, z: float = Z
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    same = np.ones_like(estimates)
    guesses = None if np.isnan(guess) else Guesses(guess * same, spread * same)
    return bounded_interval(estimates, noise * same, 0.0, 1.0, z, guesses)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.9999])
@pytest.mark.parametrize("length", [0.1, 1.0, 2.5, 7.0, 1e6])
def test_they_cover_every_number_of_the_range(level: float, length: float) -> None:
    z = float(norm.ppf((1 + level) / 2))
    width, steps = length * z, np.linspace(-8, 8, 20_001)
    chances = norm.pdf(steps) / norm.pdf(steps).sum()
    for part in (0.0, 1e-3, 0.1, 0.5, 1.0):
        for number in {part * width, min(3 * z * part, width)}:
            low, high = bounded_interval(number + steps, np.ones_like(steps), 0.0, width, z)
            held = chances[(low <= number) & (number <= high)].sum()
            assert held == pytest.approx(level, abs=5e-4)
            assert np.all(low < high)
            assert low.min() >= 0
            assert high.max() <= width


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("noise", [1e-6, 0.004, 1.5])
def test_they_cover_every_share_whatever_the_guess(level: float, noise: float) -> None:
    z = float(norm.ppf((1 + level) / 2))
    for guess in (0.0, 2 * noise, 0.3):
        for spread in (0.0, 2 * noise):
            for apart in (0.0, 0.3, 2.0, 4.0, 7.0):
                for share in (guess - apart * noise, guess + apart * noise):
                    share, middle = np.clip((share, guess), 0.0, 1.0)
                    low, high = ends(share + noise * STEPS, noise, middle, spread, z)
                    held, miss = CHANCES[(low <= share) & (share <= high)].sum(), 1 - level
                    # More often where accepted shares have a gap: a little, far from the guess.
                    assert level - min(2e-3, miss / 10) <= held <= level + miss / 4
                    assert np.all(low < high)
                    assert low.min() >= 0
                    assert high.max() <= 1


def test_near_a_guess_they_are_shorter_and_far_from_it_as_long() -> None:
    """The best that there can be is 2 * 1.645 of 2 * 1.96 standard deviations: Pratt (1961)."""
    low, high = ends(0.5 + 0.01 * STEPS, 0.01, 0.5, 0.0)
    assert 0.83 < ((high - low) @ CHANCES) / (2 * 0.01 * Z) < 0.88
    low, high = ends(0.9 + 0.01 * STEPS, 0.01, 0.5, 0.0)
    np.testing.assert_allclose((high - low) @ CHANCES, 2 * 0.01 * Z, rtol=1e-3)


def test_they_are_mirrored_and_in_any_unit() -> None:
    estimates = np.linspace(-0.2, 1.2, 141)
    low, high = ends(estimates, 0.05, 0.1, 0.02)
    again = ends(1 - estimates, 0.05, 0.9, 0.02)
    np.testing.assert_allclose(low, 1 - again[1], atol=1e-9)
    np.testing.assert_allclose(high, 1 - again[0], atol=1e-9)
    low, high = ends(estimates, 0.05, np.nan, 0.0)
    moved = bounded_interval(30 * estimates - 7, 1.5, -7.0, 23.0)
    np.testing.assert_allclose(30 * np.stack((low, high)) - 7, moved, atol=1e-6)
    inner = (estimates > 0.4) & (estimates < 0.6)
    np.testing.assert_allclose(low[inner], estimates[inner] - 0.05 * Z, atol=1e-6)


def test_noise_of_any_size_or_none() -> None:
    estimates = np.array([0.0, 0.4, np.nan])
    exact = bounded_interval(estimates, np.zeros(3), 0.0, 1.0)
    np.testing.assert_array_equal(exact, [estimates] * 2)
    np.testing.assert_array_equal(ends(estimates, 0.0, 0.3, 0.02), exact)
    for noise in (1e-12, 1e5, 1e30, np.inf):
        low, high = bounded_interval(estimates, noise, 0.0, 1.0)
        assert np.all((low <= estimates) & (estimates <= high) | np.isnan(estimates))
    assert np.isnan(ends(np.array([np.nan]), 0.05, 0.3, 0.02)).all()

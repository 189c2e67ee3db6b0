"""Guesses from single columns: of the stated spread, and free of the estimate's noise."""

import numpy as np

from dualquery.estimates.intervals import guesses_of


def test_guesses_do_not_depend_on_the_estimates_noise() -> None:
    """Along what the noise of the estimate brings with it, nothing changes."""
    mixing = np.random.default_rng(1).normal(size=(4, 4)) * 0.01
    covariance = mixing @ mixing.T
    numbers = np.array([0.1, 0.6, 0.5, 0.4]) + covariance[0] * np.linspace(-200, 200, 9)[:, None]
    found = guesses_of(
        numbers[:, 0],
        np.full(9, covariance[0, 0]),
        numbers[:, 1:],
        np.tile(covariance[0, 1:], (9, 1)),
    )
    np.testing.assert_allclose(found.values, found.values[0], rtol=1e-9)
    np.testing.assert_allclose(found.spreads, found.spreads[0], rtol=1e-9)
    assert np.ptp(numbers[:, 1:].prod(axis=1)) > 1e-3


def test_there_is_no_guess_of_one_literal_or_without_noise() -> None:
    shares = np.array([[0.2, np.nan], [0.2, 0.5], [0.2, 0.5]])
    found = guesses_of(np.full(3, 0.1), np.array([1e-4, 0.0, 1e-4]), shares, np.zeros((3, 2)))
    np.testing.assert_allclose(found.values, [np.nan, np.nan, 0.1])

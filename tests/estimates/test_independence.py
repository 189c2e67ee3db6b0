"""Guesses from single columns: of the stated spread, and free of the estimate's noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dualquery.estimates.guessed import CORRELATION, departures, guesses_of


def test_departures_are_the_sum_over_all_sets_of_literals() -> None:
    chances = np.random.default_rng(0).random((50, 4))
    chances[:9, 3] = 1.0
    spread, squared = np.sqrt(chances * (1 - chances)), np.zeros(50)
    for size in (2, 3, 4):
        for tied in combinations(range(4), size):
            others = np.delete(chances, tied, axis=1).prod(axis=1)
            part = CORRELATION * 0.5 ** (size - 2) * spread[:, tied].prod(axis=1) * others
            squared += part**2
    np.testing.assert_allclose(departures(chances), np.sqrt(squared), atol=1e-12)


def test_guesses_do_not_depend_on_the_estimates_noise() -> None:
    """Along what the noise of the estimate brings with it, nothing changes."""
    generator = np.random.default_rng(1)
    mixing = generator.normal(size=(4, 4)) * 0.01
    covariance = mixing @ mixing.T
    truth = np.array([0.1, 0.6, 0.5, 0.4])
    numbers = truth + covariance[0] * np.linspace(-200, 200, 9)[:, None]
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

"""Laplace noise: what it costs on every pair of neighbours, and its law."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from dualquery.privacy.events import LaplaceNoise
from dualquery.room.exact import Exact
from dualquery.room.ledger import Ledger
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness
from dualquery.room.sensitivity.moves import Moves


def measured(numbers, moves: Moves, noise: Laplace, planned: float, seed: int = 0, scales=1.0):
    exact = Exact("AllQueries", np.asarray(numbers, np.int64), moves, scales)
    return noise.measure(exact, Ledger((LaplaceNoise(planned),)), SeededRandomness(seed))


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize(("entries", "each"), [(1, 1), (2, 1), (1, 3), (3, 2)])
def test_no_outcome_is_more_than_e_to_the_charge_times_as_likely(scale, entries, each) -> None:
    """All outcomes near the numbers: further out the log-ratios are those of the nearest ones."""
    moves = Moves.of_entries(entries, each)
    charge = moves.l1 / scale
    outcomes = np.array([*itertools.product(range(-each - 1, each + 2), repeat=entries)])
    worst = 0.0
    for moved in itertools.product(range(-each, each + 1), repeat=entries):
        apart = np.abs(outcomes - np.array(moved)).sum(axis=1) - np.abs(outcomes).sum(axis=1)
        worst = max(worst, float(apart.max()) / scale)
    assert worst == pytest.approx(charge)
    measured(np.zeros(entries), moves, Laplace(scale), charge)
    with pytest.raises(RuntimeError, match="would cost more"):
        measured(np.zeros(entries), moves, Laplace(scale), charge * (1 - 1e-9))


def test_noise_follows_its_law_and_scales() -> None:
    """Chi-square at level 1e-4, fixed seeds; halves get noise of twice the scale in whole steps."""
    draws, moves = 20_000, Moves.of_entries(1, 1)
    for scales in (1.0, 2.0):
        noise = measured(np.full(draws, 5), moves, Laplace(1.5), 1.0, scales=scales) - 5
        assert noise.dtype == np.int64
        law = stats.dlaplace(1 / (1.5 * scales))
        values = np.arange(-4, 5)
        expected = law.pmf(values) * draws
        seen = np.array([(noise == value).sum() for value in values])
        rest = draws - expected.sum(), draws - seen.sum()
        found = stats.chisquare(np.append(seen, rest[1]), np.append(expected, rest[0]))
        assert found.pvalue > 1e-4


def test_numbers_without_an_l1_bound_get_no_laplace_noise() -> None:
    with pytest.raises(Exception, match="a finite number"):
        measured([1, 2], Moves(np.inf, 1.0), Laplace(1.0), 1e9)

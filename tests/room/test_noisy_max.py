"""Report noisy max: its exact distribution on every pair of neighbouring scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dualquery.audit.laws import noisy_max_law
from dualquery.privacy.events import LaplaceNoise
from dualquery.room.draws.noisy_max import NoisyMax, noisy_max_scale, report_noisy_max
from dualquery.room.randomness import SeededRandomness
from dualquery.room.scores import GRID, WorstQuery, error_scores
from tests.room.test_curator import ROWS, curator

EPSILON, N = 1.5, 3


def probabilities(scores: np.ndarray, epsilon: float = EPSILON, spread: float = 1) -> np.ndarray:
    """Return the exact chance of each report."""
    return np.exp(noisy_max_law(scores, noisy_max_scale(epsilon, spread)).logs)


def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely() -> None:
    """Counts of three queries that all move by one row, either way; a model off the grid."""
    model = np.array([0.4, 1.0, 1 / 3])
    reports = {
        counts: probabilities(error_scores(np.array(counts), model, N))
        for counts in itertools.product(range(N + 1), repeat=3)
    }
    worst = 0.0
    for one, other in itertools.permutations(reports, 2):
        if np.abs(np.subtract(one, other)).max() == 1:
            ratios = reports[one] / reports[other]
            worst = max(worst, float(np.log(ratios).max()))
    for chances in reports.values():
        assert chances.sum() == pytest.approx(1, abs=1e-9)
    assert worst <= EPSILON * (1 + 1e-9)
    assert worst > 0.5 * EPSILON


def test_the_same_when_a_record_is_added_or_removed() -> None:
    """Centred counts of three queries all move by half a row, each up or down."""
    model = np.array([0.4, 1.0, 1 / 3])
    worst, base = 0.0, (1, 2, 0)
    for added in itertools.product((0, 1), repeat=3):
        tables = (base, tuple(np.add(base, added)))
        scores = [
            error_scores(np.array(counts), model, N, offset=(GRID // 2) * (N - rows))
            for counts, rows in zip(tables, (2, 3), strict=True)
        ]
        assert np.abs(scores[0] - scores[1]).max() <= GRID / 2
        ours, theirs = (probabilities(each, spread=0.5) for each in scores)
        worst = max(worst, float(np.abs(np.log(ours / theirs)).max()))
    assert 0.5 * EPSILON < worst <= EPSILON * (1 + 1e-9)


def test_only_alternatives_are_reported() -> None:
    scores = np.array([10**9, 0, 0])
    allowed = np.array([False, True, True])
    source = SeededRandomness(1)
    found = {report_noisy_max(scores, allowed, 1.0, 1, source) for _ in range(40)}
    assert found == {1, 2}
    with pytest.raises(ValueError, match="no queries"):
        report_noisy_max(scores, np.zeros(3, bool), 1.0, 1, source)


def test_the_room_charges_before_it_reports() -> None:
    room = curator((LaplaceNoise(0.5),), ROWS)
    worst = WorstQuery(np.array([0.5, 0.5, 0.5]))
    with pytest.raises(RuntimeError, match="would cost more"):
        room.select(worst, NoisyMax(0.51))
    assert room.select(worst, NoisyMax(0.5)) in range(3)
    with pytest.raises(RuntimeError, match="the budget is spent"):
        room.select(worst, NoisyMax(0.5))

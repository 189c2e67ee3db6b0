"""The exponential mechanism's selection: integer scores, exact draws, and what it is charged."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dualquery.audit.laws import noisy_max_law
from dualquery.privacy.events import RANGE_SLACK, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.queries.conjunctions import Workload
from dualquery.room.curator import Curator
from dualquery.room.draws.exponential import Exponential, select_largest
from dualquery.room.draws.noisy_max import NoisyMax, noisy_max_scale, report_noisy_max
from dualquery.room.noise.gaussian import Gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness
from dualquery.room.scores import GRID, WorstQuery, error_scores
from dualquery.room.statistics import EveryCell, OneQuery
from dualquery.runtime.errors import BadInputError
from tests.cases import all_records, domain_of, records_of, refused
from tests.room.test_curator import ROWS, curator

DOMAIN = domain_of(1, 3, 1)
WORKLOAD = Workload(np.array([[0, -1], [2, 8], [1, 9], [4, -1]], np.int32), DOMAIN)


def room(*schedule, rows=None, seed=0) -> Curator:
    rows = all_records(DOMAIN) if rows is None else rows
    return Curator(records_of(rows), WORKLOAD, schedule, SeededRandomness(seed))


def test_scores_are_rows_of_error_on_the_grid() -> None:
    scores = error_scores(np.array([3, 0, 10]), np.array([0.3, 0.25, 0.0]), 10)
    assert scores.tolist() == [0, int(2.5 * GRID), 10 * GRID]


def test_scores_that_could_overflow_are_refused() -> None:
    """A sum that wraps around would move by far more than is charged."""
    counts, model, most = np.zeros(1, np.int64), np.array([65535.0]), 65535.0
    for n in (10**10, 2 * 10**10):
        offset = GRID * int(most) * n  # as large as centring can make it
        (score,) = error_scores(counts, -2 * model, n, 0.0, most, offset)
        assert score == GRID * (65535 + 65535) * n
    with pytest.raises(BadInputError, match="do not fit 64-bit integers"):
        error_scores(counts, model, 10**12, 0.0, most)


def test_draws_follow_the_exponential_mechanism() -> None:
    """Chi-square at level 1e-4, one fixed seed; an excluded query never comes."""
    scores = np.array([0, 3, 8, 1, 20]) * GRID
    allowed = np.array([True, True, True, False, True])
    randomness = SeededRandomness(1)
    epsilon, draws = 0.2, 20_000
    drawn = [select_largest(scores, allowed, epsilon, 1, randomness) for _ in range(draws)]
    seen = np.bincount(drawn, minlength=5)
    assert seen[3] == 0
    expected = np.exp(epsilon * scores[allowed] / GRID / 2)
    expected *= draws / expected.sum()
    assert stats.chisquare(seen[allowed], expected).pvalue > 1e-4


def test_every_operation_is_charged_at_its_own_sensitivity() -> None:
    worst = WorstQuery(np.zeros(4))
    refused(room(SampledQueries(0.5, 1)).select, worst, Exponential(0.5))  # the slack is missing
    assert room(SampledQueries(0.5 + RANGE_SLACK, 1)).select(worst, Exponential(0.5)) in range(4)
    for noise, planned in ((Laplace, LaplaceNoise(0.1)), (Gaussian, GaussianNoise(1.0, 10.0))):
        refused(room(planned).measure, OneQuery(0), noise(9.9))
        assert room(planned).measure(OneQuery(0), noise(10.0)).shape == (1,)
    gaussian = GaussianNoise(np.sqrt(2), 10.0)
    for noise, planned in ((Laplace, LaplaceNoise(2 / 10)), (Gaussian, gaussian)):
        refused(room(planned).measure, EveryCell(), noise(9.9))
        assert room(planned).measure(EveryCell(), noise(10.0)).shape == (2, 3, 2)


def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely() -> None:
    """Counts of three queries that all move by one row, either way; a model off the grid."""
    epsilon, rows, model = 1.5, 3, np.array([0.4, 1.0, 1 / 3])
    logs = {}
    for counts in itertools.product(range(rows + 1), repeat=3):
        scores = tuple(error_scores(np.array(counts), model, rows).tolist())
        logs[counts] = noisy_max_law(scores, noisy_max_scale(epsilon, 1)).logs
    worst = max(
        float((logs[one] - logs[other]).max())
        for one, other in itertools.permutations(logs, 2)
        if np.abs(np.subtract(one, other)).max() == 1
    )
    assert 0.5 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_only_alternatives_are_reported() -> None:
    scores, allowed = np.array([10**9, 0, 0]), np.array([False, True, True])
    source = SeededRandomness(1)
    assert {report_noisy_max(scores, allowed, 1.0, 1, source) for _ in range(40)} == {1, 2}
    with pytest.raises(ValueError, match="no queries"):
        report_noisy_max(scores, np.zeros(3, bool), 1.0, 1, source)


def test_the_room_charges_before_it_reports() -> None:
    room, worst = curator((LaplaceNoise(0.5),), ROWS), WorstQuery(np.array([0.5, 0.5, 0.5]))
    refused(room.select, worst, NoisyMax(0.51))
    assert room.select(worst, NoisyMax(0.5)) in range(3)
    refused(room.select, worst, NoisyMax(0.5), why="the budget is spent")

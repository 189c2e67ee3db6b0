"""Gaussian noise on a fine grid: its lemma on coarse grids, and its cost by enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.stats import norm

from dualquery.privacy import events
from dualquery.privacy.accountants.exact import ExactAccountant
from dualquery.privacy.accountants.formulas import ZcdpAccountant
from dualquery.privacy.calibrate import calibrate_gaussian_scale
from dualquery.privacy.events import Event, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.room.ledger import Ledger
from dualquery.room.noise import gaussian
from dualquery.room.noise.gaussian import add_gaussian
from dualquery.room.noise.laplace import Laplace
from dualquery.room.randomness import SeededRandomness
from dualquery.room.sensitivity.moves import Moves
from dualquery.room.statistics import Exact
from dualquery.runtime.errors import BadInputError
from tests.cases import refused

EXACT, ZCDP = ExactAccountant(), ZcdpAccountant()


def discrete(scale: float, reach: int) -> NDArray[np.float64]:
    """P: the discrete Gaussian on -reach, ..., reach; what lies outside is below 1e-300."""
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1, dtype=np.float64) / scale) ** 2)
    return weights / math.fsum(weights)


@pytest.mark.parametrize("s", [1.0, 1.5, 4.0, 20.0])
@pytest.mark.parametrize("far", [1.0, 3.0, 6.0])
def test_rounded_continuous_noise_is_close_to_discrete_noise(s: float, far: float) -> None:
    reach = math.ceil(36 * s)
    j = np.arange(-reach, reach + 1, dtype=np.float64)
    p = discrete(s, reach)
    outer = np.abs(j)  # by symmetry, where the tail function has its digits
    q = norm.sf((outer - 0.5) / s) - norm.sf((outer + 0.5) / s)
    logs = np.log(q / p)
    xi = far**2 / (8 * s * s) + 3 * math.exp(-2 * math.pi**2 * s * s)
    assert np.all(logs >= -1 / (8 * s * s) - 1e-9)
    assert np.all(logs[outer <= far * s] <= xi + 1e-9)
    assert q[outer > far * s].sum() <= 2 * math.exp(-far * far / 2)
    # The bound is not idle: a good part of it is reached.
    assert logs[outer <= far * s].max() >= 0.25 * xi - 1 / (8 * s * s)


def test_the_charge_covers_the_lemma() -> None:
    s, m, far = Fraction(2**39), gaussian.MOST_NUMBERS, 160
    assert s == gaussian.LEAST_STEPS
    lemma = Fraction(m) * (far**2 + 1) / (8 * s**2)  # exp(-2 pi^2 s^2) is below e^-10^24
    assert Fraction(events.GAUSSIAN_EPSILON_SLACK) > lemma * Fraction(101, 100)
    assert Fraction(events.GAUSSIAN_DELTA_GROWTH) > m / (8 * s**2)
    assert math.log(2 * m * 5000) - far**2 / 2 + 1e4 < math.log(events.GAUSSIAN_DELTA_SLACK)


@pytest.mark.parametrize(("steps", "shift"), [(4, 2), (8, 3), (3, 3), (16, 1)])
@pytest.mark.parametrize("width", [0.0, 0.7])
def test_the_accountant_covers_coarse_discrete_noise_up_to_the_lemma(steps, shift, width) -> None:
    """A draw of bounded range, then discrete noise on 2 numbers whose distance it decides."""
    p = discrete(float(steps), 30 * steps)
    one = (p, np.roll(p, shift))
    m, far = 2, 7.0
    xi = far**2 / (8 * steps**2) + 3 * math.exp(-2 * math.pi**2 * steps**2)
    tau, a = 2 * m * math.exp(-far * far / 2), m / (8 * steps**2)
    draw = np.array([math.exp(width / 2), 1.0]) / (1 + math.exp(width / 2))
    events: tuple[Event, ...] = (
        SampledQueries(width, 1),
        GaussianNoise(math.sqrt(2) * shift, float(steps)),
    )
    here, there = np.multiply.outer(one[0], one[0]), np.multiply.outer(one[1], one[1])
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        true = 0.0
        for x, y in ((draw[0], draw[1]), (draw[1], draw[0])):
            # After the second outcome only one number differs.
            if x > y:
                pair = here * x, there * y
            else:
                pair = np.multiply.outer(one[0], one[0]) * x, np.multiply.outer(one[1], one[0]) * y
            true += np.maximum(pair[0] - math.exp(epsilon) * pair[1], 0.0).sum()
        left = max(epsilon - a - m * xi, 0.0)
        assert true <= (math.exp(a) * (EXACT.delta(events, left) + math.exp(epsilon) * tau))


class Fixed:
    """Noise of given grid steps; remembers the scale asked for."""

    scale = 0.0

    def __init__(self, steps: list[int]) -> None:
        self._steps = steps

    def words(self, count: int) -> NDArray[np.uint64]:
        raise NotImplementedError

    def discrete_laplace(self, scale: float, count: int) -> NDArray[np.int64]:
        raise NotImplementedError

    def discrete_gaussian(self, scale: float, count: int) -> NDArray[np.int64]:
        self.scale = scale
        assert count == len(self._steps)
        return np.array(self._steps, np.int64)


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(-(2**40), 2**40),
    moved=st.integers(-1000, 1000),
    noise=st.integers(-(2**45), 2**45),
    scale=st.floats(1e-6, 2.0**39),
)
def test_the_result_is_a_function_of_the_sum_on_the_grid(
    count: int, moved: int, noise: int, scale: float
) -> None:
    """Neighbouring counts whose noise differs by as much give the very same float."""
    grid = 2 ** (40 - math.frexp(scale)[1])
    other = noise - moved * grid
    if abs(other) >= 2**53:
        return
    source = Fixed([noise])
    first = add_gaussian(np.array([count]), scale, source)
    second = add_gaussian(np.array([count + moved]), scale, Fixed([other]))
    assert first.tobytes() == second.tobytes()
    assert first[0] == float(Fraction(count) + Fraction(noise, grid))
    assert Fraction(source.scale) == Fraction(scale) * grid
    assert 2.0**39 <= source.scale < 2.0**40


def test_what_cannot_be_drawn_is_refused() -> None:
    for scale, numbers in ((2.0**40, 1), (math.nan, 1), (1.0, 2**31 + 1)):
        with pytest.raises(BadInputError):
            gaussian.check_gaussian(scale, numbers)


def analytic_delta(scale: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8, for sensitivity 1."""
    shift = 1 / scale
    return float(
        norm.cdf(shift / 2 - epsilon / shift)
        - math.exp(epsilon + norm.logcdf(-shift / 2 - epsilon / shift))
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "golden"),
    [(1.0, 1e-3, 2.5749), (1.0, 1e-5, 3.7306), (0.1, 1e-6, 36.305), (5.0, 1e-9, 1.2117)],
)
def test_one_measurement_has_analytic_scale(epsilon: float, delta: float, golden: float) -> None:
    scale = calibrate_gaussian_scale(epsilon, delta, 1.0)
    assert scale == pytest.approx(golden, rel=1e-4)
    assert analytic_delta(scale, epsilon) <= delta
    assert analytic_delta(scale * (1 - 1e-5), epsilon) > delta
    assert EXACT.epsilon((GaussianNoise(1.0, scale),), delta) <= epsilon


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
    refused(measured, np.zeros(entries), moves, Laplace(scale), charge * (1 - 1e-9))


def test_noise_follows_its_law_and_scales() -> None:
    """Chi-square at level 1e-4, fixed seeds; halves get noise of twice the scale in whole steps."""
    draws, moves = 20_000, Moves.of_entries(1, 1)
    for scales in (1.0, 2.0):
        noise = measured(np.full(draws, 5), moves, Laplace(1.5), 1.0, scales=scales) - 5
        assert noise.dtype == np.int64
        law, values = stats.dlaplace(1 / (1.5 * scales)), np.arange(-4, 5)
        expected = law.pmf(values) * draws
        seen = np.array([(noise == value).sum() for value in values])
        rest = draws - expected.sum(), draws - seen.sum()
        assert stats.chisquare(np.append(seen, rest[1]), np.append(expected, rest[0])).pvalue > 1e-4


def test_numbers_without_an_l1_bound_get_no_laplace_noise() -> None:
    with pytest.raises(Exception, match="a finite number"):
        measured([1, 2], Moves(np.inf, 1.0), Laplace(1.0), 1e9)

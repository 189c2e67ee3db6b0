import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, norm

from dualquery.privacy.accountants import exact
from dualquery.privacy.accountants.exact import FEW_DRAWS, ExactAccountant, gaussian_delta
from dualquery.privacy.accountants.formulas import AdvancedAccountant, ZcdpAccountant, rho_of
from dualquery.privacy.events import GameSchedule, GaussianNoise, LaplaceNoise, SampledQueries

Event = GaussianNoise | LaplaceNoise | SampledQueries
Float64 = NDArray[np.float64]
EXACT, ZCDP, ADVANCED = ExactAccountant(), ZcdpAccountant(), AdvancedAccountant()


def random_pair(rng: np.random.Generator, width: float, outcomes: int) -> tuple[Float64, Float64]:
    """Two distributions whose log-ratio has a range of exactly ``width``."""
    q = rng.dirichlet(np.full(outcomes, rng.choice([0.3, 1.0, 5.0])))
    q = np.maximum(q, 1e-9)
    q /= q.sum()
    tilt = rng.choice([rng.random(outcomes), np.round(rng.random(outcomes))])
    tilt[rng.permutation(outcomes)[:2]] = (0.0, 1.0)
    p = q * np.exp(width * tilt)
    return p / p.sum(), q


def random_adaptive_run(
    rng: np.random.Generator, events: tuple[Event, ...]
) -> tuple[Float64, Float64]:
    """Probabilities of all transcripts on two neighbours; each event's pair depends on the past."""
    p, q = np.ones(1), np.ones(1)
    for event in events:
        outcomes = int(rng.integers(3, 6)) if event.draws == 1 else 3
        next_p, next_q = [], []
        for history_p, history_q in zip(p, q, strict=True):
            step_p, step_q = random_pair(rng, event.range, outcomes)
            draws_p, draws_q = np.ones(1), np.ones(1)
            for _ in range(event.draws):
                draws_p = np.multiply.outer(draws_p, step_p).ravel()
                draws_q = np.multiply.outer(draws_q, step_q).ravel()
            next_p.append(history_p * draws_p)
            next_q.append(history_q * draws_q)
        p, q = np.concatenate(next_p), np.concatenate(next_q)
    return p, q


def delta_of_pair(p: Float64, q: Float64, epsilons: Float64) -> Float64:
    return np.maximum(p - np.exp(epsilons)[:, None] * q, 0.0).sum(axis=1)


def single_draw_delta(width: float, epsilons: Float64) -> Float64:
    """delta(epsilon) of one draw, for any sign of epsilon (DESIGN, exact adaptive composition)."""
    inside = -(np.expm1((np.clip(epsilons, -width, width) - width) / 2) ** 2)
    return np.where(
        epsilons >= width,
        0.0,
        np.where(epsilons <= -width, -np.expm1(epsilons), -inside / -np.expm1(-width)),
    )


def optimal_delta(widths: tuple[float, ...], epsilons: Float64) -> Float64:
    """The recursion over single draws, on a fine grid of t and no grid of epsilon."""
    if len(widths) == 1:
        return single_draw_delta(widths[0], epsilons)
    width = widths[0]
    t = np.linspace(0.0, width, 161)
    success = np.expm1(t - width) / np.expm1(-width)
    high = optimal_delta(widths[1:], (epsilons[:, None] - t).ravel()).reshape(-1, len(t))
    low = optimal_delta(widths[1:], (epsilons[:, None] - t + width).ravel()).reshape(-1, len(t))
    return (success * high + (1 - success) * low).max(axis=1)


def binomial_pair(width: float, draws: int, t: float) -> tuple[Float64, Float64]:
    """The number of losses t among ``draws`` draws from the two-point pair with t and t - width."""
    k = np.arange(draws + 1)
    p = binom.pmf(k, draws, math.expm1(t - width) / math.expm1(-width))
    return p, p * np.exp(-(k * t + (draws - k) * (t - width)))


def iid_delta(width: float, draws: int, epsilons: Float64) -> Float64:
    """The best two-point pair of ``draws`` draws from one distribution, on a fine grid of t."""
    best = np.zeros_like(epsilons)
    for t in np.linspace(0.0, width, 801)[1:-1]:
        best = np.maximum(best, delta_of_pair(*binomial_pair(width, draws, float(t)), epsilons))
    return best


SMALL_RUNS = [
    ((SampledQueries(2.0, 1),), 400),
    ((SampledQueries(0.7, 3),), 400),
    ((SampledQueries(0.5, 6),), 200),
    ((SampledQueries(1.0, 1), SampledQueries(0.5, 1)), 400),
    ((SampledQueries(0.5, 2), SampledQueries(1.5, 1)), 300),
    ((SampledQueries(0.6, 1), SampledQueries(0.9, 2), SampledQueries(0.5, 1)), 100),
    ((SampledQueries(0.8, 1),) * 4, 60),
]


@pytest.mark.parametrize("few_draws", [1, FEW_DRAWS], ids=["at once", "draw by draw"])
@pytest.mark.parametrize(("events", "runs"), SMALL_RUNS)
def test_never_below_the_true_delta_of_random_adaptive_runs(
    events: tuple[Event, ...], runs: int, few_draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "FEW_DRAWS", few_draws)
    rng = np.random.default_rng(20140131)
    total = sum(e.range * e.draws for e in events if isinstance(e, SampledQueries))
    epsilons = np.linspace(0.0, 0.95 * total, 12)
    stated = np.array([EXACT.delta(events, float(e)) for e in epsilons])
    for _ in range(runs):
        p, q = random_adaptive_run(rng, events)
        assert np.all(delta_of_pair(p, q, epsilons) <= stated + 1e-15)
        assert np.all(delta_of_pair(q, p, epsilons) <= stated + 1e-15)


def test_never_below_two_events_of_many_draws_with_an_adaptive_second_pair() -> None:
    rng = np.random.default_rng(3)
    events = (SampledQueries(0.2, 40), SampledQueries(0.3, 35))
    epsilons = np.linspace(0.0, 6.0, 25)
    stated = np.array([EXACT.delta(events, float(e)) for e in epsilons])
    for _ in range(300):
        p1, q1 = binomial_pair(0.2, 40, 0.2 * rng.beta(8, 8))
        p, q = [], []
        skewness = rng.uniform(2, 40, 2)
        for first_p, first_q in zip(p1, q1, strict=True):
            p2, q2 = binomial_pair(0.3, 35, 0.3 * rng.beta(*skewness))
            p.append(first_p * p2)
            q.append(first_q * q2)
        true = delta_of_pair(np.concatenate(p), np.concatenate(q), epsilons)
        assert np.all(true <= stated * (1 + 1e-12))


@pytest.mark.parametrize("widths", [(1.5,), (0.5, 0.5), (1.0, 0.4), (0.8, 0.8, 0.8)])
def test_within_2_percent_of_the_adaptive_optimum(widths: tuple[float, ...]) -> None:
    epsilons = np.linspace(0.0, 0.9 * sum(widths), 10)
    optimum = optimal_delta(widths, epsilons)
    stated = np.array(
        [EXACT.delta(tuple(SampledQueries(w, 1) for w in widths), float(e)) for e in epsilons]
    )
    assert np.all(stated >= optimum * (1 - 1e-12))
    assert np.all(stated <= optimum * 1.02 + 1e-6)


@pytest.mark.parametrize(
    ("width", "draws", "excess"), [(0.1, FEW_DRAWS, 0.06), (0.1, 40, 0.05), (0.02, 1000, 0.015)]
)
def test_close_to_the_best_pair_of_one_event(width: float, draws: int, excess: float) -> None:
    deviation = 0.5 * width * math.sqrt(draws)
    epsilons = np.linspace(0.0, 7.5 * deviation, 19)
    optimum = iid_delta(width, draws, epsilons)
    stated = np.array([EXACT.delta((SampledQueries(width, draws),), float(e)) for e in epsilons])
    assert np.all(stated >= optimum * (1 - 1e-9))
    usual = epsilons <= 2.5 * deviation
    assert np.all(stated[usual] <= optimum[usual] * (1 + excess))


@pytest.mark.parametrize(("shift", "copies"), [(0.3, 1), (1.0, 1), (0.1, 25), (3.0, 1)])
def test_gaussian_noise_is_the_closed_form(shift: float, copies: int) -> None:
    events = (GaussianNoise(shift, 1.0),) * copies
    total = shift * math.sqrt(copies)
    for epsilon in np.linspace(0.0, 3.5 * total, 8):
        true = float(
            norm.cdf(total / 2 - epsilon / total)
            - math.exp(epsilon) * norm.cdf(-total / 2 - epsilon / total)
        )
        assert true * (1 - 1e-9) <= EXACT.delta(events, float(epsilon)) <= true * 1.01


def test_gaussian_noise_in_the_recursion_is_the_closed_form() -> None:
    """A pure mechanism that costs next to nothing sends the noises through the recursion."""
    noises = (GaussianNoise(0.1, 1.0),) * 25
    for epsilon in (0.1, 0.5, 1.5):
        closed = EXACT.delta(noises, epsilon)
        assert closed <= EXACT.delta((*noises, LaplaceNoise(1e-7)), epsilon) <= closed * 1.01


def test_gaussian_delta_far_in_the_tail() -> None:
    # Phi(-b) exp(epsilon) is nearly Phi(-a): the naive difference has no digit left here.
    value = float(gaussian_delta(0.01, np.array([0.3]))[0])
    # Phi(-a) - exp(eps) Phi(-b) = int_0^inf (1 - exp(-shift x)) phi(a + x) dx
    x = np.linspace(0.0, 2.0, 400_001)
    integral = np.trapezoid(-np.expm1(-0.01 * x) * norm.pdf(0.3 / 0.01 - 0.005 + x), x)
    assert value == pytest.approx(float(integral), rel=1e-6)


def test_a_pure_mechanism_is_randomised_response() -> None:
    for epsilon in (0.0, 0.2, 0.49):
        p = 1 / (1 + math.exp(-0.5))
        true = p - math.exp(epsilon) * (1 - p)
        assert true <= EXACT.delta((LaplaceNoise(0.5),), epsilon) <= true * 1.01 + 1e-6
    assert EXACT.delta((LaplaceNoise(0.5),), 0.51) == 0.0


def test_mixed_events_dominate_enumeration() -> None:
    """A draw, then randomised response, then Gaussian noise whose sensitivity is used or not."""
    events = (SampledQueries(1.0, 2), LaplaceNoise(0.5), GaussianNoise(1.0, 2.0))
    rng, epsilons = np.random.default_rng(7), np.linspace(0.0, 2.5, 8)
    stated = np.array([EXACT.delta(events, float(e)) for e in epsilons])
    response = 1 / (1 + math.exp(-0.5))
    for _ in range(200):
        p, q = random_adaptive_run(rng, (events[0],))
        p = np.concatenate([p * response, p * (1 - response)])
        q = np.concatenate([q * (1 - response), q * response])
        left = epsilons[:, None] - np.log(p / q)
        # delta of the Gaussian at any threshold, negative ones by symmetry.
        tail = gaussian_delta(0.5, np.abs(left))
        tail = np.where(left < 0, -np.expm1(left) + np.exp(left) * tail, tail)
        assert np.all((p * tail).sum(axis=1) <= stated)


@settings(max_examples=25, deadline=None)
@given(
    rounds=st.integers(2, 12),
    samples=st.integers(1, 500),
    rho=st.floats(1e-3, 0.5),
    log_delta=st.floats(-20.0, -3.0),
)
def test_never_worse_than_zcdp_by_more_than_half_a_percent(rounds, samples, rho, log_delta) -> None:
    unit = GameSchedule(rounds, samples, 1.0, 10_000)
    schedule = GameSchedule(rounds, samples, math.sqrt(rho / rho_of(unit)), 10_000)
    delta = math.exp(log_delta)
    epsilon = EXACT.epsilon(schedule, delta)
    assert epsilon <= ZCDP.epsilon(schedule, delta) * 1.005
    if 0 < epsilon < 0.999 * ADVANCED.epsilon(schedule, 0.0):
        assert EXACT.delta(schedule, epsilon) == pytest.approx(delta, rel=0.01)


def test_what_it_refuses() -> None:
    events = (SampledQueries(0.1, 1),)
    assert EXACT.supports(events, 1e-6) is None
    assert "delta" in (EXACT.supports(events, 0.0) or "")
    assert "rho" in (EXACT.supports((GaussianNoise(100.0, 1.0),), 1e-6) or "")
    assert "draws" in (EXACT.supports((SampledQueries(1e-9, 10**7),), 1e-6) or "")
    assert "events" in (EXACT.supports((SampledQueries(1e-9, 1),) * 6000, 1e-6) or "")


def test_nothing_costs_nothing_and_pure_is_pure() -> None:
    assert EXACT.epsilon((SampledQueries(0.0, 5), GaussianNoise(0.0, 1.0)), 1e-6) == 0.0
    events = (SampledQueries(0.01, 3),)
    assert EXACT.delta(events, 0.0301) == 0.0
    assert EXACT.epsilon(events, 1e-12) <= 0.03 * (1 + 1e-9)


@pytest.mark.parametrize("draws", [32, 500, 10**6])
def test_pieces_cover_the_interval(draws: int) -> None:
    edges = np.array(exact.piece_edges(draws))
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    assert np.all(np.diff(edges) > 0)
    # The widened pair of a piece has losses b and a - 1: variance about b (1 - a), at most 0.2%
    # above that of the centre.
    assert np.max(edges[1:] * (1 - edges[:-1])) <= 0.25 * 1.002 + 1e-12


def test_the_smallest_ranges_are_not_understated() -> None:
    """One draw has a closed form (DESIGN): (1 - e^((eps - r) / 2))^2 / (1 - e^-r)."""
    for width in (1e-9, 1e-10, 1e-11, 3e-13):
        event = (SampledQueries(width, 1),)
        for share in (0.0, 0.3, 0.7):
            epsilon = share * width
            truth = math.expm1((epsilon - width) / 2) ** 2 / -math.expm1(-width)
            assert ExactAccountant().delta(event, epsilon) >= truth

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dualquery.privacy import events
from dualquery.privacy.accountants import formulas
from dualquery.privacy.accountants.choice import ACCOUNTANTS, best, choices
from dualquery.privacy.calibrate import rho_for
from dualquery.privacy.events import GameSchedule, GaussianNoise, LaplaceNoise, SampledQueries
from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError

PAPER, ADVANCED = formulas.PaperAccountant(), formulas.AdvancedAccountant()
ZCDP = formulas.ZcdpAccountant()
ADULT = GameSchedule(rounds=40, samples=1000, step=0.8, n=30162)

schedules = st.builds(
    GameSchedule,
    rounds=st.integers(2, 200),
    samples=st.integers(1, 3000),
    step=st.floats(1e-3, 10.0),
    n=st.integers(100, 10**6),
)
deltas = st.floats(1e-12, 0.3)


def log_delta_at_order(order: float, rho: float, epsilon: float) -> float:
    """Canonne, Kamath, Steinke 2020, Corollary 13, before the infimum."""
    moment = (order - 1) * (order * rho - epsilon)
    return moment + order * math.log1p(-1 / order) - math.log(order - 1)


def test_a_game_draws_in_every_round_but_the_first() -> None:
    assert GameSchedule(rounds=4, samples=7, step=0.5, n=100).events() == tuple(
        SampledQueries(2 * 0.5 * played / 100 + events.RANGE_SLACK, 7) for played in (1, 2, 3)
    )
    assert GameSchedule(rounds=1, samples=7, step=0.5, n=100).events() == ()


def test_rho_of_a_game_is_the_closed_form() -> None:
    s, eta, T, n = 1000, 0.8, 40, 30162
    expected = s * eta**2 * (T - 1) * T * (2 * T - 1) / (12 * n**2)
    assert formulas.rho_of(ADULT) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("event", "rho", "pure"),
    [
        (SampledQueries(0.5, 3), 3 * 0.25 / 8, 1.5),
        (GaussianNoise(3.0, 2.0), 9 / 8, math.inf),
        (GaussianNoise(0.0, 2.0), 0.0, 0.0),
        (LaplaceNoise(0.5), 0.125, 0.5),
    ],
)
def test_costs_of_one_event(event, rho: float, pure: float) -> None:
    assert events.zcdp_rho(event) == pytest.approx(rho)
    assert events.pure_epsilon(event) == pytest.approx(pure)


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (lambda: SampledQueries(-1.0, 1), "-1.0"),
        (lambda: SampledQueries(1.0, 0), "draws is 0"),
        (lambda: GaussianNoise(1.0, 0.0), "scale of gaussian noise is 0.0"),
        (lambda: LaplaceNoise(-0.1), "-0.1"),
        (lambda: GameSchedule(0, 1, 1.0, 10), "rounds is 0"),
        (lambda: GameSchedule(1, 1, 1.0, 1), "records is 1"),
        (lambda: Neighbours.parse("friends"), "'friends' is not a neighbouring relation"),
    ],
)
def test_bad_events_say_what_was_found(build, found: str) -> None:
    with pytest.raises(BadInputError, match=found):
        build()


def test_theorem_41_as_printed() -> None:
    expected = 4 * 0.8 * 40 * math.sqrt(2 * 1000 * 40 * math.log(1000)) / 30162
    assert PAPER.epsilon(ADULT, 1e-3) == pytest.approx(expected, rel=1e-9)
    assert expected == pytest.approx(3.1547, abs=1e-4)


@given(schedules, deltas)
def test_theorem_41_is_never_below_the_lemma_it_rests_on(schedule, delta: float) -> None:
    assume(PAPER.supports(schedule, delta) is None)
    draws = schedule.samples * (schedule.rounds - 1)
    largest = max(event.range for event in schedule.events())
    lemma = math.sqrt(2 * math.log(1 / delta) * draws) * largest
    lemma += draws * largest * math.expm1(largest)
    assert lemma <= PAPER.epsilon(schedule, delta)


def test_theorem_41_is_refused_where_the_lemma_is_above_it() -> None:
    schedule = GameSchedule(rounds=100, samples=10_000, step=1.0, n=1000)
    assert "does not follow from Lemma 2.3" in PAPER.supports(schedule, 1e-3)
    draw = 2 * schedule.step * schedule.rounds / schedule.n
    draws = schedule.samples * schedule.rounds
    assert draws * draw * math.expm1(draw) > (math.sqrt(2 * math.log(1e3) * draws) * draw)
    assert PAPER.epsilon(schedule, 1e-3) == math.inf


def test_theorem_41_is_about_the_game_only() -> None:
    assert "DualQuery" in (PAPER.supports(ADULT.events(), 1e-3) or "")
    assert "delta > 0" in (PAPER.supports(ADULT, 0.0) or "")


def test_advanced_is_the_formula() -> None:
    ranges = [event.range for event in ADULT.events()]
    squares = 1000 * sum(r * r for r in ranges)
    drift = 1000 * sum(r * math.expm1(r) for r in ranges)
    expected = drift + math.sqrt(2 * math.log(1e3) * squares)
    assert ADVANCED.epsilon(ADULT, 1e-3) == pytest.approx(expected, rel=1e-9)
    assert ADVANCED.epsilon(ADULT, 0.0) == pytest.approx(1000 * sum(ranges), rel=1e-9)
    assert ADVANCED.epsilon((SampledQueries(700.0, 1),) * 9, 1e-3) == pytest.approx(6300.0)


def test_advanced_refuses_gaussian_noise() -> None:
    both = (SampledQueries(0.1, 1), GaussianNoise(1.0, 10.0))
    assert "Gaussian" in (ADVANCED.supports(both, 1e-3) or "")
    assert ADVANCED.supports((LaplaceNoise(0.1),), 0.0) is None


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.05, 1.0, 20.0])
@pytest.mark.parametrize("epsilon", [1e-2, 0.3, 1.0, 5.0])
def test_the_conversion_is_the_optimum_over_orders(rho: float, epsilon: float) -> None:
    best_order = minimize_scalar(
        lambda x: log_delta_at_order(1 + math.exp(x), rho, epsilon), bounds=(-12, 20)
    )
    # dp_accounting also uses delta <= sqrt(1 - exp(-KL)), with KL at most the smallest order's.
    optimum = min(math.exp(best_order.fun), math.sqrt(-math.expm1(-rho)))
    if optimum > 1e-300:
        assert optimum * (1 - 1e-6) <= formulas.delta_from_rho(rho, epsilon) <= optimum * 1.02


@given(st.floats(1e-6, 10.0), st.floats(1e-12, 1e-2))
def test_the_conversion_inverts(rho: float, delta: float) -> None:
    epsilon = formulas.epsilon_from_rho(rho, delta)
    assume(epsilon > 0)
    assert formulas.delta_from_rho(rho, epsilon) == pytest.approx(delta, rel=1e-3)
    assert rho_for(epsilon, delta) == pytest.approx(rho, rel=1e-3)
    assert formulas.epsilon_from_rho(rho_for(epsilon, delta), delta) <= epsilon


def test_zcdp_gives_nothing_at_delta_0() -> None:
    assert "delta = 0" in (ZCDP.supports(ADULT, 0.0) or "")
    assert formulas.epsilon_from_rho(0.1, 0.0) == math.inf
    assert formulas.epsilon_from_rho(0.0, 0.0) == 0.0
    assert formulas.delta_from_rho(0.0, 0.1) == 0.0


@pytest.mark.parametrize("accountant", [PAPER, ADVANCED, ZCDP])
@given(schedule=schedules, delta=deltas)
def test_cost_rises_with_parameters_falls_with_delta(accountant, schedule, delta: float) -> None:
    more = [
        GameSchedule(schedule.rounds + 1, schedule.samples, schedule.step, schedule.n),
        GameSchedule(schedule.rounds, schedule.samples + 1, schedule.step, schedule.n),
        GameSchedule(schedule.rounds, schedule.samples, schedule.step * 1.01, schedule.n),
        GameSchedule(schedule.rounds, schedule.samples, schedule.step, schedule.n - 1),
    ]
    # Theorem 4.1 holds for small delta only: for all of these where it does at the largest.
    assume(all(accountant.supports(one, delta) is None for one in [schedule, *more]))
    cost = accountant.epsilon(schedule, delta)
    assume(cost > 0)
    assert all(accountant.epsilon(larger, delta) >= cost * (1 - 1e-9) for larger in more)
    assert accountant.epsilon(schedule, delta / 2) >= cost * (1 - 1e-9)


@pytest.mark.parametrize("accountant", [PAPER, ADVANCED, ZCDP])
@given(schedule=schedules, delta=st.floats(1e-9, 1e-2))
@example(schedule=GameSchedule(rounds=2, samples=2, step=2.0, n=270), delta=0.00632)
def test_delta_and_epsilon_agree(accountant, schedule, delta: float) -> None:
    assume(accountant.supports(schedule, delta) is None)
    epsilon = accountant.epsilon(schedule, delta)
    # Delta is 0 where plain summing is the smaller bound, and Pinsker's bound at tiny costs.
    assume(1e-6 < epsilon < 20 and accountant.delta(schedule, epsilon) > 0)
    assert accountant.delta(schedule, epsilon) == pytest.approx(delta, rel=0.01)


def test_auto_is_the_smallest_of_the_valid_ones() -> None:
    accountant, epsilon = best(ADULT, 1e-3)
    assert accountant.name == "exact"
    valid = [a for a in ACCOUNTANTS if a.supports(ADULT, 1e-3) is None]
    assert valid == [*ACCOUNTANTS]
    assert epsilon == min(a.epsilon(ADULT, 1e-3) for a in valid)


def test_a_named_accountant_that_is_not_valid_is_refused_with_its_reason() -> None:
    with pytest.raises(BadInputError, match=r"paper: Theorem 4\.1 is about DualQuery"):
        best(ADULT.events(), 1e-3, "paper")
    with pytest.raises(BadInputError, match=r"'magic' is unknown \(known: auto, paper"):
        choices("magic")


def test_an_empty_schedule_costs_nothing() -> None:
    assert events.events_of(()) == ()
    for accountant in (ADVANCED, ZCDP, choices("exact")[0]):
        assert accountant.epsilon((), 1e-6) == 0.0
        assert accountant.delta((), 0.1) == 0.0


@pytest.mark.parametrize("width", [1e-7, 1e-8, 1e-10])
def test_tiny_costs_have_a_delta(width: float) -> None:
    schedule = (SampledQueries(width, 1),)
    single_draw = math.expm1(-width / 2) ** 2 / -math.expm1(-width)
    assert single_draw <= formulas.ZcdpAccountant().delta(schedule, 0.0) < 10 * width


def test_a_schedule_of_a_derived_type_is_refused() -> None:
    """It could be priced as one thing and charged as another."""

    class Longer(GameSchedule):
        def events(self):
            return (*super().events(), GaussianNoise(1.0, 1e-6))

    class Silent(tuple):
        __slots__ = ()

        def __iter__(self):
            return iter(())

    class Cheap(GaussianNoise):
        pass

    for run in (Longer(3, 2, 0.1, 100), Silent((GaussianNoise(1.0, 1e-6),)), (Cheap(1.0, 1e-6),)):
        with pytest.raises(TypeError, match=r"is no (schedule|event)"):
            events.events_of(run)

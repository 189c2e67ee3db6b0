import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dualquery.privacy import calibrate
from dualquery.privacy.accountants.choice import ACCOUNTANTS, best, choices
from dualquery.privacy.calibrate import calibrate_game, calibrate_rho, largest_that_fits
from dualquery.privacy.events import GaussianNoise
from dualquery.privacy.guarantee import PrivacyStatement, check_budget, default_delta
from dualquery.runtime.errors import BadInputError

NAMES = [a.name for a in ACCOUNTANTS]


def epsilon_of(schedule, delta: float, name: str) -> float:
    """Epsilon of one accountant, infinite where it is not valid."""
    (accountant,) = choices(name)
    if accountant.supports(schedule, delta) is not None:
        return math.inf
    return accountant.epsilon(schedule, delta)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "given",
    [
        {"rounds": 20, "samples": 200},
        {"rounds": 60, "step": 0.1},
        {"rounds": 20, "step": 0.5},
        {"samples": 200, "step": 0.5},
        {"samples": 10, "step": 2.0},
    ],
    ids=str,
)
def test_the_largest_of_what_is_open(name: str, given) -> None:
    epsilon, delta = 1.0, 1e-4
    found = calibrate_game(epsilon, delta, 30162, **given, accountant=name)
    assert found.accountant == name
    assert found.epsilon == epsilon_of(found.schedule, delta, name) <= epsilon
    (opened,) = {"rounds", "samples", "step"} - {*given}
    assert {**given, opened: found.value} == {
        each: getattr(found.schedule, each) for each in (*given, opened)
    }
    more = found.value * 1.001 if opened == "step" else found.value + 1
    assert epsilon_of(replace(found.schedule, **{opened: more}), delta, name) > epsilon


@pytest.mark.parametrize("cost", [lambda x: x**2, lambda x: x + x**3, lambda x: 2 * (x > 7) + 0.5])
@pytest.mark.parametrize("guess", [1e-6, 3.0, 1e9])
def test_the_search_finds_the_largest(cost, guess) -> None:
    found, spent = largest_that_fits(cost, 2.0, 1e-9, guess, 1e-8)
    assert spent == cost(found) <= 2.0 < cost(found * (1 + 1e-7))
    found, spent = largest_that_fits(lambda n: cost(n / 100), 2.0, 1, guess, 0.0, whole=True)
    assert spent == cost(found / 100) <= 2.0 < cost((found + 1) / 100)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: calibrate.calibrate_gaussian_scale(1.0, 0.0, 1.0), "delta between 0 and 1"),
        (lambda: calibrate.calibrate_gaussian_scale(1.0, 1e-6, -1.0), "sensitivity is -1.0"),
        (lambda: calibrate_rho(lambda _: (GaussianNoise(1.0, 1.0),), 0.1, 1e-9), "Even very large"),
        (lambda: calibrate_rho(lambda _: (GaussianNoise(1.0, 99.0),), 1.0, 1e-9), "No noise is"),
    ],
)
def test_noise_that_cannot_be_calibrated(build, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        build()


def test_auto_is_the_largest_of_all() -> None:
    def solved(name: str):
        return calibrate_game(1.0, 1e-3, 30162, rounds=20, samples=200, accountant=name)

    steps = {name: solved(name).schedule.step for name in NAMES}
    found = solved("auto")
    assert found.accountant == "exact"
    assert found.schedule.step == max(steps.values())
    # The order of the paper's table: 8.9 times Theorem 4.1's step and more.
    assert steps["zcdp"] > 8.5 * steps["paper"]
    assert 1.10 * steps["zcdp"] < steps["exact"] < 1.14 * steps["zcdp"]
    assert best(found.schedule, 1e-3)[1] <= 1.0


def test_delta_0_uses_basic_composition() -> None:
    found = calibrate_game(1.0, 0.0, 30162, rounds=20, samples=200)
    assert found.accountant == "advanced"
    assert 200 * 2 * found.schedule.step / 30162 * sum(range(1, 20)) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("budget", "given", "message"),
    [
        ((0.01, 1e-9, 100), {"rounds": 50, "step": 5.0}, "zcdp: even samples = 1 costs epsilon"),
        ((0.01, 1e-9, 100), {"samples": 50, "step": 5.0, "accountant": "exact"},
         "exact: even rounds = 2 costs epsilon"),
        ((1e-13, 1e-9, 10**6), {"rounds": 50, "samples": 10**6, "accountant": "advanced"},
         "advanced: even step = .* costs epsilon"),
        ((1.0, 0.0, 100), {"rounds": 5, "samples": 5, "accountant": "zcdp"}, "zcdp: .* delta = 0"),
        ((1.0, 1e-6, 100), {"rounds": 1, "samples": 5}, "every step fits"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_which_bound_failed(budget, given, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        calibrate_game(*budget, **given)


def test_laplace_scale() -> None:
    assert calibrate.laplace_scale(0.5, 2.0) == pytest.approx(4.0)
    assert 2.0 / calibrate.laplace_scale(0.3, 2.0) <= 0.3


def test_default_delta() -> None:
    assert default_delta(30162) == pytest.approx(1 / 30162**2)
    with pytest.raises(BadInputError, match="1 record; a private release needs"):
        default_delta(1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "message"),
    [
        (0.0, 0.1, 10, "--epsilon is 0.0"),
        (1e-300, 0.1, 10, "--epsilon is 1e-300; nothing below 1e-06 is taken"),
        (math.nan, 0.1, 10, "--epsilon is nan"),
        (1.0, -0.1, 10, "--delta is -0.1"),
        (1.0, 1.0, 10, "--delta is 1.0"),
        (1.0, 0.1, 1, "1 record; a private release needs"),
    ],
)
def test_a_budget_that_makes_no_sense(epsilon: float, delta: float, n: int, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        check_budget(epsilon, delta, n)


@pytest.mark.parametrize(
    ("epsilon", "delta", "facts"),
    [
        (10.0, 0.0, ()),
        (1.0, 1e-4, ()),
        (1.0, 0.001, ("1/n",)),
        (1.0, 0.01, ("1,000 records", "0.01")),
        (10.5, 1e-7, ("10^4 times",)),
        (1e4, 1e-7, ("10^4342 times",)),
    ],
)
def test_a_large_delta_or_epsilon_is_warned_about(epsilon, delta, facts) -> None:
    warnings = check_budget(epsilon, delta, 1000)
    assert len(warnings) == bool(facts)
    assert [fact for fact in facts if fact not in warnings[0]] == []


@given(st.floats(1e-12, 100.0), st.floats(0.0, 0.5))
def test_printed_figures_are_never_below_the_guarantee(epsilon: float, delta: float) -> None:
    assume(delta == 0 or delta > 1e-200)
    told = PrivacyStatement(private=True, epsilon=epsilon, delta=delta, accountant="x")
    assert PrivacyStatement.from_dict(told.to_dict()) == told
    text = told.text()
    printed = text[text.index("(") + 1 : text.index(")")].split(", ")
    for figure, value in zip(map(float, printed), (epsilon, delta), strict=True):
        assert value <= figure <= value * 1.00002


def test_a_statement_that_is_not_private_has_no_figures() -> None:
    statement = PrivacyStatement.not_private("the seed was fixed", "the schema read the data")
    assert set(statement.to_dict()) == {"private", "reasons_not_private"}
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
    assert (statement.epsilon, statement.neighbours) == (None, "")
    assert statement.text() == (
        "This release is not private: the seed was fixed; the schema read the data."
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"private": False},
        {"private": False, "epsilon": 1.0, "reasons_not_private": ("seed",)},
        {"private": True},
        {"private": True, "epsilon": math.inf, "delta": 0.0, "accountant": "x"},
        {"private": True, "epsilon": 1.0, "delta": 1.0, "accountant": "x"},
        {"private": True, "epsilon": 1.0, "delta": 0.0, "accountant": "x",
         "reasons_not_private": ("seed",)},
    ],
)  # fmt: skip
def test_a_statement_cannot_contradict_itself(fields) -> None:
    with pytest.raises(BadInputError):
        PrivacyStatement(**fields)

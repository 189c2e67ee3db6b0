from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualquery.privacy.accountants.choice import ACCOUNTANTS, best, choices
from dualquery.privacy.budget import check_budget, default_delta
from dualquery.privacy.calibrate import (
    calibrate_game,
    laplace_scale,
)
from dualquery.privacy.statement import PrivacyStatement
from dualquery.runtime.errors import BadInputError

NAMES = [a.name for a in ACCOUNTANTS]


def epsilon_of(schedule, delta: float, name: str) -> float:
    """Epsilon of one accountant, infinite where it is not valid."""
    (accountant,) = choices(name)
    if accountant.supports(schedule, delta) is not None:
        return math.inf
    return accountant.epsilon(schedule, delta)


# --- the largest that fits ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.1, 1e-9), (4.0, 1e-6)])
def test_the_largest_step(name: str, epsilon: float, delta: float) -> None:
    found = calibrate_game(epsilon, delta, 30162, rounds=20, samples=200, accountant=name)
    assert found.accountant == name
    assert found.epsilon == epsilon_of(found.schedule, delta, name) <= epsilon
    assert (found.schedule.rounds, found.schedule.samples, found.schedule.n) == (20, 200, 30162)
    larger = replace(found.schedule, step=found.schedule.step * 1.001)
    assert epsilon_of(larger, delta, name) > epsilon


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("step", "rounds"), [(0.5, 20), (0.1, 60)])
def test_the_largest_samples(name: str, step: float, rounds: int) -> None:
    found = calibrate_game(1.0, 1e-4, 30162, rounds=rounds, step=step, accountant=name)
    assert found.epsilon <= 1.0
    larger = replace(found.schedule, samples=found.schedule.samples + 1)
    assert epsilon_of(larger, 1e-4, name) > 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("step", "samples"), [(0.5, 200), (2.0, 10)])
def test_the_largest_rounds(name: str, step: float, samples: int) -> None:
    found = calibrate_game(1.0, 1e-4, 30162, samples=samples, step=step, accountant=name)
    assert found.epsilon <= 1.0
    larger = replace(found.schedule, rounds=found.schedule.rounds + 1)
    assert epsilon_of(larger, 1e-4, name) > 1.0


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(0.01, 10.0),
    log_delta=st.floats(-25.0, -3.0),
    n=st.integers(100, 10**6),
    rounds=st.integers(2, 100),
    samples=st.integers(1, 2000),
    name=st.sampled_from(["paper", "advanced", "zcdp"]),
)
def test_round_trips(
    epsilon: float, log_delta: float, n: int, rounds: int, samples: int, name: str
) -> None:
    """step -> samples and step -> rounds give back what the step was calibrated for."""
    delta = math.exp(log_delta)
    found = calibrate_game(epsilon, delta, n, rounds=rounds, samples=samples, accountant=name)
    assert found.epsilon <= epsilon
    step = found.schedule.step
    # A step within 1e-4 of the largest leaves room for 2e-4 more samples, or for none.
    back = calibrate_game(
        epsilon, delta, n, rounds=rounds, step=step, accountant=name
    ).schedule.samples
    assert samples <= back <= samples * 1.001 + 1
    most = calibrate_game(
        epsilon, delta, n, samples=samples, step=step, accountant=name
    ).schedule.rounds
    assert rounds <= most
    assert most <= rounds + 1


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
    draws = 200 * 2 * found.schedule.step / 30162 * sum(range(1, 20))
    assert draws == pytest.approx(1.0, rel=1e-3)


# --- what does not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: calibrate_game(0.01, 1e-9, 100, rounds=50, step=5.0),
            "zcdp: even samples = 1 costs epsilon",
        ),
        (
            lambda: calibrate_game(0.01, 1e-9, 100, samples=50, step=5.0, accountant="exact"),
            "exact: even rounds = 2 costs epsilon",
        ),
        (
            lambda: calibrate_game(
                1e-13, 1e-9, 10**6, rounds=50, samples=10**6, accountant="advanced"
            ),
            "advanced: even step = .* costs epsilon",
        ),
        (
            lambda: calibrate_game(1.0, 0.0, 100, rounds=5, samples=5, accountant="zcdp"),
            "zcdp: .* delta = 0",
        ),
        (
            lambda: calibrate_game(1.0, 1e-6, 100, rounds=5, samples=5, accountant="magic"),
            "'magic' is unknown",
        ),
        (lambda: calibrate_game(1.0, 1e-6, 100, rounds=1, samples=5), "every step fits"),
        (lambda: calibrate_game(1.0, 1e-6, 100, rounds=1, step=5.0), "any samples fit"),
        (lambda: calibrate_game(1.0, 1e-6, 100, rounds=0, samples=5), "rounds is 0"),
        (lambda: calibrate_game(-1.0, 1e-6, 100, rounds=5, samples=5), "Epsilon is -1.0"),
        (lambda: laplace_scale(math.inf, 1.0), "Epsilon is inf"),
    ],
)
def test_what_does_not_fit_says_which_bound_failed(build, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        build()


# --- noise ----------------------------------------------------------------------------------


def test_laplace_scale() -> None:
    assert laplace_scale(0.5, 2.0) == pytest.approx(4.0)
    assert 2.0 / laplace_scale(0.3, 2.0) <= 0.3


# --- budget ---------------------------------------------------------------------------------


def test_default_delta() -> None:
    assert default_delta(30162) == pytest.approx(1 / 30162**2)
    with pytest.raises(BadInputError, match="1 record; a private release needs"):
        default_delta(1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "message"),
    [
        (0.0, 0.1, 10, "--epsilon is 0.0"),
        (-1.0, 0.1, 10, "--epsilon is -1.0"),
        (1e-300, 0.1, 10, "--epsilon is 1e-300; nothing below 1e-06 is taken"),
        (math.inf, 0.1, 10, "--epsilon is inf"),
        (math.nan, 0.1, 10, "--epsilon is nan"),
        (1.0, -0.1, 10, "--delta is -0.1"),
        (1.0, 1.0, 10, "--delta is 1.0"),
        (1.0, math.nan, 10, "--delta is nan"),
        (1.0, 0.1, 1, "1 record; a private release needs"),
    ],
)
def test_a_budget_that_makes_no_sense(epsilon: float, delta: float, n: int, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        check_budget(epsilon, delta, n)


def test_a_large_delta_is_warned_about() -> None:
    assert check_budget(1.0, 1e-4, 1000) == ()
    assert check_budget(1.0, 0.0, 1000) == ()
    (warning,) = check_budget(1.0, 0.01, 1000)
    assert "not below 1/n" in warning
    assert "publishes each of the 1,000 records, whole, with a chance of 0.01" in warning
    assert check_budget(1.0, 0.001, 1000) != ()


def test_a_large_epsilon_is_warned_about() -> None:
    assert check_budget(10.0, 1e-7, 1000) == ()
    (warning,) = check_budget(10.5, 1e-7, 1000)
    assert "above 10: what is released may be 10^4 times as likely" in warning
    (largest,) = check_budget(1e4, 1e-7, 1000)
    assert "10^4342 times" in largest
    assert len(check_budget(20.0, 0.5, 1000)) == 2


# --- statement ------------------------------------------------------------------------------


def test_a_private_statement() -> None:
    statement = PrivacyStatement(
        private=True,
        epsilon=1 / 3,
        delta=1e-9,
        accountant="zcdp",
        assumptions=("By a theorem.",),
        numerical_assumptions=("Draws are exact.",),
    )
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
    text = statement.text()
    assert "(0.333334, 1e-09)-differentially private" in text
    assert "replace one record, n public" in text
    assert text.endswith("By a theorem. Draws are exact.")


@given(st.floats(1e-12, 100.0), st.floats(0.0, 0.5))
def test_printed_figures_are_never_below_the_guarantee(epsilon: float, delta: float) -> None:
    assume(delta == 0 or delta > 1e-200)
    text = PrivacyStatement(private=True, epsilon=epsilon, delta=delta, accountant="x").text()
    printed = text[text.index("(") + 1 : text.index(")")].split(", ")
    for figure, value in zip(map(float, printed), (epsilon, delta), strict=True):
        assert value <= figure <= value * 1.00002


def test_a_statement_that_is_not_private_has_no_figures() -> None:
    statement = PrivacyStatement.not_private("the seed was fixed", "the schema read the data")
    assert set(statement.to_dict()) == {"private", "reasons_not_private"}
    assert PrivacyStatement.from_dict(statement.to_dict()) == statement
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
        {
            "private": True,
            "epsilon": 1.0,
            "delta": 0.0,
            "accountant": "x",
            "reasons_not_private": ("seed",),
        },
    ],
)
def test_a_statement_cannot_contradict_itself(fields) -> None:
    with pytest.raises(BadInputError):
        PrivacyStatement(**fields)

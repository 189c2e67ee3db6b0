"""Options are checked when they are given, before anything is read."""

from __future__ import annotations

import dataclasses

import pytest

from dualquery.mechanisms.dualquery.game import DualQuery
from dualquery.mechanisms.dualquery.options import GameOptions
from dualquery.runtime.errors import BadInputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds is 0; a whole number of at least 1"),
        ({"rounds": -3}, "rounds is -3"),
        ({"rounds": 2.5}, "rounds is 2.5"),
        ({"rounds": 1}, "the first round looks at no data"),
        ({"samples": 0}, "samples is 0"),
        ({"eta": 0.0}, "eta is 0.0; a finite number above 0"),
        ({"eta": float("nan")}, "eta is nan"),
        ({"eta": float("inf")}, "eta is inf"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"solver_timeout": 0}, "solver_timeout is 0"),
        ({"solver_timeout": float("inf")}, "solver_timeout is inf"),
        ({"beta": 0.0}, "beta is 0.0; a number between 0 and 1"),
        ({"beta": 1.0}, "beta is 1.0"),
        ({"beta": float("nan")}, "beta is nan"),
        ({"burn_in": 1.0}, "burn_in is 1.0"),
        ({"burn_in": -0.1}, "burn_in is -0.1"),
        ({"burn_in": float("nan")}, "burn_in is nan"),
        ({"free": "ones"}, "free is 'ones'; known policies: zeros, coins, hint"),
        ({"alpha": 0.1, "rounds": 3}, "give alpha or these, not both"),
        ({"alpha": 0.1, "samples": 3}, "give alpha or these, not both"),
        ({"alpha": 0.1, "eta": 0.3}, "give alpha or these, not both"),
        ({"solver": "no-such"}, "--solver: unknown solver 'no-such'"),
        ({"solver": "scip:sideways"}, "--solver: "),
    ],
)
def test_bad_values_are_named(options, message) -> None:
    with pytest.raises(BadInputError) as error:
        GameOptions(**options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_uninstalled_solver_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.registry.find_spec", lambda module: None)
    with pytest.raises(BadInputError, match="--solver: solver scip needs the package"):
        GameOptions(solver="scip")


def test_defaults_are_as_the_contract_says() -> None:
    options = DualQuery()
    assert (options.solver, options.solver_timeout) == ("auto", 20.0)
    assert (options.rounds, options.samples, options.eta, options.alpha) == (None,) * 4


def test_options_are_frozen_and_by_name_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DualQuery().rounds = 3
    with pytest.raises(TypeError):
        DualQuery(3)

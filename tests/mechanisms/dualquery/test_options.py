"""Options are checked when they are given, before anything is read."""

from __future__ import annotations

import pytest

from dualquery.mechanisms.dualquery.options import GameOptions
from dualquery.runtime.errors import BadInputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds is 0; a whole number of at least 1"),
        ({"rounds": 1}, "the first round looks at no data"),
        ({"eta": 0.0}, "eta is 0.0; a finite number above 0"),
        ({"solver_timeout": 0}, "solver_timeout is 0"),
        ({"beta": 0.0}, "beta is 0.0; a number between 0 and 1"),
        ({"free": "ones"}, "free is 'ones'; known policies: zeros, coins, hint"),
        ({"alpha": 0.1, "rounds": 3}, "give alpha or these, not both"),
        ({"solver": "no-such"}, "--solver: unknown solver 'no-such'"),
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

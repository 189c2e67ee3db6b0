"""The experiments by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from dualquery.runtime.errors import BadInputError, did_you_mean
from experiments.harness.recipe import Recipe

MODULES: Mapping[str, str] = {
    "figure1": "experiments.figure1",
    "figure2": "experiments.figure2",
    "figure3": "experiments.figure3",
    "figure4": "experiments.figure4",
    "parameters": "experiments.parameters",
    "policy": "experiments.policy",
    "ranges": "experiments.ranges",
    "contingency": "experiments.contingency",
    "datacubes": "experiments.datacubes",
    "factored": "experiments.factored",
    "solvers": "experiments.solver_study",
    "accuracy": "experiments.accuracy",
    "headline": "experiments.headline",
}
"""Name -> module that holds it as ``RECIPE``, in the order in which a page shows them."""


def recipe_named(name: str) -> tuple[str, Recipe]:
    """Return the module and the recipe of an experiment.

    Raises
    ------
    BadInputError
        If there is none of that name.
    """
    if name not in MODULES:
        raise unknown(name, MODULES)
    recipe: Recipe = importlib.import_module(MODULES[name]).RECIPE
    return MODULES[name], recipe


def unknown(name: str, known: Mapping[str, object]) -> BadInputError:
    """Return the error for an experiment that does not exist."""
    return BadInputError(
        f"unknown experiment {name!r}{did_you_mean(name, known)} (known: {', '.join(known)}; "
        "`python -m experiments list` tells what each shows)"
    )

"""The problems of the solver study, kept as files that others can use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.harness.recipe import Run
from experiments.instances.forms import form_names, in_form
from experiments.instances.games import game_problems

if TYPE_CHECKING:
    from solvers import BestResponse


def instance_name(run: Run) -> str:
    """Return the name of a run's problem, that of its file too."""
    return f"{run['data']}-{run['round']}{run['form']}"


def problem_of(run: Run) -> BestResponse:
    """Return a run's problem, from its file; the files of a game are written when one is missing.

    They are LP, for others too, and keep everything.
    """
    from solvers.formats import read_instance

    folder = Path(run["instances"])
    place = folder / f"{instance_name(run)}.lp"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number, problem in game_problems(**_game(run)).items():
            for form in form_names(len(problem.groups) > 0):
                name = instance_name({**run, "round": number, "form": form})
                _write(folder, name, in_form(problem, form))
    return read_instance(place).problem


def _game(run: Run) -> dict[str, Any]:
    names = ("source", "schema", "columns", "queries", "samples")
    return {name: run[name] for name in names} | {"rounds": tuple(run["captured"])}


def _write(folder: Path, name: str, problem: BestResponse) -> None:
    """Write a problem's file, whole or not at all."""
    from solvers.formats import write_instance

    draft = folder / f"{name}.draft-{os.getpid()}.lp"
    write_instance(draft, problem)
    draft.replace(folder / f"{name}.lp")

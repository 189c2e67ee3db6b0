"""The problems of the solver study as files, and Adult with rules between its columns.

The rules follow from what the columns mean; five rows of the table break one all the same.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from dualquery.data import load_schema
from experiments.harness.recipe import Run
from experiments.harness.run_folder import code_version, file_version, write_whole
from experiments.instances.family import form_names, game_problems, in_form
from solvers import BestResponse

RULED_ADULT = "adult-rules"
"""Name of the schema."""

RULES = (
    "relationship=Husband => sex=Male",
    "relationship=Wife => sex=Female",
    "relationship in (Husband, Wife) => marital-status in (Married-civ-spouse, Married-AF-spouse)",
    "relationship=Unmarried => marital-status not in (Married-civ-spouse, Married-AF-spouse)",
    "occupation=Armed-Forces => workclass=Federal-gov",
    "occupation=Priv-house-serv => workclass=Private",
    "workclass=Without-pay => income=<=50K",
    "workclass!=Never-worked",
    "age<20 => education not in (Masters, Doctorate, Prof-school)",
    "age<25 => education!=Doctorate",
    "education=Preschool => income=<=50K",
    "education=Preschool => occupation not in (Prof-specialty, Exec-managerial, Tech-support)",
)
"""Texts for ``rules`` of a schema file."""


def instance_name(run: Run) -> str:
    """Return the name of a run's problem, that of its file too."""
    return f"{run['data']}-{run['round']}{run['form']}"


def problem_of(run: Run) -> BestResponse:
    """Return a run's problem, from its file; the files of a game are written when one is missing.

    They are LP, for others too, and keep everything.
    """
    from solvers.formats import read_instance

    names = ("source", "schema", "columns", "queries", "samples")
    game: dict[str, Any] = {name: run[name] for name in names}
    game["rounds"] = tuple(run["captured"])
    source = Path(run["source"])
    version = file_version(source) if source.is_file() else None
    own = hashlib.sha256(f"{code_version()} {version} {game}".encode()).hexdigest()
    folder = Path(run["instances"], own[:12])
    place = folder / f"{instance_name(run)}.lp"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number, problem in game_problems(**game).items():
            for form in form_names(len(problem.groups) > 0):
                name = instance_name({**run, "round": number, "form": form})
                _write(folder, name, in_form(problem, form))
    return read_instance(place).problem


def _write(folder: Path, name: str, problem: BestResponse) -> None:
    """Write a problem's file, whole or not at all."""
    from solvers.formats import write_instance

    draft = folder / f"{name}.draft-{os.getpid()}.lp"
    write_instance(draft, problem)
    draft.replace(folder / f"{name}.lp")


def ruled_adult(folder: Path) -> Path:
    """Write the built-in schema ``adult-paper`` with the rules, and return its file.

    Raises
    ------
    BadInputError
        If it cannot be written.
    """
    path = folder / f"{RULED_ADULT}.json"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {**load_schema("adult-paper").to_dict(), "name": RULED_ADULT}
    write_whole(path, json.dumps({**fields, "rules": list(RULES)}) + "\n")
    return path

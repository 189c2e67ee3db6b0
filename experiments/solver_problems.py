"""The best-response problems of real games, as files that others can use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.requests import WorkloadRequest
from experiments.contenders import AS_PUBLISHED
from experiments.harness.recipe import Run

if TYPE_CHECKING:
    from solvers import BestResponse

EPSILON, DELTA = 1.0, 0.001


def has_groups(game: Mapping[str, Any]) -> bool:
    """Return whether the records of a game's table have one-hot columns."""
    return game["schema"] is not None


def instance_name(run: Run) -> str:
    """Return the name of a run's problem, that of its file too."""
    return f"{run['data']}-round-{run['round']}{'' if run['groups'] else '-no-groups'}"


def problem_of(run: Run) -> BestResponse:
    """Return a run's problem, from its file; the files of a game are written when one is missing.

    The files, LP and WCNF, are for others too. The former keep everything.
    """
    from solvers import Groups
    from solvers.formats import read_instance

    folder = Path(run["instances"])
    place = folder / f"{instance_name(run)}.lp"
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        whole = {**run, "groups": has_groups(run)}
        for number, problem in game_problems(**_game(run)).items():
            one = {**whole, "round": number}
            _write(folder, instance_name(one), problem)
            if one["groups"]:
                bare = replace(problem, groups=Groups.none())
                _write(folder, instance_name({**one, "groups": False}), bare)
    return read_instance(place).problem


def _game(run: Run) -> dict[str, Any]:
    names = ("source", "schema", "columns", "queries", "samples")
    return {name: run[name] for name in names} | {"rounds": tuple(run["captured"])}


def _write(folder: Path, name: str, problem: BestResponse) -> None:
    """Write both files of a problem, each whole or not at all."""
    from solvers.formats import write_instance

    for ending in ("wcnf", "lp"):
        draft = folder / f"{name}.draft-{os.getpid()}.{ending}"
        write_instance(draft, problem)
        draft.replace(folder / f"{name}.{ending}")


@lru_cache(maxsize=1)
def game_problems(
    source: str,
    schema: str | None,
    columns: str | None,
    queries: int,
    samples: int,
    rounds: tuple[int, ...],
) -> dict[int, BestResponse]:
    """Return the problems of some rounds of a game by local search.

    Round 1 is that of the paper, a uniform sample of the queries and their complements; our game
    needs none.
    """
    from dualquery.capture import captured_rounds
    from dualquery.mechanisms.dualquery.best_response import best_response
    from dualquery.rows.dataset import load

    data = load(source, schema, columns)
    workload = WorkloadRequest(queries=queries).build(data.schema, data.n)
    generator = np.random.default_rng(1)
    drawn = generator.integers(len(workload), size=samples)
    signs = generator.choice(np.array([-1, 1], np.int8), samples)
    first = best_response(workload.disjunctions(), drawn, signs)
    later = captured_rounds(
        source,
        [number for number in rounds if number > 1],
        options={**AS_PUBLISHED, "rounds": max(*rounds, 2), "samples": samples},
        schema=schema,
        columns=columns,
        queries=queries,
        epsilon=EPSILON,
        delta=DELTA,
        seed=1,
        threads=1,
    )
    return {number: first if number == 1 else later.problems[number] for number in rounds}

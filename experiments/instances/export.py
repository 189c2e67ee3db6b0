"""Write the family: one file a problem, and a manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from experiments.harness.recipe import Choices
from experiments.harness.run_folder import write_whole
from experiments.instances.family import Member, members
from solvers import get_solver
from solvers.formats import write_instance

MANIFEST = "manifest.csv"
_ENOUGH_SECONDS = 600.0
"""For a search whose own limit is counted work, so that its answer does not depend on the time."""


def export(choices: Choices, folder: Path) -> Iterator[str]:
    """Write every problem as WCNF, then the manifest; yield the names of the files written.

    The same package and the same data give the same bytes.
    """
    lines = []
    for member in members(choices):
        path = folder / f"{member.name}.wcnf"
        write_instance(path, member.problem)
        lines.append(described(member, path))
        yield path.name
    write_whole(folder / MANIFEST, pl.DataFrame(lines).write_csv())
    yield MANIFEST


def described(member: Member, path: Path) -> dict[str, object]:
    """Return a problem's line of the manifest."""
    problem = member.problem
    found = get_solver("auto:fast").solve(problem, time_limit=_ENOUGH_SECONDS)
    return {
        "name": member.name,
        "origin": member.origin,
        "attributes": problem.attributes,
        "conjunctions": len(problem.terms),
        "groups": len(problem.groups),
        "constraints": len(problem.rows),
        "best_known": found.objective,
        "bound": found.bound,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }

"""The problems of a comparison of solvers: read from files, and kept in its folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from solvers.comparison import NamedProblem


def read_problems(files: Sequence[str]) -> list[NamedProblem]:
    """Read the problems of files.

    Raises
    ------
    BadInputError
        If a file is given twice.
    """
    from solvers.comparison import NamedProblem
    from solvers.formats import read_instance

    own = Counter(Path(name).name for name in files)
    # Files of one name in several folders are called by their whole paths.
    names = [Path(name).name if own[Path(name).name] == 1 else name for name in files]
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInputError(f"{twice} is given twice; give each file of a problem once")
    return [
        NamedProblem(name, read_instance(file).problem)
        for name, file in zip(names, files, strict=True)
    ]


def write_problems(folder: Path, problems: Sequence[NamedProblem]) -> None:
    """Keep the problems, for whoever wants to repeat the comparison."""
    from solvers.formats import write_instance

    place = folder / "problems"
    place.mkdir()
    taken: set[str] = set()
    for number, named in enumerate(problems, 1):
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", named.name).strip("-")
        stem = f"{stem}-{number}" if stem.lower() in taken else stem
        taken.add(stem.lower())
        write_instance(place / f"{stem}.lp", named.problem)

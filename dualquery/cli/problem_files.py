"""The problems of a comparison of solvers: read from files, and kept in its folder."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from solvers.comparison import NamedProblem

_ENDING = re.compile(r"\.(wcnf|lp|mps)(\.(gz|xz))?$", re.IGNORECASE)


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
    from solvers import ProblemTooLargeError
    from solvers.formats import write_instance

    place = folder / "problems"
    place.mkdir()
    for named, stem in zip(problems, _stems([named.name for named in problems]), strict=True):
        try:
            write_instance(place / f"{stem}.wcnf", named.problem)
        except ProblemTooLargeError:
            write_instance(place / f"{stem}.lp", named.problem)


def _stems(names: Sequence[str]) -> list[str]:
    """Return names of files, without endings: all different, also where case does not count."""
    stems: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[\\/:]+", "-", _ENDING.sub("", name)).lstrip("-.")
        stem = next(
            each
            for number in itertools.count(1)
            if (each := plain if number == 1 else f"{plain}-{number}").lower() not in taken
        )
        taken.add(stem.lower())
        stems.append(stem)
    return stems

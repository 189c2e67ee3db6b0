"""Speed and memory, each beside what a user would do instead, in one run on one machine.

Absolute times depend on the machine and on what else it does; the ratios are what to look at. Other
work can only add to a time, so each is the smallest of a few repetitions.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from dualquery.runtime.errors import BadInputError
from experiments.benchmarks import (
    evaluation,
    growth,
    multiplicative_weights,
    player,
    scale,
    solvers,
    stand_ins,
)

Part = Callable[[Console, bool], Any]

PARTS: dict[str, Part] = {
    "evaluation": evaluation.run,
    "player": player.run,
    "growth": growth.run,
    "scale": scale.run,
    "mwem": multiplicative_weights.run,
    "solvers": solvers.run,
}
"""Name of each part -> what runs it, given a console for its tables and whether to be quick."""

STAND_INS = "stand-ins"
"""The part that needs data which are not in the package."""


def run(parts: Collection[str], *, quick: bool, data: Collection[str] = ()) -> dict[str, Any]:
    """Run some parts, print their tables, and return all figures.

    Parameters
    ----------
    parts
        Names from `PARTS`, or `STAND_INS`; none means all that can run.
    quick
        Small tables, for a look at whether everything runs.
    data
        ``kdd99:PATH`` for the part about solvers, ``mcsherry-adult:PATH`` for the part about MWEM,
        the folder of the real tables that `STAND_INS` needs, or several of them.

    Raises
    ------
    BadInputError
        If there is no such part, or its data are not there.
    """
    known = dict(PARTS)
    for given in data:
        name, _, path = given.partition(":")
        if name == "kdd99":
            known["solvers"] = partial(solvers.run, data=given)
        elif name == "mcsherry-adult":
            known["mwem"] = partial(multiplicative_weights.run, adult=path)
        else:
            known[STAND_INS] = partial(stand_ins.run, folder=Path(given))
    if STAND_INS in parts and STAND_INS not in known:
        raise BadInputError(f"--part {STAND_INS} needs the folder of its tables: --data FOLDER")
    for part in parts:
        if part not in known:
            raise BadInputError(f"--part {part}: the parts are {', '.join((*PARTS, STAND_INS))}")
    console = Console()
    found: dict[str, Any] = {"quick": quick, "machine": _machine()}
    for name in parts or known:
        found[name] = known[name](console, quick)
    found["machine"]["load_after"] = _load()
    return found


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before": _load(),
    }


def _load() -> float | None:
    """Return the number of processes that wanted to run in the last minute, where known."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None

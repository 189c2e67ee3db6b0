"""Speed and memory, each beside what a user would do instead, in one run on one machine.

Absolute times depend on the machine and on what else it does; the ratios are what to look at. Other
work can only add to a time, so each is the smallest of a few repetitions.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from rich.console import Console

from dualquery.errors import BadInputError
from experiments.benchmarks import (
    evaluation,
    growth,
    multiplicative_weights,
    player,
    scale,
    solvers,
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


def run(parts: Collection[str], *, quick: bool, data: str | None = None) -> dict[str, Any]:
    """Run some parts, print their tables, and return all figures.

    Parameters
    ----------
    parts
        Names from `PARTS`; none means all of them.
    quick
        Small tables, for a look at whether everything runs.
    data
        ``kdd99:PATH``: further data for the part about solvers.

    Raises
    ------
    BadInputError
        If there is no such part.
    """
    for part in parts:
        if part not in PARTS:
            raise BadInputError(f"--part {part}: the parts are {', '.join(PARTS)}")
    console = Console()
    found: dict[str, Any] = {"quick": quick, "machine": _machine()}
    with_data: dict[str, Part] = {**PARTS, "solvers": partial(solvers.run, data=data)}
    for name in parts or PARTS:
        found[name] = with_data[name](console, quick)
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

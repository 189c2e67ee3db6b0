"""Speed and memory, each beside what a user would do instead, in one run on one machine.

Absolute times depend on the machine and on what else it does; the ratios are what to look at. Other
work can only add to a time, so each is the smallest of a few repetitions.
"""

import os
import platform
from collections.abc import Callable, Collection
from typing import Any

from rich.console import Console

from dualquery.runtime.errors import BadInputError
from experiments.benchmarks import evaluation, scale

PARTS: dict[str, Callable[[Console, bool], Any]] = {
    "evaluation": evaluation.run,
    "scale": scale.run,
}
"""Name of each part -> what runs it, given a console for its tables and whether to be quick."""


def run(parts: Collection[str], *, quick: bool) -> dict[str, Any]:
    """Run some parts (none means all), print their tables, and return all figures.

    ``quick`` takes small tables, for a look at whether everything runs.

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
    for name in parts or PARTS:
        found[name] = PARTS[name](console, quick)
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

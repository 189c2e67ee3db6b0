"""Work in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What a function returned, and what it took.

    Parameters
    ----------
    value
        What it returned.
    seconds
        Wall time.
    cpu_seconds
        Processor time of all threads: what the wall time of one thread would be, at most, without
        other work on the machine.
    peak_mib
        The most memory its process held; None where the system does not tell.
    """

    value: T
    seconds: float
    cpu_seconds: float
    peak_mib: float | None


def measure(function: Callable[..., T], *arguments: Any) -> Measured[T]:
    """Call a function in a fresh process.

    Parameters
    ----------
    function
        A function of a module; its result must be picklable.
    arguments
        Its arguments, picklable too.

    Returns
    -------
    Measured
        The seconds leave out the start of the process; the peak includes everything.
    """
    # Spawned: a forked process would count the memory of its parent.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as executor:
        return executor.submit(_call, function, arguments).result()


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> Measured[T]:
    start, cpu_start = time.perf_counter(), time.process_time()
    value = function(*arguments)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    return Measured(value, seconds, cpu_seconds, peak_mib())


def peak_mib() -> float | None:
    """Return the most memory this process has held, in MiB."""
    if _STATUS.is_file():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    if sys.platform == "win32":
        return None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20

"""Work in spawned processes: a call of its own peak memory, and the runs of an experiment.

Spawned, not forked: a process forked after a parallel kernel can hang, and counts its parent's
memory.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from experiments.harness.recipe import Row, Run
from experiments.harness.run_folder import RunFolder

T = TypeVar("T")

_SPAWN = multiprocessing.get_context("spawn")
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What a function returned, and what it took."""

    value: T  # what it returned
    seconds: float  # wall time
    cpu_seconds: float  # of all threads: at most the wall time of one, with no other work
    peak_mib: float | None  # the most memory its process held; None where the system does not tell


def measure(function: Callable[..., T], *arguments: Any) -> Measured[T]:
    """Call a function in a fresh process; it, its arguments and result must be picklable.

    The seconds leave out the start of the process; the peak includes everything.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=_SPAWN) as executor:
        return executor.submit(_call, function, arguments).result()


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> Measured[T]:
    start = time.perf_counter()
    cpu_start = time.process_time()
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


def do_runs(
    perform: Callable[[Run, int], Sequence[Row]],
    runs: Sequence[Run],
    folder: RunFolder,
    *,
    jobs: int,
    threads: int = 1,
    fresh: bool = False,
) -> Iterator[Run]:
    """Do runs side by side, keep each in its folder, and yield each that is finished.

    The function is of a module's top level. Runs that share data or a workload should follow each
    other. ``jobs`` is the number of runs at a time, ``threads`` that of each run. A ``fresh`` run
    has a process of its own; its rows then say what it took.

    Raises
    ------
    Exception
        What a run raises, once those under way are over; the runs after it are not begun.
    """
    own = ("OMP_NUM_THREADS", str(threads))  # else they wait for each other
    shared = ProcessPoolExecutor(min(jobs, len(runs)) or 1, _SPAWN, os.putenv, own)

    def one(run: Run) -> Run:
        arguments = dict(run), threads
        if fresh:
            measured = measure(perform, *arguments)
            took = {
                "run_seconds": measured.seconds,
                "run_cpu_seconds": measured.cpu_seconds,
                "peak_mib": measured.peak_mib,
            }
            rows: Sequence[Row] = [{**row, **took} for row in measured.value]
        else:
            rows = shared.submit(perform, *arguments).result()
        folder.save(run, rows)
        return run

    waiting = ThreadPoolExecutor(jobs)  # its threads only wait for the processes
    try:
        for future in as_completed([waiting.submit(one, run) for run in runs]):
            yield future.result()
    finally:
        waiting.shutdown(wait=True, cancel_futures=True)
        shared.shutdown()

"""Many runs at once, each in a spawned process; a finished one is kept before the next begins."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from experiments.harness.recipe import Recipe, Row, Run
from experiments.harness.run_folder import RunFolder
from experiments.processes import measure


def do_in_parallel(module: str, runs: Sequence[Run], folder: RunFolder, jobs: int) -> Iterator[Run]:
    """Do runs with one thread each, as processes become free, and yield each that is finished.

    Parameters
    ----------
    module
        The module that holds the experiment as ``RECIPE``: other processes find it there.
    runs
        What to do. Those that share data or a workload should follow each other.
    folder
        Where each is kept.
    jobs
        Runs at a time.

    Raises
    ------
    Exception
        What a run raises, once those under way are over; the runs after it are not begun.
    """
    # Spawned: a process forked after a parallel kernel can hang, and counts its parent's memory.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(min(jobs, len(runs)) or 1, mp_context=context)
    try:
        pending: dict[Future[None], Run] = {
            executor.submit(_do, module, dict(run), folder): run for run in runs
        }
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                future.result()
                yield pending.pop(future)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def do_one_by_one(
    module: str, runs: Sequence[Run], folder: RunFolder, threads: int
) -> Iterator[Run]:
    """Do runs one after the other, each in a process of its own, and record what they took.

    Parameters are those of `do_in_parallel`, but each run has a number of ``threads``.
    """
    for run in runs:
        measured = measure(_rows, module, dict(run), threads)
        took = {
            "run_seconds": measured.seconds,
            "run_cpu_seconds": measured.cpu_seconds,
            "peak_mib": measured.peak_mib,
        }
        folder.save(run, [{**row, **took} for row in measured.value])
        yield run


def _do(module: str, run: Run, folder: RunFolder) -> None:
    folder.save(run, _rows(module, run, 1))


def _rows(module: str, run: Run, threads: int) -> Sequence[Row]:
    recipe: Recipe = importlib.import_module(module).RECIPE
    return recipe.perform(run, threads)

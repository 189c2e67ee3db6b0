"""Many runs at once, each in a spawned process; a finished one is kept before the next begins."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

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
        started = {executor.submit(_do, module, dict(run), folder): run for run in runs}
        for future in as_completed(started):
            future.result()
            yield started[future]
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def do_measured(
    module: str, runs: Sequence[Run], folder: RunFolder, jobs: int, threads: int
) -> Iterator[Run]:
    """Do runs in a process of its own each, and record what they took.

    Parameters and errors are those of `do_in_parallel`; each run has a number of ``threads``.
    """

    def one(run: Run) -> Run:
        measured = measure(_rows, module, dict(run), threads)
        took = {
            "run_seconds": measured.seconds,
            "run_cpu_seconds": measured.cpu_seconds,
            "peak_mib": measured.peak_mib,
        }
        folder.save(run, [{**row, **took} for row in measured.value])
        return run

    pool = ThreadPoolExecutor(jobs)  # its threads only wait for the processes
    try:
        for future in as_completed([pool.submit(one, run) for run in runs]):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _do(module: str, run: Run, folder: RunFolder) -> None:
    folder.save(run, _rows(module, run, 1))


def _rows(module: str, run: Run, threads: int) -> Sequence[Row]:
    recipe: Recipe = importlib.import_module(module).RECIPE
    return recipe.perform(run, threads)

"""One solver on one problem, in a process of its own.

Before the clock starts, the process solves a tiny problem and, for the shortest limit and a second
at most, the problem itself, so that neither imports nor compilation count. A solver that crashes,
or does not come back, takes only its own process with it.

How good a record a solver has after some time is measured by asking it several times, with
growing limits: this needs nothing of a solver, counts model building and all, and is what a round
of a game with that limit would get. No further limits are tried after a proof.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.errors import SolverError
from solvers.kernel_solver import COMPILED
from solvers.problem import BestResponse
from solvers.protocol import Solver
from solvers.registry import get_solver

LIMIT_SHARES = (1 / 64, 1 / 16, 1 / 4, 1.0)
"""The limits that are tried, as shares of the full one."""

_LOADING_SECONDS = 120.0
_WARM_UP_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0
"""How far past its limit a solver may go before its process is ended."""

_HIGHEST_MEMORY = Path("/proc/self/status")
_RESET_HIGHEST_MEMORY = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class NamedProblem:
    """What to compare solvers on.

    Parameters
    ----------
    name
        Name of the problem.
    problem
        The problem.
    hint
        uint8, shape ``(attributes,)``: given to every call; None for none.
    """

    name: str
    problem: BestResponse
    hint: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Measurement:
    """What came of one call.

    Parameters
    ----------
    instance, solver
        Names of the problem and of the solver, as asked for.
    limit
        Time limit of the call, seconds.
    status
        A :class:`solvers.Status`'s value, or ``error`` (the solver refused), ``crashed`` or
        ``killed`` (it did not come back).
    objective, bound
        Of the solution; ``-inf`` and ``inf`` if there is none.
    incumbent_seconds, seconds
        Of the solution: when the record was found, and the whole call.
    memory_mib
        Growth of the process's memory in the call, at its highest; None where the system does not
        tell. A command that the solver runs is not included.
    message
        What went wrong.
    """

    instance: str
    solver: str
    limit: float
    status: str
    objective: float = -math.inf
    bound: float = math.inf
    incumbent_seconds: float = math.inf
    seconds: float = math.inf
    memory_mib: float | None = None
    message: str = ""


def compare(
    problems: Sequence[NamedProblem],
    solvers: Sequence[str],
    limit: float,
    *,
    shares: Sequence[float] = LIMIT_SHARES,
    threads: int = 1,
    seed: int = 0,
    reduced: bool = False,
    listen: Callable[[Measurement], None] | None = None,
) -> list[Measurement]:
    """Run solvers on problems, one after another.

    Parameters
    ----------
    problems
        The problems.
    solvers
        Names for :func:`solvers.get_solver`.
    limit
        Seconds: the longest limit.
    shares
        The limits that are tried, ascending, as shares of ``limit``.
    threads, seed
        For every call.
    reduced
        Give each solver what the reductions leave (their time counts).
    listen
        Called with each measurement as it comes.
    """
    limits = [share * limit for share in shares]
    found = []
    for named in problems:
        for solver in solvers:
            for measurement in _measure(named, solver, limits, threads, seed, reduced):
                found.append(measurement)
                if listen is not None:
                    listen(measurement)
    return found


def _measure(
    named: NamedProblem, solver: str, limits: list[float], threads: int, seed: int, reduced: bool
) -> Iterator[Measurement]:
    """Yield the measurements of one solver on one problem, limit by limit."""
    context = _context()
    ours, theirs = context.Pipe()
    arguments = (theirs, solver, named.problem, named.hint, limits, threads, seed, reduced)
    process = context.Process(target=_serve, args=arguments, daemon=True)
    process.start()
    theirs.close()
    limit = limits[0]
    try:
        fault = _receive(ours, _LOADING_SECONDS)
        if fault:
            yield Measurement(named.name, solver, limits[-1], "error", message=fault)
            return
        for limit in limits:
            answer = _receive(ours, limit + _PATIENCE_SECONDS)
            yield Measurement(named.name, solver, limit, **answer)
            if answer["status"] in ("optimal", "error"):
                return
    except TimeoutError:
        message = f"no answer {_PATIENCE_SECONDS:.0f} s after the limit"
        seconds = limit + _PATIENCE_SECONDS
        yield Measurement(named.name, solver, limit, "killed", seconds=seconds, message=message)
    except (EOFError, ConnectionError):
        process.join(5.0)
        message = f"its process ended with {process.exitcode}"
        yield Measurement(named.name, solver, limit, "crashed", message=message)
    finally:
        ours.close()
        if process.is_alive():
            process.kill()
        process.join()


def _context() -> Any:
    """Return how processes start: where the system can, from one that has loaded what all need."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *COMPILED])
    return context


def _receive(connection: Connection, seconds: float) -> Any:
    if not connection.poll(seconds):
        raise TimeoutError
    return connection.recv()


def _serve(
    connection: Connection,
    name: str,
    problem: BestResponse,
    hint: NDArray[np.uint8] | None,
    limits: list[float],
    threads: int,
    seed: int,
    reduced: bool,
) -> None:
    """Answer from the process of a run: first an empty text or a fault, then one dict a limit."""
    # What a solver prints must not mix with the standard output of the command.
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        solver: Solver = get_solver(name)
        if reduced:
            from solvers.reducing import Reducing

            solver = Reducing(solver)
        _warm_up(solver, problem, min(limits[0], _WARM_UP_SECONDS))
    except SolverError as error:
        connection.send(str(error))
        return
    connection.send("")
    for limit in limits:
        before = _memory_mib(reset=True)
        began = time.perf_counter()
        try:
            solution = solver.solve(
                problem, time_limit=limit, threads=threads, seed=seed, hint=hint
            )
        except SolverError as error:
            seconds = time.perf_counter() - began
            connection.send({"status": "error", "seconds": seconds, "message": str(error)})
            return
        after = _memory_mib(reset=False)
        grown = None if before is None or after is None else max(after - before, 0.0)
        connection.send(
            {
                "status": solution.status.value,
                "objective": solution.objective,
                "bound": solution.bound,
                "incumbent_seconds": solution.incumbent_seconds,
                "seconds": solution.seconds,
                "memory_mib": grown,
            }
        )
        if solution.status.value == "optimal":
            return


def _warm_up(solver: Solver, problem: BestResponse, limit: float) -> None:
    """Let everything load: the local search, which stands in for any solver, and the solver."""
    tiny = BestResponse(
        4, np.array([[0, 2, 4], [1, 3, 7], [2, 5, 6]], np.int32), np.array([2.0, 1.0, -1.0])
    )
    get_solver("local-search").solve(tiny, time_limit=10.0)
    solver.solve(tiny, time_limit=10.0)
    solver.solve(problem, time_limit=limit)


def _memory_mib(*, reset: bool) -> float | None:
    """Return the highest memory since the last reset, MiB, where the system tells (Linux)."""
    try:
        if reset:
            _RESET_HIGHEST_MEMORY.write_text("5")
        status = _HIGHEST_MEMORY.read_text()
    except OSError:
        return None
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024

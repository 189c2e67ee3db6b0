"""Solvers on problems, each solver in a process of its own.

It solves a tiny problem and, for at most a second, the problem itself before the clock starts, and
is then asked with growing limits until a proof: what a round of a game with that limit would get.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.child import ChildError
from solvers.errors import InfeasibleProblemError, NoRecordFoundError, SolverError
from solvers.judging import ROUNDING
from solvers.problem import BestResponse
from solvers.protocol import Options
from solvers.reducing import Reducing
from solvers.registry import isolated
from solvers.solution import Status
from solvers.watched import Isolated, Watched

LIMIT_SHARES = (1 / 64, 1 / 16, 1 / 4, 1.0)
"""The limits that are tried, as shares of the full one."""

_WARM_UP_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
"""How far past half as much again as its limit a solver may go before its process is ended."""

_TINY = BestResponse(
    4, np.array([[0, 2, 4], [1, 3, 7], [2, 5, 6]], np.int32), np.array([2.0, 1.0, -1.0])
)


@dataclass(frozen=True)
class NamedProblem:
    """What to compare solvers on; the hint, if there is one, is given to every call."""

    name: str
    problem: BestResponse
    hint: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Measurement:
    """What came of one call.

    The status is a :class:`solvers.Status`'s value, ``infeasible``, ``error`` (it refused, or found
    no record), ``crashed`` or ``killed`` (it did not come back). Without a solution objective and
    bound are ``-inf`` and ``inf``. ``incumbent_seconds`` is when the record was found, ``seconds``
    the whole call.
    """

    instance: str
    solver: str
    limit: float
    status: str
    objective: float = -math.inf
    bound: float = math.inf
    incumbent_seconds: float = math.inf
    seconds: float = math.inf
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
    """Run solvers on problems, one solver after another.

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
    options: Options = {"threads": threads, "seed": seed}
    found = []
    for name in solvers:
        for measurement in _run(name, problems, limits, options, reduced):
            found.append(measurement)
            if listen is not None:
                listen(measurement)
    return found


def _run(
    name: str,
    problems: Sequence[NamedProblem],
    limits: Sequence[float],
    options: Options,
    reduced: bool,
) -> Iterator[Measurement]:
    """Yield the measurements of one solver."""
    try:
        solver = isolated(name, _PATIENCE_SECONDS)
    except SolverError as fault:
        yield from (_failed(named, name, limits[-1], fault) for named in problems)
        return
    with closing(solver):
        for named in problems:
            yield from _measure(named, name, solver, limits, options, reduced)


def _measure(
    named: NamedProblem,
    name: str,
    process: Watched,
    limits: Sequence[float],
    options: Options,
    reduced: bool,
) -> Iterator[Measurement]:
    """Yield the measurements of one solver on one problem, limit by limit."""
    isolated_solver = process.inner
    assert isinstance(isolated_solver, Isolated)
    solver = Reducing(process) if reduced else process
    limit = limits[0]
    try:
        isolated_solver.renew()
        # Let everything load.
        process.solve(_TINY, time_limit=_WARM_UP_SECONDS)
        with suppress(NoRecordFoundError):
            solver.solve(named.problem, time_limit=min(limit, _WARM_UP_SECONDS))
        for limit in limits:
            asked: Options = {**options, "hint": named.hint, "time_limit": limit}
            try:
                solution = solver.solve(named.problem, **asked)
            except NoRecordFoundError as fault:  # a longer limit may find one
                yield _failed(named, name, limit, fault)
                continue
            # A sum that is 0 but for rounding is 0: of it no share can be taken.
            rounding = ROUNDING * float(abs(named.problem.weights).sum())
            found = (solution.objective, solution.bound)
            objective, bound = (0.0 if abs(value) <= rounding else value for value in found)
            yield Measurement(
                named.name,
                name,
                limit,
                solution.status.value,
                objective,
                bound,
                solution.incumbent_seconds,
                solution.seconds,
            )
            if solution.status is Status.OPTIMAL:
                return
    except SolverError as fault:
        yield _failed(named, name, limit, fault)


def _failed(named: NamedProblem, name: str, limit: float, fault: SolverError) -> Measurement:
    status = "infeasible" if isinstance(fault, InfeasibleProblemError) else "error"
    if isinstance(fault, ChildError):
        status = "killed" if fault.late else "crashed"
    return Measurement(named.name, name, limit, status, message=str(fault))

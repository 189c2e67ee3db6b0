"""A solver that always answers: another one's faults are judged, survived and said.

For long runs, whose rounds are paid for: a solver that raises, does not come back, breaks a group,
or lies about its objective or bound costs the run one good answer, never the run.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.local_search import LocalSearch
from solvers.isolated import Isolated
from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.registry import entry_point_of, get_solver
from solvers.solution import Solution, Status

MOST_FAULTS = 3
"""Faults, one after the other, after which a solver is not asked any more."""

_TOLERANCE = 1e-6
"""Of objectives and bounds, as a share of the sum of absolute weights."""

_FALLBACK_SECONDS = 0.25

_log = logging.getLogger(__name__)


class Guarded:
    """Asks another solver, and answers with a legal record whatever that does.

    Parameters
    ----------
    solver
        The other one.
    """

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._faults = 0

    @property
    def name(self) -> str:
        """Name of the other solver."""
        return str(self._solver.name)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the other solver supports."""
        return self._solver.capabilities

    def close(self) -> None:
        """End the solver's process, if it has one of its own."""
        if isinstance(self._solver, Isolated):
            self._solver.close()

    def solve(
        self,
        problem: BestResponse,
        *,
        time_limit: float = 20.0,
        threads: int = 1,
        seed: int = 0,
        hint: NDArray[np.uint8] | None = None,
        default: NDArray[np.uint8] | None = None,
    ) -> Solution:
        """Return a legal record: the solver's, or one of our local search (`Status.FALLBACK`).

        Raises
        ------
        MemoryError
            If there is none left.
        """
        began = time.perf_counter()
        asked: dict[str, Any] = {"threads": threads, "seed": seed, "hint": hint, "default": default}
        fault = f"not asked any more after {MOST_FAULTS} faults"
        if self._faults < MOST_FAULTS:
            try:
                found = self._solver.solve(problem, time_limit=time_limit, **asked)
                judged = judge(problem, found)
            except MemoryError:
                raise
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            else:
                self._faults = 0
                return judged
            self._faults += 1
            _log.warning("solver %s failed, and a local search stands in: %s", self.name, fault)
        own = LocalSearch().solve(problem, time_limit=min(time_limit, _FALLBACK_SECONDS), **asked)
        return replace(
            own,
            bound=math.inf,
            status=Status.FALLBACK,
            seconds=time.perf_counter() - began,
            solver=self.name,
            steps=(f"local search in its place: {fault[:200]}",),
        )


def guarded(name: str) -> Guarded:
    """Return the solver called ``name``; a third party's runs in a process of its own.

    Those of this package share the process: they are fast, tested, and stop at their limits.

    Raises
    ------
    SolverError
        As `get_solver`, and if a third party's cannot be loaded.
    """
    value, argument = entry_point_of(name)
    return Guarded(get_solver(name) if value is None else Isolated(value, argument))


def judge(problem: BestResponse, found: Solution) -> Solution:
    """Return a solution with nothing in it that is not so, as far as it can be checked.

    The objective is the record's; a bound below it, or that is no number, is none; then nothing
    is proven.

    Raises
    ------
    ValueError, TypeError, AttributeError
        If the record is not a legal one.
    """
    record = np.asarray(found.record)
    if record.dtype.kind not in "buif" or not problem.legal(record):
        raise ValueError(f"its record is not legal (shape {record.shape}, {record.dtype})")
    record = record.astype(np.uint8)
    if not problem.legal(record) or (record != found.record).any():
        raise ValueError("its record holds numbers other than 0 and 1")
    value = problem.value(record)
    slack = _TOLERANCE * float(np.abs(problem.weights).sum()) + 1e-12
    bound, honest = math.inf, False
    with suppress(TypeError, ValueError, OverflowError):
        stated = float(found.bound)
        honest = abs(float(found.objective) - value) <= slack and stated >= value - slack
        bound = max(stated, value) if honest else math.inf
    status = found.status if isinstance(found.status, Status) else Status.FEASIBLE
    if status is Status.OPTIMAL and not honest:
        status = Status.FEASIBLE
    return Solution(
        record=record,
        objective=value,
        bound=bound,
        status=status,
        incumbent_seconds=_seconds(found.incumbent_seconds),
        seconds=_seconds(found.seconds),
        solver=str(found.solver),
        steps=tuple(str(step) for step in found.steps),
    )


def _seconds(stated: object) -> float:
    """Return a time as stated if it is one, else 0."""
    with suppress(TypeError, ValueError, OverflowError):
        seconds = float(stated)  # type: ignore[arg-type]  # that is what is tried
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return 0.0

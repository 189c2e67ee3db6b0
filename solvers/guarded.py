"""A solver that always answers: another one's faults are survived and said.

For long runs, whose rounds are paid for: a solver that raises, does not come back, breaks a group
or a constraint costs the run one good answer, never the run.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from typing import Unpack

from solvers.backends.local_search import LocalSearch
from solvers.problem import BestResponse
from solvers.protocol import Options, Solver, Wrapper
from solvers.registry import get_solver
from solvers.solution import Solution, Status
from solvers.watched import watched

MOST_FAULTS = 3
"""Faults, one after the other, after which a solver is not asked any more."""

_FALLBACK_SECONDS = 0.25

_log = logging.getLogger(__name__)


class Guarded(Wrapper):
    """Asks another solver, and answers with a feasible record whatever that does.

    Parameters
    ----------
    solver
        The other one.
    """

    def __init__(self, solver: Solver) -> None:
        super().__init__(watched(solver, solver.name))
        self._faults = 0

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return a feasible record: the solver's, or our local search's (`Status.FALLBACK`).

        Raises
        ------
        MemoryError
            If there is none left.
        SolverError
            If no record is feasible, or the local search finds none.
        """
        began = time.perf_counter()
        fault = f"not asked any more after {MOST_FAULTS} faults"
        if self._faults < MOST_FAULTS:
            try:
                found = self.inner.solve(problem, **options)
            except MemoryError:
                raise
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            else:
                self._faults = 0
                return found
            self._faults += 1
            _log.warning("solver %s failed, and a local search stands in: %s", self.name, fault)
        limit = min(options.get("time_limit", _FALLBACK_SECONDS), _FALLBACK_SECONDS)
        options["time_limit"] = limit
        own = LocalSearch().solve(problem, **options)
        return replace(
            own,
            bound=math.inf,
            status=Status.FALLBACK,
            seconds=time.perf_counter() - began,
            solver=self.name,
            steps=(f"local search in its place: {fault[:200]}",),
        )


def guarded(name: str) -> Guarded:
    """Return the solver called ``name``, guarded.

    Raises
    ------
    SolverError
        As `get_solver`.
    """
    return Guarded(get_solver(name))

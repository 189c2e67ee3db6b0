"""Any solver after the reductions."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from solvers.errors import InfeasibleProblemError
from solvers.kernel_solver import check_options, load
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.reduction import reduce
from solvers.solution import Solution, Status


class Reducing:
    """Reduces a problem, lets another solver solve the rest, and maps the solution back.

    ``auto`` reduces by itself; the other built-in solvers see the problem as it is.

    Parameters
    ----------
    inner
        The other solver.
    """

    def __init__(self, inner: Solver) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        """The inner solver's name."""
        return self.inner.name

    @property
    def imports(self) -> tuple[str, ...]:
        """What the inner solver imports."""
        found: tuple[str, ...] = getattr(self.inner, "imports", ())
        return found

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The inner solver's."""
        return self.inner.capabilities

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
        """Return a feasible record of high value: see :meth:`solvers.protocol.Solver.solve`."""
        load(self)
        began = time.perf_counter()
        check_options(problem, time_limit, threads, seed, hint, default)
        hint = None if hint is None else hint.astype(np.uint8)
        default = None if default is None else default.astype(np.uint8)
        limits = SearchLimits(began, began + time_limit, threads, seed)
        reduction = reduce(problem, limits.reductions)
        reducing = time.perf_counter() - began
        usable = hint is not None and problem.feasible(hint)
        try:
            solution = self.inner.solve(
                reduction.problem,
                time_limit=max(time_limit - reducing, 1e-6),
                threads=threads,
                seed=seed,
                hint=reduction.restrict(hint) if hint is not None and usable else None,
            )
        except InfeasibleProblemError:
            from solvers.feasibility import feasible_record

            # Named by the numbers that the caller knows.
            feasible_record(problem, began + time_limit)
            raise
        record = reduction.expand(solution.record, default)
        objective = problem.value(record)
        return replace(
            solution,
            record=record,
            objective=objective,
            bound=objective
            if solution.status is Status.OPTIMAL
            else max(solution.bound, objective),
            incumbent_seconds=reducing + solution.incumbent_seconds,
            seconds=time.perf_counter() - began,
            steps=(*reduction.steps, *solution.steps),
        )

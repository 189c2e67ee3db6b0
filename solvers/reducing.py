"""Any solver after the reductions."""

import time
from dataclasses import replace
from typing import Unpack

from solvers.errors import InfeasibleProblemError
from solvers.feasibility import feasible_record, infeasible
from solvers.judging import judge
from solvers.kernel_solver import check_options, load
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Options, Wrapper
from solvers.reduction import reduce
from solvers.solution import Solution


class Reducing(Wrapper):
    """Reduces a problem, lets another solver solve the rest, and maps the solution back.

    ``auto`` reduces by itself; the other built-in solvers see the problem as it is.

    Parameters
    ----------
    inner
        The other solver.
    """

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Return a feasible record of high value: see :meth:`solvers.protocol.Solver.solve`."""
        load(self)
        began = time.perf_counter()
        time_limit = options.get("time_limit", 20.0)
        hint, default = check_options(problem, **options)
        limits = SearchLimits(began, began + time_limit, 1, 0)
        reduction = reduce(problem, limits.reductions)
        reducing = limits.elapsed()
        if hint is not None:
            hint = reduction.restrict(hint) if problem.feasible(hint) else None
        left = max(time_limit - reducing, 1e-6)
        asked: Options = {**options, "time_limit": left, "hint": hint, "default": None}
        try:
            solution = self.inner.solve(reduction.problem, **asked)
        except InfeasibleProblemError:
            # Named by the numbers that the caller knows.
            feasible_record(problem, limits.deadline)
            raise infeasible(problem) from None
        record = reduction.expand(solution.record, default)
        mapped = replace(
            solution,
            record=record,
            objective=problem.value(record),
            incumbent_seconds=reducing + solution.incumbent_seconds,
            seconds=limits.elapsed(),
            steps=(*reduction.steps, *solution.steps),
        )
        return judge(problem, mapped, reduction.problem)

"""HiGHS, the one inside SciPy (``highspy`` and OR-Tools cannot be imported together)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import LinearSolver, Optimised
from solvers.formulation import LinearProgram
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits

_ENDINGS = {
    0: Ending.PROVEN,  # optimal
    1: Ending.STOPPED,  # time, iteration or node limit
    2: Ending.INFEASIBLE,
    3: Ending.FAILED,  # unbounded: impossible in 0-1 variables
    4: Ending.FAILED,  # numerical difficulties and others
}
"""``scipy.optimize.milp``'s status -> ours."""


class Highs(LinearSolver):
    """Branch and cut by ``scipy.optimize.milp``.

    SciPy passes on neither hint, seed nor thread count.
    """

    name = "highs"
    module = "scipy"
    distribution = "scipy"
    imports = ("scipy.optimize",)
    least_seconds_per_term = 20e-6

    def optimise(
        self,
        program: LinearProgram,
        limits: SearchLimits,
        start: NDArray[np.uint8] | None,
    ) -> Optimised:
        """Solve the program from scratch."""
        # The default gap of 1e-4 would stop short of the optimum.
        return maximise(program, max(limits.remaining(), 1e-3), mip_rel_gap=0.0)


def maximise(
    program: LinearProgram, seconds: float, *, whole: bool = True, **options: float
) -> Optimised:
    """Maximise a program, but for its constant, for at most so many seconds.

    Parameters
    ----------
    program
        The program.
    seconds
        Above 0.
    whole
        Whether columns are 0 or 1, or (the relaxation) anything between.
    **options
        Of ``scipy.optimize.milp``.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = milp(
        c=-program.objective,
        integrality=np.full(program.columns, float(whole)),
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(program.sparse_matrix(), program.lower, program.upper),
        options={"time_limit": seconds, **options},
    )
    ending = _ENDINGS.get(result.status, Ending.FAILED)
    relaxed = result.fun if ending is Ending.PROVEN else None
    bound = result.mip_dual_bound if whole else relaxed
    known = math.inf if bound is None or not np.isfinite(bound) else -bound
    return Optimised(ending, result.x, known)

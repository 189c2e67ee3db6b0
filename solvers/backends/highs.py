"""HiGHS, the one inside SciPy (``highspy`` and OR-Tools cannot be imported together)."""

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import LinearSolver, Optimised
from solvers.formulation import LinearProgram, maximise
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits

_ENDINGS = {0: Ending.PROVEN, 1: Ending.STOPPED, 2: Ending.INFEASIBLE}
"""``scipy.optimize.milp``'s status -> ours; any other is a failure."""


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
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Solve the program from scratch."""
        # The default gap of 1e-4 would stop short of the optimum.
        status, values, bound = maximise(program, max(limits.remaining(), 1e-3), mip_rel_gap=0.0)
        return Optimised(_ENDINGS.get(status, Ending.FAILED), values, bound)

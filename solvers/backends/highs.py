"""HiGHS, the one inside SciPy (``highspy`` and OR-Tools cannot be imported together)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import Formulated
from solvers.formulation import formulate, objective_scale
from solvers.kernel_solver import Ending, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse

_ENDINGS = {
    0: Ending.PROVEN,  # optimal
    1: Ending.STOPPED,  # time, iteration or node limit
    2: Ending.INFEASIBLE,
    3: Ending.FAILED,  # unbounded: impossible in 0-1 variables
    4: Ending.FAILED,  # numerical difficulties and others
}
"""``scipy.optimize.milp``'s status -> ours."""


class Highs(Formulated):
    """Branch and cut by ``scipy.optimize.milp``.

    SciPy passes on neither hint, seed nor thread count.
    """

    name = "highs"
    module = "scipy"
    distribution = "scipy"
    imports = ("scipy.optimize",)
    least_seconds_per_term = 20e-6

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Solve the 0-1 program from scratch."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        model = formulate(kernel, self.formulation)
        scale = objective_scale(kernel.weights)
        result = milp(
            c=-scale * model.objective,
            integrality=np.ones(model.columns),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(model.sparse_matrix(), model.lower, model.upper),
            # The default gap of 1e-4 would stop short of the optimum.
            options={"time_limit": max(limits.remaining(), 1e-3), "mip_rel_gap": 0.0},
        )
        bound = np.inf
        if result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            bound = model.constant - result.mip_dual_bound / scale
        record = None
        if result.x is not None:
            record = (result.x[: model.attributes] > 0.5).astype(np.uint8)
        return SearchResult(_ENDINGS.get(result.status, Ending.FAILED), record, bound)

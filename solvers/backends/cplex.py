"""CPLEX through its Python package; needs a licence, or a problem within the free edition."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import COMMERCIAL, LinearSolver, Optimised
from solvers.formats.lp import lp_file
from solvers.formats.program import NamedProgram
from solvers.formulation import LinearProgram
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits

_ENDINGS = {
    101: Ending.PROVEN,  # MIP_optimal
    102: Ending.PROVEN,  # optimal_tolerance: the gaps are set to 0
    103: Ending.INFEASIBLE,
    # Limits of nodes, time, memory, an interruption, and of deterministic time.
    **dict.fromkeys((*range(105, 109), *range(111, 115), 131, 132), Ending.STOPPED),
}
"""``solution.get_status()`` -> ours; any other is a failure."""

_SIZE_LIMIT = 1016  # CPLEX's error for a model beyond the free edition's size


class Cplex(LinearSolver):
    """Branch and cut by CPLEX."""

    name = "cplex"
    capabilities = LinearSolver.capabilities | COMMERCIAL
    module = "cplex"
    distribution = "cplex"
    imports = ("cplex",)
    least_seconds_per_term = 25e-6

    def optimise(
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Solve the program, from the start if there is one."""
        import cplex

        try:
            with cplex.Cplex() as model:
                return _optimised(model, program, limits, start)
        except cplex.exceptions.CplexSolverError as error:
            too_large = len(error.args) > 2 and error.args[2] == _SIZE_LIMIT
            raise self.refused(error, program, too_large) from error


def _optimised(
    model: Any, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
) -> Optimised:
    for stream in ("log", "error", "warning", "results"):
        getattr(model, f"set_{stream}_stream")(None)
    with lp_file(NamedProgram.numbered(program)) as path:
        model.read(path)
    parameters = model.parameters
    parameters.threads.set(limits.threads)
    parameters.randomseed.set(limits.seed % 2**31)
    parameters.mip.tolerances.mipgap.set(0.0)
    parameters.mip.tolerances.absmipgap.set(0.0)
    if math.isfinite(limits.deadline):
        parameters.timelimit.set(max(limits.remaining(), 1e-3))
    if start is not None:
        level = model.MIP_starts.effort_level.check_feasibility
        values = start.astype(np.float64).tolist()
        model.MIP_starts.add([list(range(program.columns)), values], level)
    model.solve()
    ending = _ENDINGS.get(model.solution.get_status(), Ending.FAILED)
    if not model.solution.is_primal_feasible():
        return Optimised(ending)
    record = np.array(model.solution.get_values(0, program.attributes - 1))
    return Optimised(ending, record, model.solution.MIP.get_best_objective())

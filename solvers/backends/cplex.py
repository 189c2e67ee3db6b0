"""CPLEX through its Python package; needs a licence, or a problem within the free edition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import LinearSolver, Optimised
from solvers.formats.lp import lp_file
from solvers.formats.program import NamedProgram
from solvers.formulation import LinearProgram
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits
from solvers.protocol import Capability

_ENDINGS = {
    101: Ending.PROVEN,  # MIP_optimal
    102: Ending.PROVEN,  # optimal_tolerance: the gaps are set to 0
    103: Ending.INFEASIBLE,
    105: Ending.STOPPED,  # node_limit_feasible
    106: Ending.STOPPED,  # node_limit_infeasible
    107: Ending.STOPPED,  # time_limit_feasible
    108: Ending.STOPPED,  # time_limit_infeasible
    111: Ending.STOPPED,  # memory_limit_feasible
    112: Ending.STOPPED,  # memory_limit_infeasible
    113: Ending.STOPPED,  # abort_feasible
    114: Ending.STOPPED,  # abort_infeasible
    131: Ending.STOPPED,  # abort_dettime_limit_feasible
    132: Ending.STOPPED,  # abort_dettime_limit_infeasible
}
"""``solution.get_status()`` -> ours; any other is a failure."""

_SIZE_LIMIT = 1016
"""CPLEX's error for a model beyond the free edition's size."""


class Cplex(LinearSolver):
    """Branch and cut by CPLEX."""

    name = "cplex"
    capabilities = LinearSolver.capabilities | {
        Capability.HINT,
        Capability.THREADS,
        Capability.SEED,
    }
    module = "cplex"
    distribution = "cplex"
    imports = ("cplex",)
    least_seconds_per_term = 25e-6

    def optimise(
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Solve the program, from the start if there is one.

        Raises
        ------
        ProblemTooLargeError
            If the licence does not cover a program of this size.
        SolverUnavailableError
            If CPLEX refuses to run for another reason.
        """
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

"""SCIP through PySCIPOpt."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import LinearSolver, Optimised
from solvers.formats.lp import scip_model
from solvers.formats.program import NamedProgram
from solvers.formats.scip_reader import INFINITY
from solvers.formulation import LinearProgram
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits
from solvers.protocol import Capability

_LIMITS = "gap", "time", "node", "totalnode", "stallnode", "mem", "sol", "bestsol", "primal", "dual"
_ENDINGS = {
    "optimal": Ending.PROVEN,
    "infeasible": Ending.INFEASIBLE,
    "userinterrupt": Ending.STOPPED,
    "terminate": Ending.STOPPED,
    **{f"{each}limit": Ending.STOPPED for each in (*_LIMITS, "restart")},
}
"""``Model.getStatus()`` -> ours; any other is a failure."""


class Scip(LinearSolver):
    """Branch and cut by SCIP."""

    name = "scip"
    capabilities = LinearSolver.capabilities | {Capability.HINT, Capability.SEED}
    module = "pyscipopt"
    distribution = "pyscipopt"
    imports = ("pyscipopt",)
    least_seconds_per_term = 60e-6

    def optimise(
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Solve the program, from the start if there is one."""
        model = scip_model(NamedProgram.numbered(program))
        model.resetParam("numerics/epsilon")
        model.setParams(
            {
                "timing/clocktype": 2,  # wall clock
                "limits/gap": 0.0,
                "misc/catchctrlc": False,
                "constraints/linear/rangedrowpropagation": False,  # it may not end
                "parallel/maxnthreads": limits.threads,
                "lp/threads": 1,
                "randomization/randomseedshift": limits.seed % 2**31,
            }
        )
        variables = _in_column_order(model, program.columns)
        if start is not None:
            _add_start(model, variables, start)
        model.setParam("limits/time", min(max(limits.remaining(), 1e-3), INFINITY))
        searching = limits.elapsed()
        # Unlike optimize(), this does not hold Python's interpreter lock.
        model.optimizeNogil()

        ending = _ENDINGS.get(model.getStatus(), Ending.FAILED)
        bound = model.getDualbound()
        bound = bound if abs(bound) < INFINITY else math.inf
        if model.getNSols() == 0:
            return Optimised(ending, None, bound)
        solution = model.getBestSol()
        values = np.fromiter((solution[each] for each in variables[: program.attributes]), float)
        return Optimised(ending, values, bound, searching + model.getSolTime(solution))


def _in_column_order(model: Any, columns: int) -> list[Any]:
    """Return the model's variables by our numbering, whatever order the reader gave them."""
    variables: list[Any] = [None] * columns
    for variable in model.getVars():
        variables[int(variable.name[1:])] = variable
    return variables


def _add_start(model: Any, variables: list[Any], values: NDArray[np.uint8]) -> None:
    solution = model.createSol()
    for column in np.flatnonzero(values).tolist():
        model.setSolVal(solution, variables[column], 1.0)
    model.addSol(solution)

"""Gurobi through gurobipy; needs a licence, or a problem within the limits of the free one."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import COMMERCIAL, LinearSolver, Optimised
from solvers.formulation import LinearProgram
from solvers.kernel_solver import Ending
from solvers.limits import SearchLimits

_ENDINGS = {
    2: Ending.PROVEN,  # OPTIMAL
    3: Ending.INFEASIBLE,
    # Limits of iterations, nodes, time, solutions, an interruption, limits of work and memory.
    **dict.fromkeys((7, 8, 9, 10, 11, 16, 17), Ending.STOPPED),
}
"""``Model.Status`` -> ours; any other is a failure."""

_SIZE_LIMIT = 10010  # Gurobi's error for a model beyond the licence's size


class Gurobi(LinearSolver):
    """Branch and cut by Gurobi."""

    name = "gurobi"
    capabilities = LinearSolver.capabilities | COMMERCIAL
    module = "gurobipy"
    distribution = "gurobipy"
    imports = ("gurobipy",)
    least_seconds_per_term = 15e-6

    def optimise(
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Solve the program, from the start if there is one."""
        import gurobipy

        try:
            with gurobipy.Env(empty=True) as environment:
                environment.setParam("OutputFlag", 0)
                environment.start()
                with gurobipy.Model(env=environment) as model:
                    return _optimised(model, program, limits, start)
        except gurobipy.GurobiError as error:
            raise self.refused(error, program, error.errno == _SIZE_LIMIT) from error


def _optimised(
    model: Any, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
) -> Optimised:
    from gurobipy import GRB

    found: list[float] = []

    def watch(_: Any, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            found.append(limits.elapsed())

    columns = model.addMVar(program.columns, vtype=GRB.BINARY)
    model.setObjective(program.objective @ columns, GRB.MAXIMIZE)
    matrix = program.sparse_matrix()
    for sense, side in (("<", program.constraints.upper), (">", program.constraints.lower)):
        rows = np.flatnonzero(np.isfinite(side))
        if len(rows):
            model.addMConstr(matrix[rows], columns, sense, side[rows])
    if start is not None:
        columns.Start = start.astype(np.float64)
    model.Params.Threads = limits.threads
    model.Params.Seed = limits.seed % 2_000_000_000
    model.Params.MIPGap = 0.0
    model.Params.MIPGapAbs = 0.0
    if math.isfinite(limits.deadline):
        model.Params.TimeLimit = max(limits.remaining(), 1e-3)
    model.optimize(watch)
    ending = _ENDINGS.get(model.Status, Ending.FAILED)
    known = ending is not Ending.INFEASIBLE and abs(model.ObjBound) < GRB.INFINITY
    bound = model.ObjBound if known else math.inf
    values = columns.X if model.SolCount else None
    return Optimised(ending, values, bound, found[-1] if found else None)

"""Gurobi through gurobipy; needs a licence, or a problem within the limits of the free one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import Formulated
from solvers.errors import ProblemTooLargeError, SolverUnavailableError
from solvers.formulation import formulate, objective_scale
from solvers.kernel_solver import Ending, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability

_ENDINGS = {
    2: Ending.PROVEN,  # OPTIMAL
    3: Ending.INFEASIBLE,
    4: Ending.FAILED,  # INF_OR_UNBD
    5: Ending.FAILED,  # UNBOUNDED
    7: Ending.STOPPED,  # ITERATION_LIMIT
    8: Ending.STOPPED,  # NODE_LIMIT
    9: Ending.STOPPED,  # TIME_LIMIT
    10: Ending.STOPPED,  # SOLUTION_LIMIT
    11: Ending.STOPPED,  # INTERRUPTED
    12: Ending.FAILED,  # NUMERIC
    13: Ending.FAILED,  # SUBOPTIMAL
    16: Ending.STOPPED,  # WORK_LIMIT
    17: Ending.STOPPED,  # MEM_LIMIT
}
"""``Model.Status`` -> ours."""

_SIZE_LIMIT = 10010
"""Gurobi's error for a model beyond the licence's size."""


class Gurobi(Formulated):
    """Branch and cut by Gurobi."""

    name = "gurobi"
    capabilities = Formulated.capabilities | {
        Capability.HINT,
        Capability.THREADS,
        Capability.SEED,
    }
    module = "gurobipy"
    distribution = "gurobipy"
    imports = ("gurobipy",)
    least_seconds_per_term = 15e-6

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Solve the 0-1 program, from the start if there is one.

        Raises
        ------
        ProblemTooLargeError
            If the licence does not cover a model of this size.
        SolverUnavailableError
            If Gurobi refuses to run for another reason, such as an expired licence.
        """
        import gurobipy

        try:
            return self._search(kernel, limits, start)
        except gurobipy.GurobiError as error:
            if error.errno == _SIZE_LIMIT:
                raise ProblemTooLargeError(
                    f"gurobi: the licence covers no problem of {len(kernel.terms)} terms and "
                    f"{kernel.attributes} attributes; install a full one or use another solver"
                ) from error
            raise SolverUnavailableError(f"gurobi: {error}") from error

    def _search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        import gurobipy
        from gurobipy import GRB

        program = formulate(kernel, self.formulation)
        scale = objective_scale(kernel.weights)
        found: list[float] = []

        def watch(_: gurobipy.Model, where: int) -> None:
            if where == GRB.Callback.MIPSOL:
                found.append(limits.elapsed())

        with gurobipy.Env(empty=True) as environment:
            environment.setParam("OutputFlag", 0)
            environment.start()
            with gurobipy.Model(env=environment) as model:
                columns: Any = model.addMVar(program.columns, vtype=GRB.BINARY)
                model.setObjective(scale * program.objective @ columns, GRB.MAXIMIZE)
                matrix = program.sparse_matrix()
                for sense, side in (("<", program.upper), (">", program.lower)):
                    rows = np.flatnonzero(np.isfinite(side))
                    if len(rows):
                        model.addMConstr(matrix[rows], columns, sense, side[rows])
                if start is not None:
                    columns.Start = program.assignment(kernel, start).astype(np.float64)
                model.Params.Threads = limits.threads
                model.Params.Seed = limits.seed % 2_000_000_000
                model.Params.MIPGap = 0.0
                model.Params.MIPGapAbs = 0.0
                if math.isfinite(limits.deadline):
                    model.Params.TimeLimit = max(limits.remaining(), 1e-3)
                model.optimize(watch)
                ending = _ENDINGS.get(model.Status, Ending.FAILED)
                bound = math.inf
                if ending is not Ending.INFEASIBLE and abs(model.ObjBound) < GRB.INFINITY:
                    bound = program.constant + model.ObjBound / scale
                if model.SolCount == 0:
                    return SearchResult(ending, None, bound)
                record = (columns.X[: program.attributes] > 0.5).astype(np.uint8)
                return SearchResult(ending, record, bound, found[-1] if found else None)

"""The best response: one record that satisfies the heaviest set of conjunctions.

Knows nothing of privacy or data. A :class:`BestResponse` goes into a :class:`Solver`, found by
:func:`get_solver`, and a :class:`Solution` comes out, at its time limit at the latest:

>>> import numpy as np
>>> from solvers import BestResponse, get_solver
>>> problem = BestResponse(2, np.array([[0, 2], [1, -1]], np.int32), np.array([1.0, 3.0]))
>>> solution = get_solver("exhaustive").solve(problem)
>>> solution.objective, solution.status.value
(3.0, 'optimal')

Importing this package imports no solver.
"""

from solvers.compact import Compacted, compact
from solvers.errors import (
    InfeasibleProblemError,
    InvalidProblemError,
    MalformedFileError,
    ProblemTooLargeError,
    SolverError,
    SolverUnavailableError,
    UnknownSolverError,
)
from solvers.groups import Groups
from solvers.kernel_solver import Budget, Ending, KernelSolver, Outcome
from solvers.problem import BestResponse, LinearConstraint
from solvers.protocol import Capability, Solver
from solvers.reducing import Reducing
from solvers.reduction import Reduction, Removed, reduce
from solvers.registry import SolverInfo, available_solvers, get_solver
from solvers.solution import Solution, Status

__all__ = [
    "BestResponse",
    "Budget",
    "Capability",
    "Compacted",
    "Ending",
    "Groups",
    "InfeasibleProblemError",
    "InvalidProblemError",
    "KernelSolver",
    "LinearConstraint",
    "MalformedFileError",
    "Outcome",
    "ProblemTooLargeError",
    "Reducing",
    "Reduction",
    "Removed",
    "Solution",
    "Solver",
    "SolverError",
    "SolverInfo",
    "SolverUnavailableError",
    "Status",
    "UnknownSolverError",
    "available_solvers",
    "compact",
    "get_solver",
    "reduce",
]

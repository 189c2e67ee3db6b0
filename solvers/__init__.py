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
from solvers.constraints import LinearConstraint
from solvers.errors import (
    InfeasibleProblemError,
    InvalidProblemError,
    MalformedFileError,
    NoRecordFoundError,
    ProblemTooLargeError,
    SolverError,
    SolverUnavailableError,
    UnknownSolverError,
)
from solvers.groups import Groups
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.pool import TermPool
from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.reducing import Reducing
from solvers.reduction import Reduction, reduce
from solvers.registry import SolverInfo, available_solvers, get_solver, guarded
from solvers.solution import Solution, Status
from solvers.watched import Guarded

__all__ = [
    "BestResponse",
    "Capability",
    "Compacted",
    "Ending",
    "Groups",
    "Guarded",
    "InfeasibleProblemError",
    "InvalidProblemError",
    "KernelSolver",
    "LinearConstraint",
    "MalformedFileError",
    "NoRecordFoundError",
    "ProblemTooLargeError",
    "Reducing",
    "Reduction",
    "SearchLimits",
    "SearchResult",
    "Solution",
    "Solver",
    "SolverError",
    "SolverInfo",
    "SolverUnavailableError",
    "Status",
    "TermPool",
    "UnknownSolverError",
    "available_solvers",
    "compact",
    "get_solver",
    "guarded",
    "reduce",
]

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

import warnings

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
from solvers.guarded import Guarded, guarded
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.pool import TermPool
from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.reducing import Reducing
from solvers.reduction import Reduction, Removed, reduce
from solvers.registry import SolverInfo, available_solvers, get_solver
from solvers.solution import Solution, Status

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
    "Removed",
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


def __getattr__(name: str) -> object:
    """Return what had another name one minor version ago."""
    renamed = {"Budget": SearchLimits, "Outcome": SearchResult}
    if name not in renamed:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = renamed[name]
    warnings.warn(f"solvers.{name} is now solvers.{new.__name__}", DeprecationWarning, stacklevel=2)
    return new

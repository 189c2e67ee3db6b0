"""The local search as a back-end of its own: see :mod:`solvers.local_search`."""

import math

import numpy as np
from numpy.typing import NDArray

from solvers.errors import UnknownSolverError
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.local_search import improve
from solvers.problem import BestResponse
from solvers.protocol import Capability


class LocalSearch(KernelSolver):
    """Tabu search or annealing, depending on size.

    Parameters
    ----------
    argument
        Empty, or ``anytime``: goes on until the time limit.
    """

    name = "local-search"
    capabilities = KernelSolver.capabilities | {Capability.HINT, Capability.SEED}
    module = "numba"
    distribution = "numba"

    def __init__(self, argument: str = "") -> None:
        if argument not in ("", "anytime"):
            raise UnknownSolverError(
                f"unknown solver local-search:{argument}; known: local-search, local-search:anytime"
            )
        self._effort = math.inf if argument == "anytime" else 1.0

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Improve the start, or a greedy record."""
        if start is None and kernel.constraints:
            return SearchResult(Ending.STOPPED)
        record, found = improve(kernel, start, limits, effort=self._effort)
        return SearchResult(Ending.STOPPED, record, found=found)

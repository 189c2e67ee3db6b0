"""The local search's record with the linear relaxation's bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.backends.local_search import LocalSearch
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability


class Lp(KernelSolver):
    """Bounds, by the disaggregated relaxation; searches locally only. Takes no argument.

    In the later rounds of a game the bound often equals the record's value, which proves it.
    """

    name = "lp"
    capabilities = LocalSearch.capabilities | {Capability.BOUND}
    module = "scipy"
    distribution = "scipy"
    imports = ("scipy.optimize",)

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Search locally, then solve the relaxation in the time that is left."""
        from solvers.local_search import improve
        from solvers.relaxation import estimated_seconds, relaxation_bound

        if start is None and kernel.constraints:
            return SearchResult(Ending.STOPPED)
        record, found = improve(kernel, start, limits)
        if limits.remaining() == 0.0 or estimated_seconds(kernel) > 4.0 * limits.remaining():
            return SearchResult(Ending.STOPPED, record, found=found)
        bound = relaxation_bound(kernel, limits.deadline)
        return SearchResult(Ending.STOPPED, record, bound, found)

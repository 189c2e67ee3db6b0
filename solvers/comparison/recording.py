"""Keeps the problems that pass through a solver."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.solution import Solution


class Recording:
    """A solver that keeps some of the problems it is given, and lets another one solve them.

    Parameters
    ----------
    inner
        The other solver.
    calls
        Which calls' problems to keep; the first call is 1.
    """

    def __init__(self, inner: Solver, calls: Collection[int]) -> None:
        self.inner = inner
        self.problems: dict[int, BestResponse] = {}
        """Call -> problem."""
        self._calls = frozenset(calls)
        self._made = 0

    @property
    def name(self) -> str:
        """The inner solver's name."""
        return self.inner.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The inner solver's."""
        return self.inner.capabilities

    def solve(
        self,
        problem: BestResponse,
        *,
        time_limit: float = 20.0,
        threads: int = 1,
        seed: int = 0,
        hint: NDArray[np.uint8] | None = None,
        default: NDArray[np.uint8] | None = None,
    ) -> Solution:
        """Keep the problem if it is wanted, and solve it."""
        self._made += 1
        if self._made in self._calls:
            self.problems[self._made] = problem
        return self.inner.solve(
            problem,
            time_limit=time_limit,
            threads=threads,
            seed=seed,
            hint=hint,
            default=default,
        )

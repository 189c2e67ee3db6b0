"""Keeps the problems that pass through a solver."""

from __future__ import annotations

from collections.abc import Collection
from typing import Unpack

from solvers.problem import BestResponse
from solvers.protocol import Options, Solver, Wrapper
from solvers.solution import Solution


class Recording(Wrapper):
    """A solver that keeps some of the problems it is given, and lets another one solve them.

    Parameters
    ----------
    inner
        The other solver.
    calls
        Which calls' problems to keep; the first call is 1.
    """

    def __init__(self, inner: Solver, calls: Collection[int]) -> None:
        super().__init__(inner)
        self.problems: dict[int, BestResponse] = {}
        """Call -> problem."""
        self._calls = frozenset(calls)
        self._made = 0

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Keep the problem if it is wanted, and solve it."""
        self._made += 1
        if self._made in self._calls:
            self.problems[self._made] = problem
        return super().solve(problem, **options)

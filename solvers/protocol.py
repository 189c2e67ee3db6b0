"""The contract of a solver.

Every solver takes the same problems and returns a feasible record at its time limit at the latest;
solvers differ in what they prove, in time and in memory.
"""

from enum import Enum
from typing import Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from solvers.problem import BestResponse
from solvers.solution import Solution


class Capability(Enum):
    """What a solver supports."""

    EXACT = "exact"
    """Proves optimality, given time."""
    BOUND = "bound"
    """States an upper bound when it stops early."""
    GROUPS = "groups"
    LINEAR_CONSTRAINTS = "linear-constraints"
    HINT = "hint"
    """Starts its search from the hint. (Every solver's answer is at least as good as a feasible
    hint.)"""
    THREADS = "threads"
    """Uses more than one thread."""
    SEED = "seed"
    """Its random choices follow the seed."""


class Solver(Protocol):
    """Finds best responses.

    A third party offers one as an entry point of the group ``dualquery.solvers``: a callable that
    takes the text after the colon of ``name:argument`` (empty without one) and returns a solver.
    """

    @property
    def name(self) -> str:
        """Name under which the solver is found."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the solver supports."""
        ...

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
        """Return a feasible record of high value.

        Parameters
        ----------
        problem
            What to solve.
        time_limit
            Seconds, positive (``inf`` for none), counted from the call, model building included.
        threads
            Most threads to use.
        seed
            Seed of the solver's random choices, >= 0.
        hint
            uint8, shape ``(attributes,)``: a record to start from. The answer is at least as good
            if the hint is feasible; an infeasible one is ignored.
        default
            uint8, shape ``(attributes,)``, legal for the groups: values of the attributes that no
            term and no constraint mentions. By default zeros, and the first member of each group.

        Raises
        ------
        InfeasibleProblemError
            If no record satisfies groups and constraints.
        InvalidProblemError
            If an option, the hint's shape or the default is wrong.
        SolverError
            If no feasible record was found within the limit (linear constraints only), and other
            kinds that the solver names.
        """
        ...


class Options(TypedDict, total=False):
    """The options of :meth:`Solver.solve`; all have a default."""

    time_limit: float
    threads: int
    seed: int
    hint: NDArray[np.uint8] | None
    default: NDArray[np.uint8] | None


class Wrapper:
    """A solver that lets an inner one solve."""

    def __init__(self, inner: Solver) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        """The inner solver's name."""
        return str(self.inner.name)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the inner solver supports."""
        return self.inner.capabilities

    @property
    def imports(self) -> tuple[str, ...]:
        """What the inner solver imports."""
        found: tuple[str, ...] = getattr(self.inner, "imports", ())
        return found

    def close(self) -> None:
        """End the inner solver's process, if it has one of its own."""
        getattr(self.inner, "close", lambda: None)()

    def solve(self, problem: BestResponse, **options: Unpack[Options]) -> Solution:
        """Solve by the inner solver: see :meth:`Solver.solve`."""
        return self.inner.solve(problem, **options)

"""What every built-in back-end shares: the kernel, the deadline, the checks and the fallback."""

import math
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import ClassVar, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from solvers.compact import Compacted, compact
from solvers.errors import (
    InfeasibleProblemError,
    InvalidProblemError,
    NoRecordFoundError,
    UnknownSolverError,
)
from solvers.feasibility import feasible_record, infeasible
from solvers.judging import judge
from solvers.limits import SearchLimits
from solvers.local_search import first_record, improve
from solvers.problem import BestResponse
from solvers.protocol import Capability, Solver
from solvers.reduction import Reduction
from solvers.solution import Solution, Status

_GRACE_SECONDS = 0.25
"""What the local search may take past the limit when a back-end comes back empty-handed."""

_LEAST_MILP_SECONDS = 2e-6
"""What HiGHS takes an entry of the constraints, at least, to look for a feasible record."""

COMPILED = (
    "solvers.dominance_kernels",
    "solvers.lagrangian_kernels",
    "solvers.local_search_kernels",
)
"""Modules of compiled loops; every back-end or its fallback needs one of them."""


class Ending(Enum):
    """How a back-end's search ended."""

    PROVEN = "proven"
    """Its record is optimal."""
    STOPPED = "stopped"
    """At a limit, with or without a record."""
    INFEASIBLE = "infeasible"
    """It proved that there is no feasible record."""
    FAILED = "failed"
    """It gave up for a reason of its own; its bound is not to be trusted."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A back-end's answer about a kernel, not yet trusted."""

    ending: Ending
    record: NDArray[np.uint8] | None = None
    bound: float = math.inf  # upper bound on the kernel's optimum
    found: float | None = None  # seconds from the call until the record was found, if known
    steps: tuple[str, ...] = ()  # what was done, one phrase a step


Preprocessed = Compacted | Reduction
"""A problem, its kernel of the same optimum, and the way between the two."""


class KernelSolver(ABC):
    """A solver that sees kernels only.

    :meth:`solve` compacts the problem, finds a feasible start where there are linear constraints,
    lets the back-end search the kernel, and judges what comes back
    (:func:`solvers.judging.judge`): a record that is not feasible is never returned. A back-end
    that returns nothing usable, or that cannot get anywhere within the limit, is replaced by the
    local search (:attr:`Status.FALLBACK`).
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.GROUPS, Capability.LINEAR_CONSTRAINTS}
    )
    module: ClassVar[str] = "numpy"  # module that has to be importable for the solver to run
    distribution: ClassVar[str] = "numpy"  # package that brings the module
    imports: tuple[str, ...] = ()
    """What a search imports that takes long: loaded before the clock starts."""

    def __init__(self, argument: str = "") -> None:
        """Take the text after the colon of ``name:argument``; most back-ends take none.

        Raises
        ------
        UnknownSolverError
            If the back-end does not know the argument.
        """
        if argument:
            raise UnknownSolverError(f"{self.name} takes no argument; found {argument!r}")

    @abstractmethod
    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Search a kernel, without terms if only a feasible record is missing, until the deadline.

        Parameters
        ----------
        kernel
            Canonical, non-empty terms; every attribute matters.
        limits
            Deadline, threads, seed; work and gap for a back-end that counts them.
        start
            uint8, shape ``(kernel.attributes,)``: a feasible record, if one is known.
        """

    def preprocess(self, problem: BestResponse, limits: SearchLimits) -> Preprocessed:  # noqa: ARG002
        """Return the kernel that the back-end sees, and the way back."""
        return compact(problem)

    def least_seconds(self, kernel: BestResponse) -> float:  # noqa: ARG002
        """Estimate the seconds to the back-end's first result, model building included.

        With less time than that left it is not started.
        """
        return 0.0

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
        """Return a feasible record of high value: see :meth:`solvers.protocol.Solver.solve`.

        The first call in a process loads compiled loops before its clock starts, and the first call
        on a machine compiles them, for some seconds.
        """
        load(self)
        began = time.perf_counter()
        hint, default = check_options(problem, time_limit, threads, seed, hint, default)
        limits = SearchLimits(began, began + time_limit, threads, seed)
        preprocessed = self.preprocess(problem, limits)
        kernel = preprocessed.problem
        if hint is None or not preprocessed.original.feasible(hint):
            start = self._start(preprocessed, limits, default)
            started = limits.elapsed()
        else:
            start, started = preprocessed.restrict(hint), 0.0

        if len(kernel.terms) == 0 and (start is not None or len(kernel.rows) == 0):
            record = np.zeros(0, np.uint8) if start is None else start
            result = SearchResult(Ending.PROVEN, record, kernel.constant)
        elif self.least_seconds(kernel) > limits.remaining():
            result = SearchResult(Ending.STOPPED)
        else:
            result = self.search(kernel, limits, start)
        if result.ending is Ending.INFEASIBLE and start is None:
            raise infeasible(problem)

        record, found, own = _usable(kernel, result, limits, start)
        full = preprocessed.expand(record, default)
        solution = Solution(
            record=full,
            objective=problem.value(full),
            bound=math.inf if result.ending is Ending.FAILED else result.bound,
            status=Status.FEASIBLE if own else Status.FALLBACK,
            incumbent_seconds=max(found, started),
            seconds=limits.elapsed(),
            solver=self.name,
            steps=(*preprocessed.steps, *result.steps),
        )
        return judge(problem, solution, kernel)

    def _start(
        self,
        preprocessed: Preprocessed,
        limits: SearchLimits,
        default: NDArray[np.uint8] | None,
    ) -> NDArray[np.uint8] | None:
        """Return some feasible record under constraints, or None."""
        kernel = preprocessed.problem
        if len(kernel.rows) == 0:
            return None
        start, _ = first_record(kernel, limits)
        if start is None and default is not None:
            start = preprocessed.restrict(default)
        if start is not None and kernel.feasible(start):
            return start
        if _LEAST_MILP_SECONDS * len(kernel.rows.attributes) > max(limits.remaining(), 0.05):
            return None
        try:
            # A back-end that is exact may be better at it: then half of the time is left to it.
            spared = 0.5 * limits.remaining() if Capability.EXACT in self.capabilities else 0.0
            return feasible_record(kernel, limits.deadline - spared)
        except InfeasibleProblemError:
            # Named by the numbers that the caller knows.
            feasible_record(preprocessed.original, limits.deadline)
            raise infeasible(preprocessed.original) from None


def load(solver: Solver) -> None:
    """Load the compiled loops and what a solver imports, which no time limit counts.

    On a machine's first use the loops are compiled, for some seconds.
    """
    from solvers.compiled import compile_module  # which loads Numba

    for loops in COMPILED:
        compile_module(loops)
    for module in ("scipy.sparse.csgraph", *getattr(solver, "imports", ())):  # reductions' first
        with suppress(ImportError):  # the search says so, or does without
            import_module(module)


def check_options(
    problem: BestResponse,
    time_limit: float = 20.0,
    threads: int = 1,
    seed: int = 0,
    hint: NDArray[np.uint8] | None = None,
    default: NDArray[np.uint8] | None = None,
) -> tuple[NDArray[np.uint8] | None, NDArray[np.uint8] | None]:
    """Check the options of :meth:`solvers.protocol.Solver.solve`; return hint and default.

    Raises
    ------
    InvalidProblemError
        If one is not as it should be.
    """
    if not time_limit > 0:
        raise InvalidProblemError(f"the time limit is {time_limit}; expected seconds above 0")
    if not isinstance(threads, SupportsIndex) or threads < 1:
        raise InvalidProblemError(f"threads is {threads}; expected 1 or more")
    if not isinstance(seed, SupportsIndex) or seed < 0:
        raise InvalidProblemError(f"the seed is {seed}; expected 0 or more")
    if hint is not None and hint.shape != (problem.attributes,):
        raise InvalidProblemError(
            f"the hint has shape {hint.shape}; expected ({problem.attributes},)"
        )
    if default is not None and not problem.legal(default):
        raise InvalidProblemError(f"the default is not legal: {problem.violations(default)[0]}")
    hint, default = (None if each is None else each.astype(np.uint8) for each in (hint, default))
    return hint, default


def _usable(
    kernel: BestResponse,
    result: SearchResult,
    limits: SearchLimits,
    start: NDArray[np.uint8] | None,
) -> tuple[NDArray[np.uint8], float, bool]:
    """Return the best feasible record, when it was found, and whether the back-end had one."""
    record, found = result.record, result.found
    own = record is not None and kernel.feasible(record)
    if record is None or not own:
        deadline = max(limits.deadline, time.perf_counter() + _GRACE_SECONDS)
        limits = SearchLimits(limits.began, deadline, 1, limits.seed)
        if start is None and len(kernel.rows):
            endless = result.ending is not Ending.STOPPED and math.isinf(deadline)
            start, violated = first_record(kernel, limits, None if endless else math.inf)
            if start is None or not kernel.feasible(start):
                raise NoRecordFoundError(violated)
        record, found = improve(kernel, start, limits)
    if start is not None and kernel.value(start) > kernel.value(record):
        record, found = start, 0.0
    return record, limits.elapsed() if found is None else found, own

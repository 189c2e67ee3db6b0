"""The portfolio: reductions, local search, the Lagrangian dual, then an exact back-end.

The first three take milliseconds: the dual's bound proves most rounds of a game, and its relaxed
record leads the search where it had gone astray. The exact back-end is for the proofs that are
left. How much of it pays is learnt from one call to the next, so a solver object belongs
to one run. All limits of its own are counted work, not time: unless a call reaches its time limit
(its local search, under linear constraints, a share of it), the answers are a function of the
problems, hints and seeds so far.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.backends.local_search import LocalSearch
from solvers.errors import UnknownSolverError
from solvers.kernel_solver import Ending, KernelSolver, Preprocessed, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability

if TYPE_CHECKING:
    from solvers.lagrangian import LagrangianDual


@dataclass(frozen=True)
class Policy:
    """How much work goes into searches for proofs; in seconds of a typical machine, but counted.

    Parameters
    ----------
    allowance
        For all calls of a run together.
    income
        What each call adds to it.
    search
        For one call of the exact back-end.
    gap
        Share of the objective by which the bound may exceed it when the search stops.
    bounds
        Whether anything beyond a brief local search is done.
    """

    allowance: float
    income: float
    search: float
    gap: float = 0.0
    bounds: bool = True


_POLICIES = {
    "": Policy(allowance=20.0, income=0.1, search=1.0),
    "fast": Policy(allowance=0.0, income=0.0, search=0.0),
    "brief": Policy(allowance=0.0, income=0.0, search=0.0, bounds=False),
    "prove": Policy(allowance=math.inf, income=0.0, search=math.inf),
}

_EXACT = "ortools.sat.python.cp_model"
_LOADING_SECONDS = 1.0
"""What the first search for a proof in a process may take to load CP-SAT."""
_GLANCE = 0.1
"""Share of the local search that comes before the dual: mostly it is enough."""
_STRETCHES = (50, 100, 200)
"""Iterations of the dual between two looks at its relaxed record."""
_ROUNDINGS = 4
"""Random roundings of the relaxed record to search from after each, beside the nearest one."""
_BRIEF = 0.05
"""Share of the local search for each of these."""
_LEAST_PROGRESS = 0.1
"""Share of the gap that a stretch has to close for the next one to be worth its time."""
_TOLERANCE = 1e-7
"""Gap that counts as none, as a share of the sum of absolute weights."""
_FIRST_WORTHWHILE_GAP = 0.03
"""Relative gap of the dual up to which a search for a proof is tried at first."""
_WIDER, _NARROWER = 1.5, 0.8
"""What a proof at some gap makes of the worthwhile gap, and a search without a proof."""
_RECOVERY = 1.02
"""Growth of the worthwhile gap a call after it has shrunk: later rounds are easier."""
_FEW_TERMS = 300
"""Up to this size a search for a proof takes milliseconds at any gap."""
_ASTRAY = 0.2
"""Under linear constraints, the relative gap from which the local search may be far off."""
_LOCAL_SHARE = 0.3
"""Share of the limit that the local search has under linear constraints, which slow it down."""


class Auto(KernelSolver):
    """The default solver.

    Parameters
    ----------
    argument
        Empty: proofs as long as they are cheap. ``fast``: those that take milliseconds.
        ``brief``: none beyond the reductions', and a short local search. ``prove``: until the time
        limit of each call. A number such as ``0.01``: as ``prove``, but a bound within this share
        of the objective is enough.
    """

    name = "auto"
    capabilities = LocalSearch.capabilities | {Capability.BOUND}
    module = "numba"
    distribution = "numba"

    def __init__(self, argument: str = "") -> None:
        self._policy = _policy(argument)
        self._thrift = _Thrift(self._policy.allowance)
        if math.isinf(self._policy.search):
            # Others load it when they come to need it, which is seldom.
            self.imports = (_EXACT,)

    def preprocess(self, problem: BestResponse, limits: SearchLimits) -> Preprocessed:
        """Reduce the problem."""
        from solvers.reduction import reduce

        return reduce(problem, limits.reductions)

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Search what the reductions left."""
        from solvers.local_search import improve

        if start is None and kernel.constraints:
            return SearchResult(Ending.STOPPED)
        self._thrift.earn(self._policy.income)
        attempt = _Attempt(kernel, limits, self._policy.gap)
        early = limits.part(_LOCAL_SHARE) if len(kernel.rows) else limits
        attempt.adopt(*improve(kernel, start, early, effort=_GLANCE), "local search")
        if self._policy.bounds and not attempt.proven:
            attempt.relax()
            if not attempt.proven:
                attempt.adopt(*improve(kernel, attempt.record, early), "longer local search")
        if not attempt.proven and self._policy.search > 0.0:
            self._search(attempt)
        return SearchResult(
            Ending.STOPPED, attempt.record, attempt.bound, attempt.found, tuple(attempt.steps)
        )

    def _search(self, attempt: _Attempt) -> None:
        gap = attempt.relative_gap
        loading = 0.0 if _EXACT in sys.modules else _LOADING_SECONDS
        astray = len(attempt.kernel.rows) > 0 and gap > _ASTRAY
        few = len(attempt.kernel.terms) <= _FEW_TERMS
        if refusal := self._thrift.refusal_to_search(gap, at_any_gap=astray or few):
            attempt.steps.append(f"no search for a proof: {refusal}")
            return
        if loading >= attempt.limits.remaining():
            attempt.steps.append("no search for a proof: no time left to load CP-SAT")
            return
        exact = _exact_solver()
        if exact.least_seconds(attempt.kernel) >= attempt.limits.remaining():
            attempt.steps.append("no search for a proof: no time left")
        else:
            work = attempt.search(exact, min(self._policy.search, self._thrift.credit))
            self._thrift.searched(work, gap, attempt.proven)


def _policy(argument: str) -> Policy:
    if argument in _POLICIES:
        return _POLICIES[argument]
    try:
        gap = float(argument)
    except ValueError:
        gap = math.nan
    if not 0.0 <= gap < 1.0:
        raise UnknownSolverError(
            f"unknown solver auto:{argument}; known: auto, auto:brief, auto:fast, auto:prove, "
            "and auto:GAP with a number such as 0.01"
        )
    return replace(_POLICIES["prove"], gap=gap)


class _Attempt:
    """One call's incumbent and bound."""

    def __init__(self, kernel: BestResponse, limits: SearchLimits, gap: float) -> None:
        self.kernel = kernel
        self.limits = limits
        self.gap = gap
        self.record: NDArray[np.uint8] = np.zeros(kernel.attributes, np.uint8)
        self.value = -math.inf
        self.bound = kernel.constant + float(kernel.weights[kernel.weights > 0].sum())
        self.found = 0.0
        self.dual: LagrangianDual | None = None
        self.steps: list[str] = []

    @property
    def relative_gap(self) -> float:
        """Bound less value, as a share of the value's size."""
        return (self.bound - self.value) / max(abs(self.value), 1e-300)

    @property
    def goal(self) -> float:
        """The largest bound that proves the incumbent as good as asked for."""
        tolerance = _TOLERANCE * float(np.abs(self.kernel.weights).sum())
        return self.value + max(self.gap * abs(self.value), tolerance)

    @property
    def proven(self) -> bool:
        """Whether the gap is as small as asked for."""
        return self.bound <= self.goal

    def adopt(self, record: NDArray[np.uint8], found: float, by: str) -> None:
        """Take a record as incumbent if it is better."""
        value = self.kernel.value(record)
        if value > self.value and self.kernel.feasible(record):
            self.record, self.value, self.found = record, value, found
            self.steps.append(f"{by} {value:g}")

    def relax(self) -> None:
        """Bound by the dual as long as that gets on; search from its rounded records."""
        from solvers.lagrangian import LagrangianDual
        from solvers.local_search import search_from

        dual = self.dual = LagrangianDual(self.kernel, self.record)
        rng = np.random.default_rng(self.limits.seed)
        for stretch in _STRETCHES:
            if stretch * dual.seconds_per_iteration > self.limits.remaining():
                self.steps.append("no time left for the dual")
                return
            before = self.bound
            dual.descend(stretch, self.goal)
            self._tighten(dual.bound, f"dual of {dual.iterations} iterations")
            if self.proven:
                return
            for start in (dual.rounded(), *(dual.rounded(rng) for _ in range(_ROUNDINGS))):
                if self.kernel.feasible(start):
                    found = search_from(self.kernel, start, self.limits, effort=_BRIEF)
                    self.adopt(*found, "search from its record")
            if self.proven or before - self.bound < _LEAST_PROGRESS * (self.bound - self.value):
                return

    def search(self, exact: KernelSolver, work: float) -> float:
        """Search for a better record or a proof by an exact back-end; return the work."""
        from solvers.reduction import reduce
        from solvers.relaxation import attainable, restricted

        better = self.kernel
        if self.dual is not None:
            better = restricted(self.kernel, self.dual.bounds(), self.value)
        reduction = reduce(better)
        left = reduction.problem
        if reduction.solved:
            result = SearchResult(Ending.PROVEN, np.zeros(0, np.uint8), left.constant)
        else:
            start = reduction.restrict(self.record) if better.feasible(self.record) else None
            limits = replace(self.limits, work=work, gap=self.gap * abs(self.value))
            result = exact.search(left, limits, start)
        value = self.value
        if result.record is not None and left.feasible(result.record):
            found = self.limits.elapsed() if result.found is None else result.found
            self.adopt(reduction.expand(result.record), found, exact.name)
        if result.ending is Ending.INFEASIBLE:
            self._tighten(value, exact.name)
        elif result.ending is Ending.PROVEN:
            self._tighten(max(value, self.value), exact.name)
        elif result.ending is Ending.STOPPED:
            bound = float(attainable(left, result.bound))
            self._tighten(max(value, bound), exact.name)
        return result.work

    def _tighten(self, bound: float, by: str) -> None:
        self.bound = min(self.bound, bound)
        self.steps.append(f"{by} bound {bound:g}")


class _Thrift:
    """What the calls of a run so far teach about the proofs of the next ones."""

    def __init__(self, allowance: float) -> None:
        self.credit = allowance
        """Work left for proofs."""
        self._worthwhile_gap = _FIRST_WORTHWHILE_GAP
        self._lock = Lock()

    def earn(self, income: float) -> None:
        """Begin a call: gaps too wide before become worth another try, little by little."""
        with self._lock:
            self.credit += income
            if self._worthwhile_gap < _FIRST_WORTHWHILE_GAP:
                self._worthwhile_gap *= _RECOVERY

    def refusal_to_search(self, gap: float, *, at_any_gap: bool) -> str:
        """Return why a search for a proof is not worth its work, or nothing."""
        with self._lock:
            if self.credit <= 0.0:
                return "no work left"
            if math.isinf(self.credit) or at_any_gap or gap <= self._worthwhile_gap:
                return ""
            return f"gap {gap:.1%}, worthwhile to {self._worthwhile_gap:.1%}"

    def searched(self, work: float, gap: float, proven: bool) -> None:
        """Learn from a search: a proof widens the gap that is worthwhile, a failure narrows it."""
        with self._lock:
            self.credit -= work
            if proven:
                self._worthwhile_gap = max(self._worthwhile_gap, _WIDER * gap)
            else:
                self._worthwhile_gap = min(self._worthwhile_gap, _NARROWER * gap)


def _exact_solver() -> KernelSolver:
    """Return CP-SAT or, where it cannot be imported (beside ``highspy``, say), HiGHS."""
    try:
        import_module(_EXACT)
    except ImportError:
        from solvers.backends.highs import Highs

        return Highs()
    from solvers.backends.cpsat import CpSat

    return CpSat()

"""The portfolio: reductions, local search, the relaxation's bound, then an exact back-end.

Reductions and local search take milliseconds and their record is what the game needs; the rest is
for the proof. How much of it pays is learnt from one call to the next, so a solver object belongs
to one run. All limits of its own are counted work, not time: unless a call reaches its time limit,
the answers are a function of the problems, hints and seeds so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.errors import UnknownSolverError
from solvers.kernel_solver import Budget, Ending, KernelSolver, Outcome, Preprocessed
from solvers.problem import BestResponse
from solvers.protocol import Capability

if TYPE_CHECKING:
    from solvers.relaxation import Relaxation


@dataclass(frozen=True)
class Policy:
    """How much work goes into proofs; in seconds of a typical machine, but counted.

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
    """

    allowance: float
    income: float
    search: float
    gap: float = 0.0


_POLICIES = {
    "": Policy(allowance=20.0, income=0.1, search=1.0),
    "fast": Policy(allowance=0.0, income=0.0, search=0.0),
    "prove": Policy(allowance=math.inf, income=0.0, search=math.inf),
}

_GLANCE = 0.25
"""Share of the local search that comes before the relaxation: mostly it is enough."""
_FIRST_WORTHWHILE_GAP = 0.03
"""Relative gap of the relaxation up to which a search for a proof is tried at first."""
_WIDER, _NARROWER = 1.5, 0.8
"""What a proof at some gap makes of the worthwhile gap, and a search without a proof."""
_RECOVERY = 1.02
"""Growth of the worthwhile gap a call after it has shrunk: later rounds are easier."""
_FEW_TERMS = 300
"""Up to this size a search for a proof takes milliseconds at any gap."""
_LONGEST_PAUSE = 16
"""Most calls without a relaxation after relaxations that led to no proof."""


class Auto(KernelSolver):
    """The default solver.

    Parameters
    ----------
    argument
        Empty: proofs as long as they are cheap. ``fast``: none but by reductions. ``prove``: until
        the time limit of each call. A number such as ``0.01``: as ``prove``, but a bound within
        this share of the objective is enough.
    """

    name: ClassVar[str] = "auto"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {
            Capability.BOUND,
            Capability.GROUPS,
            Capability.LINEAR_CONSTRAINTS,
            Capability.HINT,
            Capability.SEED,
        }
    )
    module: ClassVar[str] = "numba"
    distribution: ClassVar[str] = "numba"

    def __init__(self, argument: str = "") -> None:
        self._policy = _policy(argument)
        self._thrift = _Thrift(self._policy.allowance)

    def preprocess(self, problem: BestResponse) -> Preprocessed:
        """Reduce the problem."""
        from solvers.reduction import reduce

        return reduce(problem)

    def search(
        self, kernel: BestResponse, budget: Budget, start: NDArray[np.uint8] | None
    ) -> Outcome:
        """Search what the reductions left."""
        from solvers.backends.local_search import improve

        if start is None and kernel.constraints:
            return Outcome(Ending.STOPPED)
        attempt = _Attempt(kernel, budget, self._policy.gap)
        if self._policy.search == 0.0:
            attempt.adopt(*improve(kernel, start, budget), "local search")
        else:
            self._thrift.earn(self._policy.income)
            attempt.adopt(*improve(kernel, start, budget, effort=_GLANCE), "local search")
            if not attempt.proven:
                self._relax(attempt)
            if not attempt.proven:
                self._search(attempt)
        return Outcome(
            Ending.STOPPED, attempt.record, attempt.bound, attempt.found, tuple(attempt.steps)
        )

    def _relax(self, attempt: _Attempt) -> None:
        """Bound by the relaxation if that is worth its work, and make the local search complete."""
        from solvers.relaxation import estimated_seconds

        least = estimated_seconds(attempt.kernel)
        if refusal := self._thrift.refusal_to_relax(least):
            attempt.steps.append(f"no relaxation: {refusal}")
            attempt.improve()
        elif least > attempt.budget.remaining():
            attempt.steps.append("no relaxation: no time left")
            attempt.improve()
        else:
            work = attempt.relax()
            if not attempt.proven:
                attempt.improve()
            self._thrift.relaxed(work, attempt.relative_gap, attempt.proven)

    def _search(self, attempt: _Attempt) -> None:
        gap = attempt.relative_gap
        exact = _exact_solver()
        if refusal := self._thrift.refusal_to_search(gap, len(attempt.kernel.terms)):
            attempt.steps.append(f"no search for a proof: {refusal}")
        elif exact.least_seconds(attempt.kernel) >= attempt.budget.remaining():
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
            f"unknown solver auto:{argument}; known: auto, auto:fast, auto:prove, and "
            "auto:GAP with a number such as 0.01"
        )
    return replace(_POLICIES["prove"], gap=gap)


class _Attempt:
    """One call's incumbent and bound."""

    def __init__(self, kernel: BestResponse, budget: Budget, gap: float) -> None:
        self.kernel = kernel
        self.budget = budget
        self.gap = gap
        self.record: NDArray[np.uint8] = np.zeros(kernel.attributes, np.uint8)
        self.value = -math.inf
        self.bound = kernel.constant + float(kernel.weights[kernel.weights > 0].sum())
        self.found = 0.0
        self.relaxation: Relaxation | None = None
        self.steps: list[str] = []

    @property
    def relative_gap(self) -> float:
        """Bound less value, as a share of the value's size."""
        return (self.bound - self.value) / max(abs(self.value), 1e-300)

    @property
    def proven(self) -> bool:
        """Whether the gap is as small as asked for."""
        return self.bound - self.value <= max(
            self.gap * abs(self.value), 1e-9 * float(np.abs(self.kernel.weights).sum())
        )

    def adopt(self, record: NDArray[np.uint8], found: float, by: str) -> None:
        """Take a record as incumbent if it is better."""
        value = self.kernel.value(record)
        if value > self.value and self.kernel.feasible(record):
            self.record, self.value, self.found = record, value, found
            self.steps.append(f"{by} {value:g}")

    def improve(self) -> None:
        """Search locally, as long as it pays."""
        from solvers.backends.local_search import improve

        self.adopt(*improve(self.kernel, self.record, self.budget), "longer local search")

    def relax(self) -> float:
        """Bound by the relaxation, search from its rounded point; return the work."""
        from solvers.backends.local_search import search_from
        from solvers.relaxation import relax, rounded

        relaxation = relax(self.kernel, self.budget.deadline)
        self.relaxation = relaxation
        self._tighten(relaxation.bound, "relaxation")
        if relaxation.point is not None and not self.proven:
            start = rounded(self.kernel, relaxation.point)
            if self.kernel.feasible(start):
                self.adopt(*search_from(self.kernel, start, self.budget), "search from its point")
        return relaxation.work

    def search(self, exact: KernelSolver, work: float) -> float:
        """Search for a better record or a proof by an exact back-end; return the work."""
        from solvers.reduction import reduce
        from solvers.relaxation import attainable, restricted

        better = self.kernel
        if self.relaxation is not None:
            better = restricted(self.kernel, self.relaxation, self.value)
        reduction = reduce(better)
        left = reduction.problem
        if reduction.solved:
            outcome = Outcome(Ending.PROVEN, np.zeros(0, np.uint8), left.constant)
        else:
            start = reduction.restrict(self.record) if better.feasible(self.record) else None
            budget = replace(self.budget, work=work, gap=self.gap * abs(self.value))
            outcome = exact.search(left, budget, start)
        value = self.value
        if outcome.record is not None and left.feasible(outcome.record):
            found = self.budget.elapsed() if outcome.found is None else outcome.found
            self.adopt(reduction.expand(outcome.record), found, exact.name)
        if outcome.ending is Ending.INFEASIBLE:
            self._tighten(value, exact.name)
        elif outcome.ending is not Ending.FAILED:
            bound = float(attainable(left, outcome.bound))
            self._tighten(max(value, bound), exact.name)
        return outcome.work

    def _tighten(self, bound: float, by: str) -> None:
        self.bound = min(self.bound, bound)
        self.steps.append(f"{by} bound {bound:g}")


class _Thrift:
    """What the calls of a run so far teach about the proofs of the next ones."""

    def __init__(self, allowance: float) -> None:
        self.credit = allowance
        """Work left for proofs."""
        self._worthwhile_gap = _FIRST_WORTHWHILE_GAP
        self._pause = 0
        self._paused = 0
        self._lock = Lock()

    def earn(self, income: float) -> None:
        """Begin a call: gaps too wide before become worth another try, little by little."""
        with self._lock:
            self.credit += income
            if self._worthwhile_gap < _FIRST_WORTHWHILE_GAP:
                self._worthwhile_gap *= _RECOVERY

    def refusal_to_relax(self, estimate: float) -> str:
        """Return why the relaxation is not worth its work, or nothing."""
        with self._lock:
            if estimate > self.credit:
                return f"{estimate:.2g} s of work, {self.credit:.2g} s left"
            if math.isfinite(self.credit) and self._paused < self._pause:
                self._paused += 1
                return f"call {self._paused} of {self._pause} after one too weak"
            self._paused = 0
            return ""

    def relaxed(self, work: float, gap: float, proven: bool) -> None:
        """Learn from a relaxation: one with too wide a gap makes the next pause twice as long."""
        with self._lock:
            self.credit -= work
            hopeless = not proven and gap > self._worthwhile_gap
            self._pause = min(2 * self._pause + 1, _LONGEST_PAUSE) if hopeless else 0

    def refusal_to_search(self, gap: float, terms: int) -> str:
        """Return why a search for a proof is not worth its work, or nothing."""
        with self._lock:
            if self.credit <= 0.0:
                return "no work left"
            if math.isinf(self.credit) or terms <= _FEW_TERMS or gap <= self._worthwhile_gap:
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
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError:
        from solvers.backends.highs import Highs

        return Highs()
    from solvers.backends.cpsat import CpSat

    return CpSat()

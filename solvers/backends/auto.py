"""The portfolio: reductions, local search, the Lagrangian dual, and an exact back-end, in stages.

The first three take milliseconds: the dual's bound proves most rounds of a game, and its relaxed
record leads the search where it had gone astray. Then the exact back-end, begun at the incumbent,
in slices of doubling work, takes turns with the local search, which goes on where it stopped, and
with exact searches near the incumbent: until a proof, the gap asked for, or the deadline. All
limits of a stage are counted work, not time: unless a call reaches its time limit, the answer is a
function of problem, hint and seed.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.backends.local_search_backend import LocalSearch
from solvers.errors import UnknownSolverError
from solvers.kernel_solver import Ending, KernelSolver, Preprocessed, SearchResult
from solvers.limits import SearchLimits
from solvers.local_search import Search, first_place, greedy_record
from solvers.problem import BestResponse
from solvers.protocol import Capability
from solvers.reduction import reduce
from solvers.relaxation import attainable, fixing, restricted, unit

if TYPE_CHECKING:
    from solvers.lagrangian import LagrangianDual

_EXACT = "ortools.sat.python.cp_model"
_LOADING_SECONDS = 1.0  # what the first search for a proof in a process may take to load CP-SAT
_FIRST_PASS = 0.1  # share of the local search that comes before the dual: mostly it is enough
_STRETCHES = (50, 100, 200)  # iterations of the dual between two looks at its relaxed record
_ROUNDINGS = 4
"""Random roundings of the relaxed record to search from after each, beside the nearest one."""
_BRIEF = 0.05  # share of the local search for each of these
_LEAST_PROGRESS = 0.1
"""Share of the gap that a stretch has to close for the next one to be worth its time."""
_TOLERANCE = 1e-7  # gap that counts as none, as a share of the sum of absolute weights
_FIRST_SLICE = 0.25  # work of the exact back-end's first turn: about half a second
_FREED = 0.3  # share of the attributes that the first search near a record leaves free
_WIDER = 1.1
_PARTS = 6  # searches near a record between two local searches
_NEAR_WORK = 0.1
_TURN = 20.0  # effort of the local search's first turn: about as long


class Auto(KernelSolver):
    """The default solver.

    Parameters
    ----------
    argument
        Empty (or ``prove``): until a proof or the time limit. A number such as ``0.01``: a bound
        within this share of the objective is enough. ``fast``: what takes milliseconds. ``brief``:
        no bound beyond the reductions', and a short local search.
    """

    name = "auto"
    capabilities = LocalSearch.capabilities | {Capability.BOUND, Capability.EXACT}
    module = "numba"
    distribution = "numba"

    def __init__(self, argument: str = "") -> None:
        self._gap = 0.0
        self._stages: Callable[[], Iterator[Stage]] = _full
        if argument in _SHORT:
            self._stages = lambda: iter(_SHORT[argument])
            own = LocalSearch.capabilities | {Capability.BOUND}
            self.capabilities = own  # type: ignore[misc]  # of this variant
        elif argument not in ("", "prove"):
            self._gap = _gap(argument)
        if self._stages is _full:
            self.imports = (_EXACT,)

    def preprocess(self, problem: BestResponse, limits: SearchLimits) -> Preprocessed:
        """Reduce the problem."""
        return reduce(problem, limits.reductions)

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Search what the reductions left."""
        attempt = Attempt(kernel, limits, start, self._gap)
        for stage in self._stages():
            stage(attempt)
            if attempt.ended or limits.remaining() == 0.0:
                break
        return attempt.result()


class Attempt:
    """One call's incumbent and bound, which its stages improve.

    It begins at a feasible record if one is known (uint8, shape ``(kernel.attributes,)``), and ends
    when the bound exceeds the objective by at most ``gap``, a share of that.
    """

    def __init__(
        self,
        kernel: BestResponse,
        limits: SearchLimits,
        start: NDArray[np.uint8] | None,
        gap: float,
    ) -> None:
        self.kernel = kernel
        self.limits = limits
        self.gap = gap
        self.record: NDArray[np.uint8] | None = None
        self.value = -math.inf
        self.bound = kernel.constant + float(kernel.weights[kernel.weights > 0].sum())
        self.found: float | None = 0.0
        self.dual: LagrangianDual | None = None
        self.infeasible = False
        self.search: Search | None = None
        """The local search, once it has begun."""
        self.freed = _FREED
        """Share of the attributes that a search near it leaves free."""
        self.steps: list[str] = []
        self.adopt(start, 0.0, "")

    @property
    def goal(self) -> float:
        """The largest bound that proves the incumbent as good as asked for."""
        # Of whole weights another record is better by a unit at least, however large their sum.
        better = 0.5 * unit(self.kernel) or math.inf
        tolerance = min(_TOLERANCE * float(np.abs(self.kernel.weights).sum()), better)
        return self.value + max(self.gap * abs(self.value), tolerance)

    @property
    def ended(self) -> bool:
        """Whether the gap is as small as asked for, or no record is feasible."""
        return self.infeasible or (self.record is not None and self.bound <= self.goal)

    def adopt(self, record: NDArray[np.uint8] | None, found: float | None, by: str) -> None:
        """Take a record as incumbent if it is better."""
        if record is None:
            return
        value = self.kernel.value(record)
        if value > self.value and self.kernel.feasible(record):
            self.record, self.value, self.found = record, value, found
            if by:
                self.steps.append(f"{by} {value:g}")

    def tighten(self, bound: float, by: str) -> None:
        """Take a bound if it is better."""
        if bound < self.bound:
            self.bound = bound
            self.steps.append(f"{by} bound {bound:g}")

    def result(self) -> SearchResult:
        """Return what was found."""
        ending = Ending.INFEASIBLE if self.infeasible else Ending.STOPPED
        return SearchResult(ending, self.record, self.bound, self.found, tuple(self.steps))


Stage = Callable[[Attempt], None]


def search_locally(attempt: Attempt, effort: float, by: str) -> None:
    """Search from the greedy record, or from the start where that is not feasible, or go on."""
    kernel = attempt.kernel
    if attempt.search is None:
        attempt.search = Search(kernel, first_place(kernel, attempt.record), attempt.limits)
    attempt.search.run(effort)
    attempt.adopt(attempt.search.best, attempt.search.found, by)


def relax(attempt: Attempt) -> None:
    """Bound by the dual as long as that gets on; search from its rounded records."""
    from solvers.lagrangian import LagrangianDual

    kernel, limits = attempt.kernel, attempt.limits
    begin = greedy_record(kernel) if attempt.record is None else attempt.record
    dual = attempt.dual = LagrangianDual(kernel, begin)
    rng = np.random.default_rng(limits.seed)
    for stretch in _STRETCHES:
        if stretch * dual.seconds_per_iteration > limits.remaining():
            attempt.steps.append("no time left for the dual")
            return
        before = attempt.bound
        dual.descend(stretch, attempt.goal)
        attempt.tighten(dual.bound, f"dual of {dual.iterations} iterations")
        if attempt.ended:
            return
        for start in (dual.rounded(), *(dual.rounded(rng) for _ in range(_ROUNDINGS))):
            if kernel.feasible(start):
                search = Search(kernel, start, limits)
                search.run(_BRIEF)
                attempt.adopt(search.best, search.found, "search from its record")
        gap = attempt.bound - attempt.value
        if attempt.ended or before - attempt.bound < _LEAST_PROGRESS * gap:
            return


def prove(attempt: Attempt, work: float) -> None:
    """Search for a better record or a proof by the exact back-end, among all that may be better."""
    better = attempt.kernel
    if attempt.dual is not None:
        better = restricted(better, attempt.dual.bounds(), attempt.value)
    value = attempt.value
    asked = _ask_exact(attempt, better, work, attempt.record)
    if asked is None:
        return
    result, left = asked
    attempt.adopt(result.record, result.found, "exact search")
    if result.ending is Ending.INFEASIBLE:
        attempt.infeasible = attempt.record is None
        attempt.tighten(value, "exact search")
    elif result.ending is not Ending.FAILED:
        proven = result.ending is Ending.PROVEN
        bound = result.bound if proven else float(attainable(left, result.bound))
        attempt.tighten(max(value, bound), "exact search")


def search_near(attempt: Attempt, turn: int) -> None:
    """Search the records that differ from the incumbent in some random attributes only.

    How many these are follows from whether the last such search was finished.
    """
    kernel, best = attempt.kernel, attempt.record
    if best is None:
        return
    rng = np.random.default_rng((attempt.limits.seed, turn))
    group = kernel.groups.group_of(kernel.attributes)
    # Members of a group are free together.
    tied = np.where(group < 0, len(kernel.groups) + np.arange(kernel.attributes), group)
    free = rng.random(len(kernel.groups) + kernel.attributes)[tied] < attempt.freed
    fixed = np.flatnonzero(~free).astype(np.int32)
    near = replace(kernel, constraints=(*kernel.rows, fixing(fixed, best[fixed] == 1)))
    asked = _ask_exact(attempt, near, _NEAR_WORK, best)
    if asked is not None:
        finished = asked[0].ending in (Ending.PROVEN, Ending.INFEASIBLE)
        attempt.freed = min(attempt.freed * (_WIDER if finished else 1.0 / _WIDER), 1.0)
        attempt.adopt(asked[0].record, asked[0].found, "exact search near it")


def _ask_exact(
    attempt: Attempt, part: BestResponse, work: float, start: NDArray[np.uint8] | None
) -> tuple[SearchResult, BestResponse] | None:
    """Search a part of the records exactly; return the result and the reduced problem."""
    limits = attempt.limits
    loading = 0.0 if _EXACT in sys.modules else _LOADING_SECONDS
    exact = _exact_solver() if loading < limits.remaining() else None
    if exact is None or exact.least_seconds(part) >= limits.remaining():
        return None
    reduction = reduce(part, limits.deadline)
    left = reduction.problem
    if reduction.solved:
        result = SearchResult(Ending.PROVEN, np.zeros(0, np.uint8), left.constant)
    else:
        gap = 0.0
        if start is not None:
            start = reduction.restrict(start) if part.feasible(start) else None
            gap = attempt.gap * abs(attempt.value) if start is not None else 0.0
        result = exact.search(left, replace(limits, work=work, gap=gap), start)
    record = None
    if result.record is not None and left.feasible(result.record):
        record = reduction.expand(result.record)
    found = limits.elapsed() if result.found is None else result.found
    return replace(result, record=record, found=found), left


_FIRST: Stage = partial(search_locally, effort=_FIRST_PASS, by="local search")
_LONGER: Stage = partial(search_locally, effort=1.0, by="longer local search")
_SHORT: dict[str, Sequence[Stage]] = {"brief": (_FIRST,), "fast": (_FIRST, relax, _LONGER)}


def _full() -> Iterator[Stage]:
    """Yield the stages of a call that goes on until a proof, the gap asked for, or the deadline."""
    yield from _SHORT["fast"]
    effort, work = _TURN, _FIRST_SLICE
    for turn in itertools.count(1):
        yield partial(prove, work=work)
        yield partial(search_locally, effort=effort, by=f"local search {turn}")
        for part in range(_PARTS):
            yield partial(search_near, turn=turn * _PARTS + part)
        effort, work = 2.0 * effort, 2.0 * work


def _gap(argument: str) -> float:
    try:
        gap = float(argument)
    except ValueError:
        gap = math.nan
    if not 0.0 <= gap < 1.0:
        raise UnknownSolverError(
            f"unknown solver auto:{argument}; known: auto, auto:brief, auto:fast, auto:prove, "
            "and auto:GAP with a number such as 0.01"
        )
    return gap


def _exact_solver() -> KernelSolver:
    """Return CP-SAT or, where it cannot be imported (beside ``highspy``, say), HiGHS."""
    try:
        import_module(_EXACT)
    except ImportError:
        from solvers.backends.highs import Highs

        return Highs()
    from solvers.backends.cpsat import CpSat

    return CpSat()

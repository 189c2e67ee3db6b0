"""Local search: anytime, in milliseconds, the default.

Up to a thousand attributes in the kernel: tabu search with one-flip and one-hot group moves over
maintained scores, which after a while takes turns with short searches from random records: with
groups there are local optima that it does not leave. Linear constraints may be violated on the way,
at penalties that adapt, so the same search makes a first feasible record. Above a thousand:
simulated annealing over the same scores by moves that keep the constraints, then descent. Tabu
search ends when the second half of its steps brought nothing, and not before a number of steps set
by the problem; annealing after such a number. So without a time limit in the way the answer is a
function of problem, hint and seed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.limits import SearchLimits
from solvers.problem import BestResponse

if TYPE_CHECKING:
    from solvers.local_search_kernels import SearchState

_TABU_ATTRIBUTES = 1000
"""A scan costs about 2 ns an attribute: above this size annealing gets further in the same time."""

_TABU_STEPS_PER_TERM = 3
_LEAST_TABU_STEPS = 1000
_LONGEST_TENURE = 20
_PATIENCE = 200  # steps without a new best value before a kick
_UNDIVIDED = 0.25  # share of the least number of steps before searches from random records begin
_PROPOSALS_PER_ATTRIBUTE = 50
_PROPOSALS_BEYOND = 14
"""Proposals per attribute of the kernels that would otherwise take above a tenth of a second."""
_MANY_PROPOSALS = 600_000
_HOTTEST = 0.17
"""First temperature, in units of a typical score: the mean absolute weight times the root of an
attribute's mean number of literals."""
_COOLING = 0.2  # last temperature, as a share of the first
_HARDER = 10.0  # largest factor, either way, by which growth of penalties differs from turn to turn
_FIRST_CHUNK = 100  # steps towards a first record between two looks at the clock
_FIRST_STEPS, _FIRST_STEPS_A_ROW = 2_000, 10
"""Steps that are made before anything else is tried for one."""

_CHUNK_WORK = 1_000_000  # attributes looked at between two looks at the clock: a millisecond or two


def first_record(
    kernel: BestResponse, limits: SearchLimits, steps: float | None = None
) -> tuple[NDArray[np.uint8] | None, int]:
    """Return a feasible record, begun at the greedy one, or None if that took too many steps.

    It comes with the least number of constraints that a record on the way violates.
    """
    search = Search(kernel, greedy_record(kernel), limits)
    steps = _FIRST_STEPS + _FIRST_STEPS_A_ROW * len(kernel.rows) if steps is None else steps
    least, made = len(kernel.rows), 0
    while True:
        least = min(least, int(np.count_nonzero(kernel.rows.violated(search.state.record))))
        if search.best is not None:
            return search.best, 0
        if made >= steps or limits.remaining() == 0.0:
            return None, least
        search.tabu(_FIRST_CHUNK)
        made += _FIRST_CHUNK


def improve(
    kernel: BestResponse,
    start: NDArray[np.uint8] | None,
    limits: SearchLimits,
    *,
    effort: float = 1.0,
) -> tuple[NDArray[np.uint8], float]:
    """Return a record at least as good as the start, and the seconds from the call to finding it.

    A start is needed if there are linear constraints. ``effort`` is a factor of the least number of
    steps; ``inf`` goes on until the deadline.
    """
    search = Search(kernel, first_place(kernel, start), limits)
    search.run(effort)
    record = search.best
    if start is not None and (record is None or kernel.value(start) > kernel.value(record)):
        return start, 0.0
    assert record is not None
    return record, search.found


def first_place(kernel: BestResponse, start: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
    """Return where to begin: at the greedy record if that is feasible, or there is no start.

    The record of a game's last round, say, is a local optimum of another sample, a worse place.
    """
    record = greedy_record(kernel)
    return record if start is None or kernel.feasible(record) else start


class Search:
    """A local search that may go on where it stopped, from a record that is legal for the groups.

    ``found`` is the seconds from the call to the best record.
    """

    def __init__(
        self, kernel: BestResponse, record: NDArray[np.uint8], limits: SearchLimits
    ) -> None:
        from solvers import local_search_kernels as kernels

        self.kernel, self.limits = kernel, limits
        self.state = initial_state(kernel, record, limits.seed)
        kernels.initialise(self.state)
        kernels.descend(self.state, 5)
        self.found = limits.elapsed()
        self._growth = self.state.growth.copy()
        self._made = 0
        self._restarting = False
        self._rng = np.random.default_rng(limits.seed)
        self._most = float(kernel.weights[kernel.weights > 0].sum())
        # Real weights: the tracked value creeps by rounding errors, which are no improvement.
        self._rounding = 1e-9 * float(np.abs(kernel.weights).sum())

    @property
    def best(self) -> NDArray[np.uint8] | None:
        """The best feasible record, uint8 ``(n,)``; None before the first."""
        return self.state.best_record.copy() if self.state.value[1] > -math.inf else None

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to find, or no time."""
        return self.state.value[1] >= self._most or self.limits.remaining() == 0.0

    def run(self, effort: float) -> None:
        """Go on for ``effort`` times the least number of steps, and longer while that helps."""
        if len(self.kernel.terms) == 0:
            return
        if self.kernel.attributes > _TABU_ATTRIBUTES:
            self._anneal(effort)
            return
        least = _LEAST_TABU_STEPS + _TABU_STEPS_PER_TERM * len(self.kernel.terms)
        last = self._made + effort * least
        n = self.kernel.attributes
        chunk = max(_CHUNK_WORK // n, 1)
        while self._made < last and not self.ended:
            before = self.state.value[1]
            undivided = self._made < _UNDIVIDED * least
            steps = math.ceil(min(chunk, last - self._made) if undivided else min(chunk, n))
            if self._restarting:
                record = random_record(self.kernel, self._rng)
                limits = replace(self.limits, seed=int(self._rng.integers(2**32)))
                other = Search(self.kernel, record, limits)
                other.tabu(steps)
                if other.state.value[1] > before + self._rounding:
                    self.state = other.state
            else:
                if self._made and len(self._growth):
                    self.state.growth[:] = self._growth * _HARDER ** self._rng.uniform(-1.0, 1.0)
                self.tabu(steps)
            self._made += steps
            self._restarting = not (undivided or self._restarting)
            if self.state.value[1] > before + self._rounding:
                self.found = self.limits.elapsed()
                last = max(last, 2 * self._made)

    def tabu(self, steps: int) -> None:
        """Make steps of the tabu search."""
        from solvers import local_search_kernels as kernels

        # In a small kernel a long tenure would leave nothing to move.
        tenure = min(2 + self.kernel.attributes // 12, _LONGEST_TENURE)
        kernels.tabu_search(self.state, steps, tenure, _PATIENCE)

    def _anneal(self, effort: float) -> None:
        """Cool down once, and again until the effort is spent."""
        from solvers import local_search_kernels as kernels

        kernel, state = self.kernel, self.state
        n = kernel.attributes
        whole = min(_PROPOSALS_PER_ATTRIBUTE * n, _MANY_PROPOSALS + _PROPOSALS_BEYOND * n)
        crowding = math.sqrt(len(state.occurrences) / n)
        hottest = _HOTTEST * float(np.abs(kernel.weights).mean()) * crowding
        while effort > 0.0 and not self.ended:
            before = state.value[1]
            proposals, made = math.ceil(min(effort, 1.0) * whole), 0
            while made < proposals and self.limits.remaining() > 0.0:
                chunk = min(_CHUNK_WORK // 50, proposals - made)
                temperature = hottest * _COOLING ** (made / proposals)
                kernels.anneal(state, chunk, temperature, _COOLING ** (1 / proposals))
                made += chunk
            kernels.descend(state, 50)
            if state.value[1] > before:
                self.found = self.limits.elapsed()
            effort -= 1.0


def greedy_record(problem: BestResponse) -> NDArray[np.uint8]:
    """Return a legal record in which each attribute follows the weight of the literals on it.

    A literal of a term of k literals counts with the term's weight times ``2 ** (1 - k)``: what it
    is worth while the other attributes are fair coins.
    """
    codes = problem.terms
    share = problem.weights * 0.5 ** ((codes >= 0).sum(axis=1) - 1)
    signed = np.where(codes & 1, -share[:, None], share[:, None])
    real = codes >= 0
    pull = np.bincount(codes[real] >> 1, signed[real], minlength=problem.attributes)
    record = (pull > 0).astype(np.uint8)
    groups = problem.groups
    if len(groups):
        sizes = np.diff(groups.indptr)
        pulls = pull[groups.members]
        strongest = np.repeat(np.maximum.reduceat(pulls, groups.indptr[:-1]), sizes)
        candidates = np.flatnonzero(pulls == strongest)
        group = np.repeat(np.arange(len(groups)), sizes)[candidates]
        first = np.ones(len(group), np.bool_)
        first[1:] = group[1:] != group[:-1]
        record[groups.members] = 0
        record[groups.members[candidates[first]]] = 1
    return record


def random_record(kernel: BestResponse, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a random record that is legal for the groups."""
    record = rng.integers(0, 2, kernel.attributes, np.uint8)
    groups = kernel.groups
    record[groups.members] = 0
    chosen = groups.indptr[:-1] + rng.integers(0, np.diff(groups.indptr))
    record[groups.members[chosen]] = 1
    return record


def initial_state(kernel: BestResponse, record: NDArray[np.uint8], seed: int) -> SearchState:
    """Return the state of a search at a legal record, for the kernels' ``initialise`` to fill."""
    from solvers.local_search_kernels import SearchState

    n, terms = kernel.attributes, len(kernel.terms)
    groups = kernel.groups
    group_of = groups.group_of(n)
    row_starts, rows, coefficients = _constraint_columns(kernel)
    return SearchState(
        terms=kernel.terms,
        weights=kernel.weights,
        starts=np.zeros(n + 1, np.int64),
        occurrences=np.zeros(int(np.count_nonzero(kernel.terms >= 0)), np.int32),
        record=record.copy(),
        false_count=np.zeros(terms, np.int32),
        false_sum=np.zeros(terms, np.int64),
        scores=np.zeros(n),
        group_of=group_of,
        group_starts=groups.indptr,
        group_members=groups.members,
        chosen=groups.members[record[groups.members] == 1],
        row_starts=row_starts,
        rows=rows,
        coefficients=coefficients,
        activity=kernel.rows.activity(record),
        lower=kernel.rows.lower - kernel.rows.slack,
        upper=kernel.rows.upper + kernel.rows.slack,
        penalties=_growth(kernel),
        growth=_growth(kernel),
        tabu_until=np.zeros(n, np.int64),
        best_record=record.copy(),
        value=np.zeros(2),
        clock=np.zeros(2, np.int64),
        rng=np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1),
    )


def _growth(kernel: BestResponse) -> NDArray[np.float64]:
    """Return what makes a constraint's largest coefficient worth a term of mean weight."""
    rows = kernel.rows
    largest = np.zeros(len(rows))
    np.maximum.at(largest, rows.row_of, np.abs(rows.coefficients))
    mean = float(np.abs(kernel.weights).mean()) if len(kernel.weights) else 1.0
    return (mean or 1.0) / np.where(largest > 0.0, largest, 1.0)


def _constraint_columns(
    kernel: BestResponse,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the constraint matrix by columns: starts, row numbers, coefficients."""
    rows = kernel.rows
    order = np.argsort(rows.attributes, kind="stable")
    starts = np.zeros(kernel.attributes + 1, np.int64)
    np.cumsum(np.bincount(rows.attributes, minlength=kernel.attributes), out=starts[1:])
    return starts, rows.row_of[order], rows.coefficients[order]

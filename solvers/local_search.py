"""Local search: anytime, in milliseconds, the default.

Up to a thousand attributes in the kernel: tabu search with one-flip and one-hot group moves over
maintained scores, which after a while takes turns with short searches from random records: with
groups there are local optima that it does not leave. Above: simulated annealing over the same
scores, then descent. Tabu search ends
when the second half of its steps brought nothing, and not before a number of steps set by the
problem; annealing after such a number. So without a time limit in the way the answer is a function
of problem, hint and seed. Linear constraints are kept by making legal moves only; a record that
violates some, the greedy one or a random one to begin again from, is repaired first
(:mod:`solvers.repair_kernels`).
"""

from __future__ import annotations

import math
import time
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
_PATIENCE = 200
"""Steps without a new best value before a kick."""
_UNDIVIDED = 0.25
"""Share of the least number of steps before searches from random records begin."""

_PROPOSALS_PER_ATTRIBUTE = 50
_PROPOSALS_BEYOND = 14
"""Proposals per attribute of the kernels that would otherwise take above a tenth of a second."""
_MANY_PROPOSALS = 600_000
_HOTTEST = 0.17
"""First temperature, in units of a typical score: the mean absolute weight times the root of an
attribute's mean number of literals."""
_COOLING = 0.2
"""Last temperature, as a share of the first."""

_REPAIR_CHUNK = 100
"""Steps of a repair between two looks at the clock: a millisecond or two."""
_REPAIRS_PER_ROW = 10
_LEAST_REPAIRS = 2_000
"""Steps of a repair that are made before anything else is tried."""

_CHUNK_WORK = 1_000_000
"""Attributes looked at between two looks at the clock: a millisecond or two."""


def first_record(kernel: BestResponse, limits: SearchLimits) -> NDArray[np.uint8] | None:
    """Return a feasible record made from the greedy one, or None if that took too many steps."""
    steps = _LEAST_REPAIRS + _REPAIRS_PER_ROW * len(kernel.rows)
    record, violated = repaired(kernel, greedy_record(kernel), limits, steps)
    return record if violated == 0 else None


def improve(
    kernel: BestResponse,
    start: NDArray[np.uint8] | None,
    limits: SearchLimits,
    *,
    effort: float = 1.0,
) -> tuple[NDArray[np.uint8], float]:
    """Return a record at least as good as the start, and the seconds from the call to finding it.

    The search begins at a greedy record if that is feasible: the record of a game's last round,
    say, is a local optimum of another sample and a worse place to begin at. A start is needed if
    there are linear constraints. ``effort`` is a factor of the least number of steps; ``inf`` goes
    on until the deadline.
    """
    record = greedy_record(kernel)
    if start is not None and not kernel.feasible(record):
        record = start
    record, found = search_from(kernel, record, limits, effort=effort)
    if start is not None and kernel.value(start) > kernel.value(record):
        return start, 0.0
    return record, found


def search_from(
    kernel: BestResponse,
    record: NDArray[np.uint8],
    limits: SearchLimits,
    *,
    effort: float = 1.0,
) -> tuple[NDArray[np.uint8], float]:
    """Do as :func:`improve` does, but from a given feasible record."""
    from solvers import local_search_kernels as kernels

    if len(kernel.terms) == 0:
        return record, limits.elapsed()
    state = initial_state(kernel, record, limits.seed)
    kernels.initialise(state)
    kernels.descend(state, 5)
    if kernel.attributes <= _TABU_ATTRIBUTES:
        return _tabu(kernel, state, limits, effort)
    found = _anneal(kernel, state, limits, effort)
    most = float(kernel.weights[kernel.weights > 0].sum())
    while effort == math.inf and state.value[1] < most and limits.remaining() > 0.0:
        before = state.value[1]
        again = _anneal(kernel, state, limits, effort)
        found = again if state.value[1] > before else found
    return state.best_record, found


def repaired(
    kernel: BestResponse, record: NDArray[np.uint8], limits: SearchLimits, steps: float
) -> tuple[NDArray[np.uint8], int]:
    """Return a record that satisfies the linear constraints, made from a legal one that may not.

    It is the last one of at most so many steps, and comes with the least number of violated
    constraints of any record on the way: 0 if it is feasible.
    """
    from solvers import local_search_kernels as kernels
    from solvers.repair_kernels import RepairState, repair_rows

    state = initial_state(kernel, record, limits.seed)
    kernels.initialise(state)
    rows = kernel.rows
    count = len(rows)
    largest = np.zeros(count)
    np.maximum.at(largest, rows.row_of, np.abs(rows.coefficients))
    growth = 1.0 / np.where(largest > 0.0, largest, 1.0)
    repair = RepairState(
        indptr=rows.indptr,
        attributes=rows.attributes,
        coefficients=rows.coefficients,
        penalties=growth.copy(),
        growth=growth,
        violated=np.zeros(count, np.int32),
        place=np.full(count, -1, np.int32),
        listed=np.zeros(1, np.int64),
        stamp=np.zeros(count, np.int64),
        looks=np.zeros(1, np.int64),
    )
    least, made = int(np.count_nonzero(rows.violated(record))), 0
    while made < steps and least > 0 and limits.remaining() > 0.0:
        chunk = int(min(_REPAIR_CHUNK, steps - made))
        least = min(least, int(repair_rows(state, repair, chunk)))
        made += chunk
    return state.record, least


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


def _tabu(
    kernel: BestResponse, state: SearchState, limits: SearchLimits, effort: float
) -> tuple[NDArray[np.uint8], float]:
    from solvers import local_search_kernels as kernels

    n = kernel.attributes
    least = _LEAST_TABU_STEPS + _TABU_STEPS_PER_TERM * len(kernel.terms)
    last = effort * least
    # In a small kernel a long tenure would leave nothing to move.
    tenure = min(2 + n // 12, _LONGEST_TENURE)
    chunk = max(_CHUNK_WORK // n, 1)
    best = float(kernel.weights[kernel.weights > 0].sum())
    # Real weights: the tracked value creeps by rounding errors, which are no improvement.
    rounding = 1e-9 * float(np.abs(kernel.weights).sum())
    rng = np.random.default_rng(limits.seed)
    restarting = False
    found = limits.elapsed()
    made = 0
    while made < last and state.value[1] < best and time.perf_counter() < limits.deadline:
        before = state.value[1]
        undivided = made < _UNDIVIDED * least
        steps = math.ceil(min(chunk, last - made) if undivided else min(chunk, n))
        if restarting:
            record, violated = random_record(kernel, rng), 0
            seed = int(rng.integers(2**32))
            if len(kernel.rows):
                record, violated = repaired(kernel, record, replace(limits, seed=seed), steps)
            if violated == 0:
                other = initial_state(kernel, record, seed)
                kernels.initialise(other)
                kernels.descend(other, 5)
                kernels.tabu_search(other, steps, tenure, _PATIENCE, chunk)
                state = other if other.value[1] > before + rounding else state
        else:
            steps = int(kernels.tabu_search(state, steps, tenure, _PATIENCE, chunk))
        made += steps
        restarting = not (undivided or restarting)
        if state.value[1] > before + rounding:
            found = limits.elapsed()
            last = max(last, 2 * made)
    return state.best_record, found


def random_record(kernel: BestResponse, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a random record that is legal for the groups."""
    record = rng.integers(0, 2, kernel.attributes, np.uint8)
    groups = kernel.groups
    record[groups.members] = 0
    chosen = groups.indptr[:-1] + rng.integers(0, np.diff(groups.indptr))
    record[groups.members[chosen]] = 1
    return record


def _anneal(kernel: BestResponse, state: SearchState, limits: SearchLimits, effort: float) -> float:
    from solvers import local_search_kernels as kernels

    n = kernel.attributes
    proposals = min(_PROPOSALS_PER_ATTRIBUTE * n, _MANY_PROPOSALS + _PROPOSALS_BEYOND * n)
    proposals = math.ceil(min(effort, 1.0) * proposals)
    crowding = math.sqrt(len(state.occurrences) / n)
    hottest = _HOTTEST * float(np.abs(kernel.weights).mean()) * crowding
    made = 0
    while made < proposals and time.perf_counter() < limits.deadline:
        chunk = min(_CHUNK_WORK // 50, proposals - made)
        temperature = hottest * _COOLING ** (made / proposals)
        kernels.anneal(state, chunk, temperature, _COOLING ** (1 / proposals))
        made += chunk
    kernels.descend(state, 50)
    return limits.elapsed()


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
        tabu_until=np.zeros(n, np.int64),
        best_record=record.copy(),
        value=np.zeros(2),
        clock=np.zeros(2, np.int64),
        rng=np.random.SeedSequence(seed).generate_state(1, np.uint64) | np.uint64(1),
    )


def _constraint_columns(
    kernel: BestResponse,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the constraint matrix by columns: starts, row numbers, coefficients."""
    rows = kernel.rows
    order = np.argsort(rows.attributes, kind="stable")
    starts = np.zeros(kernel.attributes + 1, np.int64)
    np.cumsum(np.bincount(rows.attributes, minlength=kernel.attributes), out=starts[1:])
    return starts, rows.row_of[order], rows.coefficients[order]

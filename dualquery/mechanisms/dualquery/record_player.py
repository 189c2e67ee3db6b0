"""The record player: answers a public sample with the record that satisfies most of it."""

import logging
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.best_response import Problems, softened
from dualquery.mechanisms.dualquery.game_options import FreePolicy
from dualquery.mechanisms.dualquery.responses import fallback, legal_response, restored, stored
from dualquery.mechanisms.protocol import Session, Task
from dualquery.queries.family import disjunctions_of
from dualquery.room.journal import Public
from dualquery.rules.constraints import groups_of, penalties_of
from dualquery.rules.forbidden import Forbidden
from dualquery.rules.repair import repaired
from solvers import BestResponse, Solution, get_solver
from solvers.errors import SolverError
from solvers.protocol import Solver
from solvers.registry import is_built_in

_REHEARSAL_SECONDS = 1.0
_HINT_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class RecordPlayer:
    """Plays best responses: what a solver finds in a time limit, by public randomness."""

    domain: Domain
    solver: Solver
    time_limit: float  # seconds a best response
    threads: int
    free: FreePolicy  # of attributes that no query of a problem mentions (see `fill_unmentioned`)
    generator: np.random.Generator
    rules: Forbidden | None = None  # of the schema: all records keep them. Most schemas have none.

    def first_record(self) -> NDArray[np.uint8]:
        """Return a record for round 1, in which no query has been shown: uint8 ``(d,)``."""
        nothing = np.zeros(self.domain.bits, dtype=np.bool_)
        return self._kept(fill_unmentioned(self.domain, nothing, self.free, self.generator))

    def recalled(
        self, number: int, problem: BestResponse, previous: NDArray[np.uint8], session: Session
    ) -> Solution:
        """Return a round's response: the one that the session kept, else a new one, kept.

        If the process died of the same problem twice, it is the default record.
        """
        name = f"response of round {number}"
        bits = self.generator.bit_generator

        def respond() -> Public:
            return {**stored(self.respond(problem, previous)), "bits": bits.state}

        def give_up() -> Public:
            response = fallback(problem, self._default(problem, previous), self.solver.name)
            return {**stored(response), "bits": bits.state}

        kept = dict(session.recall(name, respond, give_up))
        bits.state = kept.pop("bits", bits.state)  # as if the round had been played now
        return legal_response(problem, restored(kept), previous)

    def respond(self, problem: BestResponse, previous: NDArray[np.uint8]) -> Solution:
        """Return a legal solution of a round's problem, searched from the previous record."""
        default = self._default(problem, previous)
        seed = int(self.generator.integers(2**31))
        hint = self._hint(problem, previous, seed) if self.rules else previous
        found = self.solver.solve(
            problem, time_limit=self.time_limit, threads=self.threads, seed=seed, hint=hint,
            default=default,
        )  # fmt: skip
        return legal_response(problem, found, default)

    def _default(self, problem: BestResponse, previous: NDArray[np.uint8]) -> NDArray[np.uint8]:
        mentioned = problem.mentioned()
        record = fill_unmentioned(self.domain, mentioned, self.free, self.generator, previous)
        return self._kept(record)

    def _hint(
        self, problem: BestResponse, previous: NDArray[np.uint8], seed: int
    ) -> NDArray[np.uint8]:
        """Return a legal record to start from, the previous one or a better one."""
        # Rules may tie columns to each other: a search by moves in one column would play the same
        # values for ever. This one may break rules, for a price, and its record is repaired.
        soft = softened(problem, self._penalties)
        seconds = min(self.time_limit, _HINT_SECONDS)
        found = self._searcher.solve(soft, time_limit=seconds, seed=seed, hint=previous)
        legal = self._kept(found.record)
        return legal if problem.value(legal) > problem.value(previous) else previous

    @cached_property
    def _penalties(self) -> NDArray[np.int32]:
        assert self.rules is not None
        return penalties_of(self.rules)

    @cached_property
    def _searcher(self) -> Solver:
        return get_solver("auto:brief")

    def _kept(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the record, or a nearest one that keeps the rules."""
        if not self.rules:
            return record
        return np.asarray(repaired(record[None, :], self.rules, self.generator)[0])


def rehearse(solver: str, task: Task, samples: int, time_limit: float) -> None:
    """Let a built-in solver play a made-up round: one that refuses shall do so before any draw.

    `SolverError` if the problem is too large for it, or its licence is missing. Other faults are
    survived later. A third party's solver was loaded by now, and may count its calls.
    """
    if not is_built_in(solver) or solver.partition(":")[0] == "auto":
        return  # auto refuses nothing
    generator = np.random.default_rng(0)
    drawn = np.unique(generator.integers(len(task.queries), size=samples))
    queries = disjunctions_of(task.queries)
    once = np.ones(len(drawn), np.int64)
    problem = Problems(queries, task.rules).of(drawn, once)
    try:
        get_solver(solver).solve(problem, time_limit=min(time_limit, _REHEARSAL_SECONDS))
    except SolverError:
        raise
    except Exception as fault:
        _log.warning("solver %s failed on a made-up problem: %s", solver, fault)


def fill_unmentioned(
    domain: Domain,
    mentioned: NDArray[np.bool_],
    policy: FreePolicy,
    generator: np.random.Generator,
    previous: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """Return a legal record for attributes that no query mentions (Section 6, free attributes).

    A free binary attribute is 0 (``zeros``), a coin flip (``coins``) or what it was in the previous
    record (``hint``; uint8 ``(d,)``). A one-hot column has no zero: under either of the first two
    it takes one of its values that no query mentions, at random, or any value when all are
    ``mentioned``: bool ``(d,)``.
    """
    if policy == "hint" and previous is not None:
        return previous
    record = np.zeros(domain.bits, dtype=np.uint8)
    if policy == "coins":
        binary = domain.offsets[:-1][domain.sizes == 1]
        record[binary] = generator.integers(0, 2, size=len(binary), dtype=np.uint8)
    if len(groups := groups_of(domain)):
        # Each group in random order, mentioned bits after all others: its first bit is chosen.
        group = np.repeat(np.arange(len(groups)), np.diff(groups.indptr))
        keys = generator.random(len(groups.members))
        order = np.lexsort((keys, mentioned[groups.members], group))
        record[groups.members[order[groups.indptr[:-1]]]] = 1
    return record

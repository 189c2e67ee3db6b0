"""The record player: answers each round with the record that satisfies most sampled queries.

Everything here is public: the sample is, and so is the record.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.mechanisms.dualquery.options import FreePolicy
from dualquery.mechanisms.dualquery.unmentioned import fill_unmentioned
from solvers import BestResponse, Solution, Status
from solvers.protocol import Solver


@dataclass(frozen=True, eq=False)
class RecordPlayer:
    """Plays best responses.

    Parameters
    ----------
    domain
        The columns.
    solver, time_limit, threads
        What searches for a best response, for how many seconds, with how many threads.
    free
        Values of attributes that no query of a problem mentions.
    generator
        Public randomness.
    """

    domain: Domain
    solver: Solver
    time_limit: float
    threads: int
    free: FreePolicy
    generator: np.random.Generator

    def first_record(self) -> NDArray[np.uint8]:
        """Return a record for round 1, in which no query has been shown: uint8 ``(d,)``."""
        nothing = np.zeros(self.domain.bits, dtype=np.bool_)
        return fill_unmentioned(self.domain, nothing, self.free, self.generator)

    def respond(self, problem: BestResponse, previous: NDArray[np.uint8]) -> Solution:
        """Return the solution of a round's problem, which is always a legal record.

        Parameters
        ----------
        problem
            The queries shown.
        previous
            uint8 ``(d,)``: the record of the round before.
        """
        default = fill_unmentioned(
            self.domain, mentioned_attributes(problem), self.free, self.generator, previous
        )
        found = self.solver.solve(
            problem,
            time_limit=self.time_limit,
            threads=self.threads,
            seed=int(self.generator.integers(2**31)),
            hint=previous,
            default=default,
        )
        return legal_response(problem, found, default)


def legal_response(
    problem: BestResponse, response: Solution, default: NDArray[np.uint8]
) -> Solution:
    """Return the response, or one with the default record if a third party's breaks the rules.

    A long run must not die of one bad answer, nor release a record that does not decode. The
    back-ends of the package `solvers` never come to this.
    """
    record = np.asarray(response.record)
    if problem.legal(record):
        return replace(response, record=record.astype(np.uint8, copy=False))
    value = problem.value(default)
    return replace(
        response, record=default, objective=value, bound=math.inf, status=Status.FALLBACK
    )


def mentioned_attributes(problem: BestResponse) -> NDArray[np.bool_]:
    """Return which attributes some term mentions, bool, shape ``(d,)``."""
    mentioned = np.zeros(problem.attributes, dtype=np.bool_)
    mentioned[problem.terms[problem.terms >= 0] >> 1] = True
    return mentioned


def trace_line(
    number: int, samples: int, problem: BestResponse, response: Solution
) -> dict[str, Any]:
    """Describe a round by public facts: the sample, its problem and the solver's answer."""
    return {
        "round": number,
        "samples": samples,
        "terms": len(problem.weights),
        "attributes": int(np.count_nonzero(mentioned_attributes(problem))),
        "solver": response.solver,
        "status": response.status.name.lower(),
        "objective": response.objective,
        "bound": response.bound if np.isfinite(response.bound) else None,
        "incumbent_seconds": response.incumbent_seconds,
        "seconds": response.seconds,
        "steps": "; ".join(response.steps),
    }


def solver_totals(trace: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the rounds' best responses: how many ended how, and the seconds they took."""
    ends = Counter(line["status"] for line in trace)
    return {
        "rounds": dict(ends),
        "seconds": sum(line["seconds"] for line in trace),
        "slowest_seconds": max((line["seconds"] for line in trace), default=0.0),
    }

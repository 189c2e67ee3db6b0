"""A solver's answer to a round: judged, kept for a run that goes on, and described. All public."""

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.room.journal import Public
from solvers import BestResponse, Solution, Status


def legal_response(
    problem: BestResponse, response: Solution, default: NDArray[np.uint8]
) -> Solution:
    """Return the response, or one with the default record if a third party's breaks the rules.

    A long run must not die of one bad answer, nor release a record that does not decode. The
    back-ends of the package `solvers` never come to this.
    """
    record = np.asarray(response.record)
    if problem.feasible(record):
        return replace(response, record=record.astype(np.uint8, copy=False))
    value = problem.value(default)
    return replace(
        response, record=default, objective=value, bound=math.inf, status=Status.FALLBACK
    )


def fallback(problem: BestResponse, record: NDArray[np.uint8], solver: str) -> Solution:
    """Return a response that no solver found: a legal record, with nothing proven about it."""
    value = problem.value(record)
    return Solution(record, value, math.inf, Status.FALLBACK, 0.0, 0.0, solver=solver)


def stored(response: Solution) -> Public:
    """Return a response as values that a journal keeps."""
    bound = response.bound if math.isfinite(response.bound) else None
    changed = {"bound": bound, "status": response.status.value, "steps": list(response.steps)}
    return {**vars(response), **changed}


def restored(kept: Public) -> Solution:
    """Return the response that `stored` was given."""
    bound = math.inf if kept["bound"] is None else kept["bound"]
    changed = {"bound": bound, "status": Status(kept["status"]), "steps": tuple(kept["steps"])}
    return Solution(**{**kept, **changed})


def trace_line(
    number: int, samples: int, problem: BestResponse, response: Solution
) -> dict[str, Any]:
    """Describe a round by public facts: the sample, its problem and the solver's answer."""
    return {
        "round": number,
        "samples": samples,
        "terms": len(problem.weights),
        "attributes": int(np.count_nonzero(problem.mentioned())),
        "solver": response.solver,
        "status": sys.intern(response.status.name.lower()),
        "objective": response.objective,
        "bound": response.bound if np.isfinite(response.bound) else None,
        "incumbent_seconds": response.incumbent_seconds,
        "seconds": response.seconds,
        "steps": sys.intern("; ".join(response.steps)),
    }


def solver_totals(trace: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the rounds' best responses: how many ended how, and the seconds they took."""
    ends = Counter(line["status"] for line in trace)
    return {
        "rounds": dict(ends),
        "seconds": sum(line["seconds"] for line in trace),
        "slowest_seconds": max((line["seconds"] for line in trace), default=0.0),
    }

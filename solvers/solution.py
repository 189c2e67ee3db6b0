"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Status(Enum):
    """How good a solution is known to be."""

    OPTIMAL = "optimal"
    """Proven optimal, up to the tolerance that :class:`solvers.KernelSolver` states."""
    FEASIBLE = "feasible"
    """The solver stopped with an incumbent that it did not prove optimal."""
    FALLBACK = "fallback"
    """The solver had no incumbent of its own in time: the record is our local search's."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible record and what is known about it.

    Parameters
    ----------
    record
        uint8, shape ``(attributes,)``: feasible for the problem.
    objective
        Its value, by the problem's own evaluation.
    bound
        Proven upper bound on the optimum; ``inf`` when the solver has none.
    status
        Proven optimal, feasible, or a fallback.
    incumbent_seconds
        Seconds from the call until the record was found. Where a back-end does not tell, the time
        at which it returned; 0 when the record is the hint.
    seconds
        Wall time of the whole call.
    solver
        Name of the solver.
    steps
        What it did, one phrase a step, where it has several ways.
    """

    record: NDArray[np.uint8]
    objective: float
    bound: float
    status: Status
    incumbent_seconds: float
    seconds: float
    solver: str
    steps: tuple[str, ...] = ()

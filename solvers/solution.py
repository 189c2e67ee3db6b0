"""What a solver returns."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Status(Enum):
    """How good a solution is known to be."""

    OPTIMAL = "optimal"
    """Proven optimal, up to the tolerance that :func:`solvers.judging.judge` states."""
    FEASIBLE = "feasible"
    """The solver stopped with an incumbent that it did not prove optimal."""
    FALLBACK = "fallback"
    """The solver had no incumbent of its own in time: the record is our local search's."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible record, its value by the problem's own evaluation, and what is known of it."""

    record: NDArray[np.uint8]  # ``(attributes,)``
    objective: float
    bound: float  # proven, from above; ``inf`` if there is none
    status: Status
    incumbent_seconds: float
    """From the call until the record was found, or, where a back-end does not say, it returned; 0
    if the record is the hint."""
    seconds: float  # wall time of the whole call
    solver: str
    steps: tuple[str, ...] = ()  # what it did, one phrase a step, where it has several ways

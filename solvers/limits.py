"""What a search may use."""

import math
import time
from dataclasses import dataclass

_FOR_REDUCTIONS = 0.25
"""Share of the time that reductions may take: a quarter is never reached but on huge problems."""


@dataclass(frozen=True)
class SearchLimits:
    """Deadline, threads, seed and counted work of one search."""

    began: float  # value of ``time.perf_counter()`` at the call
    deadline: float  # value of ``time.perf_counter()`` at which the search has to be over
    threads: int
    seed: int
    work: float = math.inf
    """Most work, where a back-end counts it (CP-SAT's deterministic time, about a second each)."""
    gap: float = 0.0  # difference between bound and objective at which a back-end that can may stop

    @property
    def reductions(self) -> float:
        """Value of ``time.perf_counter()`` until which reductions may go on."""
        return self.began + _FOR_REDUCTIONS * (self.deadline - self.began)

    def elapsed(self) -> float:
        """Return the seconds since the call."""
        return time.perf_counter() - self.began

    def remaining(self) -> float:
        """Return the seconds left, at least 0."""
        return max(self.deadline - time.perf_counter(), 0.0)

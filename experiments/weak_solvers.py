"""Solvers that are meant to be weak, to see how much a release loses by them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import NDArray

from solvers import BestResponse, Capability, Ending, KernelSolver, SearchResult, Solver
from solvers.limits import SearchLimits
from solvers.local_search import greedy_record, random_record
from solvers.registry import registered


class Greedy(KernelSolver):
    """Each attribute follows the weights of the literals on it: no search at all."""

    name = "greedy"
    capabilities = frozenset({Capability.GROUPS})

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Return the greedy record."""
        return SearchResult(Ending.STOPPED, greedy_record(kernel))


class BestOfTen(Greedy):
    """The best of ten random records: hardly better than none."""

    name = "best-of-ten"

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Return the best of the records."""
        generator = np.random.default_rng(limits.seed)
        records = [random_record(kernel, generator) for _ in range(10)]
        return SearchResult(Ending.STOPPED, max(records, key=kernel.value))


WEAK: Mapping[str, Callable[[str], Solver]] = {"best-of-ten": BestOfTen, "greedy": Greedy}


@contextmanager
def weak_solvers() -> Iterator[None]:
    """Make them known to this process for the length of a block."""
    with ExitStack() as stack:
        for name, factory in WEAK.items():
            stack.enter_context(registered(name, factory))
        yield

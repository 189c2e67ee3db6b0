"""Toulbar2, an exact solver of cost function networks, through its package pytoulbar2.

The network has one variable a group and none a conjunction (:mod:`solvers.formats.wcsp`), which
suits wide groups. The package keeps the state of a search in globals and its time in whole seconds
of CPU, so every search has a process of its own.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from solvers.backends.external import run_command
from solvers.errors import UnknownSolverError
from solvers.formats.wcsp import CostNetwork, cost_network
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability

_PROGRAM = """
import sys
import pytoulbar2
path, neighbourhoods, seed = sys.argv[1:]
start = -4 if neighbourhoods else None  # -4: from the first record of a depth-first search
network = pytoulbar2.CFN(vns=start, seed=int(seed), verbose=0)
network.Read(path)
network.Solve(showSolutions=1)
"""

_LEAST_SECONDS = 0.25
_LEAST_SECONDS_PER_TERM = 60e-6
_LAST_WORDS = 0.05
_LONGEST_SECONDS = 1e6

_BOUND = re.compile(
    r"(?:Initial lower and upper bounds|Optimality gap): \[([0-9]{1,18}),|Optimum: ([0-9]{1,18}) "
)
_SOLUTION = re.compile(r"New solution: ([0-9]{1,18})(?![0-9])")
_VALUE = re.compile(r"[0-9]{1,9}")


class Toulbar2(KernelSolver):
    """Branch and bound over a cost function network.

    Parameters
    ----------
    argument
        Empty: hybrid best-first search. ``vns``: variable neighbourhood search, which has good
        records sooner and proofs later.

    Raises
    ------
    UnknownSolverError
        If the argument is another one.
    """

    name = "toulbar2"
    capabilities = KernelSolver.capabilities | {
        Capability.EXACT,
        Capability.BOUND,
        Capability.SEED,
    }
    module = "pytoulbar2"
    distribution = "pytoulbar2"

    def __init__(self, argument: str = "") -> None:
        if argument not in ("", "vns"):
            raise UnknownSolverError(
                f"unknown solver toulbar2:{argument}; known: toulbar2, toulbar2:vns"
            )
        self._neighbourhoods = argument

    def least_seconds(self, kernel: BestResponse) -> float:
        """Estimate the time to write the network and start the process."""
        size = len(kernel.terms) + len(kernel.rows.attributes)
        return _LEAST_SECONDS + _LEAST_SECONDS_PER_TERM * size

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Write the network and read what the search finds."""
        network = cost_network(kernel)
        log = _SearchLog(network, limits)
        with tempfile.TemporaryDirectory(prefix="dualquery-", ignore_cleanup_errors=True) as name:
            path = Path(name) / "network.wcsp"
            path.write_text(network.text, encoding="ascii")
            deadline = min(limits.deadline, time.perf_counter() + _LONGEST_SECONDS)
            arguments = [str(path), self._neighbourhoods, str(limits.seed % 2**31)]
            status, _ = run_command(
                [sys.executable, "-c", _PROGRAM, *arguments],
                path.parent,
                log.take,
                stop=deadline - _LAST_WORDS,
                deadline=deadline,
                longest_line=12 * len(network.sizes) + 1000,
            )
        bound = network.best + (network.error - log.least) / network.scale
        if log.record is None:
            return SearchResult(Ending.FAILED if status else Ending.STOPPED, None, bound)
        proven = log.least >= log.cost and kernel.feasible(log.record)
        ending = Ending.PROVEN if proven else Ending.STOPPED
        return SearchResult(ending, log.record, bound, log.found)


class _SearchLog:
    """The last record and the best bound among the lines that toulbar2 prints."""

    def __init__(self, network: CostNetwork, limits: SearchLimits) -> None:
        self.record: NDArray[np.uint8] | None = None
        self.cost = 0
        """Of the record."""
        self.least = 0
        """No record costs less."""
        self.found = 0.0
        self._network = network
        self._limits = limits
        self._announced: int | None = None

    def take(self, line: str) -> None:
        """Take a line; a solution's values follow its cost."""
        announced, self._announced = self._announced, None
        if announced is not None:
            values = self._values(line.split())
            if values is not None:
                self.record = self._network.record(values)
                self.cost, self.found = announced, self._limits.elapsed()
        elif solution := _SOLUTION.match(line):
            self._announced = int(solution[1])
        elif bound := _BOUND.search(line):
            self.least = max(self.least, int(bound[1] or bound[2]))

    def _values(self, words: list[str]) -> NDArray[np.int64] | None:
        """Return the values that words are, one a variable; None if they are something else."""
        sizes = self._network.sizes
        if len(words) != len(sizes) or not all(map(_VALUE.fullmatch, words)):
            return None
        values = np.array(words, np.int64)
        return values if np.all(values < sizes) else None

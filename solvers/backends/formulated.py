"""What back-ends share that come in two formulations, and those that solve 0-1 linear programs."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from solvers.errors import (
    ProblemTooLargeError,
    SolverError,
    SolverUnavailableError,
    UnknownSolverError,
)
from solvers.formulation import Formulation, LinearProgram, formulate, objective_scale
from solvers.kernel_solver import Ending, KernelSolver, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability


class Formulated(KernelSolver):
    """A back-end that solves one of the formulations.

    Parameters
    ----------
    argument
        ``disaggregated`` (or empty) or ``aggregated``.

    Raises
    ------
    UnknownSolverError
        If there is no such formulation.
    """

    capabilities = KernelSolver.capabilities | {Capability.EXACT, Capability.BOUND}
    least_seconds_per_term: ClassVar[float]
    """From the call to a first result, model building included (measured at 70,000 terms)."""

    def __init__(self, argument: str = "") -> None:
        try:
            self.formulation = Formulation(argument or Formulation.DISAGGREGATED.value)
        except ValueError:
            known = ", ".join(f"{self.name}:{form.value}" for form in Formulation)
            raise UnknownSolverError(
                f"unknown solver {self.name}:{argument}; known: {known}"
            ) from None

    def least_seconds(self, kernel: BestResponse) -> float:
        """Estimate the time to a first result."""
        # A term has about three literals.
        size = len(kernel.terms) + len(kernel.rows.attributes) / 3
        return self.least_seconds_per_term * size


@dataclass(frozen=True, eq=False)
class Optimised:
    """What came of a 0-1 linear program."""

    ending: Ending
    values: NDArray[np.float64] | None = None  # of the columns, or of the attributes alone
    bound: float = math.inf  # upper bound on the program's optimum
    found: float | None = None  # seconds from the call until the values were found, if known


COMMERCIAL = {Capability.HINT, Capability.THREADS, Capability.SEED}
"""What Gurobi and CPLEX add."""


class LinearSolver(Formulated):
    """A back-end that maximises 0-1 linear programs."""

    @abstractmethod
    def optimise(
        self, program: LinearProgram, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> Optimised:
        """Maximise a program of constant 0 and well-scaled weights, from the columns' start.

        Raises
        ------
        ProblemTooLargeError
            If the licence does not cover a program of this size.
        SolverUnavailableError
            If the library refuses to run for another reason, such as an expired licence.
        """

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Solve the 0-1 program, from the start if there is one."""
        program = formulate(kernel, self.formulation)
        scale = objective_scale(kernel.weights)
        scaled = replace(program, objective=scale * program.objective, constant=0.0)
        columns = None if start is None else program.assignment(kernel, start)
        found = self.optimise(scaled, limits, columns)
        record = None
        if found.values is not None:
            record = (found.values[: program.attributes] > 0.5).astype(np.uint8)
        bound = program.constant + found.bound / scale
        no_proof = found.ending is Ending.INFEASIBLE and not kernel.rows.provable
        return SearchResult(Ending.FAILED if no_proof else found.ending, record, bound, found.found)

    def refused(self, error: Exception, program: LinearProgram, too_large: bool) -> SolverError:
        """Return the error for a licence that is missing or does not cover a program."""
        if not too_large:
            return SolverUnavailableError(f"{self.name}: {error}")
        return ProblemTooLargeError(
            f"{self.name}: the licence covers no program of {program.columns} columns and "
            f"{program.rows} rows; install a full one or use another solver"
        )

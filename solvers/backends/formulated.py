"""What back-ends share that come in two formulations."""

from __future__ import annotations

from typing import ClassVar

from solvers.errors import UnknownSolverError
from solvers.formulation import Formulation
from solvers.kernel_solver import KernelSolver
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

"""The argument of back-ends that come in two formulations."""

from __future__ import annotations

from solvers.errors import UnknownSolverError
from solvers.formulation import Formulation


def formulation_named(solver: str, argument: str) -> Formulation:
    """Return the formulation that a solver's argument names; disaggregated if it is empty.

    Raises
    ------
    UnknownSolverError
        If there is no such formulation.
    """
    if not argument:
        return Formulation.DISAGGREGATED
    try:
        return Formulation(argument)
    except ValueError:
        known = ", ".join(f"{solver}:{form.value}" for form in Formulation)
        raise UnknownSolverError(f"unknown solver {solver}:{argument}; known: {known}") from None

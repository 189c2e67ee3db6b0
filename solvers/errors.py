"""What can go wrong when a best response is asked for."""

from __future__ import annotations


class SolverError(ValueError):
    """Base of the errors of this package."""


class InvalidProblemError(SolverError):
    """The problem, or a record or an option given with it, is malformed."""


class InfeasibleProblemError(SolverError):
    """No record satisfies the groups and the linear constraints together."""


class NoRecordFoundError(SolverError):
    """No feasible record was found within the time limit, nor a proof that there is none.

    Parameters
    ----------
    violation
        The least number of linear constraints that a record seen violates; None if none was seen.
    """

    def __init__(self, violation: int | None = None) -> None:
        least = "" if violation is None else f"; the best one seen violates {violation} of them"
        super().__init__(
            "no record that satisfies the linear constraints was found within the time limit"
            f"{least}; raise the limit or give a feasible hint"
        )
        self.violation = violation

    def __reduce__(self) -> tuple[type[NoRecordFoundError], tuple[int | None]]:
        return type(self), (self.violation,)


class UnknownSolverError(SolverError):
    """No solver of that name is registered, or it does not know that argument."""


class SolverUnavailableError(SolverError):
    """The solver is known, but the package that it needs is not installed."""


class ProblemTooLargeError(SolverError):
    """The solver refuses a problem of this size."""


def revived(kind: str, message: str) -> SolverError:
    """Return an error of this package by the name of its class: it came from another process."""
    kinds = [each for each in SolverError.__subclasses__() if each.__name__ == kind]
    error: SolverError = (*kinds, SolverError)[0]()
    error.args = (message,)
    return error


class MalformedFileError(SolverError):
    """A file of a problem cannot be read as its format; the message names file and line."""

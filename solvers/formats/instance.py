"""A problem that was read from a file, and the way back to the file's variables."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers.errors import SolverError
from solvers.problem import BestResponse


@dataclass(frozen=True, eq=False)
class Definitions:
    """Variables that stand for the truth of a conjunction, or of its negation."""

    variables: NDArray[np.int64]  # ``(D,)``: their numbers among the file's
    negated: NDArray[np.bool_]  # ``(D,)``: whether it is 1 where its conjunction is false
    literals: NDArray[np.int32]  # ``(D, k)``: codes ``2 * variable + negated``, padded with -1

    def fill(self, values: NDArray[np.uint8]) -> None:
        """Set the defined variables from the others, in place."""
        chosen = values[self.literals >> 1] ^ (self.literals & 1).astype(np.uint8)
        true = ((chosen == 1) | (self.literals < 0)).all(axis=1)
        values[self.variables] = true ^ self.negated


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem read from a file; if that asks for a minimum, its objective is the negated one."""

    problem: BestResponse
    variables: tuple[str, ...]  # the file's names
    minimises: bool
    attributes: NDArray[np.int64]  # the problem's of each variable; -1 if others define it
    definitions: tuple[Definitions, ...] = ()  # an earlier one may depend on a later one
    found: tuple[str, ...] = ()  # what was recognised, one phrase a kind
    clauses: tuple[list[list[int]], list[tuple[int, list[int]]]] | None = None
    """The hard clauses and the soft ones with their weights, if the file consists of such."""

    def values(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the values of the file's variables that belong to a record of the problem."""
        values = np.zeros(len(self.variables), np.uint8)
        kept = self.attributes >= 0
        values[kept] = record[self.attributes[kept]]
        for definitions in reversed(self.definitions):
            definitions.fill(values)
        return values

    def cost(self, values: NDArray[np.uint8]) -> int:
        """Return the weight of the soft clauses that values of the variables violate.

        `SolverError` if the file has no clauses, or the values violate a hard one.
        """
        if self.clauses is None:
            raise SolverError("the file has no clauses; expected a .wcnf file")
        true = set(np.flatnonzero(values) + 1) | set(-np.flatnonzero(values == 0) - 1)
        hard, soft = self.clauses
        for clause in hard:
            if true.isdisjoint(clause):
                raise SolverError(f"the values violate the hard clause {clause}")
        return sum(weight for weight, clause in soft if true.isdisjoint(clause))

"""The budget as a user asks for it, checked as far as it can be without a table."""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.mechanism import Budget, Mechanism
from dualquery.privacy.accountants import choices
from dualquery.privacy.budget import check_budget, check_ranges, default_delta
from dualquery.privacy.events import Neighbours


@dataclass(frozen=True, kw_only=True)
class BudgetRequest:
    """The budget as asked for; `resolve` completes it once the number of rows is known.

    Raises
    ------
    BadInputError
        If epsilon, delta, the accountant or the neighbours cannot be, whatever the table.
    """

    epsilon: float = 1.0
    delta: float | None = None
    accountant: str = "auto"
    neighbours: str = "replace-one"

    def __post_init__(self) -> None:
        check_ranges(self.epsilon, 0.0 if self.delta is None else self.delta)
        choices(self.accountant)
        Neighbours.parse(self.neighbours)

    def resolve(self, mechanism: Mechanism, n: int) -> tuple[Budget, tuple[str, ...]]:
        """Return the budget and remarks on it: delta is 1/n^2, or 0 for a pure mechanism.

        Raises
        ------
        BadInputError
            If there are too few rows.
        """
        delta = self.delta
        if delta is None:
            delta = 0.0 if mechanism.pure else default_delta(n)
        notes = check_budget(self.epsilon, delta, n)
        neighbours = Neighbours.parse(self.neighbours)
        return Budget(self.epsilon, delta, self.accountant, neighbours), notes

"""The budget as a user asks for it, checked as far as it can be without a table."""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.data.rows import Rows
from dualquery.errors import BadInputError
from dualquery.mechanism import Budget, Mechanism
from dualquery.privacy.accountants import choices
from dualquery.privacy.budget import check_budget, check_ranges, default_delta
from dualquery.privacy.events import Neighbours
from dualquery.privacy.row_count import RowCount, buy_row_count

LARGEST_ROWS = 10**12


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
    rows: int | None = None

    def __post_init__(self) -> None:
        check_ranges(self.epsilon, 0.0 if self.delta is None else self.delta)
        choices(self.accountant)
        relation = Neighbours.parse(self.neighbours)
        if self.rows is None:
            return
        if relation is Neighbours.REPLACE_ONE:
            raise BadInputError(
                "--rows states a number of rows where the true one is private; with --neighbours "
                "replace-one it is public and counted; leave --rows out, or use --neighbours "
                "add-remove"
            )
        if not 2 <= self.rows <= LARGEST_ROWS:
            raise BadInputError(
                f"--rows is {self.rows}; a whole number from 2 to {LARGEST_ROWS:,} is needed"
            )

    def require_delta(self, mechanism: Mechanism) -> None:
        """Refuse to go without a delta where no public number of rows can stand behind 1/n^2.

        A noisy number cannot: the guarantee must not depend on what the noise was.

        Raises
        ------
        BadInputError
            If delta is neither given nor 0 nor taken from ``--rows``.
        """
        counted = Neighbours.parse(self.neighbours) is Neighbours.REPLACE_ONE
        if self.delta is None and self.rows is None and not counted and not mechanism.pure:
            raise BadInputError(
                "--neighbours add-remove has no public number of rows n to take the default delta "
                "1/n^2 from; give --delta, or state a number of rows with --rows"
            )

    def count_rows(self, records: Rows, seed: int | None) -> RowCount:
        """Return the number of rows that everything public uses: known, stated or bought.

        Raises
        ------
        BadInputError
            If a noisy number is too small.
        """
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.REPLACE_ONE:
            return RowCount(records.n)
        if self.rows is not None:
            return RowCount(self.rows, relation)
        return buy_row_count(records, self.epsilon, seed)

    def resolve(self, mechanism: Mechanism, rows: RowCount) -> tuple[Budget, tuple[str, ...]]:
        """Return the budget of the mechanism and remarks on it.

        Delta is 1/n^2 unless given, or 0 for a pure mechanism. What the number of rows cost is
        taken off epsilon.

        Raises
        ------
        BadInputError
            If there are too few rows.
        """
        self.require_delta(mechanism)
        delta = self.delta
        if delta is None:
            delta = 0.0 if mechanism.pure else default_delta(rows.n)
        notes = check_budget(self.epsilon, delta, rows.n)
        budget = Budget(rows.rest(self.epsilon), delta, self.accountant, rows.neighbours)
        return budget, notes

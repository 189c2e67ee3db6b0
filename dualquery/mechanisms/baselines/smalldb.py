"""The small-database mechanism of Blum, Ligett and Roth (2008), exact, on tiny universes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dualquery.data.cells import cells_of
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import RANGE_SLACK, SampledQueries
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.draws.databases import SmallDatabases, largest_size
from dualquery.runtime.errors import BadInputError

_MARGIN = 1e-9
"""Relative part of the budget left for rounding."""

_BETA = 0.05
"""Chance of failure at which the default size is best by `error_bound`."""


@dataclass(frozen=True)
class OneDraw(Details):
    """The records of a database, how many databases there are, and the epsilon of the draw."""

    size: int
    databases: int
    draw_epsilon: float


@dataclass(frozen=True, kw_only=True)
class SmallDB(Mechanism[OneDraw]):
    """Draws a database of a few records by the exponential mechanism over all of them."""

    name: ClassVar[str] = "smalldb"
    pure: ClassVar[bool] = True

    size: int | None = None
    """Records of the database; None for the size with the smallest `error_bound`."""

    def __post_init__(self) -> None:
        check_whole(self, "size")

    def statistics(self, queries: Queries) -> Workload:
        """Hold the workload's own answers."""
        return require_conjunctions(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[OneDraw]:
        """Fix the size and spend everything on one draw; delta is not needed."""
        size = self.size or best_size(task, budget.epsilon)
        count = len(SmallDatabases(task.workload, size))
        epsilon = budget.epsilon * (1.0 - _MARGIN) - RANGE_SLACK
        if epsilon <= 0:
            raise BadInputError(
                f"epsilon {budget.epsilon:g} is too little to draw a database; ask for a larger one"
            )
        schedule = (SampledQueries(epsilon + RANGE_SLACK, 1),)
        accountant, _ = best(schedule, 0.0, budget.accountant)
        return Plan(schedule, accountant.name, OneDraw(size, count, epsilon))

    def run(self, task: Task, plan: Plan[OneDraw], curator: Curator, session: Session) -> Outcome:
        """Draw."""
        records = curator.select_database(plan.details.size, plan.details.draw_epsilon)
        return Outcome(
            answers=task.workload.answers_on(records, threads=session.threads), records=records
        )


def best_size(task: Task, epsilon: float) -> int:
    """Return the size with the smallest `error_bound` among those that can be enumerated."""
    log_universe = math.log(cells_of(task.workload.domain))

    def bound(size: int) -> float:
        return error_bound(
            n=task.n,
            log_universe=log_universe,
            queries=len(task.workload),
            epsilon=epsilon,
            size=size,
            beta=_BETA,
        )

    return min(range(1, max(largest_size(task.workload), 1) + 1), key=bound)


def error_bound(
    *, n: int, log_universe: float, queries: int, epsilon: float, size: int, beta: float
) -> float:
    """Return Proposition 4.4's bound on the largest error: it holds with chance ``1 - beta``.

    ``alpha + 2 (size ln |X| + ln(1 / beta)) / (epsilon n)`` with ``size = ln |Q| / alpha^2``
    (Ligett's lecture; Dwork and Roth 2014, section 4.1). The score moves by 1/n whether a record is
    replaced or, as there, added or removed, so the constants are the same.

    Parameters
    ----------
    n
        Number of rows, >= 1.
    log_universe
        ln |X|, >= 0.
    queries
        |Q|, >= 1; fewer than 3 are counted as 3.
    epsilon
        Budget, > 0.
    size
        Records of the small database, >= 1.
    beta
        Chance that the bound fails, in (0, 1].

    Returns
    -------
    float
        A share of the rows; above 1 it says nothing.

    Raises
    ------
    BadInputError
        If an argument is out of its range.
    """
    if min(n, queries, size) < 1 or not (log_universe >= 0 and epsilon > 0 and 0 < beta <= 1):
        raise BadInputError(
            "the bound needs n, queries and size of at least 1, a logarithm of at least 0, epsilon "
            f"above 0 and beta in (0, 1], not {n}, {queries}, {size}, {log_universe}, {epsilon}, "
            f"{beta}"
        )
    alpha = math.sqrt(math.log(max(queries, 3)) / size)
    return alpha + 2.0 * (size * log_universe + math.log(1.0 / beta)) / (epsilon * n)

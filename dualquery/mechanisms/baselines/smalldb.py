"""The small-database mechanism of Blum, Ligett and Roth (2008), exact, on tiny universes."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dualquery.data.domain import cells_of
from dualquery.mechanisms.options import check_whole
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import RANGE_SLACK, SampledQueries
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.draws.databases import SmallDatabases, largest_size
from dualquery.runtime.errors import BadInputError

_MARGIN = 1e-9  # relative part of the budget left for rounding
_BETA = 0.05  # chance of failure at which the default size is best by `error_bound`


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
        answers = task.workload.answers_on(records, threads=session.threads)
        return Outcome(answers=answers, records=records)


def best_size(task: Task, epsilon: float) -> int:
    """Return the size with the smallest `error_bound` among those that can be enumerated."""
    most = max(largest_size(task.workload), 1)
    return min(range(1, most + 1), key=lambda size: error_bound(task, epsilon, size, _BETA))


def error_bound(task: Task, epsilon: float, size: int, beta: float) -> float:
    """Return Proposition 4.4's bound on the largest error: it holds with chance ``1 - beta``.

    ``alpha + 2 (size ln |X| + ln(1 / beta)) / (epsilon n)`` with ``size = ln |Q| / alpha^2``
    (Ligett's lecture; Dwork and Roth 2014, section 4.1). The score moves by 1/n whether a record is
    replaced or, as there, added or removed, so the constants are the same. |X| is the number of
    records that the schema allows; fewer than 3 queries count as 3. Above 1 it says nothing.
    """
    alpha = math.sqrt(math.log(max(len(task.workload), 3)) / size)
    log_universe = math.log(cells_of(task.workload.domain))
    return alpha + 2.0 * (size * log_universe - math.log(beta)) / (epsilon * task.n)

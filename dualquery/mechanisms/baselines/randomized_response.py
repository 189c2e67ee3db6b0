"""Randomized response: records report at random, and the answers are corrected for it.

The room's part, and why it is private, is `dualquery.room.draws.randomized`. A query asks for a set
of values S_c on each of its columns, and a column of v values is reported through a channel with
chance ``own`` of the true value and ``other`` of each other one. Then

    (1[report in S_c] - other |S_c|) / (own - other)

has the mean 1[value in S_c] over the channel, and columns are randomized independently, so the
product over the columns has the query's value as its mean. Multiplied out, the answer is a signed
sum of the shares of reports that satisfy the conjunctions inside the query.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import axis_sizes
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.calibrate import largest_that_fits
from dualquery.privacy.events import RandomizedReport, Schedule
from dualquery.queries.conjunctions import Workload, require_conjunctions
from dualquery.queries.derived_queries import Subqueries
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.room.draws.randomized import WORDS, asked_columns, steps_of
from dualquery.runtime.errors import BadInputError

_LARGEST_EPSILON = 40.0  # above this a report of 64 random bits is all but the truth


@dataclass(frozen=True)
class Reports(Details):
    """How many columns are reported, and the epsilon of the report of each."""

    columns: int
    report_epsilon: float


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism[Reports]):
    """Every record reports each asked column truly or at random; answers are debiased."""

    name: ClassVar[str] = "randomized-response"
    pure: ClassVar[bool] = True
    makes_records = False  # corrected answers are all there is

    def statistics(self, queries: Queries) -> Workload:
        """Ask for the conjunctions inside the queries."""
        return Subqueries.of(require_conjunctions(queries)).workload

    def plan(self, task: Task, budget: Budget) -> Plan[Reports]:
        """Give every asked column the same epsilon, the largest that fits."""
        if not budget.neighbours.rows_public:
            raise BadInputError(
                "randomized-response gives away the number of reports, one a row, so it protects "
                "replaced records only; use --neighbours replace-one without --unit and "
                "--weight, or another mechanism"
            )
        asked = asked_columns(task.workload)
        epsilon = largest_report_epsilon(len(asked), budget)
        for values in np.unique(axis_sizes(task.workload.domain)[asked]).tolist():
            steps_of(epsilon, values)  # refuses what would cost more, before it is charged
        schedule = _reports(len(asked), epsilon)
        accountant, _ = best(schedule, budget.delta, budget.accountant)
        return Plan(schedule, accountant.name, Reports(len(asked), epsilon))

    def run(self, task: Task, plan: Plan[Reports], curator: Curator, session: Session) -> Outcome:  # noqa: ARG002
        """Let the records report, and correct."""
        epsilon, workload = plan.details.report_epsilon, task.workload
        shares = curator.randomize(epsilon) / task.n
        corrected = correct(workload, Subqueries.of(workload), shares, epsilon)
        return Outcome(np.clip(corrected, 0.0, 1.0))


def largest_report_epsilon(columns: int, budget: Budget) -> float:
    """Return the largest epsilon of a report, to one part in 10^9, that fits the budget.

    `BadInputError` if nothing fits, or the accountant does not support pure mechanisms.
    """

    def cost(epsilon: float) -> float:
        return best(_reports(columns, epsilon), budget.delta, budget.accountant)[1]

    # The plain sum leaves room for its rounding, and is what every other way improves on.
    first = budget.epsilon / columns
    found, spent = largest_that_fits(cost, budget.epsilon, 1e-9 * first, first, 1e-9)
    if spent > budget.epsilon:
        raise BadInputError(
            f"epsilon {budget.epsilon:g} for reports of {columns} columns does not fit with "
            f"accountant {budget.accountant}; use --accountant auto"
        )
    return min(found, _LARGEST_EPSILON)


def _reports(columns: int, epsilon: float) -> Schedule:
    return (RandomizedReport(epsilon),) * columns


def correct(
    workload: Workload, subqueries: Subqueries, shares: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Return unbiased answers, float64 ``(m,)``, not necessarily in [0, 1].

    ``shares`` are those of the reports that satisfy each of the subqueries' conjunctions, float64.
    """
    domain, literals = workload.domain, workload.literals
    present = literals >= 0
    column = np.where(present, domain.column_of_bit[literals >> 1], -1)
    values = axis_sizes(domain)[column]
    other = np.zeros(literals.shape)
    for size in np.unique(values[present]).tolist():
        other[values == size] = steps_of(epsilon, size) / WORDS
    gap = 1.0 - values * other

    # Literals on one column are one set of values; the first of them stands for the column.
    same = (column[:, :, None] == column[:, None, :]) & present[:, :, None] & present[:, None, :]
    first = present & (same.argmax(axis=2) == np.arange(workload.way))
    negated = (literals & 1).astype(bool)
    positives = (same & ~negated[:, None, :]).sum(axis=2)
    negatives = (same & negated[:, None, :]).sum(axis=2)
    wanted = np.where(positives == 0, values - negatives, positives == 1)

    extended = np.append(shares, 1.0)
    answers = np.zeros(len(workload))
    for pattern in range(1 << workload.way):
        inside = (pattern >> np.arange(workload.way) & 1).astype(bool)
        # Patterns take all literals of a column or none, and positions with a literal only.
        whole = ~(same & (inside[:, None] != inside)).any(axis=(1, 2)) & (present | ~inside).all(1)
        factor = np.where(inside, 1.0, -other * wanted) / gap
        weight = np.where(first, factor, 1.0).prod(axis=1)
        answers += np.where(whole, weight * extended[subqueries.place[:, pattern]], 0.0)
    return answers

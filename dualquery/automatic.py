"""`auto`: one mechanism chosen from public facts only, and why.

Conjunctions are answered by `matrix` wherever Gaussian noise is possible: it measures what costs
the least noise, which is known before any row is read, and has smaller errors than the others on
nearly all data that were tried (README); of a thousand rows at epsilon 0.1, independent columns or
uniform answers do better. DualQuery serves pure budgets and accountants without Gaussian noise;
MWEM serves other families of queries. All make records.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from dualquery.errors import BadInputError
from dualquery.mechanism import Budget, Outcome, Plan, Session, Task
from dualquery.privacy.curator import Curator
from dualquery.queries.family import Queries
from dualquery.queries.workload import Workload
from dualquery.registry import configure

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Chooses among matrix, dualquery and mwem, and says why."""

    name: ClassVar[str] = "auto"
    pure: ClassVar[bool] = False

    def statistics(self, queries: Queries) -> Queries:
        """Hold the queries' own answers, whatever is chosen."""
        return queries

    def plan(self, task: Task, budget: Budget) -> Plan:
        """Plan with the first mechanism that suits the task; say which, and why."""
        refused = []
        for name, reason in _suitable(task, budget):
            try:
                plan = configure(name, {}).plan(task, budget)
            except BadInputError as error:
                refused.append(f"{name}: {error}")
                continue
            _log.info("auto chose %s: %s", name, reason)
            return Plan(
                schedule=plan.schedule,
                accountant=plan.accountant,
                parameters={
                    "mechanism": name,
                    "reason": "; ".join((reason, *refused)),
                    **plan.parameters,
                },
            )
        raise BadInputError("no mechanism suits the task: " + "; ".join(refused))

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:
        """Run the mechanism that was chosen."""
        return configure(plan.parameters["mechanism"], {}).run(task, plan, curator, session)


def _suitable(task: Task, budget: Budget) -> list[tuple[str, str]]:
    """Return the names of mechanisms to try, each with the reason for it."""
    game = ("dualquery", "its cost does not grow with the number of queries")
    if not isinstance(task.queries, Workload):
        return [("mwem", "it answers every family of queries"), game]
    if budget.delta == 0:
        return [game]
    return [("matrix", "one measurement with the least noise, and a mixture fitted to it"), game]

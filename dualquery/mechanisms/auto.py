"""`auto`: one mechanism chosen from public facts only, and why.

Conjunctions are answered by `matrix` wherever Gaussian noise is possible: it measures what a fit
learns most from, which is known before any row is read, and has smaller errors than the others on
nearly all data that were tried (README); of a thousand rows at epsilon 0.1, independent columns or
uniform answers do better. DualQuery serves pure budgets and accountants without Gaussian noise;
MWEM serves other families of queries. All make records.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dualquery.mechanisms.protocol import (
    Budget,
    Mechanism,
    Outcome,
    Plan,
    Session,
    Task,
    planned_error,
)
from dualquery.mechanisms.registry import configure
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.events import GaussianNoise
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.queries.family import Queries
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError, LackOfMemoryError

if TYPE_CHECKING:
    from dualquery.estimates.expected import ExpectedError

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
        refused: list[str] = []
        told: list[str] = []
        for name, reason in _suitable(task, budget):
            try:
                plan = configure(name, {}).plan(task, budget)
            except LackOfMemoryError:
                # What is free depends on what the private rows take: it must not decide.
                raise
            except BadInputError as error:
                refused.append(f"{name}: {error}")
                told.append(f"{name} refuses the task")
                _log.info("auto: %s", refused[-1])
                continue
            why = "; ".join((reason, *told))
            return replace(
                plan,
                parameters={"mechanism": name, "reason": why, **plan.parameters},
                remark=f"auto chose {name}: {why}",
            )
        raise BadInputError(
            f"no mechanism suits the task ({'; '.join(refused)}); name one with --mechanism"
        )

    def expected_error(self, task: Task, plan: Plan) -> ExpectedError | None:
        """Expect what the mechanism that was chosen expects."""
        return planned_error(_chosen(plan), task, plan)

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:
        """Run the mechanism that was chosen."""
        return _chosen(plan).run(task, plan, curator, session)


def _chosen(plan: Plan) -> Mechanism:
    """Return the mechanism that a plan was made by."""
    return configure(plan.parameters["mechanism"], {})


def _suitable(task: Task, budget: Budget) -> list[tuple[str, str]]:
    """Return the names of mechanisms to try, each with the reason for it."""
    game = ("dualquery", "its cost does not grow with the number of queries")
    if conjunctions_of(task.queries) is None:
        # The room holds the queries' own answers; DualQuery would need those of another form.
        return [("mwem", "it answers every family of queries")]
    if budget.delta == 0:
        return [("dualquery", "delta is 0, so there is no Gaussian noise")]
    noise = (GaussianNoise(1.0, 1.0),)
    if all(each.supports(noise, budget.delta) for each in choices(budget.accountant)):
        return [("dualquery", f"the accountant {budget.accountant} has no Gaussian noise")]
    return [("matrix", "one measurement of all queries at once, and a mixture fitted to it"), game]

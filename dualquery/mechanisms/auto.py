"""`auto`: one mechanism chosen from public facts only, and why.

Conjunctions about a thousand binary columns or more are answered by `staged`, and so are positive
ones about columns of one bit; others, wherever Gaussian noise is possible, by `matrix`, or by
`probed` where rows are few or the budget is small. Where columns are few and rows are many, one
measurement of everything and a fit tell most. Of thousands of columns most hold nearly nothing, and
who asks which items come together may ask of items that hardly anyone has: only a first look can
tell. Nor is it known of few rows whether there is more to learn than the columns' shares.
`matrix` measures what a fit learns most from, which is known before any row is read, and has
smaller errors than the others on nearly all data that were tried (README). DualQuery serves pure
budgets and accountants without Gaussian noise; MWEM serves other families of queries. All make
records.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dualquery.mechanisms.matrix.columns_alone import columns_may_do
from dualquery.mechanisms.matrix.probed import Probed
from dualquery.mechanisms.matrix.width import is_positive, is_wide
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.mechanisms.registry import configure
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.events import GaussianNoise
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError, LackOfMemoryError

if TYPE_CHECKING:
    from dualquery.estimates.expected import ExpectedError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Choice(Details):
    """The mechanism that was chosen, why, and its plan."""

    mechanism: Mechanism[Any]
    reason: str
    plan: Plan[Any]

    def parameters(self) -> Mapping[str, Any]:
        """Return the mechanism's name, the reason, and the parameters of its plan."""
        chosen = {"mechanism": self.mechanism.name, "reason": self.reason}
        return {**chosen, **self.plan.parameters}


@dataclass(frozen=True, kw_only=True)
class Auto(Mechanism[Choice]):
    """Chooses among matrix, staged, probed, dualquery and mwem, and says why."""

    name: ClassVar[str] = "auto"
    pure: ClassVar[bool] = False
    finds_frequent: ClassVar[bool] = True

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options of the mechanism that it will choose; one that lacks an option is not chosen."""

    def plan(self, task: Task, budget: Budget) -> Plan[Choice]:
        """Plan with the first mechanism that suits the task; say which, and why."""
        refused: list[str] = []
        told: list[str] = []
        for name, reason in _suitable(task, budget):
            try:
                mechanism = configure(name, self.options)
                if name == Probed.name and not columns_may_do(task, budget):
                    continue
                plan = mechanism.plan(task, budget)
            except LackOfMemoryError:
                # The free memory depends on the private rows, so it must not decide.
                raise
            except BadInputError as error:
                refused.append(f"{name}: {error}")
                told.append(f"{name} refuses the task")
                _log.info("auto: %s", refused[-1])
                continue
            why = "; ".join((reason, *told))
            return Plan(
                plan.schedule,
                plan.accountant,
                Choice(mechanism, why, plan),
                remark=f"auto chose {name}: {why}",
                needs_answers=plan.needs_answers,
                mechanism=name,
            )
        raise BadInputError(
            f"no mechanism suits the task ({'; '.join(refused)}); name one with --mechanism"
        )

    def expected_error(self, task: Task, plan: Plan[Choice]) -> ExpectedError | None:
        """Return the error that the chosen mechanism expects."""
        return plan.details.mechanism.expected_error(task, plan.details.plan)

    def bytes_needed(self, task: Task, plan: Plan[Choice]) -> int:
        """Return what the chosen mechanism takes."""
        return plan.details.mechanism.bytes_needed(task, plan.details.plan)

    def run(self, task: Task, plan: Plan[Choice], curator: Curator, session: Session) -> Outcome:
        """Run the mechanism that was chosen."""
        return plan.details.mechanism.run(task, plan.details.plan, curator, session)


def _suitable(task: Task, budget: Budget) -> list[tuple[str, str]]:
    """Return the names of mechanisms to try, each with the reason for it.

    `probed` is left out later if it has nothing to gain: to know that takes time.
    """
    if task.frequent is not None:
        return [("staged", "its first stage finds the items that are frequent")]
    game = ("dualquery", "its cost does not grow with the number of queries")
    if conjunctions_of(task.queries) is None:
        # The room holds the queries' own answers; DualQuery would need those of another form.
        return [("mwem", "it answers every family of queries")]
    if budget.delta == 0:
        return [("dualquery", "delta is 0, so there is no Gaussian noise")]
    noise = (GaussianNoise(1.0, 1.0),)
    if all(each.supports(noise, budget.delta) for each in choices(budget.accountant)):
        return [("dualquery", f"the accountant {budget.accountant} has no Gaussian noise")]
    matrix = ("matrix", "one measurement of all queries at once, and a mixture fitted to it")
    if is_wide(task.workload):
        return [("staged", "of thousands of columns, few are worth more than one look"), matrix]
    if is_positive(task.workload):
        return [("staged", "which columns are full tells what of them is worth measuring"), matrix]
    look = (Probed.name, "columns alone may be all that is worth measuring, so it looks first")
    return [look, matrix, game]

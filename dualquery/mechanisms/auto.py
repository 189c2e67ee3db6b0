"""`auto`: one mechanism chosen from public facts only, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.mechanisms.registry import configure, with_records
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.events import GaussianNoise
from dualquery.queries.conjunctions import conjunctions_of
from dualquery.room.curator import Curator
from dualquery.runtime.errors import BadInputError, LackOfMemoryError

if TYPE_CHECKING:
    from dualquery.estimates.expected import ExpectedError


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
    """Chooses among adaptive, dualquery and mwem, and says why."""

    name: ClassVar[str] = "auto"
    pure: ClassVar[bool] = False
    finds_frequent: ClassVar[bool] = True
    shortens: ClassVar[bool] = True

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Options of the mechanism that it will choose; one that lacks an option is not chosen."""

    records: int | None = None
    """Number of synthetic records; None for the chosen mechanism's default."""

    def plan(self, task: Task, budget: Budget) -> Plan[Choice]:
        """Plan with the first mechanism that suits the task; say which, and why."""
        refused: list[str] = []
        for name, reason in _suitable(task, budget):
            try:
                mechanism = with_records(configure(name, self.options), self.records)
                plan = mechanism.plan(task, budget)
            except LackOfMemoryError:
                # The free memory depends on the private rows, so it must not decide.
                raise
            except BadInputError as error:
                refused.append(f"{name} refuses the task: {error}")
                continue
            why = "; ".join((reason, *refused))
            remark = "; ".join(filter(None, (f"auto chose {name}: {why}", plan.remark)))
            chosen = Choice(mechanism, why, plan)
            return replace(plan, details=chosen, remark=remark, mechanism=name)
        raise BadInputError(f"no mechanism suits: {'; '.join(refused)}; name one with --mechanism")

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
    """Return the names of mechanisms to try, each with the reason for it."""
    adaptive = ("adaptive", "it measures what is worth its noise")
    if task.frequent is not None:
        return [adaptive]
    game = ("dualquery", "its cost does not grow with the number of queries")
    if conjunctions_of(task.queries) is None:
        # The room holds the queries' own answers; DualQuery would need those of another form.
        return [("mwem", "it answers every family of queries")]
    if budget.delta == 0:
        return [("dualquery", "delta is 0, so there is no Gaussian noise")]
    noise = (GaussianNoise(1.0, 1.0),)
    if all(each.supports(noise, budget.delta) for each in choices(budget.accountant)):
        return [("dualquery", f"the accountant {budget.accountant} has no Gaussian noise")]
    return [adaptive, game]

"""`auto`: the mechanism whose error is predicted to be the smallest, from public facts only.

The answers of `matrix` and of independent noise have standard deviations that are known before any
row is read, and the fit of `matrix` only makes its errors smaller, so these two are compared by
their noise. DualQuery and MWEM have no such prediction; they serve where noise on all queries at
once would drown the answers or cannot be had at the budget's delta and accountant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from dualquery.errors import BadInputError
from dualquery.mechanism import Budget, Mechanism, Outcome, Plan, Session, Task
from dualquery.privacy.curator import Curator
from dualquery.queries.family import Queries
from dualquery.registry import configure

_FIT = 2.0
"""`matrix` may have so many times the noise of independent noise: its fit takes away more."""

_DROWNED = 0.05
"""Standard deviation of an answer above which noise says little about it."""


@dataclass(frozen=True)
class Candidate:
    """A mechanism's plan, with the standard deviation that its answers' noise will have."""

    name: str
    plan: Plan
    deviation: float


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Chooses among matrix, gaussian, laplace, mwem and dualquery, and says why."""

    name: ClassVar[str] = "auto"
    pure: ClassVar[bool] = False

    def statistics(self, queries: Queries) -> Queries:
        """Hold the queries' own answers, whatever is chosen."""
        return queries

    def plan(self, task: Task, budget: Budget) -> Plan:
        """Plan with the mechanism of the smallest predicted error."""
        chosen, reason = choose(task, budget)
        return Plan(
            schedule=chosen.schedule,
            accountant=chosen.accountant,
            parameters={**chosen.parameters, "reason": reason},
        )

    def run(self, task: Task, plan: Plan, curator: Curator | None, session: Session) -> Outcome:
        """Run the mechanism that was chosen."""
        return configure(plan.parameters["mechanism"], {}).run(task, plan, curator, session)


def choose(task: Task, budget: Budget) -> tuple[Plan, str]:
    """Return the plan of the best mechanism, its name among the parameters, and the reason."""
    refused: list[str] = []
    noisy = _noisy_candidates(task, budget, refused)
    fitted = noisy.get("matrix")
    independent = noisy.get("gaussian") or noisy.get("laplace")
    if (
        fitted is not None
        and fitted.deviation <= _DROWNED
        and (independent is None or fitted.deviation <= _FIT * independent.deviation)
    ):
        beside = (
            ""
            if independent is None
            else (f"; {independent.name} would give {independent.deviation:.2g}")
        )
        return fitted.plan, (
            f"matrix: noise of standard deviation {fitted.deviation:.2g} on an answer before a "
            f"mixture is fitted{beside}"
        )
    if independent is not None and independent.deviation <= _DROWNED:
        return independent.plan, (
            f"{independent.name}: noise of standard deviation {independent.deviation:.2g} on an "
            "answer" + ("" if fitted is None else f"; matrix would have {fitted.deviation:.2g}")
        )
    for name in ("dualquery", "mwem"):
        try:
            plan = _named(name, configure(name, {}).plan(task, budget))
        except BadInputError as error:
            refused.append(f"{name}: {error}")
            continue
        drowned = (
            "" if independent is None else (f" (standard deviation {independent.deviation:.2g})")
        )
        return plan, f"{name}: noise on all answers at once would drown them{drowned}"
    raise BadInputError("no mechanism fits: " + "; ".join(refused))


def _noisy_candidates(task: Task, budget: Budget, refused: list[str]) -> dict[str, Candidate]:
    """Plan the mechanisms that measure everything at once, where they can be planned."""
    unit = task.queries.step / task.n
    deviations: dict[str, Callable[[Plan], float]] = {
        "matrix": lambda plan: float(plan.parameters["deviation"]),
        "gaussian": lambda plan: unit * float(plan.parameters["scale"]),
        "laplace": lambda plan: unit * math.sqrt(2.0) * float(plan.parameters["scale"]),
    }
    found = {}
    for name, deviation in deviations.items():
        if (name == "laplace") != (budget.delta == 0):
            continue
        mechanism: Mechanism = configure(name, {})
        try:
            plan = mechanism.plan(task, budget)
        except BadInputError as error:
            refused.append(f"{name}: {error}")
            continue
        found[name] = Candidate(name, _named(name, plan), deviation(plan))
    return found


def _named(name: str, plan: Plan) -> Plan:
    return Plan(plan.schedule, plan.accountant, {"mechanism": name, **plan.parameters})

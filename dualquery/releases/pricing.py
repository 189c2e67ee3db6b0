"""What a release may state: the price of its schedule, and what its guarantee rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import Event, GaussianNoise, events_of
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Queries, Statistic
from dualquery.queries.stored import BUILT_IN
from dualquery.releases.proof import Price
from dualquery.room.assumptions import numerical_assumptions
from dualquery.room.declared import Declaration, check_declared
from dualquery.room.row_count import RowCount
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.protocol import Rows

PROVEN = (*BUILT_IN, Disjunctions)
"""Families whose sensitivity the room proves."""

_UNSEEN = "The mechanism looks at no private row."


NOISE_ALONE = ("auto", "matrix", "probed", "staged", "gaussian")
"""Mechanisms whose plans draw Gaussian noise only. Which rule adds up what came before a plan and
the plan itself is chosen by these names, before anything private is drawn."""


def price(
    plan: Plan[Any],
    budget: Budget,
    before: tuple[Event, ...] = (),
    *,
    noise_alone: bool = False,
) -> Price:
    """Price a plan's schedule, and the events that came before it was made.

    With ``noise_alone`` a plan that came after events has to draw Gaussian noise only.

    Whoever made the plan, it is priced here again, so that no mechanism can state a guarantee that
    its schedule does not have.

    Raises
    ------
    RuntimeError
        If the schedule costs more than the budget: a fault of the mechanism.
    BadInputError
        If a plan that has to draw Gaussian noise only draws something else.
    """
    schedule, name = plan.schedule, plan.accountant
    if before:
        schedule = (*before, *events_of(plan.schedule))
        # The plan is adaptive: the exact recursion is proven for Gaussian noise alone.
        if noise_alone and not all_noise(plan):
            raise BadInputError(
                f"with a learned schema {plan.mechanism or 'this mechanism'} has to be named: "
                "--mechanism; the schema is learned, and charged, anew"
            )
        name = budget.accountant if noise_alone else "zcdp"
    accountant, cost = best(schedule, budget.delta, name)
    if not cost <= budget.epsilon:  # a cost of NaN proves nothing
        raise RuntimeError(
            f"the plan costs epsilon {cost:g} by {accountant.name}, above {budget.epsilon:g}"
        )
    return Price(accountant.name, accountant.assumptions, cost, budget.delta)


def all_noise(plan: Plan[Any]) -> bool:
    """Return whether a plan draws Gaussian noise only."""
    return all(isinstance(event, GaussianNoise) for event in events_of(plan.schedule))


def statement(
    plan: Plan[Any],
    budget: Budget,
    priced: Price,
    data: Dataset[Rows],
    count: RowCount,
    seed: int | None,
    declared: tuple[Declaration, ...] = (),
    before: tuple[Event, ...] = (),
) -> PrivacyStatement:
    """State the guarantee of a plan, or why there is none.

    Parameters
    ----------
    plan, budget, priced
        What is done, what it may cost, and what its schedule does.
    data
        The table: only public facts of it are looked at.
    count
        The public number of rows, and its cost, which comes on top.
    seed
        Of an experiment that is not private; None for a release.
    declared
        What families of queries declare, and the guarantee takes for granted.
    before
        Events that came before the plan was made.
    """
    reasons = []
    if seed is not None:
        reasons.append("a seed was given, so the noise can be undone")
    if not data.schema.declared:
        reasons.append(
            "the schema is not declared, so it may have been taken from the data; draft a file "
            "(dualquery schema TABLE --out FILE) or take yours, check it, set "
            '"declared": true in it and give it with --schema'
        )
    if reasons:
        return PrivacyStatement.not_private(*reasons)
    events = (*before, *events_of(plan.schedule))
    looked = bool(events)
    given = [each.condition for each in declared]
    if budget.neighbours.weight is not None:
        given.append(budget.neighbours.weight.condition)
    return PrivacyStatement(
        private=True,
        epsilon=count.epsilon + (budget.epsilon if looked else 0.0),
        delta=budget.delta if looked else 0.0,
        accountant=priced.accountant,
        assumptions=(priced.assumptions if looked else _UNSEEN, *count.assumptions, *data.notes),
        numerical_assumptions=numerical_assumptions((*count.events, *events)),
        neighbours=count.relation,
        condition=" and ".join(given) or None,
    )


def declarations(queries: Queries, statistics: Statistic) -> tuple[Declaration, ...]:
    """Try what the room has no proof of: a user's queries, and what a mechanism asks to hold.

    Raises
    ------
    BadInputError
        If a family is not what it declares, derives from conjunctions, or is no family at all.
    """
    held = {id(each): each for each in (queries, statistics)}
    found = []
    for each in held.values():
        if type(each) in PROVEN:
            continue
        if isinstance(each, Workload | Disjunctions):
            raise BadInputError(
                f"{type(each).__name__} derives from conjunctions, whose sensitivity is proven "
                "from their literals; make it a family of its own"
            )
        if not isinstance(each, Queries):
            raise BadInputError(
                f"the mechanism asks the private room to hold {type(each).__name__}, which is no "
                "family of queries, so its sensitivity cannot be tried on public records"
            )
        found.append(check_declared(each))
    return tuple(found)

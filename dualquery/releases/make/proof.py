"""What a release may state: the price of its schedule, its guarantee, and what proves it.

The proof record is plain data: `dualquery.verification.check` recomputes (epsilon, delta) from it,
without a line of this package. All of it is public: the schedule was fixed before any private value
was read, and a sensitivity depends on the schema, the queries and what was drawn before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import (
    Event,
    GameSchedule,
    GaussianNoise,
    RandomizedReport,
    SampledQueries,
    Schedule,
    ThresholdedCounts,
    events_of,
)
from dualquery.privacy.statement import PrivacyStatement
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Queries, Statistic
from dualquery.queries.stored import BUILT_IN
from dualquery.room.assumptions import numerical_assumptions
from dualquery.room.declared import Declaration, check_declared
from dualquery.room.row_count import RowCount
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.room.ground import Ground
    from dualquery.rows.dataset import Dataset
    from dualquery.rows.protocol import Rows

PROVEN = (*BUILT_IN, Disjunctions)
"""Families whose sensitivity the room proves."""

_UNSEEN = "The mechanism looks at no private row."


NOISE_ALONE = ("auto", "adaptive", "matrix", "probed", "staged", "gaussian")
"""Mechanisms whose plans draw Gaussian noise only. Which rule adds up what came before a plan and
the plan itself is chosen by these names, before anything private is drawn."""

_LONGEST_PERIOD = 4
"""Events of one round, at most, that repeated rounds are recognised by."""

Entry = dict[str, Any]


@dataclass(frozen=True)
class Price:
    """What a schedule costs.

    Parameters
    ----------
    accountant
        Name of the accountant.
    assumptions
        The theorems that it rests on.
    epsilon
        Its epsilon for the schedule at ``delta``.
    delta
        In [0, 1).
    """

    accountant: str
    assumptions: str
    epsilon: float
    delta: float


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


def proof_record(
    schedule: Schedule,
    grounds: Sequence[Ground | None],
    price: Price,
    rows: RowCount,
    schema: Schema,
    privacy: PrivacyStatement,
    before: tuple[tuple[Event, ...], Sequence[Ground | None]] = ((), ()),
) -> dict[str, Any]:
    """Return the proof record of a release, JSON-able; empty for one that is not private.

    Parameters
    ----------
    schedule
        The events that the guarantee was computed for.
    grounds
        Of the events that were charged, the first ones of the schedule; None for one that was
        passed over.
    price
        What the schedule costs, by which accountant.
    rows
        The public number of rows, and what it cost.
    schema
        Its limits on a row hold sensitivities up.
    privacy
        What the release states: it may take something for granted without proof.
    before
        Events, and their grounds, that came before the schedule was planned.

    Returns
    -------
    dict[str, Any]
        ``neighbours``; ``weight``: None, or its column, the largest, and how many ``copies`` a row
        of that counts as; ``unit``: None for a row, or its column, most rows and, where that is
        public, how many ``units`` there are; ``rows``: their public ``number``, and the event that
        bought it or None; ``limits``; ``schedule``: `runs` of events with their grounds;
        ``accountant``: its name, delta and epsilon; ``condition``.
    """
    if not privacy.private:
        return {}
    bought = None
    if rows.epsilon > 0:
        (event,) = rows.events
        move = float(rows.neighbours.steps)
        bought = {**described(event), "sensitivity": move, "scale": rows.noise_scale}
    relation = rows.neighbours.described()
    if relation["unit"] is not None:
        relation["unit"] = {**relation["unit"], "units": rows.units}
    if rows.neighbours.weight is not None:
        relation["weight"] = {**relation["weight"], "copies": rows.neighbours.copies}
    return {
        **relation,
        "rows": {"number": rows.n, "bought": bought},
        "limits": {"max_ones_per_row": schema.domain.max_ones},
        "schedule": [
            *runs(_entries(*before)),
            *(
                _game(schedule, grounds)
                if isinstance(schedule, GameSchedule)
                else runs(_entries(schedule, grounds))
            ),
        ],
        "accountant": {
            "name": price.accountant,
            "delta": price.delta,
            "epsilon": price.epsilon,
        },
        "condition": privacy.condition,
    }


def runs(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return entries with repeated rounds of them written once, in their order.

    Returns
    -------
    list[dict[str, Any]]
        Each with ``times``, and ``events``, which come one after the other, repeated.
    """
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(entries):
        # The period that covers most; of several the shortest.
        times, period = max(
            ((_repeats(entries, at, period), period) for period in range(1, _LONGEST_PERIOD + 1)),
            key=lambda pair: (pair[0] > 1, pair[0] * pair[1] if pair[0] > 1 else 0, -pair[1]),
        )
        found.append({"times": times, "events": list(entries[at : at + period])})
        at += times * period
    return found


def _repeats(entries: Sequence[Entry], at: int, period: int) -> int:
    """Return how often the ``period`` entries from ``at`` on come one after the other."""
    first, times = entries[at : at + period], 1
    if len(first) < period:
        return 0
    while entries[at + times * period : at + (times + 1) * period] == first:
        times += 1
    return times


def _game(schedule: GameSchedule, grounds: Sequence[Ground | None]) -> list[dict[str, Any]]:
    """Return a game as one entry: round t is one event, whose range grows with t."""
    drawn = [ground for ground in grounds if ground is not None]
    if len(set(drawn)) > 1:
        return runs(_entries(schedule.events(), grounds))
    event = {
        "kind": "game",
        "rounds": schedule.rounds,
        "samples": schedule.samples,
        "step": schedule.step,
        "rows": schedule.n,
        "neighbours": schedule.neighbours.value,
        "rows_per_unit": schedule.neighbours.steps,
        "drawn": len(drawn),
        "ground": asdict(drawn[0]) if drawn else None,
    }
    return [{"times": 1, "events": [event]}]


def _entries(schedule: Schedule, grounds: Sequence[Ground | None]) -> list[Entry]:
    events = events_of(schedule)
    drawn: list[Ground | None] = [*grounds, *[None] * (len(events) - len(grounds))]
    return [
        {**described(event), "ground": None if ground is None else asdict(ground)}
        for event, ground in zip(events, drawn, strict=True)
    ]


def described(event: Event) -> Mapping[str, Any]:
    """Return the kind and the parameters of an event."""
    match event:
        case SampledQueries():
            kind = "draws"
        case GaussianNoise():
            kind = "gaussian"
        case ThresholdedCounts():
            kind = "thresholded"
        case RandomizedReport():
            kind = "report"
        case _:
            kind = "pure"
    return {"kind": kind, **asdict(event)}

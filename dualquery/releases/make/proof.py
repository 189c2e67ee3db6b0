"""What a release may state: the price of its schedule, its guarantee, and what proves it.

The proof record is plain data: `dualquery.verification.check` recomputes (epsilon, delta) from it,
without a line of this package. All of it is public: the schedule was fixed before any private value
was read, and a sensitivity depends on the schema, the queries and what was drawn before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from dualquery.data.encoding.blocks import COMPLETE
from dualquery.mechanisms.protocol import Budget, Plan
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.events import (
    Event,
    GameSchedule,
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    SampledQueries,
    Schedule,
    ThresholdedCounts,
    events_of,
)
from dualquery.privacy.guarantee import PrivacyStatement
from dualquery.queries.conjunctions import Workload
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Queries, Statistic
from dualquery.queries.stored_queries import BUILT_IN
from dualquery.room.declared import Declaration, check_declared
from dualquery.room.ledger import numerical_assumptions
from dualquery.room.row_count import RowCount
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.room.ground import Ground
    from dualquery.rows.engines import Dataset
    from dualquery.rows.row_sums import Rows

PROVEN = (*BUILT_IN, Disjunctions)  # families whose sensitivity the room proves

_UNSEEN = "The mechanism looks at no private row."

NOISE_ALONE = ("auto", "adaptive", "matrix", "probed", "staged", "gaussian")
"""Mechanisms whose plans draw Gaussian noise only. By their names the rule is chosen that adds up
what came before a plan and the plan itself, before anything private is drawn."""

_LONGEST_PERIOD = 4  # events of a round, at most, for repeated rounds to be recognised

_KINDS = {
    SampledQueries: "draws",
    GaussianNoise: "gaussian",
    ThresholdedCounts: "thresholded",
    RandomizedReport: "report",
    LaplaceNoise: "pure",
}

Entry = dict[str, Any]


@dataclass(frozen=True)
class Price:
    """What a schedule costs."""

    accountant: str  # its name
    assumptions: str  # the theorems that it rests on
    epsilon: float  # of the schedule at delta
    delta: float  # in [0, 1)


def price(
    plan: Plan[Any], budget: Budget, before: tuple[Event, ...] = (), *, noise_alone: bool = False
) -> Price:
    """Price a plan's schedule, and the events that came before it was made.

    Every plan is priced here again, so that no mechanism can state a guarantee that its schedule
    does not have: `RuntimeError` if it costs more than the budget. With ``noise_alone`` a plan that
    came after events has to draw Gaussian noise only, else `BadInputError`.
    """
    schedule, name, own = plan.schedule, plan.accountant, events_of(plan.schedule)
    if before:
        schedule = (*before, *own)
        # The plan is adaptive: the exact recursion is proven for Gaussian noise alone.
        if noise_alone and not all(isinstance(event, GaussianNoise) for event in own):
            raise BadInputError(
                f"with a learned schema {plan.mechanism or 'this mechanism'} has to be named: "
                "--mechanism"
            )
        name = budget.accountant if noise_alone else "zcdp"
    accountant, cost = best(schedule, budget.delta, name)
    if not cost <= budget.epsilon:  # a cost of NaN proves nothing
        raise RuntimeError(
            f"the plan costs epsilon {cost:g} by {accountant.name}, above {budget.epsilon:g}"
        )
    return Price(accountant.name, accountant.assumptions, cost, budget.delta)


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
    """State the guarantee of a plan, or why there is none; only public facts of the table are seen.

    What ``count`` cost comes on top of the budget. The guarantee takes for granted what families of
    queries ``declared``; events ``before`` the plan are within the budget.
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
    looked, given = bool(events), [each.condition for each in declared]
    if budget.neighbours.weight is not None:
        given.append(budget.neighbours.weight.condition)
    if budget.neighbours.replaces and data.schema.drop_incomplete:  # else the added may be left out
        given.append(COMPLETE)
    if learned := getattr(data.schema, "learned", None):
        cost = ", ".join(f"{name} {x}" for name, x in learned.items() if x and name != "events")
        given.append(f"the schema (learned: {cost}; to be added, if from the same rows)")
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

    `BadInputError` if they are not what they declare, derive from conjunctions, or are no queries.
    """
    held, found = {id(each): each for each in (queries, statistics)}, []
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

    ``grounds`` are of the first events of the schedule, those that were charged; None for one that
    was passed over. ``before`` are events, and their grounds, that came before it was planned.

    Returns
    -------
    dict[str, Any]
        ``neighbours``; ``weight``: None, or its column, the largest, and how many ``copies`` a row
        of that counts as; ``unit``: None for a row, or its column, most rows and, where that is
        public, how many ``units`` there are; ``rows``: their public ``number``, and the event that
        bought it or None; ``limits`` on a row; ``schedule``: `runs` of events with their grounds;
        ``accountant``: its name, delta and epsilon; ``condition``, taken for granted.
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
        "schedule": [*runs(_entries(*before)), *runs(_entries(schedule, grounds))],
        "accountant": {"name": price.accountant, "delta": price.delta, "epsilon": price.epsilon},
        "condition": privacy.condition,
    }


def runs(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return entries in order, repeated rounds written once: ``times`` and their ``events``."""
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


def _entries(schedule: Schedule, grounds: Sequence[Ground | None]) -> list[Entry]:
    """Return events with their grounds; a game is one entry: round t's range grows with t."""
    drawn = [asdict(ground) for ground in grounds if ground is not None]
    if isinstance(schedule, GameSchedule) and all(each == drawn[0] for each in drawn):
        return [{
            "kind": "game",
            "rounds": schedule.rounds,
            "samples": schedule.samples,
            "step": schedule.step,
            "rows": schedule.n,
            "neighbours": schedule.neighbours.value,
            "rows_per_unit": schedule.neighbours.steps,
            "drawn": len(drawn),
            "ground": drawn[0] if drawn else None,
        }]  # fmt: skip
    pairs = zip_longest(events_of(schedule), grounds)
    return [{**described(e), "ground": None if why is None else asdict(why)} for e, why in pairs]


def described(event: Event) -> Mapping[str, Any]:
    """Return the kind and the parameters of an event."""
    return {"kind": _KINDS[type(event)], **asdict(event)}

"""The proof record of a release: everything that its guarantee is computed from, in plain data.

`dualquery.verification.check` recomputes (epsilon, delta) from it, without a line of this package.
All of it is public: the schedule was fixed before any private value was read, and a sensitivity
depends on the schema, the queries and what was drawn before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.privacy.statement import PrivacyStatement
    from dualquery.room.ground import Ground
    from dualquery.room.row_count import RowCount

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
        Each with ``times``, and ``events``, which come one after the other so many times.
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

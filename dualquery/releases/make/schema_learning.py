"""Who learns a schema: `dualquery schema --epsilon`, and a release whose schema is not known."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.data.drafts.choose import Unknown, unknown_columns
from dualquery.data.drafts.drafting import LIKELY, name_of, propose, shape_of
from dualquery.data.drafts.shapes import Values
from dualquery.data.encoding.blocks import encoded_blocks
from dualquery.data.encoding.cuts import without_counting
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numeric import Numeric
from dualquery.data.schema.schema_files import given_schema
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.protocol import Budget, Task
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.composition import Cost
from dualquery.privacy.events import Event, events_of
from dualquery.privacy.guarantee import check_ranges, default_delta
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries
from dualquery.queries.generate.query_files import check_texts
from dualquery.releases.make import proof
from dualquery.releases.make.payment import Payment
from dualquery.releases.make.schema_price import SchemaPrice, check_learnable
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.learning import ItemRoom, SchemaRoom, rows_of_unit
from dualquery.room.row_count import COUNT_SHARE, RowCount
from dualquery.rows.units import cut_to_units, weigh
from dualquery.rules.reading import check_rules, rules_of, without_absent
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.requests import ReleaseSpec, WorkloadRequest

STAND_IN = 1_000_000  # rows to plan for where they are private: what fails then fails for fewer
_MANY, _FEW, _ASKED = 64, 2, (10_000, 200)  # values of a column, and queries, of trial plans
_USUAL: Any = dict.fromkeys(("queries", "marginals", "max_cells", "target", "items"))

Pay = Callable[[int | None], SchemaPrice]
"""Pays for a schema of some rows or units, None if that is private, and returns its price."""


@dataclass(frozen=True)
class LearnedSchema:
    """A schema, what it cost, and what it could not learn: public or differentially private."""

    schema: TableSchema | ItemSchema | None
    price: SchemaPrice | None = None  # what was charged; None if all was known
    grounds: tuple[Ground | None, ...] = ()  # why that covers it
    notes: tuple[str, ...] = ()  # for the release
    asked: WorkloadRequest | None = None  # what is asked, by names; None: as it was
    said: Mapping[str, Any] | None = None  # what the schema says to releases by it, later on

    @property
    def events(self) -> tuple[Event, ...]:
        """What was charged, in its order."""
        return () if self.price is None else self.price.events


GIVEN = LearnedSchema(None)  # of a schema that was given


def schema_of_table(
    table: object,
    epsilon: float,
    delta: float | None = None,
    *,
    columns: ColumnChoice | None = None,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
    known: TableSchema | None = None,
    budget: str | Path | None = None,
    seed: int | None = None,
) -> LearnedSchema:
    """Learn the schema of a table by itself, for releases of the same neighbours that come later.

    Delta is 1/n^2 of n rows or units by default, where n is public. Columns that are ``known`` to
    the public cost nothing. With a ``seed``, for experiments, the schema is not declared.
    `BadInputError` if the budget file has no room, or nothing can be learned.
    """
    check_ranges(epsilon, 0.0 if delta is None else delta)
    check_learnable(delta)
    paid = _paid(known, neighbours)
    payment = Payment.begin(budget, table, neighbours, "schema", seed)
    unknown = unknown_columns(source_of(table), columns, known, _hidden(neighbours))

    def pay(rows: int | None) -> SchemaPrice:
        spent = default_delta(rows) if delta is None and rows is not None else delta
        if spent is None:
            raise BadInputError(
                "the number of rows is private under --neighbours add-remove, so there is no "
                "default delta 1/n^2; give --delta"
            )
        price = SchemaPrice.whole(epsilon, spent, neighbours, unknown.sizes)
        price.require_worth(rows)
        payment.pay_first(price.events, (epsilon, spent), Cost.of(price.events, epsilon, spent))
        return replace(price, epsilon=max(epsilon, payment.epsilon))

    found = _learn_columns(unknown, neighbours, pay, seed, NO_JOURNAL)
    if found.price is None:
        return found
    payment.finish()
    assert isinstance(found.schema, TableSchema)
    return replace(found, schema=replace(found.schema, learned=_cost(found.price, epsilon, paid)))


def _paid(known: TableSchema | ItemSchema | None, neighbours: Neighbours) -> dict[str, Any]:
    """Return what a known part of a schema cost; refused if that was with other neighbours."""
    relation = replace(neighbours, weight=None).described()  # a row of any weight is one
    none = {"epsilon": 0.0, "delta": 0.0, "events": [], **relation}
    paid: dict[str, Any] = {**none, **((known and known.learned) or {}), "weight": None}
    if {**paid, **relation} != paid:
        raise BadInputError("the schema was learned with other neighbours: give the same ones")
    return paid


def _cost(price: SchemaPrice, epsilon: float, paid: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a schema says that it cost, with what was paid for a part of it before."""
    events = [dict(proof.described(event)) for event in price.events]
    own = {"epsilon": epsilon, "delta": 2.0 * price.delta, "events": events}
    return {**paid, **{name: paid[name] + each for name, each in own.items()}}


def learned_for(spec: ReleaseSpec, payment: Payment, journal: Journal) -> LearnedSchema:
    """Learn what a release's schema does not say; `GIVEN` if it says all.

    `BadInputError` as `schema_of_table`, or if what comes after could not be accounted for.
    """
    if (unknown := _asked(spec)) is None:
        return GIVEN
    paid = _paid(unknown.known, spec.budget.relation)

    def pay(rows: int | None) -> SchemaPrice:
        price, whole = _part(spec, unknown, rows)
        # What is drawn next depends on the schema, and both have one price.
        payment.pay_first(price.events, (price.epsilon, whole.delta), whole)
        return replace(price, epsilon=max(spec.budget.epsilon, payment.epsilon))

    learn = _learn_items if unknown.items else _learn_columns
    found = learn(unknown, spec.budget.relation, pay, spec.seed, journal)
    schema, price = found.schema, found.price
    asked = _by_name(spec.workload, unknown.names, getattr(schema, "column_names", ()))
    if price is not None:
        cost = _cost(price, best(price.events, 2.0 * price.delta)[1], paid)
        found = replace(found, said={"learned": cost})
    if schema is not None and isinstance(asked.queries, int):  # or all that differ, as by default
        made = replace(asked, queries=None).build(schema, 1, most=asked.queries)
        asked = replace(asked, queries=len(made))
    return replace(found, asked=asked)


def _by_name(asked: WorkloadRequest, names: Sequence[str], kept: Sequence[str]) -> WorkloadRequest:
    """Return what is asked by names, as positions count columns that are not ``kept``, too."""
    found: dict[str, Any] = {}
    options = {"columns": "--query-columns", "means": "--means", "target": "--target"}
    for field, option in options.items() if names else ():
        if (choice := getattr(asked, field)) is not None:
            choice = [choice] if field == "target" else choice
            chosen = [names[each] for each in select_columns(choice, names, option)]
            found[field] = [each for each in chosen if each in kept]
            if not found[field] or (field != "columns" and found[field] != chosen):
                raise BadInputError(f"{option}: of {chosen} not all could be learned")
    if len(target := found.get("target", [None])) > 1:
        raise BadInputError(f"--target is {asked.target!r}; name one column")
    return replace(asked, **{**found, "target": target[0]} if names else {})


def schema_price(spec: ReleaseSpec, rows: int | None) -> SchemaPrice | None:
    """Return what a release would pay for its schema; None if nothing. Reads no row.

    ``rows`` is a public number of rows, or units, to go by. `BadInputError` if there is none, or
    where the release would be refused.
    """
    unknown = _asked(spec)
    if unknown is None or not unknown.sizes[0]:
        return None
    if rows is None:
        raise BadInputError(
            f"{unknown.source.label}: what a schema costs goes by the number of rows, and "
            "--dry-run reads none: give --rows"
        )
    relation, most = spec.budget.relation, rows_of_unit(spec.budget.relation)
    if relation.replaces and relation.unit is not None and spec.budget.delta is None:
        raise BadInputError("--dry-run counts no units, and delta goes by them: give --delta")
    return _part(spec, unknown, -(-rows // most) if relation.replaces else None)[0]


def _part(spec: ReleaseSpec, unknown: Unknown, rows: int | None) -> tuple[SchemaPrice, Cost]:
    """Return the price of a release's schema, and about what both cost together."""
    budget = spec.budget
    epsilon = budget.epsilon * (1.0 - COUNT_SHARE * budget.buys_rows)
    known = budget.copies_of(budget.rows) if rows is None and budget.rows is not None else rows
    share, delta = spec.table.schema_share, budget.delta_of(spec.configured, known or 0)
    price = SchemaPrice.part(epsilon, delta, share, budget.relation, unknown.sizes)
    price.require_worth(budget.rows if rows is None and budget.relation.weight is None else rows)
    whole = Budget(epsilon, delta, budget.accountant, budget.relation)
    return price, _trial(spec, unknown, price, whole)


def _trial(spec: ReleaseSpec, unknown: Unknown, price: SchemaPrice, whole: Budget) -> Cost:
    """Refuse what cannot be, whether columns hold many values or few; return a plan's cost."""
    asked = _by_name(spec.workload, unknown.names, unknown.names)
    configured, refused = spec.configured, list[str]()
    check_texts(asked.queries, unknown.names)
    if unknown.items:  # it may be any
        asked = replace(asked, columns=None, target=None)
    if unknown.names and (isinstance(asked.marginals, int) or len(unknown.names) < 3):
        some = replace(asked, queries=None, max_cells=None, items=None)  # whatever columns hold
        some.build(_stand_in(replace(unknown, columns={}), 1, None), STAND_IN)
    alone = configured.name in proof.NOISE_ALONE
    most = asked.queries if isinstance(asked.queries, int) else _ASKED[alone]
    rest = price.rest(whole, noise_alone=alone)
    for values in _MANY, _FEW:
        schema = _stand_in(unknown, values, spec.table.max_ones_per_row)
        asked.frequent(schema, configured)
        if asked.means is not None:
            schema.with_sums(asked.means)
        queries = replace(asked, **_USUAL).build(schema, 1, min(most, _ASKED[alone]))
        try:
            plan = configured.plan(Task(queries, STAND_IN, whole.neighbours.copies), rest)
            proof.price(plan, whole, price.events, noise_alone=alone)
            count = RowCount(STAND_IN, epsilon=spec.budget.epsilon - whole.epsilon)
            events = (*price.events, *count.events, *events_of(plan.schedule))
            return Cost.of(events, spec.budget.epsilon, whole.delta)
        except BadInputError as error:
            refused.append(str(error))
    why = "cannot follow a learned schema, so give a --schema, or take another mechanism"
    raise BadInputError(f"{configured.name} {why}: {refused[-1]}")


def _stand_in(unknown: Unknown, values: int, most_ones: int | None) -> TableSchema | ItemSchema:
    """Return a schema in which each column that is to be learned, or the list, has some values."""
    if unknown.items:
        return ItemSchema.numbered(values, "items")
    edges = tuple(map(float, range(values + 1)))
    columns = {name: Numeric(name, edges, missing="category") for name in unknown.names}
    found = replace(unknown, known=None).schema(columns | {**unknown.columns}, declared=False)
    return replace(found, max_ones_per_row=most_ones)


def _asked(spec: ReleaseSpec) -> Unknown | None:
    """Return what is to be learned for a release; None if its schema is given."""
    table, relation = spec.table, spec.budget.relation
    source, known = table.source, given_schema(spec.schema)
    _paid(known, relation)  # or refuses
    partial = known if isinstance(known, TableSchema) and known.partial else None
    said = known is not None or states_schema(source, table.columns)
    if table.schema_from_data and known is not None:
        raise BadInputError("--schema-from-data and --schema exclude each other: leave one out")
    if table.schema_from_data or (said and partial is None):
        if table.public_types or table.schema_share != type(table).schema_share:
            raise BadInputError("leave out --schema-share and --public-types: nothing is learned")
        return None
    if isinstance(spec.workload.queries, Queries):
        raise BadInputError(
            "queries is a family about a schema that is still to be learned; give it, or use texts"
        )
    spec.budget.require_delta(spec.configured)
    without_counting(source, relation.unit, relation.weight)  # or refuses them
    if isinstance(source, TableSource) or partial is not None:
        hidden, types = _hidden(relation), table.public_types
        return unknown_columns(source, table.columns, partial, hidden, types=types)
    if table.max_ones_per_row is None:
        raise BadInputError(
            f"{source.label}: which items there are is learned from rows of at most K items: "
            "give --max-ones-per-row K, or name the items with --columns"
        )
    return Unknown(source, items=table.max_ones_per_row)


def _hidden(relation: Neighbours) -> set[str]:
    """Return the columns of units and weights, which are never released."""
    return {each.column for each in (relation.unit, relation.weight) if each is not None}


def states_schema(source: Source, columns: ColumnChoice | None) -> bool:
    """Return whether format or options say what rows may hold."""
    if isinstance(source, TableSource):
        return source.implied_schema is not None
    return source.width is not None or source.schema is not None or columns is not None


def _learn_columns(
    unknown: Unknown, relation: Neighbours, pay: Pay, seed: int | None, journal: Journal
) -> LearnedSchema:
    """Learn what the columns of a private table hold, but the known ones; in two passes."""
    found, shaped, source = {**unknown.columns}, {**unknown.shapes}, unknown.source
    assert isinstance(source, TableSource)
    if not unknown.learned:
        return LearnedSchema(unknown.schema(found, declared=seed is None))
    journal.same("learning", {"of": repr((unknown.names, unknown.columns, unknown.shapes))})
    cut = source if relation.unit is None else cut_to_units(source, relation.unit)
    # What would be refused later on is refused before anything is paid.
    if unknown.known is not None:
        check_rules(unknown.known, source.columns())
    if relation.weight is not None:
        whole, parts = weigh(cut, relation.weight)
        if whole.kept.any() and not any(part.kept.any() for part in parts):
            raise BadInputError(f"{cut.label}: all weights are far below --max-weight")
    if found:
        known = unknown.schema(found, declared=True)
        rules_of(replace(known, left_out=tuple(x for x in cut.columns() if x not in found)))
        deque(encoded_blocks(cut, known), 0)
    room = SchemaRoom(cut, unknown.learned, unknown.shaped, relation)
    price = pay(room.protected)
    room.open(price.events, seed, journal, price.epsilon)
    if unknown.shaped:
        sd = price.shapes.scale
        for name, counts in zip(unknown.shaped, room.shapes(sd, LIKELY * sd), strict=True):
            shaped[name] = shape_of(name, counts, sd)
    wanted = [(name, how) for name in unknown.learned if (how := shaped[name].how) is not None]
    noise = price.listing.scale
    values = room.values(wanted, noise, price.delta) if wanted else []
    made = {
        name: propose(name, shaped[name], counts, noise, unknown.missing)
        for (name, _), counts in zip(wanted, values, strict=True)
    }
    found |= {name: column for name, column in made.items() if not isinstance(column, str)}
    if not found:
        raise BadInputError(
            f"{source.label}: no column could be learned at this budget, which is spent; describe "
            "columns with --schema, or give a larger --epsilon or --schema-share"
        )
    texts = sum(isinstance(shape.how, Values) for shape in shaped.values())
    notes = [
        f"The schema was learned under differential privacy: {len(shaped):,} columns, {texts:,} of "
        f"them texts; a text is listed if about {math.ceil(price.fewest):,} rows hold it, others "
        "are (other). Neighbouring tables have the same columns of the same types."
    ]
    otherwise = "lost in noise, which a larger epsilon has less of"
    left_out = (name for name in unknown.names if name not in found)
    if reasons := "; ".join(f"{each} ({made.get(each, otherwise)})" for each in left_out):
        notes.append(
            f"Left out: {reasons}. A partial schema with their values or their range may keep them."
        )
    schema, _ = without_absent(unknown.schema(found, declared=seed is None), learned=True)
    asked = () if unknown.known is None else unknown.known.rules
    if lost := "; ".join(str(rule) for rule in asked if rule not in schema.rules):
        notes.append(f"rules that the released columns or values cannot keep were left out: {lost}")
    return LearnedSchema(schema, price, room.grounds(), tuple(notes))


def _learn_items(
    unknown: Unknown, relation: Neighbours, pay: Pay, seed: int | None, journal: Journal
) -> LearnedSchema:
    """Learn which items rows hold, of a public number at most each; in one pass."""
    source = unknown.source
    assert not isinstance(source, TableSource)
    room = ItemRoom(source, unknown.items, relation)
    price = pay(room.protected)
    items, grounds = room.items(price.listing, seed, journal, price.epsilon)
    if not len(items):
        raise BadInputError(
            f"{source.label}: no item exceeds its noise at this budget, whose share is spent; "
            "name items with --columns, or give a larger --epsilon or --schema-share"
        )
    schema = ItemSchema(items, name_of(source), declared=seed is None, outside="drop")
    note = (
        f"The {len(items):,} items were learned under differential privacy: an item is listed if "
        f"about {math.ceil(price.fewest):,} rows hold it; others are left out of the records."
    )
    return LearnedSchema(schema, price, grounds, notes=(note,))

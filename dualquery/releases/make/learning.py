"""Who learns a schema: `dualquery schema --epsilon`, and a release whose schema is not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.data.drafts.drafting import (
    Shape,
    chosen_columns,
    known_shape,
    name_of,
    propose,
    shape_of,
)
from dualquery.data.drafts.shapes import Values
from dualquery.data.encoding.blocks import present_columns
from dualquery.data.encoding.units import cut_to_units
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import DeclaredItemSource, ItemSource, Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice
from dualquery.data.schema.columns import Categorical
from dualquery.data.schema.files import given_schema
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.budget import check_ranges, default_delta
from dualquery.privacy.events import Event
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries
from dualquery.releases.make.payment import Payment
from dualquery.releases.make.proof import NOISE_ALONE, described
from dualquery.releases.make.schema_price import SchemaPrice, check_learnable
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.learning import ItemRoom, SchemaRoom
from dualquery.room.row_count import COUNT_SHARE
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.requests import ReleaseSpec


PriceOf = Callable[[int | None, int, int], SchemaPrice]
"""Pays, and returns the price: given the number of rows or units, None where that is private, how
many columns are learned, and how many shapes. Called once, before anything is drawn."""


@dataclass(frozen=True)
class LearnedSchema:
    """A schema, what it cost, and what it could not learn.

    Parameters
    ----------
    schema
        All of it is public or differentially private.
    price, grounds
        What was charged, and why that covers it; None and () if all was known.
    left_out
        Columns without a count that exceeded its noise.
    notes
        Sentences for the release.
    """

    schema: TableSchema | ItemSchema
    price: SchemaPrice | None = None
    grounds: tuple[Ground | None, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """What was charged, in its order."""
        return () if self.price is None else self.price.events


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
    """Learn the schema of a table by itself, for releases that come later.

    Parameters
    ----------
    table
        As `dualquery.release` takes it.
    epsilon, delta
        What the schema may cost; delta is 1/n^2 by default, n being the number of rows or units,
        where that is public.
    columns
        Which columns; None for all.
    neighbours
        What neighbouring tables differ in. A release with another relation needs another schema.
    known
        Columns that are public. If there are no others, nothing is charged.
    budget
        A budget file to charge; None for none.
    seed
        For experiments: the schema is then not declared.

    Raises
    ------
    BadInputError
        If the table has no named columns, the budget has no room, or nothing can be learned.
    """
    check_ranges(epsilon, 0.0 if delta is None else delta)
    check_learnable(delta)
    payment = Payment.begin(budget, table, neighbours, "schema", seed)
    stated: list[float] = []

    def price_of(rows: int | None, learned: int, shaped: int) -> SchemaPrice:
        spent = default_delta(rows) if delta is None and rows is not None else delta
        if spent is None:
            raise BadInputError(
                "the number of rows is private under --neighbours add-remove, so there is no "
                "default delta 1/n^2; give --delta"
            )
        stated.append(spent)
        price = SchemaPrice.whole(epsilon, spent, learned, neighbours, shaped)
        price.require_worth(rows)
        payment.pay_first(price.events, (epsilon, spent), (epsilon, spent))
        return replace(price, epsilon=max(epsilon, payment.epsilon))

    found = _of_table(source_of(table), columns, known, neighbours, price_of, seed, NO_JOURNAL)
    if found.price is None:
        return found
    payment.finish()
    record = {
        "epsilon": epsilon,
        "delta": stated[0],
        **neighbours.described(),
        "events": [dict(described(event)) for event in found.events],
    }
    assert isinstance(found.schema, TableSchema)
    return replace(found, schema=replace(found.schema, learned=record))


def learned_for(spec: ReleaseSpec, payment: Payment, journal: Journal) -> LearnedSchema | None:
    """Learn what a release's schema does not say; None if it says all.

    Raises
    ------
    BadInputError
        As `schema_of_table`; if items are to be learned of rows of any length, delta is 0, or what
        comes after the schema could not be accounted for.
    """
    asked = _asked(spec)
    if asked is None:
        return None
    source, known = asked
    budget, table, relation = spec.budget, spec.table, spec.budget.relation

    def price_of(rows: int | None, learned: int, shaped: int) -> SchemaPrice:
        price, whole = _part(spec, rows, learned, shaped)
        price.require_worth(rows)
        noise_alone = spec.configured.name in NOISE_ALONE
        price.rest(whole, noise_alone=noise_alone)  # refuses what cannot be accounted for
        payment.pay_first(price.events, price.own(whole.delta), (budget.epsilon, whole.delta))
        return replace(price, epsilon=max(budget.epsilon, payment.epsilon))

    if not isinstance(source, ItemSource):
        return _of_table(
            source, table.columns, known, relation, price_of, spec.seed, journal,
            types=table.public_types,
        )  # fmt: skip
    return _learn_items(source, _most_items(spec, source), relation, price_of, spec.seed, journal)


def schema_price(spec: ReleaseSpec, rows: int | None) -> SchemaPrice | None:
    """Return what a release would pay for its schema; None if nothing. Reads no row.

    Parameters
    ----------
    spec
        What is asked for.
    rows
        A public number of rows, or units, to go by.

    Raises
    ------
    BadInputError
        If no number is given, nothing could be learned, or the release would be refused.
    """
    asked = _asked(spec)
    if asked is None:
        return None
    source, known = asked
    if isinstance(source, TableSource):
        names = _names(source, spec.table.columns, spec.budget.relation)
        learned, shaped = map(len, _unknown_names(names, known))
    else:
        learned, shaped = _most_items(spec, source), 0
    if not learned:
        return None
    if rows is None:
        raise BadInputError(
            f"{source.label}: what a schema costs goes by the number of rows, and --dry-run reads "
            "none: give --rows"
        )
    price = _part(spec, rows, learned, shaped)[0]
    price.require_worth(rows)
    return price


def _asked(spec: ReleaseSpec) -> tuple[Source, TableSchema | None] | None:
    """Return a release's table and what is known of it, if a schema is to be learned."""
    source, known = spec.table.source, given_schema(spec.schema)
    partial = known if isinstance(known, TableSchema) and known.partial else None
    unknown = partial is not None or (known is None and _unknown(source, spec.table.columns))
    if spec.table.schema_from_data or not unknown:
        return None
    if isinstance(spec.workload.queries, Queries):
        raise BadInputError(
            "queries is a family of queries, made for the bits of a schema that is still to be "
            "learned; give that schema, or ask with texts or a number"
        )
    spec.budget.require_delta(spec.configured)
    return source, partial


def _most_items(spec: ReleaseSpec, source: Source) -> int:
    """Return how many items a row may have, which has to be said."""
    if spec.budget.relation.unit is not None or spec.budget.relation.weight is not None:
        raise BadInputError(
            f"{source.label}: rows of numbered items have neither --unit nor --weight"
        )
    if spec.table.max_ones_per_row is None:
        raise BadInputError(
            f"{source.label}: which items there are is learned from rows of at most K items: "
            "give --max-ones-per-row K, or name the items with --columns"
        )
    return spec.table.max_ones_per_row


def _part(
    spec: ReleaseSpec, rows: int | None, learned: int, shaped: int
) -> tuple[SchemaPrice, Budget]:
    """Return the price of a release's schema, and what schema and release may cost together."""
    budget = spec.budget
    relation, epsilon = budget.relation, budget.epsilon * (1.0 - COUNT_SHARE * budget.buys_rows)
    if rows is None and budget.rows is not None:
        rows = max(2, round(budget.rows / relation.of_copy))
    delta = budget.delta_of(spec.configured, rows or 0)
    price = SchemaPrice.part(epsilon, delta, spec.table.schema_share, learned, relation, shaped)
    return price, Budget(epsilon, delta, budget.accountant, relation)


def _of_table(
    source: Source,
    columns: ColumnChoice | None,
    known: TableSchema | None,
    neighbours: Neighbours,
    price_of: PriceOf,
    seed: int | None,
    journal: Journal,
    *,
    types: bool = False,
) -> LearnedSchema:
    """Learn the chosen columns of a table, but those of units and weights, and what is known."""
    if not isinstance(source, TableSource):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, which a schema names; give --columns"
        )
    if known is not None:
        _require_public(known)
        present_columns(source, known)
    names = _names(source, columns, neighbours)
    cut = source if neighbours.unit is None else cut_to_units(source, neighbours.unit)
    if types:
        known = _with_types(cut, names, known)
    return _learn_columns(cut, names, known, neighbours, price_of, seed, journal)


def _names(source: TableSource, columns: ColumnChoice | None, neighbours: Neighbours) -> list[str]:
    """Return the names of the columns to describe: not those of units and weights."""
    hidden = {each.column for each in (neighbours.unit, neighbours.weight) if each is not None}
    return [name for name in chosen_columns(source, columns) if name not in hidden]


def _require_public(known: TableSchema) -> None:
    """Refuse a partial schema that is not declared, or leaves out or cuts rows."""
    if not known.declared:
        raise BadInputError(
            f"schema {known.name!r}: what a partial schema says is taken as public, so it must say "
            '"declared": true'
        )
    if known.drop_incomplete or known.max_ones_per_row is not None:
        raise BadInputError(
            f"schema {known.name!r}: what is learned has a category for missing values, so "
            "drop_incomplete and max_ones_per_row cannot be; leave them out"
        )


def _unknown(source: Source, columns: ColumnChoice | None) -> bool:
    """Return whether neither format nor options say what rows may hold."""
    if isinstance(source, TableSource):
        return source.implied_schema is None
    named = columns is not None and source.width() is None
    return not (isinstance(source, DeclaredItemSource) or named or source.width() is not None)


def _with_types(
    source: TableSource, names: Sequence[str], known: TableSchema | None
) -> TableSchema | None:
    """Return a schema that knows columns of truth values, whose type is public."""
    import polars as pl

    frame = next(iter(source.frames(names)), None)
    described = () if known is None else known.columns
    truth = [
        Categorical(name, (("false",), ("true",)), missing="category")
        for name in ([] if frame is None else names)
        if frame is not None
        and frame.schema[name] == pl.Boolean
        and name not in {each.name for each in described}
    ]
    columns = (*described, *truth)
    if not columns:
        return None
    return TableSchema(columns, declared=True) if known is None else replace(known, columns=columns)


def _unknown_names(
    names: Sequence[str], known: TableSchema | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which columns have something to learn, and which of these even their shapes."""
    said = () if known is None else known.columns
    whole = {each.name for each in said if known_shape(each) is None}
    named = {each.name for each in said}
    learned = tuple(name for name in names if name not in whole)
    return learned, tuple(name for name in learned if name not in named)


def _learn_columns(
    source: TableSource,
    names: Sequence[str],
    known: TableSchema | None,
    neighbours: Neighbours,
    price_of: PriceOf,
    seed: int | None,
    journal: Journal,
) -> LearnedSchema:
    """Learn what the columns of a private table hold, but the known ones; in two passes."""
    learned, unknown = _unknown_names(names, known)
    said = () if known is None else known.columns
    shaped = {each.name: shape for each in said if (shape := known_shape(each))}
    found = {each.name: each for each in said if each.name not in shaped}

    def schema() -> TableSchema:
        kept = tuple(found[name] for name in names if name in found)
        if known is None:
            return TableSchema(kept, name_of(source), declared=seed is None)
        return replace(known, columns=kept, declared=seed is None, partial=False)

    if not learned:
        return LearnedSchema(schema())
    room = SchemaRoom(source, learned, unknown, neighbours)
    price = price_of(room.protected, len(learned), len(unknown))
    room.open(price.events, seed, journal, price.epsilon)
    if unknown:
        for name, counts in zip(unknown, room.shapes(price.shapes_scale), strict=True):
            shaped[name] = shape_of(name, counts, price.shapes_scale)
    wanted = [(name, how) for name in learned if (how := shaped[name].how) is not None]
    values = room.values(wanted, price.values_scale, price.delta) if wanted else []
    for (name, _), counts in zip(wanted, values, strict=True):
        shape = shaped[name].without(() if known is None else known.missing_values)
        column = propose(name, shape, counts, price.values_scale)
        if not isinstance(column, str):
            found[name] = column
    left_out = tuple(name for name in names if name not in found)
    if len(left_out) == len(names):
        raise BadInputError(
            f"{source.label}: no column could be learned at this budget, which is spent; describe "
            "columns with --schema, or give a larger --epsilon or --schema-share"
        )
    notes = _notes(price, shaped, left_out)
    return LearnedSchema(schema(), price, room.grounds(), left_out, notes)


def _learn_items(
    source: ItemSource,
    most: int,
    neighbours: Neighbours,
    price_of: PriceOf,
    seed: int | None,
    journal: Journal,
) -> LearnedSchema:
    """Learn which items rows hold, of at most ``most`` items each; in one pass."""
    room = ItemRoom(source, most, neighbours)
    price = price_of(room.protected, most, 0)
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


def _notes(
    price: SchemaPrice, shaped: Mapping[str, Shape], left_out: tuple[str, ...]
) -> tuple[str, ...]:
    texts = [name for name, shape in shaped.items() if isinstance(shape.how, Values)]
    notes = [
        f"The schema was learned under differential privacy: {len(shaped):,} columns, "
        f"{len(texts):,} of them texts; a text is listed if about {math.ceil(price.fewest):,} rows "
        "hold it, others are (other). Neighbouring tables have the same columns of the same types."
    ]
    if left_out:
        notes.append(
            f"Left out: {', '.join(left_out)}: names of rows by what they are called, or no value "
            "of them exceeded the noise. A partial schema that lists their values or says their "
            "range (two edges), or a larger epsilon, would keep them."
        )
    return tuple(notes)

"""Who learns a schema: `dualquery schema --epsilon`, and a release whose schema is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.data.blocks import present_columns
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import DeclaredItemSource, ItemSource, Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.data.schema.columns import Categorical
from dualquery.data.schema.files import given_schema
from dualquery.data.schema.table import TableSchema
from dualquery.data.units import cut_to_units
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.budget import check_ranges, default_delta
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries
from dualquery.releases.make.payment import Payment
from dualquery.releases.make.proof import NOISE_ALONE, described
from dualquery.releases.make.schema_learning import (
    LearnedSchema,
    PriceOf,
    learn_columns,
    learn_items,
)
from dualquery.releases.make.schema_price import SHAPES_SHARE, SchemaPrice, check_learnable
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.row_count import COUNT_SHARE
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.requests import ReleaseSpec


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

    def price_of(rows: int | None, learned: int) -> SchemaPrice:
        spent = default_delta(rows) if delta is None and rows is not None else delta
        if spent is None:
            raise BadInputError(
                "the number of rows is private under --neighbours add-remove, so there is no "
                "default delta 1/n^2; give --delta"
            )
        stated.append(spent)
        price = SchemaPrice.whole(epsilon, spent, learned, neighbours)
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
    source, budget, table = spec.table.source, spec.budget, spec.table
    known = given_schema(spec.schema)
    partial = known if isinstance(known, TableSchema) and known.partial else None
    to_learn = partial is not None or (known is None and _unknown(source, table.columns))
    if table.schema_from_data or not to_learn:
        return None
    if isinstance(spec.workload.queries, Queries):
        raise BadInputError(
            "queries is a family of queries, made for the bits of a schema that is still to be "
            "learned; give that schema, or ask with texts or a number"
        )
    relation, configured = budget.relation, spec.configured
    budget.require_delta(configured)

    def price_of(rows: int | None, learned: int, shapes: float = SHAPES_SHARE) -> SchemaPrice:
        stands = rows if rows is not None else budget.rows
        delta = budget.delta_of(configured, 0 if stands is None else stands)
        epsilon = budget.epsilon * (1.0 - COUNT_SHARE * budget.buys_rows)
        price = SchemaPrice.part(epsilon, delta, table.schema_share, learned, relation, shapes)
        price.require_worth(rows)
        whole = Budget(epsilon, delta, budget.accountant, relation)
        price.rest(whole, noise_alone=configured.name in NOISE_ALONE)  # refuses what cannot be
        payment.pay_first(price.events, price.own(delta), (budget.epsilon, delta))
        return replace(price, epsilon=max(budget.epsilon, payment.epsilon))

    if not isinstance(source, ItemSource):
        return _of_table(
            source, table.columns, partial, relation, price_of, spec.seed, journal,
            types=table.public_types,
        )  # fmt: skip
    if relation.unit is not None or relation.weight is not None:
        raise BadInputError(
            f"{source.label}: rows of numbered items have neither --unit nor --weight"
        )
    if table.max_ones_per_row is None:
        raise BadInputError(
            f"{source.label}: which items there are is learned from rows of at most K items: "
            "give --max-ones-per-row K, or name the items with --columns"
        )

    def price_of_items(rows: int | None, most: int) -> SchemaPrice:
        return price_of(rows, most, shapes=0.0)

    most = table.max_ones_per_row
    return learn_items(source, most, relation, price_of_items, spec.seed, journal)


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
        require_public(known)
        present_columns(source, known)
    hidden = {each.column for each in (neighbours.unit, neighbours.weight) if each is not None}
    present = list(source.columns())
    chosen = present
    if columns is not None:
        chosen = [present[place] for place in select_columns(columns, present)]
    names = [name for name in chosen if name not in hidden]
    cut = source if neighbours.unit is None else cut_to_units(source, neighbours.unit)
    if types:
        known = _with_types(cut, names, known)
    return learn_columns(cut, names, known, neighbours, price_of, seed, journal)


def require_public(known: TableSchema) -> None:
    """Refuse a partial schema that is not declared: what it says would count as public.

    Raises
    ------
    BadInputError
        If it is not declared.
    """
    if not known.declared:
        raise BadInputError(
            f"schema {known.name!r}: what a partial schema says is taken as public, so it must say "
            '"declared": true'
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

"""A schema that is learned under differential privacy: what it costs, and how it comes about."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.data.learned import SURE, Shape, learned_column, shape_of
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import (
    DeclaredItemSource,
    ItemSource,
    Source,
    TableSource,
)
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.data.schema.columns import Categorical
from dualquery.data.schema.files import given_schema
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.protocol import Schema
from dualquery.data.schema.table import TableSchema
from dualquery.data.shapes import Values
from dualquery.data.units import cut_to_units
from dualquery.mechanisms.protocol import Budget
from dualquery.privacy.accountants.choice import best
from dualquery.privacy.accountants.zcdp import epsilon_from_rho, rho_for
from dualquery.privacy.budget import default_delta
from dualquery.privacy.calibrate_noise import calibrate_rho
from dualquery.privacy.events import Event, GaussianNoise, ThresholdedCounts
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.payment import Payment
from dualquery.releases.proof import described
from dualquery.room.ground import Ground
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.learning import (
    LARGEST_EPSILON,
    ItemRoom,
    SchemaRoom,
    shapes_sensitivity,
    threshold,
    values_sensitivity,
)
from dualquery.room.row_count import COUNT_SHARE
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.requests import ReleaseSpec

SHAPES_SHARE = 0.25
"""Of rho for shapes: as many rows of one kind must exceed `SURE` deviations there as texts must
exceed about 7 of values, and the sensitivity is sqrt(2) times as large."""

_MARGIN = 1e-5
"""Of the rest's rho, so that roundings of both calibrations stay within the whole budget."""

_MOST_LISTED = 0.25
"""A schema in which no value could be listed that is in fewer of the rows is refused beforehand."""


@dataclass(frozen=True)
class SchemaPrice:
    """What a learned schema costs, and what it can show: all public.

    Parameters
    ----------
    rho
        Zero-concentrated differential privacy of both events.
    delta
        Of the threshold.
    columns
        How many columns are learned.
    neighbours
        What neighbouring tables differ in.
    shapes
        Part of rho for shapes; 0 for items, which have none.
    """

    rho: float
    delta: float
    columns: int
    neighbours: Neighbours
    shapes: float = SHAPES_SHARE

    @staticmethod
    def part(
        epsilon: float,
        delta: float,
        share: float,
        columns: int,
        neighbours: Neighbours,
        shapes: float = SHAPES_SHARE,
    ) -> SchemaPrice:
        """Return the price of a share of a release's budget: of rho, and of delta.

        Raises
        ------
        BadInputError
            As `check_learnable`.
        """
        check_learnable(epsilon, delta)
        rho = share * rho_for(epsilon, delta * (1.0 - share))
        return SchemaPrice(rho, share * delta, columns, neighbours, shapes)

    @staticmethod
    def whole(epsilon: float, delta: float, columns: int, neighbours: Neighbours) -> SchemaPrice:
        """Return the price of a schema by itself: half of delta is the threshold's."""

        def events(rho: float) -> tuple[Event, ...]:
            return SchemaPrice(rho, delta / 2, columns, neighbours).events

        return SchemaPrice(calibrate_rho(events, epsilon, delta), delta / 2, columns, neighbours)

    @property
    def shapes_scale(self) -> float:
        """Standard deviation of the noise in counts of shapes."""
        moved = shapes_sensitivity(self.columns, self.neighbours)
        return moved / math.sqrt(2.0 * self.shapes * self.rho) if self.shapes else 0.0

    @property
    def values_scale(self) -> float:
        """Standard deviation of the noise in counts of values."""
        moved = values_sensitivity(self.columns, self.neighbours)
        return moved / math.sqrt(2.0 * (1.0 - self.shapes) * self.rho)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in their order."""
        moved = shapes_sensitivity(self.columns, self.neighbours)
        shapes = (GaussianNoise(moved, self.shapes_scale),) if self.shapes else ()
        return (*shapes, self.listing)

    @property
    def listing(self) -> ThresholdedCounts:
        """The event of the values, or items, that are listed."""
        moved = values_sensitivity(self.columns, self.neighbours)
        return ThresholdedCounts(moved, self.values_scale, self.delta)

    @property
    def fewest(self) -> float:
        """How many rows must hold a value for it to be listed, half of the time."""
        return threshold(self.values_scale, self.columns, self.neighbours, self.delta)

    def text(self, rows: int | None) -> str:
        """Return how frequent a value must be, in words; ``rows`` is public, or None."""
        share = "" if rows is None else f" of {rows:,} ({self.fewest / rows:.2g} of them)"
        return (
            f"the schema of {self.columns:,} columns is learned: a value is listed if about "
            f"{math.ceil(self.fewest):,} rows{share} hold it; what is rarer is (other)"
        )

    def rest(self, budget: Budget, *, noise_alone: bool) -> Budget:
        """Return what the rest of a release may cost, so that all keeps within a budget.

        The squared ratios of sensitivity to scale add up, and their sum is fixed beforehand: for
        Gaussian noise alone that is fully adaptive composition (Smith and Thakurta 2022), for
        other draws it is a filter of approximate zCDP (Whitehouse et al. 2023).

        Parameters
        ----------
        budget
            Of schema and rest together.
        noise_alone
            Whether the rest draws Gaussian noise only.
        """
        delta = budget.delta - self.delta

        def noise(rho: float) -> tuple[Event, ...]:
            return (GaussianNoise(math.sqrt(2.0 * rho), 1.0),)

        if not noise_alone:
            rho = rho_for(budget.epsilon, delta) - self.rho
            epsilon = epsilon_from_rho(rho * (1.0 - _MARGIN), delta)
            return replace(budget, epsilon=epsilon, delta=delta, accountant="zcdp")
        rho = calibrate_rho(noise, budget.epsilon, delta, budget.accountant) - self.rho
        left = best(noise(rho * (1.0 - _MARGIN)), delta, budget.accountant)[1]
        return replace(budget, epsilon=left, delta=delta)

    def require_worth(self, rows: int) -> None:
        """Refuse where hardly any value could be listed; nothing is spent.

        Raises
        ------
        BadInputError
            If a value would have to be in a quarter of the rows, or a kind of cell in half.
        """
        if self.fewest > _MOST_LISTED * rows or SURE * self.shapes_scale > 0.5 * rows:
            raise BadInputError(
                f"a schema cannot be learned from {rows:,} rows at this budget: a value would have "
                f"to be in {math.ceil(self.fewest):,} of them to be listed, for {self.columns:,} "
                "columns; describe the columns with --schema (what you say is not paid for), name "
                "fewer with --columns, or give a larger --epsilon or --schema-share"
            )


@dataclass(frozen=True)
class LearnedSchema:
    """A schema, what it cost, and what it could not learn.

    Parameters
    ----------
    schema
        Declared: all of it is public or differentially private.
    price, grounds
        What was charged, and why that covers it.
    left_out
        Columns without a count that exceeded its noise.
    notes
        Sentences for the release.
    """

    schema: TableSchema | ItemSchema
    price: SchemaPrice
    grounds: tuple[Ground | None, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def drawn(self) -> tuple[tuple[Event, ...], tuple[Ground | None, ...]]:
        """The events, and their grounds."""
        return self.price.events, self.grounds


def learn_schema(
    source: TableSource,
    columns: Sequence[str],
    neighbours: Neighbours,
    price_of: Callable[[int | None], SchemaPrice],
    seed: int | None = None,
    *,
    known: TableSchema | None = None,
    name: str = "learned",
    journal: Journal = NO_JOURNAL,
) -> LearnedSchema:
    """Learn what the columns of a private table hold; two passes over its rows.

    Parameters
    ----------
    source
        The table; cut to its units where these are protected.
    columns
        Names of the columns to describe; their names, number and order are public.
    neighbours
        What neighbouring tables differ in.
    price_of
        The price, paid: given the number of rows, or units, where that is public, else None. Called
        once, before anything is drawn.
    seed
        For experiments: makes the noise reproducible, and the schema not private.
    known
        Columns that are public; they are not learned.
    name
        The schema's.
    journal
        Keeps the draws, or has them from an earlier attempt.

    Raises
    ------
    BadInputError
        If the table cannot be read, nothing could be learned at this price, or nothing was.
    """
    given = {} if known is None else {each.name: each for each in known.columns}
    learned = tuple(column for column in columns if column not in given)
    room = SchemaRoom(source, learned, neighbours)
    price = price_of(room.protected)
    room.open(price.events, seed, journal)
    shaped = {
        column: shape_of(column, counts, price.shapes_scale)
        for column, counts in zip(learned, room.shapes(price.shapes_scale), strict=True)
    }
    wanted = [(column, shape.how) for column, shape in shaped.items() if shape.how is not None]
    values = room.values(wanted, price.values_scale, price.delta) if wanted else []
    found = dict(given)
    for (column, _), counts in zip(wanted, values, strict=True):
        drafted = learned_column(column, shaped[column], counts, price.values_scale)
        if drafted is not None:
            found[column] = drafted
    left_out = tuple(column for column in columns if column not in found)
    if len(left_out) == len(columns):
        raise BadInputError(
            f"{source.label}: no column could be learned at this budget, which is spent; describe "
            "columns with --schema, or give a larger --epsilon or --schema-share"
        )
    kept = tuple(found[column] for column in columns if column in found)
    schema = (
        TableSchema(columns=kept, name=name, declared=True)
        if known is None
        else replace(known, columns=kept, name=name, declared=True)
    )
    return LearnedSchema(schema, price, room.grounds(), left_out, _notes(price, shaped, left_out))


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
        Columns that are public.
    budget
        A budget file to charge; None for none.
    seed
        For experiments: the schema is then not declared.

    Raises
    ------
    BadInputError
        If the table has no named columns, the budget has no room, or nothing can be learned.
    """
    check_learnable(epsilon, delta)
    if known is not None:
        require_public(known)
    payment = Payment.begin(budget, table, neighbours, "schema", seed)
    source = table_to_learn(source_of(table), neighbours)
    hidden = () if neighbours.unit is None else (neighbours.unit.column,)
    names = [name for name in chosen_columns(source, columns) if name not in hidden]
    learned = len(names) - len({*names} & {*(() if known is None else known.column_names)})

    def price_of(rows: int | None) -> SchemaPrice:
        spent = default_delta(rows) if delta is None and rows is not None else delta
        if spent is None:
            raise BadInputError(
                "the number of rows is private under --neighbours add-remove, so there is no "
                "default delta 1/n^2; give --delta"
            )
        stated.append(spent)
        price = SchemaPrice.whole(epsilon, spent, learned, neighbours)
        if rows is not None:
            price.require_worth(rows)
        payment.pay_first(price.events, (epsilon, spent), (epsilon, spent))
        return price

    stated: list[float] = []
    found = learn_schema(
        source,
        names,
        neighbours,
        price_of,
        seed,
        known=known,
        name=source.label,
    )
    payment.finish()
    record = {
        "epsilon": epsilon,
        "delta": stated[0],
        **neighbours.described(),
        "events": [dict(described(event)) for event in found.price.events],
    }
    assert isinstance(found.schema, TableSchema)
    own = replace(found.schema, declared=seed is None, learned=record, partial=False)
    return replace(found, schema=own)


def learned_for(spec: ReleaseSpec, payment: Payment, journal: Journal) -> LearnedSchema | None:
    """Learn what a release's schema does not say; None if it says all.

    Raises
    ------
    BadInputError
        As `learn_schema`; if items are to be learned of rows of any length, or delta is 0.
    """
    source, budget, table = source_of(spec.table.named), spec.budget, spec.table
    known = given_schema(spec.schema)
    if isinstance(known, TableSchema) and known.partial:
        require_public(known)
    partial = isinstance(known, TableSchema) and known.partial
    if table.schema_from_data or not (
        partial or (known is None and _unknown(source, table.columns))
    ):
        return None
    relation = budget.relation
    epsilon = budget.epsilon * (1.0 - COUNT_SHARE * budget.buys_rows)

    def price_of(rows: int | None, columns: int, shapes: float) -> SchemaPrice:
        stands = rows if rows is not None else budget.rows
        delta = budget.delta_of(spec.configured, 0 if stands is None else stands)
        price = SchemaPrice.part(epsilon, delta, table.schema_share, columns, relation, shapes)
        if rows is not None:
            price.require_worth(rows)
        own = best(price.events, delta)[1], delta
        payment.pay_first(price.events, own, (budget.epsilon, delta))
        return price

    if isinstance(source, ItemSource):
        if relation.unit is not None or relation.weight is not None:
            raise BadInputError(
                f"{source.label}: rows of numbered items have neither --unit nor --weight"
            )
        if table.max_ones_per_row is None:
            raise BadInputError(
                f"{source.label}: which items there are is learned from rows of at most K items: "
                "give --max-ones-per-row K, or name the items with --columns"
            )
        room = ItemRoom(source, table.max_ones_per_row, relation)
        price = price_of(room.protected, table.max_ones_per_row, 0.0)
        items, grounds = room.items(price.listing, spec.seed, journal)
        if not len(items):
            raise BadInputError(
                f"{source.label}: no item exceeds its noise at this budget, whose share is spent; "
                "name items with --columns, or give a larger --epsilon or --schema-share"
            )
        schema = ItemSchema(items, source.label, declared=spec.seed is None, outside="drop")
        return LearnedSchema(schema, price, grounds, (), _on_items(len(items), price))
    assert isinstance(source, TableSource)
    cut = table_to_learn(source, relation)
    hidden = {each.column for each in (relation.unit, relation.weight) if each is not None}
    names = [name for name in chosen_columns(source, table.columns) if name not in hidden]
    if table.public_types:
        known = _with_types(cut, names, known)
    said = known if isinstance(known, TableSchema) else None
    learned = len(names) - len({*names} & {*(() if said is None else said.column_names)})
    found = learn_schema(
        cut, names, relation, lambda rows: price_of(rows, learned, SHAPES_SHARE), spec.seed,
        known=said, name=source.label, journal=journal,
    )  # fmt: skip
    assert isinstance(found.schema, TableSchema)
    own = replace(found.schema, declared=spec.seed is None, partial=False)
    return replace(found, schema=own)


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
    source: TableSource, names: Sequence[str], known: Schema | None
) -> TableSchema | None:
    """Return a schema that knows columns of truth values, whose type is public."""
    import polars as pl

    frame = next(iter(source.frames(names)), None)
    own = known if isinstance(known, TableSchema) else None
    described = () if own is None else own.columns
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
    return TableSchema(columns, declared=True) if own is None else replace(own, columns=columns)


def _on_items(count: int, price: SchemaPrice) -> tuple[str, ...]:
    return (
        f"The {count:,} items were learned under differential privacy: an item is listed if about "
        f"{math.ceil(price.fewest):,} rows hold it; others are left out of the records.",
    )


def table_to_learn(source: Source, neighbours: Neighbours) -> TableSource:
    """Return a source as a table of cells, cut to its units, without columns never released.

    Raises
    ------
    BadInputError
        If its rows are numbered items.
    """
    if not isinstance(source, TableSource):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, which a schema names; give --columns"
        )
    return source if neighbours.unit is None else cut_to_units(source, neighbours.unit)


def chosen_columns(source: TableSource, columns: ColumnChoice | None) -> list[str]:
    """Return the names of the columns to describe."""
    present = list(source.columns())
    if columns is None:
        return present
    return [present[place] for place in select_columns(columns, present)]


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
            f"Left out, as nothing in them exceeded the noise: {', '.join(left_out)}. Describing "
            "them in the schema, or a larger epsilon, would keep them."
        )
    return tuple(notes)


def check_learnable(epsilon: float, delta: float | None) -> None:
    """Refuse budgets at which no schema is learned.

    Raises
    ------
    BadInputError
        If delta is 0, or epsilon beyond what the room's lemma covers.
    """
    if delta == 0.0:
        raise BadInputError(
            "a schema is learned with a delta above 0, and --delta is 0 here; give a --delta, or "
            "declare a --schema"
        )
    if epsilon > LARGEST_EPSILON:
        raise BadInputError(
            f"--epsilon is {epsilon:g}; a schema is learned at up to {LARGEST_EPSILON:g}; declare "
            "a --schema, or give a smaller epsilon"
        )

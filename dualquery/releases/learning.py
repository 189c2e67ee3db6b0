"""A schema that is learned under differential privacy: what it costs, and how it comes about."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dualquery.data.learned import SURE, Shape, learned_column, shape_of
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.data.schema.table import TableSchema
from dualquery.data.shapes import Values
from dualquery.data.units import cut_to_units
from dualquery.privacy.accountants.zcdp import rho_for
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
    SchemaRoom,
    shapes_sensitivity,
    threshold,
    values_sensitivity,
)
from dualquery.runtime.errors import BadInputError

SCHEMA_SHARE = 0.1
"""Of rho, and of delta for the threshold, that a release spends on its schema by default."""

SHAPES_SHARE = 0.25
"""Of rho for shapes: as many rows of one kind must exceed `SURE` deviations there as texts must
exceed about 7 of values, and the sensitivity is sqrt(2) times as large."""

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
    """

    rho: float
    delta: float
    columns: int
    neighbours: Neighbours

    @staticmethod
    def part(
        epsilon: float, delta: float, share: float, columns: int, neighbours: Neighbours
    ) -> SchemaPrice:
        """Return the price of a share of a release's budget: of rho, and of delta."""
        rho = share * rho_for(epsilon, delta * (1.0 - share))
        return SchemaPrice(rho, share * delta, columns, neighbours)

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
        return moved / math.sqrt(2.0 * SHAPES_SHARE * self.rho)

    @property
    def values_scale(self) -> float:
        """Standard deviation of the noise in counts of values."""
        moved = values_sensitivity(self.columns, self.neighbours)
        return moved / math.sqrt(2.0 * (1.0 - SHAPES_SHARE) * self.rho)

    @property
    def events(self) -> tuple[Event, ...]:
        """Both events, in their order."""
        shapes = shapes_sensitivity(self.columns, self.neighbours)
        values = values_sensitivity(self.columns, self.neighbours)
        return (
            GaussianNoise(shapes, self.shapes_scale),
            ThresholdedCounts(values, self.values_scale, self.delta),
        )

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
    events, grounds
        What was charged, and why that covers it.
    left_out
        Columns of which nothing exceeded the noise.
    notes
        Sentences for the release.
    """

    schema: TableSchema
    events: tuple[Event, ...]
    grounds: tuple[Ground | None, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def learn_schema(
    source: TableSource,
    columns: Sequence[str],
    neighbours: Neighbours,
    price_of: Callable[[int | None], SchemaPrice],
    seed: int | None = None,
    *,
    known: TableSchema | None = None,
    name: str = "learned",
    pay: Callable[[SchemaPrice, int | None], None] = lambda *_: None,
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
        The price, given the number of rows, or units, where that is public, else None.
    seed
        For experiments: makes the noise reproducible, and the schema not private.
    known
        Columns that are public; they are not learned.
    name
        The schema's.
    pay
        Is called once, before anything is drawn.
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
    if room.protected is not None:
        price.require_worth(room.protected)
    pay(price, room.protected)
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
    return LearnedSchema(
        schema, price.events, room.grounds(), left_out, _notes(price, shaped, left_out)
    )


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
    payment = Payment.begin(budget, table, neighbours, "schema", seed)
    source = table_to_learn(source_of(table), neighbours)
    names = chosen_columns(source, columns)
    learned = len(names) - len({*names} & {*(() if known is None else known.column_names)})

    def price_of(rows: int | None) -> SchemaPrice:
        spent = default_delta(rows) if delta is None and rows is not None else delta
        if spent is None:
            raise BadInputError(
                "the number of rows is private under --neighbours add-remove, so there is no "
                "default delta 1/n^2; give --delta"
            )
        stated.append(spent)
        return SchemaPrice.whole(epsilon, spent, learned, neighbours)

    stated: list[float] = []
    found = learn_schema(
        source,
        names,
        neighbours,
        price_of,
        seed,
        known=known,
        name=source.label,
        pay=lambda price, _: payment.pay_events(price.events, epsilon, stated[0]),
    )
    payment.finish()
    record = {
        "epsilon": epsilon,
        "delta": stated[0],
        **neighbours.described(),
        "events": [dict(described(event)) for event in found.events],
    }
    return replace(found, schema=replace(found.schema, declared=seed is None, learned=record))


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
        "hold it, others are (other)."
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

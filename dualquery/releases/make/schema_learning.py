"""How a schema is learned under differential privacy: pay, count with noise, propose columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dualquery.data.draft import name_of
from dualquery.data.learned import Shape, learned_column, shape_of
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.data.shapes import Values
from dualquery.privacy.events import Event
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.make.schema_price import SchemaPrice
from dualquery.room.ground import Ground
from dualquery.room.journal import Journal
from dualquery.room.learning import ItemRoom, SchemaRoom
from dualquery.runtime.errors import BadInputError

PriceOf = Callable[[int | None, int], SchemaPrice]
"""Pays, and returns the price: given the number of rows or units, None where that is private, and
how many columns are learned. Called once, before anything is drawn."""


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


def learn_columns(
    source: TableSource,
    names: Sequence[str],
    known: TableSchema | None,
    neighbours: Neighbours,
    price_of: PriceOf,
    seed: int | None,
    journal: Journal,
) -> LearnedSchema:
    """Learn what the columns of a private table hold; two passes over its rows.

    Parameters
    ----------
    source
        The table; cut to its units where these are protected.
    names
        Of the columns to describe, in their order; public.
    known
        Columns that are public; they are not learned, and cost nothing.
    neighbours
        What neighbouring tables differ in.
    price_of
        Pays.
    seed
        For experiments: makes the noise reproducible, and the schema not declared.
    journal
        Keeps the draws, or has them from an earlier attempt.

    Raises
    ------
    BadInputError
        If the table cannot be read, nothing could be learned at this price, or nothing was.
    """
    found = {} if known is None else {each.name: each for each in known.columns}
    learned = tuple(name for name in names if name not in found)

    def schema() -> TableSchema:
        kept = tuple(found[name] for name in names if name in found)
        if known is None:
            return TableSchema(kept, name_of(source), declared=seed is None)
        return replace(known, columns=kept, declared=seed is None, partial=False)

    if not learned:
        return LearnedSchema(schema())
    room = SchemaRoom(source, learned, neighbours)
    price = price_of(room.protected, len(learned))
    room.open(price.events, seed, journal, price.epsilon)
    shaped = {
        name: shape_of(name, counts, price.shapes_scale)
        for name, counts in zip(learned, room.shapes(price.shapes_scale), strict=True)
    }
    wanted = [(name, shape.how) for name, shape in shaped.items() if shape.how is not None]
    values = room.values(wanted, price.values_scale, price.delta) if wanted else []
    for (name, _), counts in zip(wanted, values, strict=True):
        drafted = learned_column(name, shaped[name], counts, price.values_scale)
        if drafted is not None:
            found[name] = drafted
    left_out = tuple(name for name in names if name not in found)
    if len(left_out) == len(names):
        raise BadInputError(
            f"{source.label}: no column could be learned at this budget, which is spent; describe "
            "columns with --schema, or give a larger --epsilon or --schema-share"
        )
    notes = _notes(price, shaped, left_out)
    return LearnedSchema(schema(), price, room.grounds(), left_out, notes)


def learn_items(
    source: ItemSource,
    most: int,
    neighbours: Neighbours,
    price_of: PriceOf,
    seed: int | None,
    journal: Journal,
) -> LearnedSchema:
    """Learn which items rows hold, of at most ``most`` items each; one pass. See `learn_columns`.

    Raises
    ------
    BadInputError
        As `learn_columns`.
    """
    room = ItemRoom(source, most, neighbours)
    price = price_of(room.protected, most)
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
            f"Left out, as nothing in them exceeded the noise: {', '.join(left_out)}. Describing "
            "them in the schema, or a larger epsilon, would keep them."
        )
    return tuple(notes)

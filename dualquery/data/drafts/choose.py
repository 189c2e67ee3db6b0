"""Which schema a table is read with, and what a partial one leaves to learn of a private table."""

import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from dualquery.data.drafts.drafting import (
    Shape,
    chosen_columns,
    draft_item_schema,
    draft_table_schema,
    known_shape,
    name_of,
)
from dualquery.data.encoding.blocks import present_columns
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.readers.source import ItemSource, Source, TableSource
from dualquery.data.schema.any_schema import Schema
from dualquery.data.schema.column_choice import ColumnChoice, select_items
from dualquery.data.schema.columns import Categorical, Column
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.schema_files import given_schema, schema_from_dict
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)


def choose_schema(
    source: Source,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    columns: ColumnChoice | None = None,
    max_ones_per_row: int | None = None,
) -> Schema:
    """Return the schema with which `load` reads a source; drafting one takes a pass.

    Columns that are never released, such as that of units, are not in it.
    """
    hidden = source.hidden if isinstance(source, CutTable) else ()
    found = given_schema(schema)
    if found is None and isinstance(source, ItemSource):
        found = source.schema
        if found is None and columns is not None and source.width is None:
            items = select_items(columns)
            return ItemSchema(items, "selected items", "drop", max_ones_per_row, declared=True)
        found = draft_item_schema(source) if found is None else found
    if found is None and isinstance(source, TableSource):
        found = given_schema(source.implied_schema)
        if found is None:
            if isinstance(source, CutTable) and columns is not None:
                # Positions are those of the whole table.
                whole = chosen_columns(source.source, columns)
                columns = [name for name in whole if name not in hidden]
            found, columns = draft_table_schema(source, columns), None
    if not isinstance(found, TableSchema | ItemSchema):
        raise BadInputError(f"schema of type {type(found).__name__}; a schema is expected")
    if found is schema:  # an object: what a stored release could not be read with is refused
        schema_from_dict(found.to_dict())
    found = found if columns is None else found.restrict(columns)
    if listed := [f"!{name}" for name in found.column_names if name in hidden]:
        found = found.restrict(listed)
    return found if max_ones_per_row is None else replace(found, max_ones_per_row=max_ones_per_row)


@dataclass(frozen=True)
class Unknown:
    """What is to be learned of some rows: public, and refused before any is read.

    Of the schema's ``names``, ``columns`` are known as a whole, ``shapes`` in part. Where rows are
    lists of items, they have at most ``items`` each.
    """

    source: Source
    names: tuple[str, ...] = ()
    known: TableSchema | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    items: int = 0

    @property
    def learned(self) -> tuple[str, ...]:
        """Columns with something to learn."""
        return tuple(name for name in self.names if name not in self.columns)

    @property
    def shaped(self) -> tuple[str, ...]:
        """Columns that are not known at all."""
        return tuple(name for name in self.learned if name not in self.shapes)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many columns, or items of a row, are learned, and of how many columns the shapes."""
        return self.items or len(self.learned), len(self.shaped)

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that are known to stand for missing values in all columns."""
        return () if self.known is None else self.known.missing_values

    def schema(self, found: Mapping[str, Column], *, declared: bool) -> TableSchema:
        """Return the schema of the columns that were known or learned."""
        kept = tuple(found[name] for name in self.names if name in found)
        if self.known is None:
            return TableSchema(kept, name_of(self.source), declared=declared)
        out = tuple(name for name in self.names if name not in found and self.known.rules)
        whole = replace(self.known, columns=kept, declared=declared, partial=False, rules=())
        with suppress(BadInputError):
            return replace(whole, rules=self.known.rules, left_out=out)
        for rule in self.known.rules:
            try:
                whole = replace(whole, rules=(*whole.rules, rule), left_out=out)
            except BadInputError as error:  # of an order; and what was learned is paid for
                _log.warning("the rule %s is left out: %s", rule, error)
        return whole


def unknown_columns(
    source: Source,
    columns: ColumnChoice | None,
    known: TableSchema | None,
    hidden: Collection[str],
    *,
    types: bool = False,
) -> Unknown:
    """Return what is to be learned of a table, but of hidden columns; read no row.

    What is ``known`` is public; with ``types`` so is which columns hold truth values.
    `BadInputError` if what is known is not declared, or of another table.
    """
    if not isinstance(source, TableSource):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, which a schema names; give --columns"
        )
    if known is not None:
        if not known.declared:
            raise BadInputError(
                f"schema {known.name!r}: what a partial schema says is taken as public, so it must "
                'say "declared": true'
            )
        if known.drop_incomplete or known.max_ones_per_row is not None:
            raise BadInputError(
                f"schema {known.name!r}: what is learned has a category for missing values, so "
                "drop_incomplete and max_ones_per_row cannot be; leave them out"
            )
        present_columns(source, known)
    names = tuple(name for name in chosen_columns(source, columns) if name not in hidden)
    said: dict[str, Column] = {}
    if types:
        stated = getattr((getattr(source, "parts", ()) or (source,))[0], "types", ())
        if not stated:
            raise BadInputError(f"{source.label}: it states no types; leave --public-types out")
        kinds = zip(source.columns(), stated, strict=True)
        truth = (name for name, kind in kinds if kind.lower() in ("bool", "boolean"))
        said = {n: Categorical(n, (("false",), ("true",)), missing="category") for n in truth}
    said |= {} if known is None else {each.name: each for each in known.columns}
    found = {name: known_shape(said[name]) for name in names if name in said}
    shapes = {name: shape for name, shape in found.items() if shape is not None}
    columns_known = {name: said[name] for name in found if name not in shapes}
    unknown = Unknown(source, names, known, columns_known, shapes)
    for name, column in columns_known.items():
        column.check_missing(f"{source.label}, column {name!r}", unknown.missing)
    return unknown

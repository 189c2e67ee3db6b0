"""Which schema a table is read with: the one given, the format's own, or a draft."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dualquery.data.drafts.drafting import draft_item_schema, draft_table_schema
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.readers.source import DeclaredItemSource, ItemSource, Source, TableSource
from dualquery.data.schema.column_choice import ColumnChoice, select_columns, select_items
from dualquery.data.schema.files import given_schema, load_schema
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.protocol import Schema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError


def choose_schema(
    source: Source,
    schema: Schema | Mapping[str, object] | str | Path | None = None,
    columns: ColumnChoice | None = None,
    max_ones_per_row: int | None = None,
) -> TableSchema | ItemSchema:
    """Return the schema with which `load` reads a source; drafting one takes a pass."""
    chosen = _without_hidden(source, schema, columns)
    return chosen if max_ones_per_row is None else chosen.with_max_ones(max_ones_per_row)


def _without_hidden(
    source: Source,
    schema: Schema | Mapping[str, object] | str | Path | None,
    columns: ColumnChoice | None,
) -> TableSchema | ItemSchema:
    """Return the schema without columns that are never released, such as that of units."""
    if not isinstance(source, CutTable):
        return _find_schema(source, schema, columns)
    hidden = source.hidden
    if schema is None and columns is not None:  # a draft; positions are those of the whole table
        names = source.source.columns()
        chosen = [names[place] for place in select_columns(columns, names)]
        columns = [each for each in chosen if each not in hidden]
    found = _find_schema(source, schema, columns)
    listed = [f"!{name}" for name in found.column_names if name in hidden]
    return found.restrict(listed) if listed else found


def _find_schema(
    source: Source,
    schema: Schema | Mapping[str, object] | str | Path | None,
    columns: ColumnChoice | None,
) -> TableSchema | ItemSchema:
    given = given_schema(schema)
    if given is None and isinstance(source, TableSource):
        if source.implied_schema is None:
            return draft_table_schema(source, columns)
        given = load_schema(source.implied_schema)
    if given is None and isinstance(source, DeclaredItemSource):
        given = source.schema()
    if given is None and isinstance(source, ItemSource):
        if columns is not None and source.width() is None:
            items = select_items(columns)
            return ItemSchema(items, name="selected items", outside="drop", declared=True)
        given = draft_item_schema(source)
    if not isinstance(given, TableSchema | ItemSchema):
        raise BadInputError(f"schema of type {type(given).__name__}; a schema is expected")
    return given if columns is None else given.restrict(columns)

"""Schemas drafted from the data: not declared, so a release made with one is not private."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dualquery.data.buckets import BUCKETS, covering, tidy_edges
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.data.schema.column_choice import (
    MAX_ITEMS,
    ColumnChoice,
    exclude_columns,
)
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.data.seen_values import MISSING_VALUES, SeenValues, order_of_text, see_columns
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)


def draft_table_schema(source: TableSource, columns: ColumnChoice | None = None) -> TableSchema:
    """Return a schema for a table, in one pass over it.

    A column with at most 64 distinct values is categorical (one that holds only 0 and 1, or truth
    values, is binary). One with more, most of them numbers, gets 16 buckets of equal width that
    cover its numbers (see `tidy_edges`). Missing values, and texts among numbers, get a category.
    Columns that look like identifiers are logged as a warning.

    Parameters
    ----------
    source
        The table.
    columns
        Which of its columns to take (see `select_columns`); None for all.

    Raises
    ------
    BadInputError
        If columns have more than 64 distinct values that are not numbers, or types that cannot
        become bits: all of them are named at once. If the table has no rows.
    """
    seen = see_columns(source, columns, SeenValues)
    faults = {name: fault for name, values in seen.items() if (fault := values.fault())}
    if faults:
        exclusion = exclude_columns(list(faults), source.columns())
        if isinstance(columns, str):
            exclusion = f"{columns},{exclusion}"
        raise _awkward(source.label, faults, exclusion)
    names_of_rows = [name for name, values in seen.items() if values.identifies()]
    if names_of_rows:
        _log.warning(
            "%s: all values of %s are different, as in identifiers; leave such columns out, with "
            "--columns %s",
            source.label,
            ", ".join(map(repr, names_of_rows)),
            shlex.quote(exclude_columns(names_of_rows, source.columns())),
        )
    return TableSchema(
        columns=tuple(plain_column(values) for values in seen.values()),
        name=name_of(source),
        declared=False,
        missing_values=MISSING_VALUES,
    )


def draft_item_schema(source: ItemSource) -> ItemSchema:
    """Return the schema of a source of items: those its format fixes, else those that occur.

    Raises `BadInputError` if none does, or far too many do.
    """
    width = source.width()
    if width is not None:
        return ItemSchema.numbered(width, name_of(source))
    items = np.zeros(0, np.int64)
    for rows in source.item_rows():
        items = np.union1d(items, rows.items)
        if len(items) > MAX_ITEMS:
            raise BadInputError(
                f"{source.label}: more than {MAX_ITEMS:,} items; choose some with --columns"
            )
    if not len(items):
        raise BadInputError(f"{source.label}: no row has any item; declare them with --columns")
    return ItemSchema(items, name_of(source), declared=False)


def _awkward(label: str, faults: Mapping[str, str], exclusion: str) -> BadInputError:
    """Return the error that names every column that cannot be drafted, and why."""
    listed = "; ".join(f"column {name!r} has {fault}" for name, fault in faults.items())
    which = "it" if len(faults) == 1 else "them"
    return BadInputError(
        f"{label}: {listed}; make a schema, which can hold dates and the most frequent texts "
        f"(dualquery schema TABLE --out FILE drafts one), or leave {which} out with --columns "
        f"{shlex.quote(exclusion)}"
    )


def name_of(source: TableSource | ItemSource) -> str:
    """Return the name of the source without its folder, which a release must not show."""
    return Path(source.label.rpartition(":")[2]).name


def plain_column(seen: SeenValues) -> Column:
    """Return the column that the values suggest."""
    if seen.many:
        edges = tidy_edges(seen.low, seen.high, BUCKETS, whole=seen.integer)
        return Numeric(
            seen.name,
            edges=covering(edges, seen.high, whole=seen.integer),
            integer=seen.integer,
            missing="category" if seen.missing or seen.words else "error",
            unparsable="missing" if seen.words else "error",
        )
    if not seen.missing and seen.boolean:
        return Binary(seen.name, zero="false", one="true")
    if not seen.missing and sorted(map(str.lower, seen.texts)) == ["false", "true"]:
        zero, one = sorted(seen.texts, key=str.lower)
        return Binary(seen.name, zero=zero, one=one)
    if not seen.missing and seen.texts and seen.texts <= {"0", "1"}:
        return Binary(seen.name)
    constant = len(seen.texts) + seen.missing < 2
    return Categorical(
        seen.name,
        values=tuple((text,) for text in sorted(seen.texts, key=order_of_text)),
        missing="category" if seen.missing else "error",
        # A constant column needs a second bit to be a group.
        outside="other" if constant else "error",
    )

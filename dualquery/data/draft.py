"""Schemas drafted from the data: not declared, so a release made with one is not private."""

from __future__ import annotations

import logging
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from dualquery.data.buckets import tidy_edges
from dualquery.data.encode import can_become_bits, missing_mask, to_numbers
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.data.schema.column_choice import (
    MAX_ITEMS,
    ColumnChoice,
    exclude_columns,
    select_columns,
)
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

MAX_CATEGORIES = 64
"""A column with more distinct values is numeric, or cannot be drafted."""

FEWEST_NAMES = 20
"""Values without a repetition that look like identifiers; fewer may differ by chance."""

BUCKETS = 16
MISSING_VALUES = ("",)

_log = logging.getLogger(__name__)

# A day written 2024-01-31, 31.1.2024, 1/31/24 or the like; a time may follow.
_DATE = re.compile(r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})(?!\d)")


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
    present = list(source.columns())
    names = present
    if columns is not None:
        names = [present[position] for position in select_columns(columns, present)]
    seen = {name: _Values(name) for name in names}
    empty = True
    for frame in source.frames(names):
        empty = empty and not frame.height
        for name in names:
            seen[name].add(frame[name])
    if empty:
        raise BadInputError(f"{source.label}: no rows below the header")
    faults = {name: fault for name, values in seen.items() if (fault := values.fault())}
    if faults:
        exclusion = exclude_columns(list(faults), present)
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
            shlex.quote(exclude_columns(names_of_rows, present)),
        )
    return TableSchema(
        columns=tuple(values.column() for values in seen.values()),
        name=_name(source),
        declared=False,
        missing_values=MISSING_VALUES,
    )


def draft_item_schema(source: ItemSource) -> ItemSchema:
    """Return the schema of a source of items: those its format fixes, else those that occur.

    Raises `BadInputError` if none does, or far too many do.
    """
    width = source.width()
    if width is not None:
        return ItemSchema.numbered(width, _name(source))
    items = np.zeros(0, np.int64)
    for rows in source.item_rows():
        items = np.union1d(items, rows.items)
        if len(items) > MAX_ITEMS:
            raise BadInputError(
                f"{source.label}: more than {MAX_ITEMS:,} items; choose some with --columns"
            )
    if not len(items):
        raise BadInputError(f"{source.label}: no row has any item; declare them with --columns")
    return ItemSchema(items, _name(source), declared=False)


def _awkward(label: str, faults: Mapping[str, str], exclusion: str) -> BadInputError:
    """Return the error that names every column that cannot be drafted, and why."""
    listed = "; ".join(f"column {name!r} has {fault}" for name, fault in faults.items())
    which = "it" if len(faults) == 1 else "them"
    return BadInputError(
        f"{label}: {listed}; leave {which} out with --columns {shlex.quote(exclusion)}, or declare "
        "categories in a schema (with outside set to other for the rare ones)"
    )


def _name(source: TableSource | ItemSource) -> str:
    """Return the name of the source without its folder, which a release must not show."""
    return Path(source.label.rpartition(":")[2]).name


@dataclass
class _Values:
    """What has been seen of one column: never more than a few of its distinct values."""

    name: str
    refused: str | None = None
    texts: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    many: bool = False
    missing: bool = False
    rows: int = 0
    repeats: bool = False
    whole: bool = True
    boolean: bool = True
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block; of a column that is refused already, none."""
        if self.refused is not None:
            return
        if not can_become_bits(values):
            self.refused = f"type {values.dtype}, which cannot become bits"
            return
        self.boolean &= values.dtype == pl.Boolean
        distinct = values.unique()
        self.rows += len(values) - values.null_count()
        self.repeats |= distinct.drop_nulls().len() < len(values) - values.null_count()
        absent = missing_mask(distinct, MISSING_VALUES)
        self.missing |= bool(absent.any())
        distinct = distinct.filter(pl.Series(~absent))
        numbers = to_numbers(distinct)
        finite = np.isfinite(numbers)
        texts = _texts(distinct)
        self.words.update(texts.filter(pl.Series(~finite)).head(MAX_CATEGORIES + 1))
        if len(self.words) > MAX_CATEGORIES:
            what = "values that are not numbers"
            if values.dtype in (pl.Date, pl.Datetime) or all(map(_DATE.match, self.words)):
                what = "dates (turn dates into a year or a number, dates are not supported)"
            self.refused = f"more than {MAX_CATEGORIES} distinct {what}"
            return
        if not self.many:
            self.texts.update(texts.head(MAX_CATEGORIES + 1))
            self.many = len(self.texts) > MAX_CATEGORIES
        if finite.any():
            found = numbers[finite]
            self.low = min(self.low, float(found.min()))
            self.high = max(self.high, float(found.max()))
            self.whole = self.whole and bool(np.all(found == np.floor(found)))

    def fault(self) -> str | None:
        """Return why no column can be drafted from the values, or None if one can."""
        if self.refused is None and self.many and self.low == self.high:
            return f"more than {MAX_CATEGORIES} distinct values, and only one number among them"
        return self.refused

    def identifies(self) -> bool:
        """Return whether the values look like names of rows: whole numbers or texts, none twice."""
        return not self.repeats and self.rows >= FEWEST_NAMES and (self.whole or bool(self.words))

    def column(self) -> Column:
        """Return the column that the values suggest."""
        if self.many:
            return Numeric(
                self.name,
                edges=tidy_edges(self.low, self.high, BUCKETS, whole=self.whole),
                integer=self.whole,
                missing="category" if self.missing or self.words else "error",
                unparsable="missing" if self.words else "error",
            )
        if not self.missing and self.boolean:
            return Binary(self.name, zero="false", one="true")
        if not self.missing and sorted(map(str.lower, self.texts)) == ["false", "true"]:
            zero, one = sorted(self.texts, key=str.lower)
            return Binary(self.name, zero=zero, one=one)
        if not self.missing and self.texts and self.texts <= {"0", "1"}:
            return Binary(self.name)
        constant = len(self.texts) + self.missing < 2
        return Categorical(
            self.name,
            values=tuple((text,) for text in sorted(self.texts, key=_order)),
            missing="category" if self.missing else "error",
            # A constant column needs a second bit to be a group.
            outside="other" if constant else "error",
        )


def _texts(values: pl.Series) -> pl.Series:
    """Return values as texts, whole numbers without a point."""
    if values.dtype.is_float():
        whole = values.round().eq(values) & (values.abs() < 2.0**53)
        return values.cast(pl.String).zip_with(
            ~whole, values.cast(pl.Int64, strict=False).cast(pl.String)
        )
    return values.cast(pl.String)


def _order(text: str) -> tuple[bool, float, str]:
    """Return the key that sorts numbers by value and before words."""
    try:
        return False, float(text), text
    except ValueError:
        return True, 0.0, text

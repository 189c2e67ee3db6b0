"""Data dictionaries of other tools as schemas: domain files, Frictionless Table Schema, CSVW.

A dictionary says which columns there are and what they may hold. Whether all of it is public only
a person can say, so the schema is not declared.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dualquery.data.buckets import tidy_edges
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

BUCKETS = 16
_MOST_CATEGORIES = 100_000

_WHOLE = ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger")
_NUMBERS = ("number", "decimal", "double", "float")
_OWN_KEYS = {"columns", "declared", "format", "items", "kind", "version"}
"""Of schema files of this program: a file with one of them is no domain file."""

_MOMENTS = ("date", "datetime", "dateTime", "dateTimeStamp")


@dataclass(frozen=True)
class Field:
    """What a dictionary says of a column, whatever the dictionary.

    Parameters
    ----------
    name, kind
        The column's name, and its type in the dictionary's words.
    values
        All values that it may have, as texts; None where the dictionary does not list them.
    low, high
        Its range, as the dictionary writes them.
    required
        Whether no value may be missing.
    """

    name: str
    kind: str
    values: tuple[str, ...] | None
    low: Any
    high: Any
    required: bool

    def column(self) -> Column:
        """Return the column that a schema can keep.

        Raises
        ------
        BadInputError
            If the dictionary says too little: neither values nor a range.
        """
        missing = "error" if self.required else "category"
        if self.values is not None:
            categories = tuple((value,) for value in self.values)
            return Categorical(self.name, categories, missing=missing)  # type: ignore[arg-type]
        if self.kind == "boolean":
            if self.required:
                return Binary(self.name, zero="false", one="true")
            return Categorical(self.name, (("false",), ("true",)), missing="category")
        if self.low is not None and self.high is not None:
            if self.kind in _WHOLE + _NUMBERS:
                return self._numeric(missing)
            if self.kind in _MOMENTS:
                return self._dates(missing)
        raise BadInputError(
            f"column {self.name!r} of type {self.kind}: the dictionary gives neither its values "
            "nor its range; add them, or leave the column out"
        )

    def _numeric(self, missing: Any) -> Numeric:
        try:
            low, high = float(self.low), float(self.high)
        except (TypeError, ValueError):
            raise BadInputError(
                f"column {self.name!r}: its range is {self.low!r} to {self.high!r}; two numbers "
                "are expected"
            ) from None
        whole = self.kind in _WHOLE
        if not low < high < float("inf"):
            raise BadInputError(f"column {self.name!r}: its range is {self.low} to {self.high}")
        return Numeric(
            self.name, tidy_edges(low, high, BUCKETS, whole=whole), integer=whole, missing=missing
        )

    def _dates(self, missing: Any) -> Dates:
        try:
            ends = [datetime.date.fromisoformat(str(end)[:10]) for end in (self.low, self.high)]
        except ValueError:
            raise BadInputError(
                f"column {self.name!r}: its range is {self.low!r} to {self.high!r}; two dates such "
                "as 2014-01-31 are expected"
            ) from None
        by = "year" if (ends[1] - ends[0]).days > 4 * 366 else "month"
        first, last = (end.isoformat() for end in ends)
        return Dates(self.name, by, first, last, missing=missing)  # type: ignore[arg-type]


def schema_of_dictionary(document: Mapping[str, Any]) -> TableSchema | None:
    """Return the schema of a data dictionary; None if the document is none that is known.

    Raises
    ------
    BadInputError
        If it says too little of a column, or something that cannot be.
    """
    fields, missing_values = _fields(document)
    if fields is None:
        return None
    if not fields:
        raise BadInputError("the data dictionary names no column")
    return TableSchema(
        tuple(field.column() for field in fields), declared=False, missing_values=missing_values
    )


def _fields(document: Mapping[str, Any]) -> tuple[list[Field] | None, tuple[str, ...]]:
    """Return the fields of a dictionary of a kind that is known, and its missing values."""
    nested = document.get("tableSchema", document.get("schema"))
    inner = nested if isinstance(nested, Mapping) else document
    if (fields := _mappings(inner.get("fields"))) is not None:
        listed = inner.get("missingValues", [""])
        texts = tuple(map(str, listed)) if isinstance(listed, list) else ("",)
        return list(_frictionless(fields)), texts
    columns = _mappings(inner.get("columns"))
    if columns and any("datatype" in each or "titles" in each for each in columns):
        return list(_csvw(columns)), ("",)
    counts = (isinstance(size, int) and not isinstance(size, bool) for size in document.values())
    if document and not _OWN_KEYS & document.keys() and all(counts):
        return list(_domain(document)), ("",)
    return None, ("",)


def _mappings(found: object) -> list[Mapping[str, Any]] | None:
    """Return a list of objects, or None if it is none."""
    if isinstance(found, list) and all(isinstance(each, Mapping) for each in found):
        return found
    return None


def _frictionless(fields: Sequence[Mapping[str, Any]]) -> Iterator[Field]:
    """Read Frictionless Table Schema: ``name``, ``type``, ``constraints``."""
    for field in fields:
        limits = field.get("constraints")
        limits = limits if isinstance(limits, Mapping) else {}
        yield Field(
            _name(field),
            str(field.get("type", "string")),
            _texts(limits.get("enum", field.get("categories"))),
            limits.get("minimum"),
            limits.get("maximum"),
            limits.get("required") is True,
        )


def _csvw(columns: Sequence[Mapping[str, Any]]) -> Iterator[Field]:
    """Read CSV on the Web: ``name`` or ``titles``, ``datatype``, ``required``."""
    for column in columns:
        kind = column.get("datatype", "string")
        limits = kind if isinstance(kind, Mapping) else {"base": kind}
        # In CSVW the values of a text are given as a pattern, such as "a|b|c".
        pattern = limits.get("format")
        listed = None
        if isinstance(pattern, str) and "|" in pattern and limits.get("base") == "string":
            listed = pattern.split("|")
        yield Field(
            _name(column),
            str(limits.get("base", "string")),
            _texts(listed),
            limits.get("minimum", limits.get("minInclusive")),
            limits.get("maximum", limits.get("maxInclusive")),
            column.get("required") is True,
        )


def _domain(sizes: Mapping[str, int]) -> Iterator[Field]:
    """Read a domain file, as of private-pgm: every column's number of codes, from 0."""
    for name, size in sizes.items():
        if not 2 <= size <= _MOST_CATEGORIES:
            raise BadInputError(
                f"column {name!r} has {size:,} codes; 2 to {_MOST_CATEGORIES:,} can be"
            )
        yield Field(name, "integer", tuple(map(str, range(size))), None, None, True)


def _name(field: Mapping[str, Any]) -> str:
    titles = field.get("titles")
    first = titles[0] if isinstance(titles, list) and titles else titles
    name = field.get("name", first)
    if not isinstance(name, str) or not name:
        raise BadInputError(f"a column of the data dictionary has no name: {dict(field)!r}")
    return name


def _texts(values: object) -> tuple[str, ...] | None:
    """Return listed values as texts, or None; a value may be an object with a ``value``."""
    if not isinstance(values, list):
        return None
    plain = [each.get("value") if isinstance(each, Mapping) else each for each in values]
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in plain)

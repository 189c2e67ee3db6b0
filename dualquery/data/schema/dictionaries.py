"""Data dictionaries of other tools as schemas.

Domain files of private-pgm, Frictionless Table Schema, CSV on the Web. A dictionary says which
columns there are and what they may hold. Whether all of it is public only a person can say, so the
schema is not declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dualquery.data.schema.dictionary_field import Field
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

_MOST_CATEGORIES = 100_000

_OWN_KEYS = {"columns", "declared", "format", "items", "kind", "version"}
"""Of schema files of this program: a file with one of them is no domain file."""


def schema_of_dictionary(document: Mapping[str, Any]) -> TableSchema | None:
    """Return the schema of a data dictionary; None if the document is none that is known.

    Raises
    ------
    BadInputError
        If it says too little of a column, or something that cannot be.
    """
    fields = _fields(document)
    if fields is None:
        return None
    if not fields:
        raise BadInputError("the data dictionary names no column")
    first, *others = (field.missing for field in fields)
    everywhere = tuple(text for text in first if all(text in other for other in others))
    return TableSchema(
        tuple(field.column(everywhere) for field in fields),
        declared=False,
        missing_values=everywhere,
    )


def _fields(document: Mapping[str, Any]) -> list[Field] | None:
    """Return the fields of a dictionary of a kind that is known."""
    nested = document.get("tableSchema", document.get("schema"))
    inner = nested if isinstance(nested, Mapping) else document
    if (fields := _mappings(inner.get("fields"))) is not None:
        return list(_frictionless(fields, inner.get("missingValues")))
    columns = _mappings(inner.get("columns"))
    if columns and any("datatype" in each or "titles" in each for each in columns):
        return list(_csvw(columns, inner.get("null", document.get("null"))))
    counts = (isinstance(size, int) and not isinstance(size, bool) for size in document.values())
    if document and not _OWN_KEYS & document.keys() and all(counts):
        return list(_domain(document))
    return None


def _mappings(found: object) -> list[Mapping[str, Any]] | None:
    """Return a list of objects, or None if it is none."""
    if isinstance(found, list) and all(isinstance(each, Mapping) for each in found):
        return found
    return None


def _frictionless(fields: Sequence[Mapping[str, Any]], missing: object) -> Iterator[Field]:
    """Read Frictionless Table Schema: ``name``, ``type``, ``constraints``, ``missingValues``."""
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
            missing=_missing(field.get("missingValues", missing)),
        )


def _csvw(columns: Sequence[Mapping[str, Any]], null: object) -> Iterator[Field]:
    """Read CSV on the Web: ``name`` or ``titles``, ``datatype``, ``required``, ``null``."""
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
            missing=_missing(column.get("null", null)),
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


def _missing(listed: object) -> tuple[str, ...]:
    """Return the texts that stand for missing values: one or a list, the empty text if unsaid."""
    if listed is None:
        return ("",)
    found = _texts([listed] if isinstance(listed, str) else listed)
    if found is None:
        raise BadInputError(f"missing values are {listed!r}; a list of texts is expected")
    return tuple(dict.fromkeys(found))


def _texts(values: object) -> tuple[str, ...] | None:
    """Return listed values as texts, or None; a value may be an object with a ``value``."""
    if not isinstance(values, list):
        return None
    plain = [each.get("value") if isinstance(each, Mapping) else each for each in values]
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in plain)

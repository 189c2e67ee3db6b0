"""A column as a schema file describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dualquery.data.schema.checks import NO_OPEN_END
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.missing import missing_texts
from dualquery.runtime.errors import BadInputError, suggest


def column_from_dict(fields: Mapping[str, object]) -> Column:
    """Return the column that a schema file describes.

    Raises
    ------
    BadInputError
        If a key is unknown or absent, or a value has the wrong type.
    """
    name = fields.get("name")
    if not isinstance(name, str):
        raise BadInputError(f"schema: a column needs a name that is a text, found {name!r}")
    kind = fields.get("kind")
    try:
        keys, build = _KINDS[str(kind)]
    except KeyError:
        raise BadInputError(
            f"schema, column {name!r}: kind is {kind!r}; it must be one of {', '.join(_KINDS)}"
        ) from None
    for key in fields:
        if key not in ("name", "kind", "missing_values", *keys):
            raise BadInputError(
                f"schema, column {name!r}: unknown key {key!r}; "
                f"{suggest(key, [*keys, 'missing_values'])}"
            )
    column = build(name, fields)
    if "missing_values" not in fields:
        return column
    own = missing_texts(f"schema, column {name!r}", fields["missing_values"])
    if not own:
        raise BadInputError(
            f"schema, column {name!r}: missing_values is empty; what it lists counts besides the "
            "table's missing_values, so leave it out"
        )
    return replace(column, missing_values=own)


def _binary(name: str, fields: Mapping[str, object]) -> Binary:
    given = _given(fields, "zero", "one").items()
    texts: dict[str, Any] = {key: _text(name, key, value) for key, value in given}
    return Binary(name, **texts)


def _categorical(name: str, fields: Mapping[str, object]) -> Categorical:
    values = fields.get("values")
    if not isinstance(values, list):
        raise BadInputError(f"schema, column {name!r}: values must be a list, found {values!r}")
    merged = (value if isinstance(value, list) else [value] for value in values)
    texts = tuple(tuple(_text(name, "values", text) for text in bit) for bit in merged)
    return Categorical(name, texts, **_given(fields, "missing", "outside"))


def _numeric(name: str, fields: Mapping[str, object]) -> Numeric:
    edges = fields.get("edges")
    if not isinstance(edges, list) or not all(
        isinstance(edge, int | float) and not isinstance(edge, bool) for edge in edges
    ):
        raise BadInputError(
            f"schema, column {name!r}: edges must be a list of numbers, found "
            f"{json.dumps(edges, default=str)}"
            + (f"; {NO_OPEN_END}" if isinstance(edges, list) and None in edges else "")
        )
    integer = fields.get("integer", False)
    if not isinstance(integer, bool):
        raise BadInputError(
            f"schema, column {name!r}: integer must be true or false, found {integer!r}"
        )
    choices = _given(fields, "missing", "outside", "unparsable", "within", "decimals")
    return Numeric(name, tuple(map(float, edges)), integer, **choices)


def _dates(name: str, fields: Mapping[str, object]) -> Dates:
    keys = ("first", "last", "format")
    texts = {key: _text(name, key, value) for key, value in _given(fields, *keys).items()}
    by = _text(name, "by", fields.get("by", ""))
    choices = _given(fields, "missing", "outside", "unparsable")
    return Dates(name, by, **texts, **choices)  # type: ignore[arg-type]  # checked by the class


def _given(fields: Mapping[str, object], *keys: str) -> dict[str, Any]:
    """Return the values of some keys that are there; the class of the column checks them."""
    return {key: fields[key] for key in keys if key in fields}


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[str, Mapping[str, object]], Column]]] = {
    "binary": (("zero", "one"), _binary),
    "categorical": (("values", "missing", "outside"), _categorical),
    "date": (("by", "first", "last", "format", "missing", "outside", "unparsable"), _dates),
    "numeric": (
        ("edges", "integer", "missing", "outside", "unparsable", "within", "decimals"),
        _numeric,
    ),
}


def _text(column: str, key: str, found: object) -> str:
    """Return a value of a schema file as text: people write 0 for "0" there."""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, str | int | float):
        return str(found)
    raise BadInputError(f"schema, column {column!r}: {key} holds {found!r}, which is not a text")

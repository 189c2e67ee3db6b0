"""Schemas in files and releases: JSON or TOML is read, JSON is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from dualquery.data.builtin import SCHEMAS, schema_path
from dualquery.data.opening import is_file
from dualquery.data.schema.checks import FORMAT_NAME, NO_OPEN_END, SCHEMA_VERSION
from dualquery.data.schema.column_choice import select_items
from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.missing import missing_texts
from dualquery.data.schema.protocol import Schema
from dualquery.data.schema.rules import rules_from
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.documents import read_document
from dualquery.runtime.errors import BadInputError, suggest
from dualquery.runtime.files import whole_file

T = TypeVar("T")


def load_schema(name_or_path: str | Path) -> TableSchema | ItemSchema:
    """Return a built-in schema, or the one in a file.

    Parameters
    ----------
    name_or_path
        ``adult``, ``adult-paper``, ``kdd99``, or the path of a JSON file or of a TOML file (ending
        ``.toml``). A schema without a name takes that of its file.

    Raises
    ------
    BadInputError
        If there is no such schema, the file cannot be read, or what it says is no schema.
    """
    if name_or_path in SCHEMAS:
        path: Path | Traversable = schema_path(str(name_or_path))
    else:
        path = Path(name_or_path)
        if not is_file(path):
            known = f"the built-in schemas are {', '.join(SCHEMAS)}"
            close = suggest(str(name_or_path), SCHEMAS, known)
            raise BadInputError(f"{name_or_path}: there is no such schema file; {close}")
    try:
        fields = _table(read_document(path))
        schema = schema_from_dict(fields)
    except BadInputError as fault:
        raise BadInputError(f"{name_or_path}: {fault}") from None
    return schema if "name" in fields else replace(schema, name=path.name)


def _table(document: object) -> Mapping[str, object]:
    if not isinstance(document, dict):
        raise BadInputError(f"a schema is a table of keys, found {type(document).__name__}")
    return document


def given_schema(
    schema: Schema | Mapping[str, object] | str | Path | None,
) -> Schema | None:
    """Return the schema that a user gives: itself, as a dict, by name or path; None for none."""
    if isinstance(schema, str | Path):
        return load_schema(schema)
    return schema_from_dict(schema) if isinstance(schema, Mapping) else schema


def write_schema(schema: TableSchema | ItemSchema, path: str | Path) -> None:
    """Write a schema as a JSON file for the user to check (see `format_schema`).

    The file is whole or as it was before.

    Raises
    ------
    BadInputError
        If the file cannot be written.
    """
    text = format_schema(schema)
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def format_schema(schema: TableSchema | ItemSchema) -> str:
    """Return the text of a schema file: JSON, one line a column or rule.

    A draft leaves out its name, which is that of the data, for its file's.
    """
    fields = schema.to_dict()
    if not schema.declared:
        del fields["name"]
    lines = []
    for key, value in fields.items():
        if key in ("columns", "rules") and isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def schema_from_dict(fields: Mapping[str, object]) -> TableSchema | ItemSchema:
    """Return the schema that `Schema.to_dict` or a schema file describes.

    Only ``columns`` (or ``items``) must be there; a schema declares itself only by
    ``"declared": true``.

    Raises
    ------
    BadInputError
        If a key is unknown or absent, a value has the wrong type, or the version is newer.
    """
    if fields.get("format", FORMAT_NAME) != FORMAT_NAME:
        raise BadInputError(f"schema: format is {fields['format']!r}, expected {FORMAT_NAME!r}")
    version = fields.get("version", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise BadInputError(
            f"schema: version {version!r} is not known to this program, which reads up to "
            f"{SCHEMA_VERSION}; a newer dualquery may"
        )
    kind = fields.get("kind", "items" if "items" in fields else "table")
    if kind not in ("table", "items"):
        raise BadInputError(f"schema: kind is {kind!r}; it must be table or items")
    keys = ("format", "version", "kind", "name", "declared", "max_ones_per_row", *_KEYS[str(kind)])
    for key in fields:
        if key not in keys:
            raise BadInputError(f"schema: unknown key {key!r}; {suggest(key, keys)}")
    common: dict[str, Any] = {
        "name": _typed(fields, "name", str, "schema" if kind == "table" else "items"),
        "declared": _typed(fields, "declared", bool, False),
        "max_ones_per_row": fields.get("max_ones_per_row"),  # checked by the class
    }
    if kind == "items":
        names = tuple(map(str, _typed(fields, "names", list, []))) if "names" in fields else None
        outside: Any = fields.get("outside", "error")  # checked by the class
        items = select_items(_typed(fields, "items", str, None))
        return ItemSchema(items, outside=outside, names=names, **common)
    absent = missing_texts("schema", fields.get("missing_values", [""]))
    columns = _typed(fields, "columns", list, None)
    if not all(isinstance(column, dict) for column in columns):
        raise BadInputError("schema: every column must be a table of keys and values")
    partial = _typed(fields, "partial", bool, False)
    return TableSchema(
        tuple(column_from_dict(_opened(each) if partial else each) for each in columns),
        drop_incomplete=_typed(fields, "drop_incomplete", bool, False),
        missing_values=absent,
        rules=rules_from(fields.get("rules", [])),
        learned=_typed(fields, "learned", dict, {}) or None,
        partial=partial,
        **common,
    )


_KEYS = {
    "table": ("drop_incomplete", "missing_values", "columns", "rules", "learned", "partial"),
    "items": ("outside", "items", "names"),
}
_EXPECTED: Mapping[type, str] = {
    bool: "true or false, without quotation marks,",
    dict: "a table",
    list: "a list",
    str: "a text",
}


def _typed(fields: Mapping[str, object], key: str, kind: type[T], default: T | None) -> T:
    """Return a value of a schema file that must have a type; without a default it must be there."""
    found = fields.get(key, default)
    if not isinstance(found, kind):
        what = "is missing" if key not in fields else f"is {found!r}"
        raise BadInputError(f"schema: {key} {what}; {_EXPECTED[kind]} is expected")
    return found


Read = Callable[[str, str, Any], Any]
"""Takes what has a key, for messages, the key and what stands there; returns the field's value."""


def _opened(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return a column of a partial schema; one without values, or with two edges, takes every cell.

    The rest of such a column is learned: its values, or edges within its range.
    """
    edges = fields.get("edges")
    if fields.get("kind") == "categorical" and "values" not in fields:
        return {"values": [], "missing": "category", "outside": "other", **fields}
    if fields.get("kind") == "numeric" and isinstance(edges, list) and len(edges) == 2:
        return {"missing": "category", "outside": "clip", "unparsable": "missing", **fields}
    return fields


def column_from_dict(fields: Mapping[str, object]) -> Column:
    """Return the column that a schema file describes; refuse unknown keys and wrong types."""
    name, kind = fields.get("name"), fields.get("kind")
    if not isinstance(name, str):
        raise BadInputError(f"schema: a column needs a name that is a text, found {name!r}")
    where = f"schema, column {name!r}"
    if str(kind) not in _KINDS:
        raise BadInputError(f"{where}: kind is {kind!r}; it must be one of {', '.join(_KINDS)}")
    build, required, optional = _KINDS[str(kind)]
    keys = {**required, **optional, "missing_values": _own_missing}
    for key in fields:
        if key not in ("name", "kind", *keys):
            raise BadInputError(f"{where}: unknown key {key!r}; {suggest(key, list(keys))}")
    found = {
        key: read(where, key, fields.get(key))
        for key, read in keys.items()
        if key in fields or key in required
    }
    return build(name, **found)


def _word(where: str, key: str, found: Any) -> Any:  # noqa: ARG001
    """Leave a value as it is: the class of the column checks it."""
    return found


def _text(where: str, key: str, found: object) -> str:
    """Return a value of a schema file as text: people write 0 for "0" there."""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, str | int | float):
        return str(found)
    raise BadInputError(f"{where}: {key} holds {found!r}, which is not a text")


def _values(where: str, key: str, found: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(found, list):
        raise BadInputError(f"{where}: {key} must be a list, found {found!r}")
    merged = (value if isinstance(value, list) else [value] for value in found)
    return tuple(tuple(_text(where, key, text) for text in bit) for bit in merged)


def _edges(where: str, key: str, found: object) -> tuple[float, ...]:
    if not isinstance(found, list) or not all(
        isinstance(edge, int | float) and not isinstance(edge, bool) for edge in found
    ):
        raise BadInputError(
            f"{where}: {key} must be a list of numbers, found {json.dumps(found, default=str)}"
            + (f"; {NO_OPEN_END}" if isinstance(found, list) and None in found else "")
        )
    return tuple(map(float, found))


def _flag(where: str, key: str, found: object) -> bool:
    if not isinstance(found, bool):
        raise BadInputError(f"{where}: {key} must be true or false, found {found!r}")
    return found


def _own_missing(where: str, key: str, found: object) -> tuple[str, ...]:
    own = missing_texts(where, found)
    if not own:
        raise BadInputError(
            f"{where}: {key} is empty; what it lists counts besides the table's missing_values, so "
            "leave it out"
        )
    return own


_CHOICES: dict[str, Read] = {"missing": _word, "outside": _word}
_KINDS: dict[str, tuple[Callable[..., Column], dict[str, Read], dict[str, Read]]] = {
    "binary": (Binary, {}, {"zero": _text, "one": _text}),
    "categorical": (Categorical, {"values": _values}, _CHOICES),
    "date": (
        Dates,
        {"by": _word},
        {"first": _text, "last": _text, "format": _text, **_CHOICES, "unparsable": _word},
    ),
    "numeric": (
        Numeric,
        {"edges": _edges},
        {"integer": _flag, **_CHOICES, "unparsable": _word, "within": _word, "decimals": _word},
    ),
}
"""For each kind its class, and how the keys are read that must be there, and that may be."""

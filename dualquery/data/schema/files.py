"""Schemas in files and releases: JSON or TOML is read, JSON is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dualquery.data.builtin import SCHEMAS, schema_path
from dualquery.data.opening import FilePath, is_file
from dualquery.data.schema.column_choice import select_items
from dualquery.data.schema.dictionaries import schema_of_dictionary
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.missing import missing_texts
from dualquery.data.schema.protocol import FORMAT_NAME, SCHEMA_VERSION, Schema
from dualquery.data.schema.reading import column_from_dict
from dualquery.data.schema.rules import rules_from, with_mappings
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.documents import read_document
from dualquery.runtime.errors import BadInputError, suggest
from dualquery.runtime.whole_files import whole_file

T = TypeVar("T")


def load_schema(name_or_path: str | Path) -> TableSchema | ItemSchema:
    """Return a built-in schema, or the one in a file.

    Parameters
    ----------
    name_or_path
        ``adult``, ``adult-paper``, ``kdd99``, or the path of a JSON file or of a TOML file (ending
        ``.toml``); or of a data dictionary (see `dualquery.data.schema.dictionaries`). A file
        declares its schema only by ``"declared": true``. A schema without a name takes that of its
        file.

    Raises
    ------
    BadInputError
        If there is no such schema, the file cannot be read, or what it says is no schema.
    """
    if name_or_path in SCHEMAS:
        path: FilePath = schema_path(str(name_or_path))
    else:
        path = Path(name_or_path)
        if not is_file(path):
            raise BadInputError(
                f"{name_or_path}: there is no such schema file; "
                + suggest(
                    str(name_or_path), SCHEMAS, f"the built-in schemas are {', '.join(SCHEMAS)}"
                )
            )
    try:
        fields = _parse(path)
        if isinstance(path, Path):
            fields = with_mappings(fields, path.parent)
        foreign = schema_of_dictionary(fields)
        schema = foreign or schema_from_dict(fields)
    except BadInputError as fault:
        raise BadInputError(f"{name_or_path}: {fault}") from None
    named = "name" in fields and foreign is None
    return schema if named else replace(schema, name=path.name)


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


def _parse(path: FilePath) -> Mapping[str, object]:
    fields = read_document(path)
    if not isinstance(fields, dict):
        raise BadInputError(f"a schema is a table of keys, found {type(fields).__name__}")
    return fields


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
    common = ("format", "version", "kind", "name", "declared", "max_ones_per_row")
    own = (
        ("drop_incomplete", "missing_values", "columns", "rules", "learned", "partial")
        if kind == "table"
        else ("outside", "items", "names")
    )
    for key in fields:
        if key not in common + own:
            raise BadInputError(f"schema: unknown key {key!r}; {suggest(key, common + own)}")
    name = _typed(fields, "name", str, "schema" if kind == "table" else "items")
    declared = _typed(fields, "declared", bool, False)
    most = fields.get("max_ones_per_row")
    if kind == "items":
        names = _typed(fields, "names", list, []) if "names" in fields else None
        return ItemSchema(
            items=select_items(_typed(fields, "items", str, None)),
            name=name,
            declared=declared,
            outside=fields.get("outside", "error"),  # type: ignore[arg-type]  # checked by the class
            max_ones_per_row=most,  # type: ignore[arg-type]  # checked by the class
            names=None if names is None else tuple(map(str, names)),
        )
    absent = missing_texts("schema", fields.get("missing_values", [""]))
    columns = _typed(fields, "columns", list, None)
    if not all(isinstance(column, dict) for column in columns):
        raise BadInputError("schema: every column must be a table of keys and values")
    return TableSchema(
        columns=tuple(map(column_from_dict, columns)),
        name=name,
        declared=declared,
        drop_incomplete=_typed(fields, "drop_incomplete", bool, False),
        missing_values=absent,
        max_ones_per_row=most,  # type: ignore[arg-type]  # checked by the class
        rules=rules_from(fields.get("rules", [])),
        learned=_typed(fields, "learned", dict, {}) or None,
        partial=_typed(fields, "partial", bool, False),
    )


_EXPECTED: Mapping[type, str] = {
    bool: "true or false, without quotation marks,",
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

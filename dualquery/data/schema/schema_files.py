"""Schemas in files and releases: JSON or TOML is read, JSON is written."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeAlias

from dualquery.data.builtin import SCHEMAS, dataset_path
from dualquery.data.opening import is_file
from dualquery.data.schema.any_schema import Schema
from dualquery.data.schema.column_choice import select_items
from dualquery.data.schema.columns import (
    FORMAT_NAME,
    SCHEMA_VERSION,
    Binary,
    Categorical,
    Column,
    check_choice,
)
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numeric import NO_OPEN_END, Numeric
from dualquery.data.schema.rules import rules_from
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.documents import read_document
from dualquery.runtime.errors import BadInputError, suggest
from dualquery.runtime.files import whole_file


def load_schema(name_or_path: str | Path) -> Schema:
    """Return a built-in schema (``adult``, ``adult-paper``, ``kdd99``), or the one in a file.

    The file is JSON, or TOML (ending ``.toml``); a schema without a name takes that of its file.
    `BadInputError` if there is no such schema, or the file says none.
    """
    if name_or_path in SCHEMAS:
        path: Path | Traversable = dataset_path(str(name_or_path), "json")
    elif not is_file(path := Path(name_or_path)):
        close = suggest(str(name_or_path), SCHEMAS, "built in are " + ", ".join(SCHEMAS))
        raise BadInputError(f"{name_or_path}: there is no such schema file; {close}")
    try:
        if not isinstance(document := read_document(path), dict):
            raise BadInputError(f"a schema is a table of keys, found {type(document).__name__}")
        schema = schema_from_dict(document)
    except BadInputError as fault:
        raise BadInputError(f"{name_or_path}: {fault}") from None
    return schema if "name" in document else replace(schema, name=path.name)


def given_schema(schema: Schema | Mapping[str, object] | str | Path | None) -> Schema | None:
    """Return the schema that a user gives as such, as a dict, by name or path; None for none."""
    if isinstance(schema, str | Path):
        return load_schema(schema)
    return schema_from_dict(schema) if isinstance(schema, Mapping) else schema


def write_schema(schema: Schema, path: str | Path) -> None:
    """Write a schema as a JSON file for the user to check (see `format_schema`).

    The file is whole or as it was before. `BadInputError` if it cannot be written.
    """
    with whole_file(path) as part:
        part.write_text(format_schema(schema), encoding="utf-8")


def format_schema(schema: Schema) -> str:
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


def schema_from_dict(fields: Mapping[str, object]) -> Schema:
    """Return the schema that `Schema.to_dict` or a schema file describes.

    Only ``columns`` (or ``items``) must be there; a schema declares itself only by
    ``"declared": true``. `BadInputError` if a key, a type of value or the version is wrong.
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
    check_choice("schema", "kind", kind, ("table", "items"))
    needed, others = ("items", _OF_ITEMS) if kind == "items" else ("columns", _OF_TABLES)
    partial = kind == "table" and fields.get("partial") is True
    given = {key: fields[key] for key in fields if key not in ("format", "version", "kind")}
    if partial and isinstance(columns := fields.get("columns"), list):
        given["columns"] = list(map(_opened, columns))
    found: dict[str, Any] = {"name": "schema" if kind == "table" else "items", "declared": False}
    found |= _read("schema", {**_OF_ALL, **others}, given, (needed,))
    return ItemSchema(**found) if kind == "items" else TableSchema(**found)


Read: TypeAlias = Callable[[str, str, Any], Any]
"""Takes what has a key, for messages, the key and what stands there; returns the field's value."""


def _read(
    where: str, keys: Mapping[str, Read], fields: Mapping[str, object], needed: Iterable[str]
) -> dict[str, Any]:
    """Return what stands at the keys of a schema file; refuse others, and those not there."""
    for key in fields:
        if key not in keys:
            raise BadInputError(f"{where}: unknown key {key!r}; {suggest(key, list(keys))}")
    missing = {key: None for key in needed if key not in fields}
    return {key: keys[key](where, key, found) for key, found in {**missing, **fields}.items()}


def _of(kind: type, expected: str) -> Read:
    """Return what reads a value of a type."""

    def read(where: str, key: str, found: object) -> object:
        if not isinstance(found, kind):
            what = "is missing" if found is None else f"is {found!r}"
            raise BadInputError(f"{where}: {key} {what}; {expected} is expected")
        return found

    return read


_flag = _of(bool, "true or false, without quotation marks,")
_list, _table, _words = _of(list, "a list"), _of(dict, "a table"), _of(str, "a text")
_as_it_is = _of(object, "")  # the class checks it


def _text(where: str, key: str, found: object) -> str:
    """Return a value of a schema file as text: people write 0 for "0" there."""
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, str | int | float):
        return str(found)
    raise BadInputError(f"{where}: {key} holds {found!r}, which is not a text")


def _texts(where: str, key: str, found: Any) -> tuple[str, ...]:
    return tuple(_text(where, key, text) for text in _list(where, key, found))


def _values(where: str, key: str, found: Any) -> tuple[tuple[str, ...], ...]:
    merged = (each if isinstance(each, list) else [each] for each in _list(where, key, found))
    return tuple(_texts(where, key, each) for each in merged)


def _edges(where: str, key: str, found: Any) -> tuple[float, ...]:
    if not isinstance(found, list) or not all(
        isinstance(edge, int | float) and not isinstance(edge, bool) for edge in found
    ):
        raise BadInputError(
            f"{where}: {key} must be a list of numbers, found {json.dumps(found, default=str)}"
            + (f"; {NO_OPEN_END}" if isinstance(found, list) and None in found else "")
        )
    return tuple(map(float, found))


def _own_missing(where: str, key: str, found: Any) -> tuple[str, ...]:
    if not (own := _texts(where, key, found)):
        raise BadInputError(f"{where}: {key} is empty; leave it out: the table's count anyhow")
    return own


def _cost(where: str, key: str, found: object) -> dict[str, Any] | None:
    record = _table(where, key, found)
    kinds = {"epsilon": int | float, "delta": int | float, "events": list}
    if record and not all(isinstance(record.get(name), kind) for name, kind in kinds.items()):
        raise BadInputError(f"{where}: {key} needs numbers epsilon and delta, and a list of events")
    return record or None


def _opened(fields: object) -> object:
    """Return a column of a partial schema, where what is to be learned takes every cell."""
    if not isinstance(fields, dict):
        return fields
    edges = fields.get("edges")
    if fields.get("kind") == "categorical" and "values" not in fields:
        return {"values": [], "missing": "category", "outside": "other", **fields}
    if fields.get("kind") == "numeric" and isinstance(edges, list) and len(edges) == 2:
        return {"missing": "category", "outside": "clip", "unparsable": "missing", **fields}
    return fields


def column_from_dict(fields: object) -> Column:
    """Return the column that a schema file describes; refuse unknown keys and wrong types."""
    if not isinstance(fields, dict):
        raise BadInputError("schema: every column must be a table of keys and values")
    name, kind = fields.get("name"), fields.get("kind")
    if not isinstance(name, str):
        raise BadInputError(f"schema: a column needs a name that is a text, found {name!r}")
    where = f"schema, column {name!r}"
    check_choice(where, "kind", kind, tuple(_KINDS))
    build = _KINDS[str(kind)]
    keys = dataclasses.fields(build)
    reads = {key.name: _OF_COLUMNS.get(key.name, _as_it_is) for key in keys}
    needed = [key.name for key in keys if key.default is dataclasses.MISSING]
    given = {key: value for key, value in fields.items() if key != "kind"}
    column: Column = build(**_read(where, reads, given, needed))
    return column


_KINDS: dict[str, Any] = {kind.KIND: kind for kind in (Binary, Categorical, Dates, Numeric)}
_OF_ALL: dict[str, Read] = {"name": _words, "declared": _flag, "max_ones_per_row": _as_it_is}
_OF_ITEMS: dict[str, Read] = {
    "outside": _as_it_is,
    "items": lambda *found: select_items(_words(*found)),
    "names": _texts,
    "learned": _cost,
}
_OF_TABLES: dict[str, Read] = {
    "drop_incomplete": _flag,
    "missing_values": _texts,
    "columns": lambda *found: tuple(map(column_from_dict, _list(*found))),
    "rules": lambda _, __, found: rules_from(found),
    "learned": _cost,
    "partial": _flag,
}
_OF_COLUMNS: dict[str, Read] = {
    **dict.fromkeys(("zero", "one", "first", "last", "format"), _text),
    "values": _values,
    "edges": _edges,
    "integer": _flag,
    "missing_values": _own_missing,
}
"""How the keys are read that a class does not check itself."""

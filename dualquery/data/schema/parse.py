"""A schema from the values of a schema file or of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from dualquery.data.schema.column_choice import (
    select_items,
)
from dualquery.data.schema.columns import column_from_dict, suggest
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.protocol import (
    FORMAT_NAME,
    SCHEMA_VERSION,
)
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    pass

T = TypeVar("T")


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
        ("drop_incomplete", "missing_values", "columns")
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
    columns = _typed(fields, "columns", list, None)
    if not all(isinstance(column, dict) for column in columns):
        raise BadInputError("schema: every column must be a table of keys and values")
    return TableSchema(
        columns=tuple(map(column_from_dict, columns)),
        name=name,
        declared=declared,
        drop_incomplete=_typed(fields, "drop_incomplete", bool, False),
        missing_values=tuple(map(str, _typed(fields, "missing_values", list, [""]))),
        max_ones_per_row=most,  # type: ignore[arg-type]  # checked by the class
    )


def _typed(fields: Mapping[str, object], key: str, kind: type[T], default: T | None) -> T:
    """Return a value of a schema file that must have a type; without a default it must be there."""
    found = fields.get(key, default)
    if not isinstance(found, kind):
        what = "is missing" if key not in fields else f"is {found!r}"
        raise BadInputError(f"schema: {key} {what}; a value of type {kind.__name__} is expected")
    return found

"""The user's data: schemas, readers, records as bits, and back to the user's columns.

`dualquery.data.load.load` takes a file or an object to a `Dataset`: private records and the public
schema that tells what their bits mean. What is imported from here loads on first use, so that
importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualquery.data.columns import Binary, Categorical, Numeric
    from dualquery.data.domain import Domain
    from dualquery.data.generate import biased
    from dualquery.data.infer import draft_item_schema, draft_table_schema
    from dualquery.data.load import Dataset
    from dualquery.data.records import Records, RecordsBuilder
    from dualquery.data.schema import ItemSchema, Schema, TableSchema, schema_from_dict
    from dualquery.data.schema_files import load_schema, write_schema
    from dualquery.data.sources import FORMATS, parse_source, source_of

__all__ = [
    "FORMATS",
    "Binary",
    "Categorical",
    "Dataset",
    "Domain",
    "ItemSchema",
    "Numeric",
    "Records",
    "RecordsBuilder",
    "Schema",
    "TableSchema",
    "biased",
    "draft_item_schema",
    "draft_table_schema",
    "load_schema",
    "parse_source",
    "schema_from_dict",
    "source_of",
    "write_schema",
]

_MODULES = {
    "columns": ("Binary", "Categorical", "Numeric"),
    "domain": ("Domain",),
    "generate": ("biased",),
    "infer": ("draft_item_schema", "draft_table_schema"),
    "load": ("Dataset",),
    "records": ("Records", "RecordsBuilder"),
    "schema": ("ItemSchema", "Schema", "TableSchema", "schema_from_dict"),
    "schema_files": ("load_schema", "write_schema"),
    "sources": ("FORMATS", "parse_source", "source_of"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

"""The user's data: schemas, readers, records as bits, and back to the user's columns.

`dualquery.rows.dataset.load` takes a file or an object to a `Dataset`: private records and the
public schema that tells what their bits mean. What is imported from here loads on first use, so
that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.data.draft import draft_item_schema, draft_table_schema
    from dualquery.data.readers.formats import FORMATS, parse_source, source_of
    from dualquery.data.schema.columns import Binary, Categorical, Numeric
    from dualquery.data.schema.files import load_schema, schema_from_dict, write_schema
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.protocol import Schema
    from dualquery.data.schema.table import TableSchema

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

_HOMES = {
    "FORMATS": "dualquery.data.readers.formats",
    "Binary": "dualquery.data.schema.columns",
    "Categorical": "dualquery.data.schema.columns",
    "Dataset": "dualquery.rows.dataset",
    "Domain": "dualquery.data.domain",
    "ItemSchema": "dualquery.data.schema.items",
    "Numeric": "dualquery.data.schema.columns",
    "Records": "dualquery.rows.packed",
    "RecordsBuilder": "dualquery.rows.packed",
    "Schema": "dualquery.data.schema.protocol",
    "TableSchema": "dualquery.data.schema.table",
    "biased": "dualquery.rows.generated.biased",
    "draft_item_schema": "dualquery.data.draft",
    "draft_table_schema": "dualquery.data.draft",
    "load_schema": "dualquery.data.schema.files",
    "parse_source": "dualquery.data.readers.formats",
    "schema_from_dict": "dualquery.data.schema.files",
    "source_of": "dualquery.data.readers.formats",
    "write_schema": "dualquery.data.schema.files",
}
"""Records and data sets live one floor up, in ``dualquery.rows``: their names here are for users.
"""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

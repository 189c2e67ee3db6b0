"""The user's data: schemas, readers, records as bits, and back to the user's columns.

`dualquery.rows.engines.load` takes a file or an object to a `Dataset`: private records and the
public schema that tells what their bits mean. What is imported from here loads on first use, so
that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualquery.data.domain import Domain
    from dualquery.data.drafts.drafting import careful_draft, draft_item_schema, draft_table_schema
    from dualquery.data.readers.formats import FORMATS, parse_source, source_of
    from dualquery.data.schema.any_schema import Schema
    from dualquery.data.schema.columns import Binary, Categorical
    from dualquery.data.schema.dates import Dates
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.numeric import Numeric
    from dualquery.data.schema.schema_files import load_schema, schema_from_dict, write_schema
    from dualquery.data.schema.table import TableSchema

__all__ = [
    "FORMATS", "Binary", "Categorical", "Dataset", "Dates", "Domain", "ItemSchema", "Numeric",
    "Records", "RecordsBuilder", "Schema", "TableSchema", "biased", "careful_draft",
    "draft_item_schema", "draft_table_schema", "load_schema", "parse_source", "schema_from_dict",
    "source_of", "write_schema",
]  # fmt: skip

_NAMES = {
    "data.readers.formats": ("FORMATS", "parse_source", "source_of"),
    "data.drafts.drafting": ("careful_draft", "draft_item_schema", "draft_table_schema"),
    "data.schema.dates": ("Dates",),
    "data.schema.columns": ("Binary", "Categorical"),
    "data.schema.numeric": ("Numeric",),
    "rows.engines": ("Dataset",),
    "data.domain": ("Domain",),
    "data.schema.items": ("ItemSchema",),
    "rows.packed": ("Records", "RecordsBuilder"),
    "data.schema.any_schema": ("Schema",),
    "data.schema.table": ("TableSchema",),
    "rows.generated.biased": ("biased",),
    "data.schema.schema_files": ("load_schema", "schema_from_dict", "write_schema"),
}
# Names of ``dualquery.rows``, one floor up, are here for users.


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"dualquery.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

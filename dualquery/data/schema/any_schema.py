"""Every schema is one of a table or one of numbered items. A schema is public."""

from typing import TypeAlias

from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema

Schema: TypeAlias = TableSchema | ItemSchema  # what every schema offers has the same name in both

"""Schemas that were written by hand, without sight of what the program drafts.

Its drafts are measured by them in `experiments.drafts`. They were written once, from what the
columns mean and how the values of these public tables are spread, and are not changed.
"""

from pathlib import Path

from dualquery.data import load_schema
from dualquery.data.schema.table import TableSchema


def by_hand(table: str) -> TableSchema:
    """Return the schema of a table, ``adult`` or ``kdd99``."""
    schema = load_schema(Path(__file__).with_name(f"{table}.json"))
    assert isinstance(schema, TableSchema)
    return schema

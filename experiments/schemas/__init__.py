"""Schemas that a person wrote by hand, who had not seen what the program drafts.

They stand beside its drafts in `experiments.drafts`, as a person's work to be measured by. They
were written once, from what the columns mean and how their values are spread, and are not changed.
"""

from __future__ import annotations

from pathlib import Path

from dualquery.data import load_schema
from dualquery.data.schema.table import TableSchema


def by_hand(table: str) -> TableSchema:
    """Return the schema of a table, ``adult`` or ``kdd99``."""
    schema = load_schema(Path(__file__).with_name(f"{table}.json"))
    assert isinstance(schema, TableSchema)
    return schema

"""What every kind of column asks of its own description, and how it is written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dualquery.runtime.errors import BadInputError

MISSING_LABEL = "(missing)"
OTHER_LABEL = "(other)"


NO_OPEN_END = (
    "every bucket needs two ends: write the last number that matters as the edge; with "
    '"outside": "clip" numbers beyond it count in the nearest bucket'
)
"""What to do about an edge that is no number, or infinite."""


def check_name(name: str) -> None:
    """Refuse the empty name."""
    if not name:
        raise BadInputError("schema: a column has an empty name")


def check_choice(column: str, key: str, found: object, allowed: tuple[str, ...]) -> None:
    """Refuse a word that a key does not take."""
    if found not in allowed:
        raise BadInputError(
            f"schema, column {column!r}: {key} is {found!r}; it must be {' or '.join(allowed)}"
        )


def check_group(column: str, bits: int, what: str) -> None:
    """Refuse fewer than two bits: a group of one bit is no group."""
    if bits < 2:
        raise BadInputError(
            f"schema, column {column!r}: {bits} {what}{'' if bits == 1 else 's'} declared; a group "
            "needs at least two bits, so declare another or leave the column out"
        )


def entries(column: Any, kind: str) -> dict[str, object]:
    """Return a column's entries in a schema file; of its own missing values only if it has some."""
    fields = asdict(column)
    own = fields.pop("missing_values")
    listed = {"missing_values": list(own)} if own else {}
    return {"name": column.name, "kind": kind, **fields, **listed}

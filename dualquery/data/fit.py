"""Whether a table fits its schema: every kind of cell that does not, for its holder alone.

A release ends at the first cell that the schema refuses, and takes what the schema lets pass. This
looks at all cells and says both. The counts are exact, hence private: they go into the operator's
log, as those of `dualquery.data.misfits`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from dualquery.data.blocks import present_columns
from dualquery.data.encode import (
    ABOVE,
    BELOW,
    MISSING,
    OUTSIDE,
    UNPARSABLE,
    local_codes,
    meanings,
    shown,
)
from dualquery.data.misfits import FOR_YOU, cause
from dualquery.data.odd_cells import OddCells
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError

_log = logging.getLogger(__name__)

OUTSIDE_GUARANTEE = (
    "a schema is public knowledge: what is taken into it from these cells is outside the guarantee"
)


def show_fit(source: TableSource, schema: TableSchema) -> bool:
    """Log what of a table does not fit its schema; return whether a release would take it.

    Raises
    ------
    BadInputError
        If the table lacks a column, has no rows or cannot be read.
    """
    found = {column.name: OddCells() for column in schema.columns}
    for frame in source.frames(present_columns(source, schema)):
        for column in schema.columns:
            values = frame[column.name]
            codes = local_codes(column, values, schema.missing_in(column), source.label)
            found[column.name].see(values, codes, np.flatnonzero(codes < 0))
    lines = [
        line for column in schema.columns for line in _lines(column, found[column.name], schema)
    ]
    for _, line in lines:
        _log.warning(f"{FOR_YOU}: {source.label}: {line}")
    rows = found[schema.columns[0].name].rows
    if not rows:
        raise BadInputError(f"{source.label}: no rows that could fit the schema")
    if lines:
        _log.warning(f"{FOR_YOU}: {OUTSIDE_GUARANTEE}")
    else:
        _log.warning(f"{FOR_YOU}: {source.label}: all cells of {rows:,} rows fit the schema")
    return not any(refused for refused, _ in lines)


def _lines(column: Column, cells: OddCells, schema: TableSchema) -> Iterator[tuple[bool, str]]:
    """Yield for each kind of cell that does not fit: whether a release refuses it, and a line."""
    means = meanings(column)
    keeps_missing = not isinstance(column, Binary) and column.missing_bit is not None
    for code in (UNPARSABLE, BELOW, ABOVE, OUTSIDE, MISSING):
        count = cells.count(code)
        if not count or (code == MISSING and keeps_missing):
            continue
        becomes = int(means[-code])
        left_out = becomes == MISSING and schema.drop_incomplete
        refused = becomes < 0 and not left_out and not (becomes == MISSING and keeps_missing)
        some = cells.first[code]
        text = f"column {column.name!r}: {count:,} of {cells.rows:,} cells {_fault(column, code)}"
        if code != MISSING:
            text += f", such as {shown(some[0])}"
        if code == UNPARSABLE and cells.many_unread:
            text += f" ({cause(column, some)})"
        yield refused, f"{text}: {_consequence(becomes, left_out, refused)}"


def _fault(column: Column, code: int) -> str:
    if code == UNPARSABLE:
        return f"cannot be read as {'dates' if isinstance(column, Dates) else 'numbers'}"
    if code == MISSING:
        return "are missing"
    if code in (BELOW, ABOVE):
        return "lie below the first edge" if code == BELOW else "lie above the last edge"
    return "lie outside the range" if isinstance(column, Dates) else "are not among the values"


def _consequence(becomes: int, left_out: bool, refused: bool) -> str:
    if refused:
        return "a release refuses them"
    if left_out:
        return "their rows are left out"
    if becomes == MISSING:
        return "they count as missing"
    return "they are counted in the column's outermost bucket or in (other)"

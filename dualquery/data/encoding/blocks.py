"""A source and a schema become blocks of bits, in the order of the rows; warnings of odd cells.

Where many cells cannot be read, or lie beyond an edge, the table was read in a wrong way, and a
column may be lost without a fault. The counts are exact, hence private: they go to the operator's
terminal, and no result, file or exit code depends on them.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.encoding.cuts import CutTable, pieces
from dualquery.data.encoding.encode import (
    CODES,
    MISSING,
    OUTSIDE,
    CodedRows,
    Encoded,
    Misfit,
    Watch,
    encode_frame,
    encode_items,
    range_of,
    shown,
)
from dualquery.data.readers.source import ItemSource, Source, TableSource
from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import ABOVE, BELOW, UNPARSABLE, Dates
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.numeric import Numeric
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError, suggest
from dualquery.runtime.escaping import some

FOR_YOU = "NOT PRIVATE, for the operator only"  # how each line begins

CLIPPED, UNREAD, _LOST = 0.1, 0.02, 0.5
"""Shares of a column's cells: beyond an edge without a warning (open ends such as "75 and older"
hold a few percent); unreadable without one (so far they can move a share); called lost."""

_log = logging.getLogger(__name__)

_MOST_ENCODERS = 4  # most threads that encode: one thread that reads keeps no more of them busy

Encoding: TypeAlias = Callable[[], Encoded]  # of a block that was read, when it is called


def encoded_blocks(
    source: Source, schema: TableSchema | ItemSchema, threads: int = 1, watch: Watch | None = None
) -> Iterator[Encoded]:
    """Yield the rows of a source as bits, block by block, cut to the 1s that the schema allows.

    One thread reads, and ``threads`` encode; ``watch`` is shown what the cells of a table are.
    """
    if isinstance(source, ItemSource):
        encodings = _item_encodings(source, schema)
    else:
        encodings = _table_encodings(source, schema, watch)
    blocks = in_order(encodings, min(threads, _MOST_ENCODERS))
    if (most := schema.max_ones_per_row) is None:
        return blocks
    from dualquery.data.encoding.truncation import truncate

    return (truncate(r.listed() if isinstance(r, CodedRows) else r, most) for r in blocks)


def _table_encodings(
    source: TableSource, schema: TableSchema | ItemSchema, watch: Watch | None
) -> Iterator[Encoding]:
    """Read the blocks of a table, and yield how each is to be encoded."""
    names = present_columns(source, schema)
    # Items may be columns of 0 and 1, in the order of the schema.
    if not isinstance(schema, TableSchema):
        schema = TableSchema(tuple(map(Binary, names)), declared=True)
    for piece in pieces(source, names):
        yield partial(encode_frame, schema, piece, watch)


def _item_encodings(source: ItemSource, schema: TableSchema | ItemSchema) -> Iterator[Encoding]:
    """Read blocks of items, and yield how each is to be encoded."""
    if isinstance(schema, TableSchema):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, but the schema {schema.name!r} "
            "describes named columns; give a schema of items or leave it out"
        )
    for part in source.parts or (source,):  # so that a message names the file and the row in it
        first_row = 1
        for rows in part.item_rows():
            yield partial(encode_items, schema, rows, part.label, first_row)
            first_row += len(rows)


def in_order(encodings: Iterable[Encoding], threads: int) -> Iterator[Encoded]:
    """Encode blocks in several threads, at most one a thread ahead; yield them in their order."""
    if threads == 1:
        yield from (encode() for encode in encodings)
        return
    ahead: deque[Future[Encoded]] = deque()
    with ThreadPoolExecutor(threads) as executor:
        try:
            for encode in encodings:
                ahead.append(executor.submit(encode))
                if len(ahead) > threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def present_columns(source: TableSource, schema: TableSchema | ItemSchema) -> list[str]:
    """Return the names of the schema's columns; `BadInputError` if one cannot be read."""
    for column in schema.columns if isinstance(schema, TableSchema) else ():
        if isinstance(column, Numeric) and column.integer and max(map(abs, column.edges)) >= 2**53:
            raise BadInputError(f"{column.where}: numbers from 2^53 on merge; set integer to false")
    present, names = list(source.columns()), list(schema.column_names)
    known = set(present)
    if (absent := next((name for name in names if name not in known), None)) is None:
        return names
    hint = suggest(absent, present)
    if not known & set(names) and len(names) > 1 < len(present):
        hint = f"its own are {some(present, 12)}: is the schema that of another table?"
    where = f"{source.label}: there is no column {absent!r}"
    raise BadInputError(f"{where}, which the schema {schema.name!r} describes; {hint}")


COMPLETE = "the number of complete rows, or of units with one, being public"
"""What is taken for granted where rows are replaced, and those that lack a value are left out."""


def left_out_columns(source: Source, schema: TableSchema | ItemSchema) -> tuple[str, ...]:
    """Return the names of a table's columns that the schema does not describe."""
    if not isinstance(source, TableSource):
        return ()
    described = set(schema.column_names)
    return tuple(name for name in source.columns() if name not in described)


def intake_notes(source: Source, schema: TableSchema | ItemSchema) -> tuple[str, ...]:
    """Return sentences on how rows are taken in; public choices only, never a row."""
    notes = []
    if not schema.declared:
        notes.append(
            "The schema is not declared: what it says may have been taken from the data. A release "
            'is not private until its file says "declared": true.'
        )
    if isinstance(source, CutTable):
        notes += source.notes
    if schema.drop_incomplete:
        filtered = "Rows with a missing value are left out by a public filter"
        notes.append(f"{filtered}; where rows are replaced, how many stay is public.")
    if left_out := left_out_columns(source, schema):
        notes.append(f"Columns that were not chosen, or not described, left out: {len(left_out)}.")
    elif isinstance(schema, ItemSchema) and schema.outside == "drop":
        notes.append("Items outside the schema are left out of the records.")
    if schema.max_ones_per_row is not None:
        notes.append(
            f"Rows with more than {schema.max_ones_per_row:,} ones are cut to that number, each "
            "row by its own content; the guarantee is for the rows as they were, the answers and "
            "their intervals are about the rows as cut."
        )
    return tuple(notes)


class Misfits:
    """Counts cells of a table that do not fit their columns in one pass, unless it is silent."""

    def __init__(self, label: str, *, silent: bool = False) -> None:
        self._label = label
        # Of a column: cells of each code that is no bit, at place -code; and the first of each.
        self._seen: dict[Column, tuple[NDArray[np.int64], dict[int, str]]] = {}
        self._rows = 0
        self.see: Watch | None = None if silent else self._see
        self._lock = threading.Lock()

    def _see(self, rows: int, odd: list[Misfit]) -> None:
        """Take in a block (`dualquery.data.encoding.encode.Watch`)."""
        with self._lock:
            self._rows += rows
            for column, values, places, codes in odd:
                counts, first = self._seen.setdefault(column, (np.zeros(CODES, np.int64), {}))
                counts += np.bincount(-codes, minlength=CODES)
                for at in np.unique(codes, return_index=True)[1].tolist():
                    first.setdefault(int(codes[at]), str(values[int(places[at])]))

    def tell(self) -> None:
        """Log one line for each column where much does not fit; later passes say nothing."""
        if self.see is not None:
            for column, (counts, first) in self._seen.items():
                counts[0] = self._rows
                for line in _lines(column, counts, first):
                    _log.warning(f"{FOR_YOU}: {self._label}: {line}")
        self.see = None


def _lines(column: Column, counts: NDArray[np.int64], first: dict[int, str]) -> Iterator[str]:
    """Say what of a column was not read as it stands, where that is much."""
    filled, unread = int(counts[0] - counts[-MISSING]), int(counts[-UNPARSABLE])
    if filled and counts[-OUTSIDE] == filled:
        yield (
            f"column {column.name!r}: THE COLUMN IS LOST: none of {filled:,} cells is one of the "
            f"schema's values, such as {shown(first[OUTSIDE])}; all count as (other)"
        )
    kind = "dates" if isinstance(column, Dates) else "numbers"
    if unread > UNREAD * filled:
        lost = "MOST OF THE COLUMN IS LOST: " if unread >= _LOST * filled else ""
        yield (
            f"column {column.name!r}: {lost}{unread:,} of {filled:,} cells cannot be read as "
            f"{kind} and count as missing, such as {shown(first[UNPARSABLE])}; correct the cells "
            "or the schema"
            + ("" if kind == "dates" else ", or say --csv decimal=, of decimal commas")
        )
    for code, place in ((BELOW, "before the start"), (ABOVE, "beyond the end")):
        if (clipped := int(counts[-code])) > CLIPPED * filled:
            yield (
                f"column {column.name!r}: {clipped:,} of {filled:,} {kind} lie {place} of the "
                f"schema's range, {range_of(column)[code == ABOVE]}, and fall in the bucket beside "
                "it; is the range right, and in the same unit?"
            )

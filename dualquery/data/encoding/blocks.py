"""A source and a schema become blocks of bits, in the order of the rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

from dualquery.data.encoding.cuts import CutTable, pieces
from dualquery.data.encoding.encode import Watch, encode_frame, encode_items
from dualquery.data.encoding.encoded import CodedRows, Encoded
from dualquery.data.readers.source import ItemSource, Source, TableSource
from dualquery.data.schema.columns import Binary
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError, suggest
from dualquery.runtime.escaping import some

_MOST_ENCODERS = 4
"""Most threads that encode: one thread that reads keeps no more of them busy."""

Encoding: TypeAlias = Callable[[], Encoded]
"""A block that was read, to be encoded when it is called."""


def encoded_blocks(
    source: Source,
    schema: TableSchema | ItemSchema,
    threads: int = 1,
    watch: Watch | None = None,
) -> Iterator[Encoded]:
    """Yield the rows of a source as bits, block by block, cut to the 1s that the schema allows.

    One thread reads, and ``threads`` encode; ``watch`` is shown what the cells of a table are.
    """
    if isinstance(source, ItemSource):
        encodings = _item_encodings(source, schema)
    else:
        encodings = _table_encodings(source, schema, watch)
    blocks = in_order(encodings, min(threads, _MOST_ENCODERS))
    most = schema.max_ones_per_row
    if most is None:
        return blocks
    from dualquery.data.encoding.truncation import truncate

    return (truncate(r.listed() if isinstance(r, CodedRows) else r, most) for r in blocks)


def _table_encodings(
    source: TableSource, schema: TableSchema | ItemSchema, watch: Watch | None
) -> Iterator[Encoding]:
    """Read the blocks of a table, and yield how each is to be encoded."""
    names = present_columns(source, schema)
    # Items may be columns of 0 and 1, in the order of the schema.
    table = schema
    if not isinstance(table, TableSchema):
        table = TableSchema(tuple(map(Binary, names)), declared=True)
    for piece in pieces(source, names):
        yield partial(encode_frame, table, piece, watch)


def _item_encodings(source: ItemSource, schema: TableSchema | ItemSchema) -> Iterator[Encoding]:
    """Read blocks of items, and yield how each is to be encoded."""
    if isinstance(schema, TableSchema):
        raise BadInputError(
            f"{source.label}: its rows are numbered items, but the schema {schema.name!r} "
            "describes named columns; give a schema of items or leave it out"
        )
    for part in source.parts or (source,):  # so that a message names the file and the row in it
        assert isinstance(part, ItemSource)
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
    """Return the names of the schema's columns; raise `BadInputError` if the table lacks one."""
    present, names = list(source.columns()), list(schema.column_names)
    known = set(present)
    absent = next((name for name in names if name not in known), None)
    if absent is None:
        return names
    if not known & set(names) and len(names) > 1 < len(present):
        raise BadInputError(
            f"{source.label}: it has none of the columns that the schema {schema.name!r} "
            f"describes, such as {absent!r}; its own are {some(present, 12)}: is the schema that "
            "of another table?"
        )
    raise BadInputError(
        f"{source.label}: there is no column {absent!r}, which the schema {schema.name!r} "
        f"describes; {suggest(absent, present)}"
    )


def drops_rows(schema: TableSchema | ItemSchema) -> bool:
    """Return whether rows may be left out, so that n is known only after a pass."""
    return isinstance(schema, TableSchema) and schema.drop_incomplete


def left_out_columns(source: Source, schema: TableSchema | ItemSchema) -> tuple[str, ...]:
    """Return the names of a table's columns that the schema does not describe."""
    if not isinstance(source, TableSource):
        return ()
    described = set(schema.column_names)
    return tuple(name for name in source.columns() if name not in described)


def intake_notes(source: Source, schema: TableSchema | ItemSchema) -> tuple[str, ...]:
    """Return sentences on how rows are taken in; public choices only, never a row."""
    notes = list(source.notes) if isinstance(source, CutTable) else []
    if not schema.declared:
        notes.insert(
            0,
            "The schema is not declared: what it says may have been taken from the data. A release "
            'is not private until its file says "declared": true.',
        )
    if drops_rows(schema):
        cut = isinstance(source, CutTable)
        how = ", each by itself" if cut else "; neighbouring tables are defined after it"
        notes.append(f"Rows with a missing value are left out by a public filter{how}.")
    if left_out := left_out_columns(source, schema):
        several = "columns that the schema does not describe are"
        one = "column that the schema does not describe is"
        notes.append(f"{len(left_out)} {several if len(left_out) > 1 else one} left out.")
    elif isinstance(schema, ItemSchema) and schema.outside == "drop":
        notes.append("Items outside the schema are left out of the records.")
    if schema.max_ones_per_row is not None:
        notes.append(
            f"Rows with more than {schema.max_ones_per_row:,} ones are cut to that number, each "
            "row by its own content; the guarantee is for the rows as they were, the answers and "
            "their intervals are about the rows as cut."
        )
    return tuple(notes)

"""Rows that stay in their source: each pass reads and encodes them anew, in flat memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.encoding.blocks import Misfits, encoded_blocks, present_columns
from dualquery.data.encoding.cuts import CutTable
from dualquery.data.readers.source import ItemSource, Source
from dualquery.data.schema.any_schema import Schema
from dualquery.rows.packed import RecordsBuilder
from dualquery.rows.row_sums import Block, RowSum
from dualquery.runtime.errors import BadInputError


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Rows of a source as bits, a block at a time."""

    source: Source  # read from the start in each pass
    schema: Schema  # what the bits mean
    n: int  # number of rows, as `count_rows` found it
    threads: int = 1  # that encode what one reads
    misfits: Misfits | None = None  # told to the operator after the first pass

    @property
    def bits(self) -> int:
        """Number of bits of a row."""
        return self.schema.record_bits

    def stream(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        builder = RecordsBuilder(self.bits)
        watch = None if self.misfits is None else self.misfits.see
        for rows in encoded_blocks(self.source, self.schema, self.threads, watch):
            builder.append_encoded(rows)
            if builder.rows > self.n:
                break
            yield from builder.take_full()
        if builder.rows != self.n:
            found = "more" if builder.rows > self.n else f"{builder.rows:,}"
            raise BadInputError(
                f"{self.source.label}: {self.n:,} rows were counted first, but now there are "
                f"{found}; the data must not change while they are read"
            )
        if self.misfits is not None:
            self.misfits.tell()
        yield from builder.build().stored

    def total(self, statistic: RowSum, threads: int) -> NDArray[np.int64]:
        """Return a statistic of all rows."""
        return statistic(replace(self, threads=threads), threads)


def stream_rows(source: Source, schema: Schema, misfits: Misfits | None = None) -> StreamedRows:
    """Return the rows of a source, counted (see `count_rows`)."""
    return StreamedRows(source, schema, count_rows(source, schema), misfits=misfits)


def count_rows(source: Source, schema: Schema) -> int:
    """Return the number of rows, without encoding them unless the schema leaves some out.

    That is a pass unless the source states it. Raises `BadInputError` if the source is damaged.
    """
    if isinstance(source, CutTable):  # incomplete rows are cut already
        return int(source.kept.sum())
    if schema.drop_incomplete:
        return sum(len(rows) for rows in encoded_blocks(source, schema))
    if source.row_count is not None:
        return source.row_count
    if isinstance(source, ItemSource):
        return sum(len(rows) for rows in source.item_rows())
    return sum(frame.height for frame in source.frames(present_columns(source, schema)[:1]))

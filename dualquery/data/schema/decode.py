"""From bits back to the user's values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import OTHER_LABEL, Binary, Categorical, Column

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.table import TableSchema

LONG_FORM_BITS = 10_000
"""Records with more items than this are written as lists."""

ITEMS_COLUMN = "items"


def decode_table(schema: TableSchema, records: NDArray[np.uint8]) -> pl.DataFrame:
    """Return records in the columns of a table (see
    `dualquery.data.schema.protocol.Schema.decode`).
    """
    import polars as pl

    offsets = schema.domain.offsets
    _check_shape(records, schema.domain.bits)
    decoded = []
    for number, column in enumerate(schema.columns):
        bits = records[:, offsets[number] : offsets[number + 1]]
        decoded.append(_decode_column(column, bits))
    return pl.DataFrame(decoded)


def decode_items(schema: ItemSchema, records: NDArray[np.uint8]) -> pl.DataFrame:
    """Return records of items (see `dualquery.data.schema.protocol.Schema.decode`)."""
    import polars as pl

    _check_shape(records, schema.domain.bits)
    if len(schema.items) <= LONG_FORM_BITS:
        names = list(schema.column_names)
        return pl.DataFrame(np.asfortranarray(records), schema=dict.fromkeys(names, pl.UInt8))
    row, bit = np.nonzero(records)
    kind = np.int32 if schema.items[-1] <= np.iinfo(np.int32).max else np.int64
    lists = np.split(
        schema.items[bit].astype(kind), np.searchsorted(row, np.arange(1, len(records)))
    )
    dtype = pl.List(pl.Int32 if kind is np.int32 else pl.Int64)
    return pl.DataFrame({ITEMS_COLUMN: pl.Series(lists[: len(records)], dtype=dtype)})


def _decode_column(column: Column, bits: NDArray[np.uint8]) -> pl.Series:
    import polars as pl

    if isinstance(column, Binary):
        if (column.zero, column.one) == ("0", "1"):
            return pl.Series(column.name, bits[:, 0])
        return pl.Series(column.name, [column.zero, column.one]).gather(bits[:, 0])
    wrong = bits.sum(axis=1) != 1
    if np.any(wrong):
        raise ValueError(
            f"record {int(np.argmax(wrong))} has {bits[wrong][0].sum()} bits of column "
            f"{column.name!r} set; exactly one is expected"
        )
    if isinstance(column, Categorical):
        names = [texts[0] for texts in column.values]
        values = pl.Series(column.name, names, dtype=pl.String)
        if column.other_bit is not None:
            values.append(pl.Series(column.name, [OTHER_LABEL]))
    else:
        values = pl.Series(column.name, column.representatives)
    if column.missing_bit is not None:
        values.append(pl.Series(column.name, [None], dtype=values.dtype))
    return values.gather(np.argmax(bits, axis=1))


def _check_shape(records: NDArray[np.uint8], bits: int) -> None:
    if records.ndim != 2 or records.shape[1] != bits:
        raise ValueError(f"records of {bits} bits expected, found shape {records.shape}")

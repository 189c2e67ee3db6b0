"""Decode bits into the user's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import OTHER_LABEL, Binary, Categorical, Column

if TYPE_CHECKING:
    import polars as pl

LONG_FORM_BITS = 10_000
"""Records with more items than this are written as lists."""

ITEMS_COLUMN = "items"


def decode_table(columns: Sequence[Column], records: NDArray[np.uint8]) -> pl.DataFrame:
    """Return records in the columns of a table (see `Schema.decode`).

    Parameters
    ----------
    columns
        The columns, in the order of the bits.
    records
        uint8 0/1, shape ``(records, bits)``, one-hot in every group.

    Raises
    ------
    ValueError
        If the shape is wrong or a record has not exactly one bit of a group.
    """
    import polars as pl

    ends = np.cumsum([column.bits for column in columns])
    _check_shape(records, int(ends[-1]))
    groups = np.split(records, ends[:-1], axis=1)
    return pl.DataFrame(list(map(_decode_column, columns, groups)))


def decode_items(
    items: NDArray[np.int64], names: Sequence[str], records: NDArray[np.uint8]
) -> pl.DataFrame:
    """Return records as a 0/1 column an item, or above `LONG_FORM_BITS` items as lists of ids.

    Parameters
    ----------
    items
        int64, shape ``(bits,)``, increasing: the id of each bit's item.
    names
        What the columns are called, one an item.
    records
        uint8 0/1, shape ``(records, bits)``.

    Raises
    ------
    ValueError
        If the shape is wrong.
    """
    import polars as pl

    _check_shape(records, len(items))
    if len(items) <= LONG_FORM_BITS:
        return pl.DataFrame(np.asfortranarray(records), schema=dict.fromkeys(names, pl.UInt8))
    row, bit = np.nonzero(records)
    kind = np.int32 if items[-1] <= np.iinfo(np.int32).max else np.int64
    lists = np.split(items[bit].astype(kind), np.searchsorted(row, np.arange(1, len(records))))
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

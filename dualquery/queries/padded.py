"""Padded integer arrays as numbered columns of a table, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl


def write_padded(name: str, rows: NDArray[np.int32]) -> dict[str, pl.Series]:
    """Return columns ``name_1`` .. ``name_k`` of int32 rows ``(m, k)``: null for the padding -1."""
    import polars as pl

    series = [pl.Series(f"{name}_{place + 1}", column) for place, column in enumerate(rows.T)]
    return {one.name: one.set(one < 0, None) for one in series}


def read_padded(name: str, columns: Mapping[str, pl.Series]) -> NDArray[np.int32]:
    """Return the rows that `write_padded` wrote; raise `BadInputError` without a first column."""
    import polars as pl

    found: list[pl.Series] = []
    while (key := f"{name}_{len(found) + 1}") in columns:
        found.append(columns[key])
    if not found:
        raise BadInputError(f"the table of queries has no column {name}_1")
    if not all(one.dtype.is_integer() or one.dtype == pl.Null for one in found):
        raise BadInputError(f"a column of {name}_1 .. {name}_{len(found)} holds no whole numbers")
    rows = np.stack([one.cast(pl.Int64).fill_null(-1).to_numpy() for one in found], axis=1)
    if rows.size and not -1 <= rows.min() <= rows.max() < 2**31:
        raise BadInputError(f"the columns {name}_1 .. {name}_{len(found)} reach {rows.max()}")
    return rows.astype(np.int32)

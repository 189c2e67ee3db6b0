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
    found: list[pl.Series] = []
    while (key := f"{name}_{len(found) + 1}") in columns:
        found.append(columns[key])
    if not found:
        raise BadInputError(f"the table of queries has no column {name}_1")
    return np.stack([one.fill_null(-1).to_numpy() for one in found], axis=1).astype(np.int32)

"""Legal records as cells of a product of columns, and as values of the columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain


def axis_sizes(domain: Domain) -> NDArray[np.int64]:
    """Return the number of values of every column: 2 if binary, else one a bit; ``(columns,)``."""
    return np.maximum(domain.sizes, 2)


def cells_of(domain: Domain) -> int:
    """Return the number of legal records, exactly: the product of `axis_sizes`."""
    return math.prod(axis_sizes(domain).tolist())


def column_values(rows: NDArray[np.uint8], domain: Domain) -> NDArray[np.int64]:
    """Return the value of every column of legal records, ``(r, bits)``: int64, ``(r, columns)``.

    A binary column has the value of its bit, a one-hot column the position of its 1.
    """
    position = np.arange(domain.bits) - np.repeat(domain.offsets[:-1], domain.sizes)
    weight = np.where(domain.sizes[domain.column_of_bit] == 1, 1, position)
    return np.add.reduceat(rows * weight, domain.offsets[:-1], axis=1, dtype=np.int64)


def rows_of_values(values: NDArray[Any], domain: Domain) -> NDArray[np.uint8]:
    """Return the legal records with given column values: the inverse of `column_values`."""
    rows = np.zeros((len(values), domain.bits), dtype=np.uint8)
    binary = domain.sizes == 1
    rows[:, domain.offsets[:-1][binary]] = values[:, binary]
    for column in np.flatnonzero(~binary):
        rows[np.arange(len(rows)), domain.offsets[column] + values[:, column]] = 1
    return rows

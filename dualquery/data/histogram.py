"""Records as a histogram: how many of them lie in every cell of a product of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.data.records import BLOCK_ROWS
from dualquery.data.rows import BlockRows


def axis_sizes(domain: Domain) -> NDArray[np.int64]:
    """Return the number of values of every column: 2 if binary, else one a bit; ``(columns,)``."""
    return np.maximum(domain.sizes, 2)


def cells_of(domain: Domain) -> int:
    """Return the number of legal records, exactly: the product of `axis_sizes`."""
    return math.prod(axis_sizes(domain).tolist())


def column_values(rows: NDArray[np.uint8], domain: Domain) -> NDArray[np.int64]:
    """Return the value of every column of legal records.

    A binary column has the value of its bit, a one-hot column the position of its 1.

    Parameters
    ----------
    rows
        uint8, shape ``(r, bits)``.
    domain
        The columns.

    Returns
    -------
    int64, shape ``(r, columns)``.
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


@dataclass(frozen=True, eq=False)
class Histogram:
    """The statistic of how many rows lie in every cell. Exact, hence private.

    Parameters
    ----------
    domain
        The columns; the rows are legal records of it.
    """

    domain: Domain

    def __call__(self, rows: BlockRows, _threads: int = 1, /) -> NDArray[np.int64]:
        """Count some rows: int64, shape `axis_sizes`, an axis a column in the domain's order."""
        shape = tuple(axis_sizes(self.domain).tolist())
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        left = rows.n
        for block in rows.stream():
            dense = np.zeros((min(left, BLOCK_ROWS), rows.bits), np.uint8)
            block.unpack(0, dense)
            cells = np.ravel_multi_index(tuple(column_values(dense, self.domain).T), shape)
            np.add.at(counts, cells, 1)
            left -= len(dense)
        return counts.reshape(shape)

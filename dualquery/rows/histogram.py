"""The histogram of the rows: how many of them lie in every cell of a product of columns."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, column_values
from dualquery.rows.row_sums import BLOCK_ROWS, BlockRows


@dataclass(frozen=True, eq=False)
class Histogram:
    """The statistic of how many rows lie in every cell of a domain. Exact, hence private."""

    domain: Domain

    def __call__(self, rows: BlockRows, _threads: int = 1, /) -> NDArray[np.int64]:
        """Count some rows: int64, shape `axis_sizes`, an axis a column in the domain's order."""
        shape = tuple(axis_sizes(self.domain).tolist())
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        left = rows.n
        for block in rows.stream():
            dense = np.zeros((min(left, BLOCK_ROWS), rows.bits), np.uint8)
            block.unpack(0, dense)
            cells = np.ravel_multi_index(
                tuple(column_values(dense[:, : self.domain.bits], self.domain).T), shape
            )
            np.add.at(counts, cells, 1)
            left -= len(dense)
        return counts.reshape(shape)

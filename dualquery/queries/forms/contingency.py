"""The contingency table of a query: all sign patterns of its literals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.conjunctions import Workload


def table_cells(workload: Workload, query: int) -> NDArray[np.int32]:
    """Return the cells of a query's table as conjunctions; every record lies in exactly one.

    Parameters
    ----------
    workload
        The queries.
    query
        Position of the query; it has w literals.

    Returns
    -------
    int32, shape ``(2^w, w)``: literal codes. In cell c the i-th of the query's bits, in the order
    of its literals, is bit i of the number c.
    """
    literals = workload.literals[query]
    bits = literals[literals >= 0] >> 1
    zero = 1 - (np.arange(1 << len(bits))[:, None] >> np.arange(len(bits)) & 1)
    cells: NDArray[np.int32] = (2 * bits + zero).astype(np.int32)
    return cells

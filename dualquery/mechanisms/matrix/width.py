"""Whether queries are about columns that are likely to be nearly empty; `staged` serves those."""

from __future__ import annotations

import numpy as np

from dualquery.queries.conjunctions import Workload

WIDE = 1000
"""Columns that queries are about, from which on `staged` serves them. It has smaller errors than
`matrix` on tables of 3,340 to 17,770 columns; `matrix` has on those of 69 to 285, with signed 3-way
queries. In between nothing was measured."""


def is_positive(workload: Workload) -> bool:
    """Return whether queries ask which columns of one bit are 1 together, and nothing else."""
    given = workload.literals[workload.literals >= 0]
    columns = workload.domain.column_of_bit[given >> 1]
    return bool((given & 1 == 0).all() and (workload.domain.sizes[columns] == 1).all())


def is_wide(workload: Workload) -> bool:
    """Return whether queries are about `WIDE` columns or more, all of them binary."""
    bits = np.unique(workload.literals[workload.literals >= 0] >> 1)
    columns = np.unique(workload.domain.column_of_bit[bits])
    return len(columns) >= WIDE and bool((workload.domain.sizes[columns] <= 2).all())

"""A bound on the number of parities that can differ between two legal records."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dualquery.queries.conjunctions import Workload

_ENUMERATED_BITS = 20
"""Up to this many bits all differences of two records are looked at."""


@lru_cache(maxsize=8)
def parities_apart(sets: Workload) -> int:
    """Bound the number of sets of bits whose parities can differ between two legal records.

    Replacing one record moves each such o_b by 1: the vector of all of them has L1 sensitivity at
    most this number and L2 sensitivity at most its root. Parities differ where the records' bitwise
    difference has an odd number of bits of the set: with up to 20 bits asked about, all differences
    that legal records can have are looked at, and the number is exact; above, it is the number of
    sets.
    """
    asked = np.unique(sets.literals[sets.literals >= 0] >> 1)
    if len(asked) > _ENUMERATED_BITS:
        return len(sets)
    member = np.zeros((len(sets), len(asked)), np.int64)
    row, position = np.nonzero(sets.literals >= 0)
    member[row, np.searchsorted(asked, sets.literals[row, position] >> 1)] = 1
    signs = np.bincount(member @ (1 << np.arange(len(asked))), minlength=1 << len(asked))
    for bit in range(len(asked)):
        pair = signs.reshape(-1, 2, 1 << bit)
        signs = np.stack((pair[:, 0] + pair[:, 1], pair[:, 0] - pair[:, 1]), axis=1).ravel()
    apart = (len(sets) - signs) // 2
    domain = sets.domain
    columns = domain.column_of_bit[asked]
    differences = np.arange(1 << len(asked))
    possible = np.ones(len(apart), bool)
    for column in np.unique(columns[domain.sizes[columns] > 1]):
        bits = np.flatnonzero(columns == column)
        changed = np.bitwise_count(differences & int((1 << bits).sum()))
        # A difference in an asked bit alone: the other one is a bit that nobody asks about.
        alone = len(bits) < domain.sizes[column]
        possible &= (changed == 0) | (changed == 2) | ((changed == 1) & alone)
    return int(apart[possible].max())

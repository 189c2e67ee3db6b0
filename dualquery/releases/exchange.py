"""Other shares of one column's values: some records are exchanged for copies of others.

A record of a value that is too frequent goes, and a copy of one of a value that is too rare comes
in its place. Of the two, the one of the rarer value is taken at random and the other one is the
most like it that is found, so that little else changes: neither the shares of other columns, nor
what goes with the rare value. Copies are legal records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import column_values
from dualquery.data.domain import Domain
from dualquery.runtime.apportionment import apportion

Records = NDArray[np.uint8]

_AT_ONCE, _COMPARED = 256, 1024
"""Records that are matched at once, and the others that each of them is compared with."""


def with_shares(
    records: Records,
    domain: Domain,
    column: int,
    shares: NDArray[np.float64],
    generator: np.random.Generator,
) -> Records:
    """Return records of which each value of a column has a share, to the nearest record.

    Values that no record has stay away.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal.
    domain
        The columns.
    column
        The column whose shares change, one of several bits.
    shares
        float64, shape ``(values,)``, at least 0; they count by their sum.
    generator
        Chooses which records go, and which are copied.
    """
    first = int(domain.offsets[column])
    values = records[:, first : first + len(shares)].argmax(axis=1)
    counts = np.bincount(values, minlength=len(shares))
    possible = np.where(counts > 0, shares, 0.0)
    if not possible.any():
        return records
    missing = apportion(possible, len(records)) - counts
    if not missing.any():
        return records
    numbers = np.arange(len(shares))
    leaving = generator.permutation(np.repeat(numbers, np.maximum(-missing, 0)))
    coming = np.repeat(numbers, np.maximum(missing, 0))
    pools = [generator.permutation(np.flatnonzero(values == each)) for each in numbers]
    found = records.copy()
    for (old, new), several in zip(
        *np.unique(np.stack((leaving, coming), axis=1), axis=0, return_counts=True), strict=True
    ):
        for begun in range(0, int(several), _AT_ONCE):
            size = min(_AT_ONCE, int(several) - begun)
            if counts[old] < counts[new]:
                out = pools[old][:size]
                others = generator.choice(pools[new], min(_COMPARED, len(pools[new])), False)
                copied = others[_alike(records[out], records[others], domain)]
            else:
                copied = np.resize(generator.permutation(pools[new]), size)
                others = pools[old][:_COMPARED]
                out = others[_alike(records[copied], records[others], domain)]
            found[out] = records[copied]
            pools[old] = np.setdiff1d(pools[old], out, assume_unique=True)
    return found


def _alike(some: Records, others: Records, domain: Domain) -> NDArray[np.int64]:
    """Return which of the others, at least as many, each of some records is matched with.

    The matched ones have different values in as few columns as possible, in all.
    """
    from scipy.optimize import linear_sum_assignment

    differences = np.zeros((len(some), len(others)), np.int64)
    pairs = zip(column_values(some, domain).T, column_values(others, domain).T, strict=True)
    for own, other in pairs:
        differences += own[:, None] != other
    return np.asarray(linear_sum_assignment(differences)[1], np.int64)

"""Products of several columns that are measured for what they tell of these columns' shares.

Of several things on a balance at once, every weighing tells of all, with the balance's error of one
(Hotelling, "Some improvements in weighing and other experimental techniques", Annals of
Mathematical Statistics 15, 1944). A product of five signs moves with a row by as much as one sign,
and where columns are nearly empty its mean tells the sum of their five shares. Where more than a
share or two are uncertain, products of random ones tell more of each than as many single columns
do. So they are measured where shares are uncertain, but none by so much that it is worth measuring
alone. That is for queries with negations, which are off by a column's error: a positive one is off
by that times the shares of its other columns, next to nothing. Post-processing of noisy shares,
with public random choices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.mechanisms.matrix.looks import Shares
from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import side_by_side

Float64 = NDArray[np.float64]

_TOGETHER = 5
"""Columns of a product. More of them tell more, until rows that hold two of them are no longer rare
or products' own departures count."""

_MOST = 0.25
"""Share of 1s of a column, at most: the sign of one that is half full tells nothing of others."""

_UNCERTAIN = 0.3
"""What a share may still be off, at least, in deviations of the first look's noise: the prior took
less out of it."""


def weighed_together(
    workload: Workload,
    first: Shares,
    shares: Float64,
    uncertain: Float64,
    others: NDArray[np.int32],
    generator: np.random.Generator,
) -> NDArray[np.int32]:
    """Return products of columns whose shares are uncertain, each in about as many of them.

    Parameters
    ----------
    workload
        The queries.
    first
        The first look.
    shares, uncertain
        float64, one for each of its bits: what it told, and what that may be off.
    others
        int32, shape ``(c, k)``: the bits of what is measured besides.
    generator
        Public randomness.

    Returns
    -------
    int32, shape ``(w, 5)``: bits, increasing; at most as many as others are measured, none twice,
    none of these. None if few columns are uncertain, some column is measured alone, or most queries
    are positive.
    """
    none = np.empty((0, _TOGETHER), np.int32)
    bits = first.bits[(uncertain >= _UNCERTAIN * first.deviations) & (shares <= _MOST)]
    groups = len(bits) // _TOGETHER
    negated = ((workload.literals >= 0) & (workload.literals & 1 == 1)).any(axis=1)
    alone = (others >= 0).sum(axis=1) == 1
    if groups < 2 or alone.any() or negated.mean() < 0.5:
        return none
    rounds = -(-len(others) // groups)
    orders = [generator.permutation(bits)[: groups * _TOGETHER] for _ in range(rounds)]
    products = np.sort(np.concatenate([none.ravel(), *orders]).reshape(-1, _TOGETHER), axis=1)
    _, places = np.unique(side_by_side(others, products), axis=0, return_index=True)
    new = np.sort(places[places >= len(others)]) - len(others)
    return products[new[: len(others)]].astype(np.int32)

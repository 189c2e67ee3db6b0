"""A bound on the queries that differ between two records of few 1s (see `bounds`).

A conjunction with positive literals differs between two records only if one of them has all the
bits that it asks for. A record of k ones has C(k, p) sets of p bits, and each is asked for by a
known number of queries, so the record meets at most the sum of the C(k, p) largest of these
numbers.
Conjunctions of negated literals only gain nothing: they count in full.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dualquery.queries.conjunctions import Workload


def few_ones_bound(workload: Workload, most: int, records: int = 2) -> int:
    """Bound the differing queries when every legal record has at most ``most`` ones.

    For m positive queries of p different bits each, none repeated, this is min(m, 2 C(most, p)).
    Columns are binary. With one of ``records`` it bounds what a record contributes (see `bounds`).
    """
    literals = workload.literals
    wanted = np.sort(np.where((literals >= 0) & (literals & 1 == 0), literals, -1), axis=1)
    wanted[:, 1:][wanted[:, 1:] == wanted[:, :-1]] = -1
    wanted.sort(axis=1)
    positives = np.count_nonzero(wanted >= 0, axis=1)
    bound = int(np.count_nonzero(positives == 0))
    for count in np.unique(positives[positives > 0]).tolist():
        asked = wanted[positives == count]
        # How many queries ask for each different set of bits.
        _, repeats = np.unique(asked, axis=0, return_counts=True)
        largest = int(np.sort(repeats)[::-1][: comb(most, count)].sum())
        bound += min(len(asked), records * largest)
    return bound

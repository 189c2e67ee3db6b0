"""Signed conjunctions from positive ones, by inclusion and exclusion.

``a & ~b & ~c`` holds in ``#a - #ab - #ac + #abc`` rows. A workload with many sign patterns on the
same bits, such as every cell of the marginals of binary columns, has far fewer positive
conjunctions than queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.rows.repeats import first_occurrences, pad_right

if TYPE_CHECKING:
    import scipy.sparse

MOST_LITERALS = 6
"""A query of k negated literals is a sum of 2^k counts."""


@dataclass(frozen=True, eq=False)
class Rewriting:
    """Queries as sums of counts of positive conjunctions.

    Parameters
    ----------
    positive
        int32, shape ``(p, k)``, padded on the right with -1: different positive conjunctions.
    sums
        Sparse int64, shape ``(m, p)``: the signs with which they enter each query.
    everything
        int64, shape ``(m,)``: the sign of the number of rows, the count of no literal at all.
    """

    positive: NDArray[np.int32]
    sums: scipy.sparse.csr_array
    everything: NDArray[np.int64]

    def combine(self, counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """Return the queries' counts from those of the positive conjunctions, exactly."""
        combined: NDArray[np.int64] = self.sums @ counts + n * self.everything
        return combined


def different_bits(literals: NDArray[np.int32]) -> int:
    """Return how many different sets of bits queries mention: at most `Rewriting.positive`."""
    supports = np.where(literals >= 0, literals | 1, -1)
    first = first_occurrences(supports, int(literals.max()) + 2)
    return int(np.count_nonzero(first == np.arange(len(first))))


def rewrite(literals: NDArray[np.int32]) -> Rewriting:
    """Rewrite signed conjunctions, rows sorted and padded with -1 (see `Workload`).

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``, ``k`` at most `MOST_LITERALS`.
    """
    import scipy.sparse

    m, way = literals.shape
    negated = (literals >= 0) & (literals & 1 == 1)
    queries, terms, signs = [], [], []
    for mask in range(1 << way):
        kept = mask >> np.arange(way) & 1 == 1
        having = np.flatnonzero(negated[:, kept].all(axis=1))
        rows, dropped = literals[having], negated[having] & ~kept
        queries.append(having)
        terms.append(np.where(dropped | (rows < 0), -1, rows & ~1))
        signs.append(np.full(len(having), 1 - 2 * (kept.sum() % 2)))
    query, sign = np.concatenate(queries), np.concatenate(signs)
    term = pad_right(np.concatenate(terms).astype(np.int32))
    empty = term[:, 0] < 0
    everything = np.zeros(m, np.int64)
    everything[query[empty]] = sign[empty]
    query, sign, term = query[~empty], sign[~empty], term[~empty]
    first = first_occurrences(term, int(literals.max()) + 2)
    distinct, place = np.unique(first, return_inverse=True)
    sums = scipy.sparse.csr_array(
        (sign.astype(np.int64), (query, place)), shape=(m, len(distinct)), dtype=np.int64
    )
    return Rewriting(np.ascontiguousarray(term[distinct]), sums, everything)

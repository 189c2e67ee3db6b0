"""The queries that records are polished for, multiplied out into products of bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.releases.polish_kernels import Asked, Terms
from dualquery.rows.repeats import first_occurrences, pad_right

MOST_LITERALS = 3

Float64 = NDArray[np.float64]


def on_asked_columns(workload: Workload) -> tuple[NDArray[np.int64], Workload]:
    """Return the bits of the columns that a workload asks about, and the workload over these.

    Where few of many columns are asked about, all others cost nothing then.
    """
    domain = workload.domain
    columns = domain.column_of_bit[workload.literals[workload.literals >= 0] >> 1]
    asked = np.zeros(domain.columns, bool)
    asked[columns] = True
    bits = np.flatnonzero(asked[domain.column_of_bit])
    narrow = Domain(np.concatenate(([0], np.cumsum(domain.sizes[asked]))).astype(np.int64))
    codes = 2 * np.searchsorted(bits, workload.literals >> 1) + (workload.literals & 1)
    literals = np.where(workload.literals >= 0, codes, -1).astype(np.int32)
    return bits, Workload(literals, narrow, workload.description, repeats=True)


@dataclass(frozen=True, eq=False)
class MultipliedOut:
    """Queries as sums of products of bits, a negation being 1 less its bit.

    Parameters
    ----------
    terms, asked
        What the kernels read; `weigh` fills in what depends on weights and counts.
    changes
        float64, sparse, shape ``(entries, m)``: 1 or -1 where a query is changed by an entry of
        `terms`; times the weights, its coefficient of the sum of squares.
    """

    terms: Terms
    asked: Asked
    changes: csr_array

    def weigh(self, weights: Float64, excess: Float64) -> None:
        """Set the weights of the queries, float64, shape ``(m,)``, by how much they are off."""
        asked, terms = self.asked, self.terms
        parts = (asked.coefficient, asked.term, asked.made)
        coefficients = csr_array(parts, (len(weights), len(terms.slopes)))
        asked.weights[:] = weights
        terms.slopes[:] = coefficients.T @ (2.0 * weights * excess)
        terms.steady[:] = self.changes @ weights

    @staticmethod
    def of(workload: Workload) -> MultipliedOut:
        """Multiply out; queries with two literals on one column have no terms."""
        bits, literals = workload.domain.bits, _with_a_literal_a_column(workload)
        codes, owner, sign = _products(literals)
        bits_of = codes >> 1
        first = first_occurrences(bits_of, bits)
        distinct = np.flatnonzero(first == np.arange(len(first)))
        number = np.searchsorted(distinct, first)
        products = bits_of[distinct]

        # For each term and each bit v of it: the bits that must be set for v to matter.
        term, position = np.nonzero(products >= 0)
        others = products[term]
        others[np.arange(len(term)), position] = -1
        others = pad_right(others)[:, :2].astype(np.int64)
        paired = others[:, 1] >= 0
        pair = others[:, 0] * bits + others[:, 1]
        pairs = np.unique(pair[paired])
        place = 1 + others[:, 0]
        place[paired] = 1 + bits + np.searchsorted(pairs, pair[paired])
        order = np.argsort(place, kind="stable")
        terms = Terms(
            partners=np.searchsorted(pairs, np.arange(bits + 1) * bits).astype(np.int64),
            partner=(pairs % bits).astype(np.int32),
            starts=_starts(place, 1 + bits + len(pairs)),
            bit=products[term, position][order].astype(np.int32),
            term=term[order].astype(np.int32),
            steady=np.zeros(len(term)),
            slopes=np.zeros(len(distinct)),
        )

        # A literal's own sign and its term's: the square of a change adds up to its queries.
        entry = np.zeros(products.shape, np.int64)
        entry[term[order], position[order]] = np.arange(len(term))
        use, spot = np.nonzero(codes >= 0)
        signs = sign[use] * (1.0 - 2.0 * (codes[use, spot] & 1))
        where = entry[number[use], spot], owner[use]
        changes = csr_array((signs, where), (len(term), len(literals)))

        by_owner = np.argsort(owner, kind="stable")
        made = _starts(owner, len(literals)), number[by_owner].astype(np.int32), sign[by_owner]
        return MultipliedOut(terms, _asked(literals, bits, *made), changes)


def _with_a_literal_a_column(workload: Workload) -> NDArray[np.int32]:
    """Return literals, shape ``(m, MOST_LITERALS)``; none of queries with two on one column."""
    literals = workload.literals
    columns = np.where(literals >= 0, workload.domain.column_of_bit[literals >> 1], -1)
    # Literals increase, and so do their columns.
    twice = ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)
    literals = np.where(twice[:, None], np.int32(-1), literals)
    padding = np.full((len(literals), MOST_LITERALS - literals.shape[1]), -1, np.int32)
    return np.concatenate((literals, padding), axis=1)


def _products(
    literals: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int64], Float64]:
    """Return the literals of each product of each query, the query, and the sign."""
    present, negated = literals >= 0, (literals & 1 == 1) & (literals >= 0)
    rows, owners, signs = [], [], []
    for pattern in range(1 << MOST_LITERALS):
        kept = (pattern >> np.arange(MOST_LITERALS) & 1).astype(bool)
        # Positive literals are in every product, negated ones in half of them.
        fits = (present & ~negated <= kept).all(axis=1) & (kept <= present).all(axis=1)
        owner = np.flatnonzero(fits & present.any(axis=1))
        rows.append(np.where(kept, literals[owner], np.int32(-1)))
        owners.append(owner)
        signs.append((-1.0) ** (negated[owner] & kept).sum(axis=1))
    return pad_right(np.concatenate(rows)), np.concatenate(owners), np.concatenate(signs)


def _asked(
    literals: NDArray[np.int32],
    bits: int,
    made: NDArray[np.int64],
    term: NDArray[np.int32],
    coefficient: Float64,
) -> Asked:
    """Return the queries by the bits of their literals; weights of 1."""
    query, spot = np.nonzero(literals >= 0)
    codes, rest = literals[query, spot], literals[query]
    rest[np.arange(len(query)), spot] = -1
    order = np.argsort(codes >> 1, kind="stable")
    return Asked(
        starts=_starts(codes >> 1, bits),
        query=query[order].astype(np.int32),
        negated=(codes & 1).astype(np.uint8)[order],
        others=np.ascontiguousarray(pad_right(rest)[order][:, :2]),
        made=made,
        term=term,
        coefficient=coefficient,
        weights=np.ones(len(literals)),
    )


def _starts(numbers: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return where each of ``count`` numbers starts in the sorted list of them."""
    return np.concatenate(([0], np.cumsum(np.bincount(numbers, minlength=count)))).astype(np.int64)

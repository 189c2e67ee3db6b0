"""At most one conjunction of a query holds on a record: what makes a sum of conjunctions 0 or 1.

The game charges every query as one whose value is 0 or 1 (`dualquery.room.weights`). A query that
is posed as a sum of conjunctions (`dualquery.queries.disjunctions`) is so only if any two of
them contradict each other on every legal record. A family of a user's own may get this wrong: "any
of 8 flags" as the sum of 8 single literals takes values up to 8, and would cost up to eight times
what is charged. So the room proves it, by one of two arguments:

- *Cells.* All conjunctions of the query fix the value of the same columns, and no two are equal: a
  record has one value in each column, so it satisfies at most one of them.
- *Pairs.* Any two conjunctions have literals that exclude each other: a bit and its negation, or
  two different values of a one-hot column.

A query for which neither argument works is refused. Both look at public facts only.
"""

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.disjunctions import Disjunctions
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

MOST_PAIRS, _CHUNK = 1 << 24, 1 << 16
"""Pairs of conjunctions that are compared, in all and at a time; more are refused."""

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


def require_exclusive(queries: Disjunctions) -> None:
    """Raise `BadInputError` unless at most one conjunction of each query provably holds at once.

    So it does if there are more than `MOST_PAIRS` pairs of conjunctions to compare.
    """
    several = np.diff(queries.indptr) > 1
    if not several.any():
        return
    literals = _normalised(queries.conjunctions.literals, queries.domain)
    unproven = np.flatnonzero(several & ~_are_cells(queries, literals))
    lengths = np.diff(queries.indptr)[unproven]
    if int((lengths * (lengths - 1) // 2).sum()) > MOST_PAIRS:
        raise BadInputError(
            f"{len(unproven):,} queries are sums of up to {lengths.max():,} conjunctions, too many "
            "to check that no two of a query hold on one record; use the mechanism mwem, or pose "
            "each query as cells of one set of columns"
        )
    first, second, owner = _pairs(queries.indptr, unproven)
    for start in range(0, len(first), _CHUNK):
        part = slice(start, start + _CHUNK)
        overlap = ~_contradict(literals[first[part]], literals[second[part]], queries.domain)
        for place in np.flatnonzero(overlap)[:1]:
            one, other = (each[part][place] - queries.indptr[owner[part][place]]
                          for each in (first, second))  # fmt: skip
            raise BadInputError(
                f"query {owner[part][place]} is a sum of conjunctions, and two may hold on one "
                f"record (number {one} and number {other}), so its value may exceed 1; write it as "
                "conjunctions that exclude each other, or use the mechanism mwem"
            )


def _normalised(literals: Int32, domain: Domain) -> Int32:
    """Return literal codes in which a column of two one-hot bits has positive literals only."""
    bits = literals >> 1
    column = domain.column_of_bit[bits]
    start = domain.offsets[column]
    flip = (literals >= 0) & (literals & 1 == 1) & (domain.sizes[column] == 2)
    other = (2 * start + 1 - bits).astype(np.int32)
    return np.where(flip, 2 * other, literals).astype(np.int32)


def _are_cells(queries: Disjunctions, literals: Int32) -> NDArray[np.bool_]:
    """Return for which queries the first argument of the module holds: bool, ``(m,)``."""
    domain, indptr = queries.domain, queries.indptr
    present = literals >= 0
    column = np.where(present, domain.column_of_bit[literals >> 1], np.int32(-1))
    one_hot = present & (domain.sizes[column] > 1)
    fixes = (~one_hot | (literals & 1 == 0)).all(axis=1)
    columns = np.sort(column, axis=1)
    fixes &= ~((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)
    owner = np.repeat(np.arange(len(queries)), np.diff(indptr))
    same = (columns == columns[indptr[:-1]][owner]).all(axis=1)
    # A conjunction is told from all others of its query by the query's number, as one more literal.
    codes = 2 * domain.bits
    keyed = np.column_stack((np.sort(literals, axis=1), owner + codes)).astype(np.int32)
    different = first_occurrences(keyed, codes + len(queries)) == np.arange(len(keyed))
    return np.logical_and.reduceat(fixes & same & different, indptr[:-1])


def _pairs(indptr: Int64, queries: Int64) -> tuple[Int64, Int64, Int64]:
    """Return all pairs of conjunctions of one query, and the query of each pair."""
    lengths = np.diff(indptr)[queries]
    pairs = [np.array(np.triu_indices(length, 1)) for length in lengths.tolist()]
    owner = np.repeat(queries, lengths * (lengths - 1) // 2)
    first, second = np.concatenate([np.zeros((2, 0), np.int64), *pairs], axis=1) + indptr[owner]
    return first, second, owner


def _contradict(one: Int32, other: Int32, domain: Domain) -> NDArray[np.bool_]:
    """Return which conjunctions, row by row, exclude each other by the module's second argument."""
    a, b = one[:, :, None], other[:, None, :]
    both = (a >= 0) & (b >= 0)
    negation = (a ^ 1) == b
    columns = domain.column_of_bit[a >> 1] == domain.column_of_bit[b >> 1]
    values = columns & (a & 1 == 0) & (b & 1 == 0) & (a != b)
    return np.asarray((both & (negation | values)).any(axis=(1, 2)))

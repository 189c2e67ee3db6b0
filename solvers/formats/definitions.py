"""Columns of a 0-1 program that its rows define: the truth of a conjunction of literals.

A column is *defined* if the rows that hold it only tie it to a conjunction in one of three ways: it
implies every literal, and its weight is not negative; all literals together imply it, and its
weight is not positive; or both, whatever its weight. The same holds with ``1 - y`` for ``y``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import Rows
from solvers.formats.instance import Definitions

_WIDEST = 100  # most literals of a conjunction that a column is taken to stand for


def definitions_of(
    rows: Rows, objective: NDArray[np.float64], terms: NDArray[np.int32], free: NDArray[np.bool_]
) -> Definitions:
    """Return columns that rows define, independently of each other; none if there are none.

    ``objective`` are the weights of the columns, ``terms`` the objective's conjunctions, ``free``
    says which columns may be defined.
    """
    clauses, implications = _clauses(rows)
    rank, reverse = _definable(rows, clauses, implications, objective, terms, free)
    literals = _literals(clauses, implications, rank, reverse)
    chosen = _independent(rank, *literals)
    columns = np.flatnonzero(chosen)
    own = chosen[literals[0]]
    table = _padded(np.searchsorted(columns, literals[0][own]), literals[1][own], len(columns))
    return Definitions(columns, reverse[columns], table)


class _Clauses(NamedTuple):
    """The rows that are clauses of two or more literals, entry by entry."""

    row: NDArray[np.int64]
    literal: NDArray[np.int64]  # codes ``2 * column + negated``
    width: NDArray[np.int64]  # literals of the row of each entry


class _Implications(NamedTuple):
    """Literals that imply literals."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    row: NDArray[np.int64]


def _clauses(rows: Rows) -> tuple[_Clauses, _Implications]:
    """Read the rows that are clauses, or that tie one column to several literals at once."""
    row, widths = rows.row_of, np.diff(rows.indptr)
    unit = np.full(len(rows), np.inf)
    np.minimum.at(unit, row, np.abs(rows.coefficients))
    unit[widths == 0] = 1.0
    size = np.abs(rows.coefficients) / unit[row]
    positive = rows.coefficients > 0
    # Every row as at-least rows: an at-most row with its signs turned round.
    found_clauses, found = [], []
    for lower, upper, sign in ((rows.lower, rows.upper, 1), (-rows.upper, -rows.lower, -1)):
        plain = positive if sign > 0 else ~positive
        least = -rows.sums(np.where(plain, 0.0, size))
        most = rows.sums(np.where(plain, size, 0.0))
        bound, other = lower / unit, upper / unit
        one_sided = (other >= most) & np.isfinite(bound) & (widths >= 2)
        ones = rows.sums(size != 1.0) == 0
        literal = 2 * rows.attributes.astype(np.int64) + ~plain
        clause = (one_sided & ones & (bound == least + 1.0))[row]
        found_clauses.append((row[clause].astype(np.int64), literal[clause], widths[row][clause]))
        # k (1 - y) + sum of k literals >= k and alike: y implies each of them.
        heavy = (size == widths[row] - 1.0) & (widths[row] > 2)
        alone = (rows.sums(heavy) == 1) & (rows.sums(size != 1.0) == 1)
        together = one_sided & alone & (bound == least + widths - 1.0)
        light = together[row] & ~heavy
        head = np.zeros(len(rows), np.int64)
        head[row[heavy]] = literal[heavy] ^ 1
        found.append((head[row[light]], literal[light], row[light].astype(np.int64)))
    clauses = _Clauses(*map(np.concatenate, zip(*found_clauses, strict=True)))
    two = clauses.width == 2
    order = np.argsort(clauses.row[two], kind="stable")
    pairs, where = clauses.literal[two][order], clauses.row[two][order]
    one, other_one = pairs[0::2], pairs[1::2]
    found += [(one ^ 1, other_one, where[0::2]), (other_one ^ 1, one, where[0::2])]
    return clauses, _Implications(*map(np.concatenate, zip(*found, strict=True)))


def _definable(
    rows: Rows,
    clauses: _Clauses,
    implications: _Implications,
    objective: NDArray[np.float64],
    terms: NDArray[np.int32],
    free: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how well each column can be defined (0: not at all), and if its negation is."""
    n = len(free)
    touched = np.bincount(rows.attributes, minlength=n)
    rows_of = np.unique(implications.source * (len(rows) + 1) + implications.row)
    heads = np.bincount(rows_of // (len(rows) + 1), minlength=2 * n)
    implied = np.bincount(implications.source, minlength=2 * n)
    holding = np.bincount(clauses.literal, minlength=2 * n)
    widest = np.zeros(2 * n, np.int64)
    np.maximum.at(widest, clauses.literal, clauses.width)
    real = terms[terms >= 0]
    in_terms = np.bincount(real, minlength=2 * n)
    # Two-sided: each other literal of the one clause is the negation of an implied one.
    keys = np.sort(implications.source * 2 * n + implications.target)
    hopeful = (holding == 1) & (np.repeat(touched, 2) == heads + 1)
    hopeful &= (widest == implied + 1) & (widest <= _WIDEST)
    matched = _matched(clauses, hopeful, keys)
    rank = np.zeros(n, np.int64)
    reverse = np.zeros(n, np.bool_)
    for value, negated in ((1, True), (2, False)):
        literal = 2 * np.arange(n) + negated
        weight = -objective if negated else objective
        in_none = in_terms[0::2] + in_terms[1::2] == 0
        implies = (touched == heads[literal]) & (heads[literal] > 0) & (weight >= 0) & in_none
        implies &= implied[literal] <= _WIDEST
        is_implied = (touched == 1) & (holding[literal] == 1) & (weight <= 0) & in_none
        is_implied &= widest[literal] <= _WIDEST
        both = matched[literal] & (in_terms[literal ^ 1] == 0)
        for kind, found in ((0, is_implied), (2, implies), (4, both)):
            better = found & free & (value + kind > rank)
            rank[better] = value + kind
            reverse[better] = negated
    return rank, reverse


def _literals(
    clauses: _Clauses,
    implications: _Implications,
    rank: NDArray[np.int64],
    reverse: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of a definable column and a literal of its conjunction."""
    head = implications.source >> 1
    own = (rank[head] > 2) & ((implications.source & 1 == 1) == reverse[head])
    columns, literals = [head[own]], [implications.target[own]]
    # Those that only a clause defines: its other literals, negated.
    heads = np.zeros(2 * len(rank), np.bool_)
    alone = np.flatnonzero((rank > 0) & (rank <= 2))
    heads[2 * alone + reverse[alone]] = True
    of, others = _others(clauses, heads)
    columns.append(of >> 1)
    literals.append(others ^ 1)
    return np.concatenate(columns), np.concatenate(literals)


def _others(
    clauses: _Clauses, heads: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of a literal of ``heads`` (bool) and another one of a clause that holds both."""
    order = np.argsort(clauses.row, kind="stable")
    entries = np.flatnonzero(heads[clauses.literal])
    starts = np.searchsorted(clauses.row[order], clauses.row[entries])
    sizes = clauses.width[entries]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    others = clauses.literal[order[np.repeat(starts, sizes) + within]]
    of = np.repeat(clauses.literal[entries], sizes)
    return of[others != of], others[others != of]


def _matched(
    clauses: _Clauses, heads: NDArray[np.bool_], keys: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which literals imply the negation of every other one of their clause; keys ascend."""
    of, others = _others(clauses, heads)
    wanted = of * len(heads) + (others ^ 1)
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    missing = keys[at] != wanted if len(keys) else np.ones(len(wanted), np.bool_)
    return np.asarray(heads & (np.bincount(of, missing, minlength=len(heads)) == 0))


def _independent(
    rank: NDArray[np.int64], columns: NDArray[np.int64], literals: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return columns that can be defined; none is in another one's definition."""
    chosen, other = rank > 0, literals >> 1
    clash = chosen[other]
    one, two = columns[clash], other[clash]
    # The better one stays, of equal ones that with two literals or more, then the later one:
    # writers number what they define last.
    rank = 2 * rank + (np.bincount(columns, minlength=len(rank)) > 1)
    first_loses = (rank[one] < rank[two]) | ((rank[one] == rank[two]) & (one < two))
    chosen[np.where(first_loses, one, two)] = False
    return chosen


def _padded(row: NDArray[np.int64], literals: NDArray[np.int64], count: int) -> NDArray[np.int32]:
    """Return literals by row as a table padded with -1."""
    sizes = np.bincount(row, minlength=count)
    order = np.argsort(row, kind="stable")
    table = np.full((count, int(sizes.max(initial=1))), -1, np.int32)
    table[np.arange(table.shape[1]) < sizes[:, None]] = literals[order]
    return table

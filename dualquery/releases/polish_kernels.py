"""Compiled loop of `dualquery.releases.polish`: the best change of one column of one record.

With ``e_q`` the excess of query q's count and ``w_q`` its weight, setting bit v to 1 changes the
weighted sum of squares by

    sum over q of  w_q (2 e_q s + s^2),   s the change of q on the record: -1, 0 or 1.

Queries are multiplied out into products of bits (*terms*), so that ``s`` is the sum of the terms
with v whose other bits are set, each with a coefficient. Their coefficients are added up over all
queries: what a record gains by any change is then a sum over the terms that its own 1s select,
a few thousand, however many queries there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint8

from dualquery.runtime.array_types import Array, kernel, read_only

_LEAST = 1e-9
"""Gains below this are rounding."""


class Terms(NamedTuple):
    """Terms by the other bits that must be set for a bit to matter, and the terms of each query.

    Parameters
    ----------
    partners
        int64, shape ``(bits + 1,)``: bit a has the pairs ``partners[a] .. partners[a + 1] - 1``.
    partner
        int32, shape ``(p,)``: the second bit of each pair, larger than a, increasing for each a.
    starts
        int64, shape ``(1 + bits + p + 1,)``: the entries of no bit, then of each single bit, then
        of each pair.
    bit, term
        int32, shape ``(entries,)``: the bit that matters, and its term.
    steady
        float64, shape ``(entries,)``: coefficient of the sum of ``w_q s^2``.
    slopes
        float64, shape ``(terms,)``: coefficients of the sum of ``2 w_q e_q s``; kept up to date.
    """

    partners: Array
    partner: Array
    starts: Array
    bit: Array
    term: Array
    steady: Array
    slopes: Array


class Asked(NamedTuple):
    """The queries, by the bits of their literals, and what they are made of.

    Parameters
    ----------
    starts
        int64, shape ``(bits + 1,)``: the literals about each bit.
    query
        int32, shape ``(l,)``: the query of each literal.
    negated
        uint8, shape ``(l,)``.
    others
        int32, shape ``(l, 2)``: codes of the query's other literals, padded on the right with -1.
    made
        int64, shape ``(m + 1,)``: the terms of each query.
    term
        int32: their places.
    coefficient
        float64: their coefficients, 1 or -1.
    weights
        float64, shape ``(m,)``: of the queries.
    """

    starts: Array
    query: Array
    negated: Array
    others: Array
    made: Array
    term: Array
    coefficient: Array
    weights: Array


_TERMS = types.NamedTuple(
    (int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], float64[::1], float64[::1]), Terms
)
_ASKED = types.NamedTuple(
    (
        int64[::1],
        int32[::1],
        uint8[::1],
        int32[:, ::1],
        int64[::1],
        int32[::1],
        float64[::1],
        float64[::1],
    ),
    Asked,
)


@kernel(types.void(_TERMS, int64, float64[::1], float64[::1]))
def _add(terms: Terms, place: int, slope: Array, steady: Array) -> None:
    """Add the entries of one place to what every bit would change."""
    for entry in range(terms.starts[place], terms.starts[place + 1]):
        bit = terms.bit[entry]
        slope[bit] += terms.slopes[terms.term[entry]]
        steady[bit] += terms.steady[entry]


@kernel(types.void(uint8[:], _TERMS, int64[::1], float64[::1], float64[::1]))
def _gather(record: Array, terms: Terms, ones: Array, slope: Array, steady: Array) -> None:
    """Write the two parts of what turning on each bit of a record would change."""
    bits, count = len(record), 0
    for bit in range(bits):
        slope[bit], steady[bit] = 0.0, 0.0
        if record[bit]:
            ones[count] = bit
            count += 1
    _add(terms, 0, slope, steady)
    for i in range(count):
        first = ones[i]
        _add(terms, 1 + first, slope, steady)
        low, end = terms.partners[first], terms.partners[first + 1]
        for j in range(i + 1, count):
            # Both lists increase: the search goes on from where it was.
            high = end
            while low < high:
                middle = (low + high) >> 1
                if terms.partner[middle] < ones[j]:
                    low = middle + 1
                else:
                    high = middle
            if low == end:
                break
            if terms.partner[low] == ones[j]:
                _add(terms, 1 + bits + low, slope, steady)


@kernel(int64(uint8[:], int32[:]))
def _hold(record: Array, codes: Array) -> int:
    """Return 1 if all literals hold on a record, else 0."""
    for code in codes:
        if code >= 0 and record[code >> 1] == code & 1:
            return 0
    return 1


@kernel(types.void(int64, float64, _TERMS, _ASKED, float64[::1]))
def _enter(query: int, step: float, terms: Terms, asked: Asked, excess: Array) -> None:
    """Enter the change of a query's count into counts and slopes."""
    excess[query] += step
    change = 2.0 * step * asked.weights[query]
    for place in range(asked.made[query], asked.made[query + 1]):
        terms.slopes[asked.term[place]] += asked.coefficient[place] * change


@kernel(types.void(uint8[:], int64, float64, _TERMS, _ASKED, float64[::1]))
def _turn(record: Array, bit: int, sign: float, terms: Terms, asked: Asked, excess: Array) -> None:
    """Turn a bit on (1) or off (-1), and enter it into counts and slopes."""
    for literal in range(asked.starts[bit], asked.starts[bit + 1]):
        if _hold(record, asked.others[literal]):
            step = -sign if asked.negated[literal] else sign
            _enter(asked.query[literal], step, terms, asked, excess)
    record[bit] = 1 if sign > 0 else 0


@kernel(int64(uint8[:, :], read_only(int64), _TERMS, _ASKED, read_only(int64), int64, float64[::1]))
def change_columns(
    records: Array,
    offsets: Array,
    terms: Terms,
    asked: Asked,
    which: Array,
    most: int,
    excess: Array,
) -> int:
    """Visit records; make the change that lowers the weighted sum most, several times.

    Parameters
    ----------
    records
        uint8, shape ``(r, bits)``, legal; changed in place.
    offsets
        int64, shape ``(columns + 1,)``.
    terms, asked
        What the queries are made of.
    which
        int64, shape ``(v,)``: records to visit.
    most
        Changes of one record in a visit.
    excess
        float64, shape ``(m,)``: by how much each query's count is too large; kept up to date.

    Returns
    -------
    Number of changes.
    """
    bits = records.shape[1]
    slope, steady, ones = np.empty(bits), np.empty(bits), np.empty(bits, np.int64)
    changes = 0
    for visit in range(len(which)):
        record = records[which[visit]]
        for _ in range(most):
            _gather(record, terms, ones, slope, steady)
            least, old, new = -_LEAST, -1, -1
            for column in range(len(offsets) - 1):
                first, stop = offsets[column], offsets[column + 1]
                now = -1
                for bit in range(first, stop):
                    if record[bit]:
                        now = bit
                leaving = 0.0 if now < 0 else steady[now] - slope[now]
                if stop - first == 1 and now >= 0:
                    if leaving < least:
                        least, old, new = leaving, now, -1
                    continue
                for bit in range(first, stop):
                    change = leaving + slope[bit] + steady[bit]
                    if bit != now and change < least:
                        least, old, new = change, now, bit
            if old == new:
                break
            changes += 1
            if old >= 0:
                _turn(record, old, -1.0, terms, asked, excess)
            if new >= 0:
                _turn(record, new, 1.0, terms, asked, excess)
    return changes


@kernel(
    int64(
        uint8[:, :],
        read_only(int64),
        _TERMS,
        _ASKED,
        read_only(int64),
        read_only(int64),
        float64[::1],
    )
)
def swap_columns(
    records: Array,
    offsets: Array,
    terms: Terms,
    asked: Asked,
    which: Array,
    partners: Array,
    excess: Array,
) -> int:
    """Visit pairs of records; let them swap the column that promises most, if that is a gain.

    A swap moves only the queries whose other literals hold on one of the two records, not on both:
    far fewer than a change of one record does.

    Parameters
    ----------
    records, offsets, terms, asked, excess
        As of `change_columns`.
    which, partners
        int64, shape ``(v,)`` each: the records of each pair.

    Returns
    -------
    Number of swaps.
    """
    bits = records.shape[1]
    slope, other, steady = np.empty(bits), np.empty(bits), np.empty(bits)
    ones = np.empty(bits, np.int64)
    swaps = 0
    for visit in range(len(which)):
        one, two = records[which[visit]], records[partners[visit]]
        _gather(one, terms, ones, slope, steady)
        _gather(two, terms, ones, other, steady)
        promise, column = -_LEAST, -1
        for place in range(len(offsets) - 1):
            change = 0.0
            for bit in range(offsets[place], offsets[place + 1]):
                change += (np.int64(two[bit]) - np.int64(one[bit])) * (slope[bit] - other[bit])
            if change < promise:
                promise, column = change, place
        if column < 0:
            continue
        change = promise
        for bit in range(offsets[column], offsets[column + 1]):
            if one[bit] == two[bit]:
                continue
            for literal in range(asked.starts[bit], asked.starts[bit + 1]):
                if _hold(one, asked.others[literal]) != _hold(two, asked.others[literal]):
                    change += asked.weights[asked.query[literal]]
            if change > -_LEAST:
                break
        if change > -_LEAST:
            continue
        swaps += 1
        for bit in range(offsets[column], offsets[column + 1]):
            if one[bit] != two[bit]:
                for literal in range(asked.starts[bit], asked.starts[bit + 1]):
                    more = _hold(one, asked.others[literal]) - _hold(two, asked.others[literal])
                    if more != 0:
                        step = more * (np.int64(two[bit]) - np.int64(one[bit]))
                        if asked.negated[literal]:
                            step = -step
                        _enter(asked.query[literal], float(step), terms, asked, excess)
        for bit in range(offsets[column], offsets[column + 1]):
            one[bit], two[bit] = two[bit], one[bit]
    return swaps

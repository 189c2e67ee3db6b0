"""What lies beyond the edges of a column that clips: it is counted in the outermost buckets.

How many of a bucket's rows that is, nobody says. A range that ends at an outermost edge, or beyond
it, tells them apart from the rows inside: they become *pieces* of the bucket, likely empty and at
most all of it, and the limits of an answer allow for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
from dualquery.data.schema.dates import CYCLES, Dates
from dualquery.questions.columns import Allowed, Pieces


def beyond_edges(
    column: Column, literals: Iterable[Allowed]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return where the parts begin that ranges tell apart, below all buckets and above them.

    Both are empty where nothing can be there, and where every range goes on beyond the edge, or
    ends before it: what is there is then on the side of its bucket.
    """
    if not _clips(column):
        return (), ()
    spans = [span for each in literals if isinstance(each, tuple) for span in each]
    ends = {end for span in spans for end in (span.low, span.high) if math.isfinite(end)}
    if isinstance(column, Numeric):
        (least, _), (_, most), whole = column.bounds[0], column.bounds[-1], column.integer
    else:
        least, most, whole = 0.0, column.buckets - 1.0, True
    first = most + 1.0 if whole else math.nextafter(most, math.inf)
    below: set[float] = set()
    above: set[float] = set()
    if any(end <= least for end in ends):
        below = {-math.inf, *(end for end in ends if end < least)}
    # Whole numbers that end at the last edge stop at the next number, others at the edge itself.
    if any(end >= (first if whole else most) for end in ends):
        above = {first, *(end for end in ends if end > first)}
    return tuple(sorted(below)), tuple(sorted(above))


def opened(pieces: Pieces, column: Column, literals: Iterable[Allowed]) -> Pieces:
    """Return the pieces of a column, and those beyond its edges that literals tell apart."""
    below, above = beyond_edges(column, literals)
    if not below and not above:
        return pieces
    assert isinstance(column, Numeric | Dates)
    behind = int(np.searchsorted(pieces.value, column.buckets))
    numbers = pieces.part_of(slice(behind))
    return Pieces.joined(
        (
            _empty(0, float(numbers.low[0]), below),
            numbers,
            _empty(column.buckets - 1, float(numbers.high[-1]), above),
            pieces.part_of(slice(behind, None)),
        )
    )


def _clips(column: Column) -> TypeGuard[Numeric | Dates]:
    """Return whether something may lie beyond the edges of a column."""
    if isinstance(column, Dates):
        return column.outside == "clip" and column.by not in CYCLES
    return isinstance(column, Numeric) and column.outside == "clip"


def _empty(value: int, edge: float, begins: Sequence[float]) -> Pieces:
    """Return pieces of a value beyond an edge, which are likely empty."""
    count = len(begins)
    at_edge = np.full(count, edge)
    values = np.full(count, value)
    return Pieces(values, np.zeros(count), at_edge, at_edge, at_edge, np.array(begins, np.float64))

"""Numbers beyond the edges of a column that clips: they are counted in the outermost buckets.

How many of a bucket's rows they are, nobody says. A range that ends at an outermost edge, or beyond
it, tells them apart from the numbers inside: they become *pieces* of the bucket, likely empty and
at most all of it, and the limits of an answer allow for that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from dualquery.data.schema.columns import Column, Numeric
from dualquery.questions.columns import Allowed, Pieces


def beyond_edges(
    column: Column, literals: Iterable[Allowed]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return where the parts begin that ranges tell apart, below all buckets and above them.

    Both are empty where no number can be there, and where every range goes on beyond the edge, or
    ends before it: the numbers there are then on the side of their bucket.
    """
    if not isinstance(column, Numeric) or column.outside != "clip":
        return (), ()
    spans = [span for each in literals if isinstance(each, tuple) for span in each]
    ends = {end for span in spans for end in (span.low, span.high) if math.isfinite(end)}
    least, most = column.bounds[0][0], column.bounds[-1][1]
    first = most + 1.0 if column.integer else math.nextafter(most, math.inf)
    below: set[float] = set()
    above: set[float] = set()
    if any(end <= least for end in ends):
        below = {-math.inf, *(end for end in ends if end < least)}
    # Whole numbers that end at the last edge stop at the next number, others at the edge itself.
    if any(end >= (first if column.integer else most) for end in ends):
        above = {first, *(end for end in ends if end > first)}
    return tuple(sorted(below)), tuple(sorted(above))


def opened(pieces: Pieces, column: Column, literals: Iterable[Allowed]) -> Pieces:
    """Return the pieces of a column, and those beyond its edges that literals tell apart."""
    below, above = beyond_edges(column, literals)
    if not below and not above:
        return pieces
    assert isinstance(column, Numeric)
    behind = int(np.searchsorted(pieces.value, column.buckets))
    return Pieces.joined(
        (
            _empty(0, column.bounds[0][0], below),
            pieces.part_of(slice(behind)),
            _empty(column.buckets - 1, column.bounds[-1][1], above),
            pieces.part_of(slice(behind, None)),
        )
    )


def _empty(value: int, edge: float, begins: Sequence[float]) -> Pieces:
    """Return pieces of a value beyond an edge, in which likely no number is."""
    count = len(begins)
    at_edge = np.full(count, edge)
    values = np.full(count, value)
    return Pieces(values, np.zeros(count), at_edge, at_edge, at_edge, np.array(begins, np.float64))

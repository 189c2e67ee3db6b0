"""Edges of buckets that suit how numbers lie, by counts on a grid: equal steps, or quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.drafts.buckets import as_written, round_edges, simplest

Floats = NDArray[np.float64]

_HEAVY = 0.25
"""Equal steps serve as long as no bucket holds a larger share of the numbers than this."""

_LIGHT = 0.25
"""A bucket that is not worth its edges holds a smaller part than this of an average one."""


def fitting_edges(
    bounds: Floats, counts: Floats, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of buckets of which none holds most of the numbers, if that can be.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a cell of the grid that is by
    itself as frequent as an average bucket is a bucket of its own, and the rest is cut at numbers
    of few digits near its quantiles.

    Parameters
    ----------
    bounds
        float64, increasing: the ends of the cells of a grid; the first and the last cell count.
    counts
        float64, not negative, one fewer: how many numbers lie in each cell, evenly. Some are > 0.
    buckets
        About how many; at least 2.
    whole
        Whether the numbers, and hence the edges, are whole.

    Returns
    -------
    At least 3 numbers, strictly increasing, from at most the first to at least the last of
    ``bounds``.
    """
    ends = np.concatenate(([0.0], np.cumsum(counts))) / counts.sum()
    low, high = float(bounds[0]), float(bounds[-1])
    equal = round_edges(low, high, buckets, whole=whole)
    if np.diff(np.interp(equal, bounds, ends)).max() <= _HEAVY:
        return equal
    own = counts * buckets >= counts.sum()
    edges = {*bounds[:-1][own].tolist(), *bounds[1:][own].tolist()}
    rest = np.where(own, 0.0, counts)
    if rest.sum():
        edges |= _near_quantiles(bounds, rest, max(buckets - int(own.sum()), 2), edges, whole=whole)
    outer = (_below(low, bounds[1], whole=whole), -_below(-high, -bounds[-2], whole=whole))
    tidy = sorted({*outer, *(edge for edge in edges if low < edge < high)})
    return tuple(tidy) if len(tidy) > 2 else equal


def _near_quantiles(
    bounds: Floats, rest: Floats, cuts: int, own: set[float], *, whole: bool
) -> set[float]:
    """Return numbers of few digits near the quantiles of what has no bucket of its own.

    The outermost quarter of the last bucket on each side is cut off: tails are long.
    """
    ends = np.concatenate(([0.0], np.cumsum(rest))) / rest.sum()
    level = np.flatnonzero(np.diff(ends) > 0)
    # Quantiles are those of numbers, not of gaps between them: of equal ends the outer ones.
    knots = np.unique(np.concatenate((level, level + 1)))
    parts = [_LIGHT, *range(1, cuts), cuts - _LIGHT]
    near = np.array([(part - 0.25, part + 0.25) for part in parts]) / cuts
    near = near.clip(0.0, 1.0)
    found: set[float] = set()
    for first, last in np.interp(near, ends[knots], bounds[knots]).tolist():
        if first < last:
            found.add(float(simplest(as_written(first), as_written(last), whole=whole)))
    kept: set[float] = set()
    begin = 0.0
    for edge in sorted(found):
        share = float(np.interp(edge, bounds, ends))
        if edge in own or min(share - begin, 1.0 - share) * cuts >= _LIGHT / 2:
            kept.add(edge)
            begin = share
    return kept


def _below(end: float, inner: float, *, whole: bool) -> float:
    """Return the number of the fewest digits at or below an end, at most its cell's width away."""
    first, last = sorted((2 * end - inner, end))
    found = simplest(as_written(first), as_written(last), whole=False) if first < last else end
    low = float(np.floor(float(found))) if whole else float(found)
    return min(low, end)

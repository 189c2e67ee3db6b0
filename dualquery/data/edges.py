"""Edges of buckets that suit how numbers lie: equal steps, steps that grow, or quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualquery.data.buckets import as_written, round_edges, simplest

_HEAVY = 0.25
"""Edges of a scale serve as long as no bucket holds more of the values than this."""

_AVERAGES = 2
"""Nor, of all values of the column, more than so many buckets do on average."""

_LIGHT = 0.25
"""A bucket that is not worth its edges holds less than this part of an average one."""

_GROWING = (("1", "2", "5"), ("1", "1.5", "2", "3", "5", "7"))
"""Scales for numbers that span powers of ten: each is its numbers times these powers."""

_NEAREST_TO_ZERO = 0.01
"""The part of the numbers, those nearest to 0, that such a scale does not go down to."""


def fitting_edges(
    values: NDArray[np.float64], low: float, high: float, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of buckets that suit how values lie: none holds most of them.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a value that is by itself as
    frequent as an average bucket gets a bucket of its own. The rest is cut at the numbers that
    anybody would choose, if they serve: equal steps, else 1, 2, 5 times powers of ten, else 1, 1.5,
    2, 3, 5, 7 times these. If none of them does, it is cut at numbers of few digits near its
    quantiles.

    Parameters
    ----------
    values
        float64, finite: the values, or a sample of them; at least one.
    low, high
        The range of all values; finite, and ``low < high``.
    buckets
        About how many; at least 2.
    whole
        Whether the values are whole numbers.

    Returns
    -------
    At least 3 numbers, strictly increasing, the first at most ``low`` and the last at least
    ``high``; with ``whole``, whole numbers. There are at most ``3 * buckets`` buckets.
    """
    equal = round_edges(low, high, buckets, whole=whole)
    shares = np.histogram(values, np.array(equal))[0] / len(values)
    if shares.max() <= _HEAVY:
        return equal
    ordered = np.sort(values)
    distinct, counts = np.unique(ordered, return_counts=True)
    atom = counts * buckets >= len(values)
    own: set[Fraction] = set()
    for place in np.flatnonzero(atom):
        own |= set(_around(distinct, int(place), high, whole))
    rest = ordered[~np.isin(ordered, distinct[atom])]
    cuts = max(buckets - int(atom.sum()), 2)
    first, last = as_written(low), as_written(high)

    def inside(edges: Iterable[Fraction]) -> list[Fraction]:
        # The largest value, if it has a bucket of its own, begins it: the last edge lies above.
        return [edge for edge in sorted(edges) if first < edge < last or edge == last in own]

    most = min(_HEAVY * len(rest), _AVERAGES / buckets * len(values))
    scale = _serving_scale(rest, cuts, most, whole=whole)
    if scale is not None:
        inner = inside(own | scale)
    else:
        inner = inside(own | _near_quantiles(rest, cuts, whole=whole))
        inner = _without_slivers(inner, own, rest, len(rest) * _LIGHT / cuts)
    inner = _without_empty(inner, own, distinct)
    if not inner:
        return equal
    below = simplest(first - (inner[0] - first), first, whole=whole)
    above = simplest(last, last + (last - inner[-1]), whole=whole)
    if inner[-1] == last:
        step = Fraction(1) if whole else (last - max((first, *inner[:-1]))) / 100
        above = simplest(last + step, last + max(10 * step, abs(last) / 50), whole=whole)
    tidy = sorted(set(map(float, (below, *inner, above))))
    return tuple(tidy) if len(tidy) > 2 else equal


def _around(
    distinct: NDArray[np.float64], place: int, high: float, whole: bool
) -> tuple[Fraction, Fraction]:
    """Return the edges of a bucket that holds one of the distinct values and no other."""
    value = as_written(float(distinct[place]))
    if whole:
        return value, value + 1
    above = as_written(float(distinct[place + 1] if place + 1 < len(distinct) else high))
    if above <= value:
        return value, value
    return value, simplest((value + above) / 2, above, whole=False)


def _serving_scale(
    rest: NDArray[np.float64], cuts: int, most: float, *, whole: bool
) -> set[Fraction] | None:
    """Return the edges of the first scale that serves; None if none does.

    No bucket of several different values holds more than ``most`` of the ordered ``rest``, and
    there are at most twice as many buckets as ``cuts``.
    """
    if not len(rest) or rest[0] == rest[-1]:
        return None
    for edges in _scales(rest, cuts, whole=whole):
        before = np.searchsorted(rest, np.array(sorted(map(float, edges))))
        ends = np.unique(np.concatenate(([0], before, [len(rest)])))
        several = rest[ends[:-1]] < rest[ends[1:] - 1]
        if len(several) <= 2 * cuts and np.diff(ends)[several].max(initial=0) <= most:
            return edges
    return None


def _scales(rest: NDArray[np.float64], cuts: int, *, whole: bool) -> Iterator[set[Fraction]]:
    """Yield equal steps over the range of the ordered values, then those that grow."""
    low, high = float(rest[0]), float(rest[-1])
    yield set(map(as_written, round_edges(low, high, cuts, whole=whole)))
    sizes = np.abs(rest[rest != 0])
    least = float(np.quantile(sizes, _NEAREST_TO_ZERO, method="nearest"))
    for numbers in _GROWING:
        edges = {Fraction(0)}
        for sign, largest in ((1, high), (-1, -low)):
            if largest > 0:
                edges |= {sign * edge for edge in _growing(numbers, least, largest, whole=whole)}
        yield edges


def _growing(
    numbers: tuple[str, ...], least: float, largest: float, *, whole: bool
) -> list[Fraction]:
    """Return the numbers of a scale up to ``largest``, from the last one up to ``least`` on."""
    powers = range(math.floor(math.log10(least)) - 1, math.floor(math.log10(largest)) + 2)
    scale = [Fraction(number) * Fraction(10) ** power for power in powers for number in numbers]
    scale = [edge for edge in scale if edge <= largest and not (whole and edge.denominator > 1)]
    start = max((edge for edge in scale if edge <= as_written(least)), default=Fraction(0))
    return [edge for edge in scale if edge >= start]


def _near_quantiles(rest: NDArray[np.float64], cuts: int, *, whole: bool) -> set[Fraction]:
    """Return numbers of few digits near the quantiles of ordered values."""
    if not len(rest):
        return set()
    ends = np.quantile(rest, np.arange(2 * cuts + 1) / (2 * cuts), method="nearest")
    return {
        simplest(as_written(left), as_written(right), whole=whole)
        for left, right in zip(ends[1:-1:2].tolist(), ends[2:-1:2].tolist(), strict=False)
        if left < right
    }


def _without_slivers(
    edges: list[Fraction], own: set[Fraction], ordered: NDArray[np.float64], least: float
) -> list[Fraction]:
    """Drop the edges, but those of ``own``, that leave fewer than ``least`` values beside them."""
    if not edges:
        return []
    before = np.searchsorted(ordered, np.array(list(map(float, edges))))
    kept: list[Fraction] = []
    start = 0
    for edge, place, end in zip(edges, before, [*before[1:], len(ordered)], strict=True):
        if edge in own or min(place - start, end - place) >= least:
            kept.append(edge)
            start = place
    return kept


def _without_empty(
    edges: list[Fraction], own: set[Fraction], distinct: NDArray[np.float64]
) -> list[Fraction]:
    """Drop an edge of each bucket that holds no value: the upper one if the lower is in ``own``."""
    places = np.searchsorted(distinct, np.array(list(map(float, edges))))
    kept: list[Fraction] = []
    start = -1
    for edge, place in zip(edges, places.tolist(), strict=True):
        if place == start:
            if kept[-1] in own and edge not in own:
                continue
            kept.pop()
        kept.append(edge)
        start = place
    return kept[:-1] if start == len(distinct) else kept

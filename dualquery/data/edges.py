"""Edges of buckets that suit how numbers lie: equal steps, steps that grow, or quantiles."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
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

_GROWING = (
    ("1", "2", "5"),
    ("1", "1.5", "2", "3", "5", "7"),
    ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8"),
)
"""Scales for numbers that span powers of ten: each is its numbers times these powers."""

_TAIL = 0.05
"""The part of the values, at each end, that is not cut as the others are. How far they reach
depends on the number of rows; where the others lie hardly does."""

_LONGEST = 8
"""A tail is cut into about so many buckets at most."""

_LARGEST = Fraction(sys.float_info.max)

_DECIMALS = 4
"""Numbers of no more decimals than this are cut at whole multiples of their last one."""


def fitting_edges(
    values: NDArray[np.float64], low: float, high: float, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of buckets that suit how values lie: none holds most of them.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a value that is by itself as
    frequent as an average bucket gets a bucket of its own. The rest is cut at the numbers that
    anybody would choose, if they serve: equal steps, else 1, 2, 5 times powers of ten, else 1, 1.5,
    2, 3, 5, 7 times these, else 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times these. If none of them
    does, it is cut at numbers of few digits near its quantiles. All of these are for nine in ten
    values; beyond, each bucket is about twice as wide as the one before it. So the outermost one
    neither spans what lies far apart, nor shows by its edge where the outermost value lies.

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
    unit = None if whole else _last_decimal(values)
    if unit is not None:
        first, last = math.floor(as_written(low) / unit), math.ceil(as_written(high) / unit)
        units = np.rint(values / float(unit))
        steps = fitting_edges(units, float(first), float(last), buckets, whole=True)
        return tuple(float(as_written(step) * unit) for step in steps)
    equal = round_edges(low, high, buckets, whole=whole)
    shares = np.histogram(values, np.array(equal))[0] / len(values)
    if shares.max() <= _HEAVY:
        return equal
    edges = _uneven_edges(values, low, high, buckets, whole=whole)
    tidy = sorted({float(max(-_LARGEST, min(edge, _LARGEST))) for edge in edges})
    return tuple(tidy) if len(tidy) > 2 else equal


def _last_decimal(values: NDArray[np.float64]) -> Fraction | None:
    """Return the power of ten, below 1, that all values are multiples of; None if there is none."""
    for decimals in range(1, _DECIMALS + 1):
        if np.abs(values).max() * 10**decimals >= 2.0**53:
            return None
        if np.all(np.round(values, decimals) == values):
            return Fraction(1, 10**decimals)
    return None


def _uneven_edges(
    values: NDArray[np.float64], low: float, high: float, buckets: int, *, whole: bool
) -> list[Fraction]:
    """Return edges where those of equal buckets do not serve; fewer than 3 if there are none."""
    ordered = np.sort(values)
    distinct, counts = np.unique(ordered, return_counts=True)
    atom = counts * buckets >= len(values)
    own: set[Fraction] = set()
    for place in np.flatnonzero(atom):
        own |= set(_around(distinct, int(place), high, whole))
    rest = ordered[~np.isin(ordered, distinct[atom])]
    cuts = max(buckets - int(atom.sum()), 2)
    most = min(_HEAVY * len(rest), _AVERAGES / buckets * len(values))
    scale = _serving_scale(rest, cuts, most, whole=whole)
    if scale is None:
        scale = _near_quantiles(rest, own, cuts, whole=whole)
    first, last = as_written(low), as_written(high)
    # The largest value, if it has a bucket of its own, begins it: the last edge lies above.
    at_ends = {first, last} & own
    inner = [edge for edge in sorted(own | scale) if first < edge < last or edge in at_ends]
    inner = _without_empty(inner, own, distinct)
    if not inner:
        return []
    below = max((edge for edge in scale if edge <= first), default=first)
    if inner[-1] == last:
        step = Fraction(1) if whole else (last - max((first, *inner[:-1]))) / 100
        return [below, *inner, simplest(last + step, last + max(step, abs(last) / 50), whole=whole)]
    beyond = [edge for edge in scale if edge >= last]
    return (
        [below, *inner, min(beyond)] if beyond else [below, *_with_tail(inner, last, whole=whole)]
    )


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
    """Yield equal steps over the ordered values, equal steps over most of them, then growing ones.

    All cover the values.
    """
    low, high = float(rest[0]), float(rest[-1])
    yield set(map(as_written, round_edges(low, high, cuts, whole=whole)))
    first, last = np.quantile(rest, (_TAIL, 1 - _TAIL), method="nearest").tolist()
    if first < last:
        steps = list(map(as_written, round_edges(first, last, cuts, whole=whole)))
        yield _with_tails(steps, as_written(low), as_written(high), whole=whole)
    negative, positive = -rest[rest < 0][::-1], rest[rest > 0]
    few = _TAIL * (len(negative) + len(positive))
    for numbers in _GROWING:
        edges = {Fraction(0)}
        for sign, sizes in ((-1, negative), (1, positive)):
            if len(sizes):
                edges |= {sign * edge for edge in _growing(numbers, sizes, few, whole=whole)}
        yield edges


def _growing(
    numbers: tuple[str, ...], sizes: NDArray[np.float64], few: float, *, whole: bool
) -> list[Fraction]:
    """Return the numbers of a scale for ordered sizes but a ``few`` at each end, and a tail."""
    part = min(few / len(sizes), 0.5)
    ends = np.quantile(sizes, (part, 1 - part), method="nearest").tolist()
    least, most = map(as_written, ends)
    powers = range(math.floor(math.log10(ends[0])) - 1, math.floor(math.log10(ends[1])) + 2)
    scale = [Fraction(number) * Fraction(10) ** power for power in powers for number in numbers]
    scale = [edge for edge in scale if not (whole and edge.denominator > 1)]
    start = max((edge for edge in scale if edge <= least), default=Fraction(0))
    end = min(edge for edge in scale if edge >= most)
    middle = [edge for edge in scale if start <= edge <= end]
    return _with_tail(middle, as_written(float(sizes[-1])), whole=whole)


def _near_quantiles(
    rest: NDArray[np.float64], own: set[Fraction], cuts: int, *, whole: bool
) -> set[Fraction]:
    """Return numbers of few digits near the quantiles of ordered values, and tails."""
    if not len(rest):
        return set()
    ends = np.quantile(rest, np.arange(2 * cuts + 1) / (2 * cuts), method="nearest")
    near = {
        simplest(as_written(left), as_written(right), whole=whole)
        for left, right in zip(ends[1:-1:2].tolist(), ends[2:-1:2].tolist(), strict=False)
        if left < right
    }
    edges = _without_slivers(sorted(near), own, rest, len(rest) * _LIGHT / cuts)
    low, high = as_written(float(rest[0])), as_written(float(rest[-1]))
    return _with_tails(edges, low, high, whole=whole) if edges else {low, high}


def _with_tails(
    edges: list[Fraction], low: Fraction, high: Fraction, *, whole: bool
) -> set[Fraction]:
    """Return increasing edges with a tail on each side, so that they cover a range."""
    above = _with_tail(edges, high, whole=whole)
    below = _with_tail([-edge for edge in reversed(edges)], -low, whole=whole)
    return {*above, *(-edge for edge in below)}


def _with_tail(edges: list[Fraction], last: Fraction, *, whole: bool) -> list[Fraction]:
    """Return increasing edges, and those of wider and wider buckets up to ``last`` or beyond.

    Each bucket is 1.5 to 3 times as wide as the one before it, or more where there would be more of
    them than `_LONGEST`, and ends at the number of the fewest digits. Below 0 they end at 0, unless
    ``last`` lies above.
    """
    grown = list(edges)
    width = grown[-1] - grown[-2] if len(grown) > 1 else last - grown[-1]
    if grown[-1] >= last:
        return grown
    reach = (last - grown[-1]) / width
    exponent = (math.log(reach.numerator) - math.log(reach.denominator)) / _LONGEST
    growth = Fraction(max(2.0, math.exp(exponent)))
    while grown[-1] < last:
        at = grown[-1]
        least, most = at + width * growth * 3 / 4, at + width * growth * 3 / 2
        if last <= least:
            least = max(last, at + width / 2)
        edge = simplest(least, most, whole=whole)
        grown.append(Fraction(0) if at < 0 < edge and last <= 0 else edge)
        width = grown[-1] - at
    return grown


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

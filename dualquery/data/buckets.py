"""Buckets whose edges are easy to read: of equal width, or of about equal numbers of values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

BUCKETS = 16
"""How many a column of numbers gets where nobody says otherwise."""

_MANTISSAS = tuple(map(Fraction, ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")))


def tidy_edges(low: float, high: float, buckets: int, *, whole: bool) -> tuple[float, ...]:
    """Return the edges of equally wide buckets that cover a range.

    The width is the smallest of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten that will
    do, and the first edge a multiple of it, so that labels are short and the ends of the range are
    not copied, to the last digit, into the edges.

    Parameters
    ----------
    low, high
        The range; finite, and ``low < high``.
    buckets
        How many; at least 1.
    whole
        Whether the width must be a whole number.

    Returns
    -------
    ``buckets + 1`` numbers, not decreasing; strictly increasing unless the range is so narrow that
    floating-point numbers cannot tell the edges apart.
    """
    first, last = Fraction(low), Fraction(high)
    exact = (last - first) / buckets
    # A tidy width is at least the exact one; its logarithm is of whole numbers, none underflows.
    power = math.floor(math.log10(exact.numerator) - math.log10(exact.denominator)) - 1
    for exponent in itertools.count(max(power, 0) if whole else power):
        for mantissa in _MANTISSAS:
            width = mantissa * Fraction(10) ** exponent
            if whole and width.denominator > 1:
                continue
            start = first // width
            if (start + buckets) * width >= last:
                return _floats([(start + i) * width for i in range(buckets + 1)], first, last)
    raise AssertionError("widths grow without end")


def _floats(edges: list[Fraction], low: Fraction, high: Fraction) -> tuple[float, ...]:
    """Return edges as floats; where they leave the range of floats, those of the range itself."""
    try:
        return tuple(map(float, edges))
    except OverflowError:
        buckets = len(edges) - 1
        return tuple(float(low + (high - low) * i / buckets) for i in range(buckets + 1))


_HEAVY = 0.25
"""Buckets of equal width serve as long as none of them holds more of the values than this."""

_LIGHT = 0.25
"""A bucket that is not worth its edges holds less than this part of an average one."""


def fitting_edges(
    values: NDArray[np.float64], low: float, high: float, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of buckets that suit how values lie: none holds most of them.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a value that is by itself as
    frequent as an average bucket gets a bucket of its own, and the rest is cut at numbers of few
    digits near its quantiles.

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
    equal = _round_edges(low, high, buckets, whole=whole)
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
    between: set[Fraction] = set()
    if len(rest):
        ends = np.quantile(rest, np.arange(2 * cuts + 1) / (2 * cuts), method="nearest")
        for left, right in zip(ends[1:-1:2].tolist(), ends[2:-1:2].tolist(), strict=False):
            if left < right:
                between.add(simplest(as_written(left), as_written(right), whole=whole))
    first, last = as_written(low), as_written(high)
    # The largest value, if it has a bucket of its own, begins it: the last edge lies above.
    inner = [edge for edge in sorted(own | between) if first < edge < last or edge == last in own]
    inner = _without_slivers(inner, own, rest, len(rest) * _LIGHT / cuts)
    inner = [
        edge
        for edge, end in itertools.zip_longest(inner, inner[1:], fillvalue=last + 1)
        if np.searchsorted(distinct, float(edge)) < np.searchsorted(distinct, float(end))
    ]
    if not inner:
        return equal
    below = simplest(first - (inner[0] - first), first, whole=whole)
    above = simplest(last, last + (last - inner[-1]), whole=whole)
    if inner[-1] == last:
        step = Fraction(1) if whole else (last - max((first, *inner[:-1]))) / 100
        above = simplest(last + step, last + max(10 * step, abs(last) / 50), whole=whole)
    tidy = sorted(set(map(float, (below, *inner, above))))
    return tuple(tidy) if len(tidy) > 2 else equal


_USUAL = 0.001
"""The part of the values, at each end, that may lie far from all others."""

_FAR = 20
"""How many times as far from the middle as nearly all others is far beyond."""


def usual_range(values: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Return the range of values without the few that lie far beyond all others, if any do.

    Parameters
    ----------
    values
        float64, finite: the values, or a sample of them; at least one.
    low, high
        The range of all values.
    """
    first, middle, last = (float(x) for x in np.quantile(values, (_USUAL, 0.5, 1 - _USUAL)))
    if middle < last and high - middle > _FAR * (last - middle):
        high = last
    if first < middle and middle - low > _FAR * (middle - first):
        low = first
    return low, high


def are_months(values: NDArray[np.float64]) -> bool:
    """Return whether whole numbers are years and months, such as 201403."""
    month = values % 100
    years = (values >= 190000) & (values < 210000)
    return bool(np.all(years & (month >= 1) & (month <= 12)))


def year_edges(low: float, high: float, buckets: int) -> tuple[float, ...]:
    """Return edges at the beginnings of years, for numbers such as 201403: about as many."""
    first, last = int(low) // 100, int(high) // 100 + 1
    step = max(-(-(last - first) // (buckets * 3 // 2)), 1)
    years = [*range(first, max(last, first + 2 * step), step)]
    return tuple(100.0 * year + 1 for year in (*years, years[-1] + step))


def _round_edges(low: float, high: float, buckets: int, *, whole: bool) -> tuple[float, ...]:
    """Return the edges of buckets 1, 2 or 5 times a power of ten wide, half as many again at most.

    Where floating-point numbers cannot tell such edges apart, those of `tidy_edges`.
    """
    first, last = Fraction(low), Fraction(high)
    exact = (last - first) / (buckets * 3 // 2)
    power = math.floor(math.log10(exact.numerator) - math.log10(exact.denominator)) - 1
    for exponent in itertools.count(max(power, 0) if whole else power):
        for mantissa in (1, 2, 5):
            width = mantissa * Fraction(10) ** exponent
            if width < exact:
                continue
            start, stop = math.floor(first / width), math.ceil(last / width)
            edges = _floats(
                [i * width for i in range(start, max(stop, start + 2) + 1)], first, last
            )
            if len(set(edges)) == len(edges):
                return edges
            return tidy_edges(low, high, buckets, whole=whole)
    raise AssertionError("widths grow without end")


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


def as_written(number: float) -> Fraction:
    """Return a number as people write it: 0.05, not the binary number next to it."""
    return Fraction(repr(float(number)))


def simplest(low: Fraction, high: Fraction, *, whole: bool) -> Fraction:
    """Return the number of the fewest digits in a closed range, 0 if it can be.

    Of several, one with a multiple of 5 at the end, then the nearest to the middle. With ``whole``
    and no whole number in the range, the next one above it.
    """
    if low <= 0 <= high:
        return Fraction(0)
    largest = max(abs(low), abs(high))
    power = math.floor(math.log10(largest.numerator) - math.log10(largest.denominator)) + 1
    for exponent in itertools.count(power, -1):
        for mantissa in (5, 1):
            step = mantissa * Fraction(10) ** exponent
            if whole and step < 1:
                return Fraction(math.ceil(low))
            first, last = math.ceil(low / step), math.floor(high / step)
            if first <= last:
                return min(max(round((low + high) / 2 / step), first), last) * step
    raise AssertionError("steps shrink without end")

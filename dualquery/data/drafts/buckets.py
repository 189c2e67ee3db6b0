"""Buckets of equal width, and numbers of few digits to cut at."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

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


def round_edges(low: float, high: float, buckets: int, *, whole: bool) -> tuple[float, ...]:
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

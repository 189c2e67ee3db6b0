"""Edges of buckets that suit how numbers lie, by counts on a grid: round, and of few digits."""

from __future__ import annotations

import contextlib
import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BUCKETS = 16
"""How many a column of numbers gets where nobody says otherwise."""

_HEAVY = 0.25
"""Equal steps, which are easier to read, serve while no bucket holds a larger share of the numbers:
four times that of an average one of `BUCKETS`."""

_TAIL = 0.25
"""Part of the last bucket on each side that is cut off by itself: tails are long."""


def fitting_edges(
    bounds: Floats, counts: Floats, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of some 2 or more buckets of which none holds most of the numbers.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a cell of the grid that is by
    itself as frequent as an average bucket is a bucket of its own, and the rest is cut at numbers
    of few digits near its quantiles. ``bounds`` are the increasing ends of the grid's cells,
    ``counts`` the numbers in each, one fewer. The edges, at least 3, cover the bounds.
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
        edges |= _near_quantiles(bounds, rest, max(buckets - int(own.sum()), 2), whole=whole)
    outer = low if own[0] else equal[0], high if own[-1] else equal[-1]
    tidy = sorted({*outer, *(edge for edge in edges if low < edge < high)})
    return tuple(tidy) if len(tidy) > 2 else equal


def _near_quantiles(bounds: Floats, rest: Floats, cuts: int, *, whole: bool) -> set[float]:
    """Return numbers of few digits near the quantiles of what has no bucket of its own."""
    ends = np.concatenate(([0.0], np.cumsum(rest))) / rest.sum()
    level = np.flatnonzero(np.diff(ends) > 0)
    # Quantiles are those of numbers, not of gaps between them: of equal ends the outer ones.
    knots = np.unique(np.concatenate((level, level + 1)))
    parts = [_TAIL, *range(1, cuts), cuts - _TAIL]
    near = np.array([(part - 0.25, part + 0.25) for part in parts]) / cuts
    ranges = np.interp(near.clip(0.0, 1.0), ends[knots], bounds[knots]).tolist()
    return {
        float(simplest(as_written(first), as_written(last), whole=whole))
        for first, last in ranges
        if first < last
    }


def round_edges(low: float, high: float, buckets: int, *, whole: bool) -> tuple[float, ...]:
    """Return the edges of buckets 1, 2 or 5 times a power of ten wide, half as many again at most.

    Where floating-point numbers cannot tell such edges apart, those of equal parts of the range.
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
            steps = range(start, max(stop, start + 2) + 1)
            with contextlib.suppress(OverflowError):
                edges = tuple(float(i * width) for i in steps)
                if len(set(edges)) == len(edges):
                    return edges
            parts = (first + (last - first) * i / buckets for i in range(buckets + 1))
            return tuple(dict.fromkeys(map(float, parts)))
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

"""Edges of buckets that suit how numbers lie, by counts on a grid: round, and of few digits."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BUCKETS = 16  # of a column of numbers where nobody says otherwise
_HEAVY = 0.25  # equal steps, which are easier to read, serve while no bucket has a larger share
_TAIL = 0.25  # part of the last bucket on each side that is cut off by itself: tails are long
FEW_ROWS = 5  # what fewer have, the table alone knows: no text is listed, no tail cut off for them


def fitting_edges(
    bounds: Floats, counts: Floats, buckets: int, *, whole: bool
) -> tuple[float, ...]:
    """Return tidy edges of some 2 or more buckets; none holds most of the numbers.

    Buckets of 1, 2 or 5 times a power of ten where they serve. Else a grid's cell as frequent as an
    average bucket is one by itself, unless it has the numbers for the several that it is worth; the
    rest is cut at numbers of few digits near its quantiles, far ones weighing more. ``bounds`` are
    increasing ends of cells, ``counts`` the numbers in each. The edges, 3 or more, cover them all.
    """
    ends = np.concatenate(([0.0], np.cumsum(counts))) / counts.sum()
    low, high = float(bounds[0]), float(bounds[-1])
    equal = _round_edges(low, high, buckets, whole=whole)
    if np.diff(np.interp(equal, bounds, ends)).max() <= _HEAVY:
        return equal
    own = (worth := counts * buckets / counts.sum()) >= 1.0
    edges = {*bounds[:-1][own].tolist(), *bounds[1:][own].tolist()}
    kept = own & ((worth < 2.0) | (np.diff(bounds) < worth) | (not whole))
    if (rest := np.where(kept, 0.0, counts)).any():
        edges |= _near_quantiles(bounds, rest, max(buckets - int(kept.sum()), 2), whole=whole)
    outer = low if own[0] else equal[0], high if own[-1] else equal[-1]
    tidy = sorted({*outer, *(edge for edge in edges if low < edge < high)})
    return tuple(tidy) if len(tidy) > 2 else equal


def _near_quantiles(bounds: Floats, rest: Floats, cuts: int, *, whole: bool) -> set[float]:
    power = np.frexp(np.abs(bounds).max())[1]  # slopes would be above the largest number
    scaled = np.ldexp(bounds, -power)
    # A long tail has much of the sum, so far numbers weigh more; the cap: `FEW_ROWS` make a cut.
    middles = scaled[:-1] + scaled[1:]
    far = np.abs(middles - middles[np.searchsorted(np.cumsum(rest), rest.sum() / 2.0)])
    far /= max(float(np.average(far, weights=rest)), sys.float_info.epsilon)
    rest = rest * (1.0 + np.minimum(far, rest.sum() * _TAIL / (2 * FEW_ROWS * cuts)))
    ends = np.concatenate(([0.0], np.cumsum(rest))) / rest.sum()
    level = np.flatnonzero(np.diff(ends) > 0)
    # Quantiles are those of numbers, not of gaps between them: of equal ends the outer ones.
    knots = np.unique(np.concatenate((level, level + 1)))
    near = np.array([(at - 0.25, at + 0.25) for at in (_TAIL, *range(1, cuts), cuts - _TAIL)])
    near = near.clip(_TAIL / 2.0, cuts - _TAIL / 2.0) / cuts  # else the longest tail is not cut off
    ranges = np.ldexp(np.interp(near, ends[knots], scaled[knots]), power).tolist()
    return {_simplest(first, last, whole=whole) for first, last in ranges if first < last}


def _round_edges(low: float, high: float, buckets: int, *, whole: bool) -> tuple[float, ...]:
    """Return edges 1, 2 or 5 times a power of ten apart, half as many again at most."""
    first, last = Fraction(low), Fraction(high)
    least = (last - first) / (buckets * 3 // 2)
    power = math.floor(math.log10(least.numerator) - math.log10(least.denominator)) - 1
    powers = itertools.count(max(power, 0) if whole else power)
    widths = (digit * Fraction(10) ** exponent for exponent in powers for digit in (1, 2, 5))
    width = next(width for width in widths if width >= least)
    start, stop = math.floor(first / width), math.ceil(last / width)
    # Floating-point numbers may not tell all of them apart.
    edges = [step * width for step in range(start, max(stop, start + 2) + 1)]
    if max(-edges[0], edges[-1]) > sys.float_info.max:
        edges = [first + (last - first) * part / buckets for part in range(buckets + 1)]
    return tuple(dict.fromkeys(map(float, edges)))


def _simplest(first: float, last: float, *, whole: bool) -> float:
    """Return a number of the fewest digits in a range, or the next whole one above its start."""
    # As people write them: 0.05, not the binary number next to it.
    low, high = Fraction(repr(first)), Fraction(repr(last))
    middle = (low + high) / 2
    if whole:
        low, high = Fraction(math.ceil(low)), Fraction(max(math.ceil(low), math.floor(high)))
    if low <= 0 <= high:
        return 0.0
    largest = max(abs(low), abs(high))
    power = math.floor(math.log10(largest.numerator) - math.log10(largest.denominator)) + 1
    steps = (digit * Fraction(10) ** e for e in itertools.count(power, -1) for digit in (5, 1))
    step = next(step for step in steps if math.ceil(low / step) <= math.floor(high / step))
    return float(min(max(round(middle / step), math.ceil(low / step)), high // step) * step)

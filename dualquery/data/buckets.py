"""Equal buckets whose edges are easy to read."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

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

"""How numbers lie in buckets of which the schema says "sloped": as the buckets around them tell.

Within a bucket the density is a straight line, as if it went on from one side's density to the
other's (the estimate of a density by lines has an error of a higher order than that by steps:
Scott, "Frequency polygons: theory and application", JASA 80, 1985). The line is no steeper than its
distance from either side allows, and level at a peak, so that no density is below 0 and no new peak
comes up (the limiter of van Leer, "Towards the ultimate conservative difference scheme IV", Journal
of Computational Physics 23, 1977). All of it is post-processing of released shares.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Numeric
from dualquery.data.schema.within import SLOPED, Sample, cut

Float64 = NDArray[np.float64]

_NUMBERS = 1_000
"""Of a bucket, by which its line is told."""

_LEVEL = 1e-6
"""Slopes below are none."""


def with_slopes(column: Numeric, shares: Float64) -> Numeric:
    """Return a column whose sloped buckets list the numbers that the shares tell.

    Parameters
    ----------
    column
        Any column of numbers.
    shares
        float64, shape ``(buckets,)``, at least 0: of the rows, in each bucket.
    """
    levels = (np.arange(_NUMBERS) + 0.5) / _NUMBERS
    lows, highs = np.array(column.bounds).T
    tops = highs + 1.0 if column.integer else highs
    slopes = _slopes(column, shares, tops - lows)
    within = list(column.rules)
    for bucket, slope in enumerate(slopes.tolist()):
        if column.rules[bucket] != SLOPED:
            continue
        if abs(slope) < _LEVEL:
            within[bucket] = "uniform"
            continue
        # The density 1 + slope (u - 1/2) on 0 .. 1 has the sum u + slope (u^2 - u) / 2.
        steady = 1.0 - slope / 2.0
        parts = 2.0 * levels / (steady + np.sqrt(steady**2 + 2.0 * slope * levels))
        numbers = lows[bucket] + parts * (tops[bucket] - lows[bucket])
        numbers = cut(numbers, column.bounds[bucket], column.integer, column.decimals)
        within[bucket] = Sample(numbers.tolist())
    return replace(column, within=tuple(within))


def _slopes(column: Numeric, shares: Float64, lengths: Float64) -> Float64:
    """Return by how much each bucket's density grows from end to end, over its mean; 0 at ends."""
    spread = np.array([isinstance(rule, str) for rule in column.rules])
    density = np.maximum(shares, 0.0) / lengths
    apart = (lengths[1:] + lengths[:-1]) / 2.0
    steps = np.diff(density) / apart
    before, after = steps[:-1], steps[1:]
    middle = (density[2:] - density[:-2]) / (apart[1:] + apart[:-1])
    steepest = 2.0 * np.minimum(np.abs(before), np.abs(after))
    inner = np.sign(middle) * np.minimum(np.abs(middle), steepest)
    known = (before * after > 0) & spread[2:] & spread[:-2]
    found = np.zeros(len(shares))
    found[1:-1] = np.where(known, inner, 0.0)
    limited: Float64 = np.clip(found * lengths / np.maximum(density, 1e-300), -2.0, 2.0)
    return limited

"""Numba kernels of an explicit vector over the cells of a few columns."""

import math

import numpy as np

from dualquery.runtime.array_types import Array, kernel

FUSED = 4096
"""Cells that the axes which change fastest are summed over at once: they stay in the cache."""


@kernel("void(float64[:, ::1], float64[::1], float64[::1], int64, int64, float64[::1])")
def repeat(
    values: Array, mass: Array, targets: Array, first: int, passes: int, scales: Array
) -> None:
    """Multiply weights on classes: passes over the measurements from ``first`` on, in place.

    ``values[j]`` is the value of measured query j on each class, ``mass`` the shares of the
    classes, ``scales[j]`` the sum of all exponents of query j so far.
    """
    for _ in range(passes):
        for j in range(first, len(targets)):
            row = values[j]
            total = 0.0
            answer = 0.0
            for i in range(len(mass)):
                total += mass[i]
                answer += mass[i] * row[i]
            exponent = (targets[j] - answer / total) / 2.0
            scales[j] += exponent
            factor = math.exp(exponent)
            # Masses stay far from overflow: their total is brought back to 1 now and then.
            shrink = 1.0 if 1e-100 < total < 1e100 else 1.0 / total
            for i in range(len(mass)):
                if row[i] == 1.0:
                    mass[i] *= factor
                elif row[i] != 0.0:
                    mass[i] *= math.exp(exponent * row[i])
                if shrink != 1.0:
                    mass[i] *= shrink


@kernel("void(float64[::1], int32[::1], float64[::1], float64[::1])")
def spread(density: Array, classes: Array, prior: Array, out: Array) -> None:
    """Fill the shares of all cells from the densities of their classes; no prior is uniform."""
    if len(prior):
        for cell in range(len(out)):
            out[cell] = prior[cell] * density[classes[cell]]
    else:
        for cell in range(len(out)):
            out[cell] = density[classes[cell]]


@kernel("void(float64[::1], int64, int64)")
def _sum_axis(table: Array, size: int, inner: int) -> None:
    """Replace index 0 of one axis by the sum over the axis, in place."""
    step = size * inner
    for start in range(0, len(table), step):
        if inner == 1:
            total = table[start]
            for value in range(1, size):
                total += table[start + value]
            table[start] = total
        else:
            for value in range(1, size):
                other = start + value * inner
                for i in range(inner):
                    table[start + i] += table[other + i]


@kernel("void(float64[::1], int64[::1])")
def include_any(table: Array, sizes: Array) -> None:
    """Turn a table (C order) into its inclusive marginals: index 0 becomes "any value", in place.

    One pass of additions an axis (Yates's algorithm); nothing is subtracted, so every entry keeps
    the relative accuracy of its terms.
    """
    fused = np.int64(1)
    axis = len(sizes)
    while axis > 0 and fused * sizes[axis - 1] <= FUSED:
        axis -= 1
        fused *= sizes[axis]
    for start in range(0, len(table), fused):
        inner = np.int64(1)
        for last in range(len(sizes) - 1, axis - 1, -1):
            _sum_axis(table[start : start + fused], sizes[last], inner)
            inner *= sizes[last]
    inner = fused
    for last in range(axis - 1, -1, -1):
        _sum_axis(table, sizes[last], inner)
        inner *= sizes[last]

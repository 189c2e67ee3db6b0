"""Compiled loops of mixtures of products: means of features, and the slope of their squared error.

Single precision and reordered sums: everything here is post-processing, and noise is far above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, int32, int64, njit, types, void
from numpy.typing import NDArray

Array = NDArray[Any]


def _read(scalar: types.Type, dimensions: int = 1) -> types.Array:
    """Return the type of an array that is only read."""
    return types.Array(scalar, dimensions, "C", readonly=True)


@njit(
    void(
        _read(int32, 2), int64, int64, _read(float32, 2), _read(float32), _read(float32),
        float32[:, ::1], float32[::1],
    ),
    nogil=True,
    cache=True,
    fastmath=True,
)  # fmt: skip
def add_slopes(
    factors: Array,
    first: int,
    last: int,
    values: Array,
    targets: Array,
    weights: Array,
    slopes: Array,
    means: Array,
) -> None:
    """Write the means of some features, and add the slopes of half their weighted squared errors.

    Parameters
    ----------
    factors
        Rows of ``values`` that each feature multiplies, padded on the right with -1.
    first, last
        The features ``first .. last - 1`` are visited.
    values
        Mean of every factor in every component, ``(factors, components)``.
    targets, weights
        What the feature's mean should be, and how much its squared error counts.
    slopes
        Gets the derivatives by ``values``, added; the same shape.
    means
        Gets the mean of each visited feature over the components.
    """
    components = values.shape[1]
    share = np.float32(1.0 / components)
    way = factors.shape[1]
    for f in range(first, last):
        count = 0
        while count < way and factors[f, count] >= 0:
            count += 1
        total = np.float32(0.0)
        if count == 1:
            a = factors[f, 0]
            for k in range(components):
                total += values[a, k]
            mean = total * share
            means[f] = mean
            pull = weights[f] * (mean - targets[f]) * share
            for k in range(components):
                slopes[a, k] += pull
        elif count == 2:
            a, b = factors[f, 0], factors[f, 1]
            for k in range(components):
                total += values[a, k] * values[b, k]
            mean = total * share
            means[f] = mean
            pull = weights[f] * (mean - targets[f]) * share
            for k in range(components):
                slopes[a, k] += pull * values[b, k]
                slopes[b, k] += pull * values[a, k]
        elif count == 3:
            a, b, c = factors[f, 0], factors[f, 1], factors[f, 2]
            for k in range(components):
                total += values[a, k] * values[b, k] * values[c, k]
            mean = total * share
            means[f] = mean
            pull = weights[f] * (mean - targets[f]) * share
            for k in range(components):
                x, y, z = values[a, k], values[b, k], values[c, k]
                slopes[a, k] += pull * y * z
                slopes[b, k] += pull * x * z
                slopes[c, k] += pull * x * y
        else:
            for k in range(components):
                product = np.float32(1.0)
                for i in range(count):
                    product *= values[factors[f, i], k]
                total += product
            mean = total * share
            means[f] = mean
            pull = weights[f] * (mean - targets[f]) * share
            for own in range(count):
                for k in range(components):
                    product = pull
                    for i in range(count):
                        if i != own:
                            product *= values[factors[f, i], k]
                    slopes[factors[f, own], k] += product

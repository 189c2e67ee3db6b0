"""Compiled loops of mixtures of products: means of products, and a gradient step on their errors.

Every array holds one slab of W components, and sums over slabs are taken in their order, so results
do not depend on threads. Single precision and reordered sums: all is post-processing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float32, int32, int64, types, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel

Array = NDArray[Any]


class Layout(NamedTuple):
    """Where the parameters of each column lie, and what terms are made of them.

    ``starts``, ``(columns + 1,)``, are the columns' first bits; ``binary`` ones have the log-odds
    of their one bit as parameter, others logarithms of shares. A term has the mean ``intercept +
    factor * value`` of its bit; each bit has as many terms, in the order of bits.
    """

    starts: Array
    binary: Array
    intercepts: Array
    factors: Array


class Parameters(NamedTuple):
    """A slab of a mixture in the course of a fit: float32, shape ``(bits, W)`` each.

    Log-odds of binary columns, logarithms of shares (up to a constant) of others; Adam's averages
    of slopes, and of their squares; means of the signs of binary columns and of others' indicators.
    """

    odds: Array
    momentum: Array
    power: Array
    values: Array


class Rates(NamedTuple):
    """A step's rates: of Adam, of the pull to the centre, and what is kept of Adam's averages."""

    step: np.float32
    pull: np.float32
    momentum: np.float32
    power: np.float32


_ROWS, _TABLE = int32[:, ::1], float32[:, ::1]
_COLUMNS = types.NamedTuple((int64[::1], boolean[::1], float32[::1], float32[::1]), Layout)
_PARAMETERS = types.NamedUniTuple(_TABLE, 4, Parameters)
_RATES = types.NamedUniTuple(float32, 4, Rates)


@kernel(void(_ROWS, _TABLE, float32[::1]), fastmath=True)
def sum_products(rows: Array, table: Array, sums: Array) -> None:
    """Write the sums of products over the components of a slab: ``(f,)``.

    ``rows``, ``(f, k)``, are the places in ``table``, ``(terms, W)``, of the terms that each
    product multiplies, padded on the right with -1.
    """
    way, width = rows.shape[1], table.shape[1]
    for f in range(len(rows)):
        count = 0
        while count < way and rows[f, count] >= 0:
            count += 1
        total = np.float32(0.0)
        if count == 2:
            a, b = rows[f, 0], rows[f, 1]
            for k in range(width):
                total += table[a, k] * table[b, k]
        elif count == 3:
            a, b, c = rows[f, 0], rows[f, 1], rows[f, 2]
            for k in range(width):
                total += table[a, k] * table[b, k] * table[c, k]
        else:
            for k in range(width):
                product = np.float32(1.0)
                for i in range(count):
                    product *= table[rows[f, i], k]
                total += product
        sums[f] = total


@kernel(void(_ROWS, _TABLE, float32[::1], _TABLE), fastmath=True)
def add_slopes(rows: Array, table: Array, errors: Array, slopes: Array) -> None:
    """Add the derivatives of half the products' weighted squared errors by a slab's terms.

    ``errors``, ``(f,)``, are the derivatives by the sums of the products; ``slopes``, ``(terms,
    W)``, are added to.
    """
    way, width = rows.shape[1], table.shape[1]
    for f in range(len(rows)):
        count = 0
        while count < way and rows[f, count] >= 0:
            count += 1
        error = errors[f]
        if count == 2:
            a, b = rows[f, 0], rows[f, 1]
            for k in range(width):
                x, y = table[a, k], table[b, k]
                slopes[a, k] += error * y
                slopes[b, k] += error * x
        elif count == 3:
            a, b, c = rows[f, 0], rows[f, 1], rows[f, 2]
            for k in range(width):
                x, y, z = table[a, k], table[b, k], table[c, k]
                slopes[a, k] += error * y * z
                slopes[b, k] += error * x * z
                slopes[c, k] += error * x * y
        else:
            for own in range(count):
                for k in range(width):
                    product = error
                    for i in range(count):
                        if i != own:
                            product *= table[rows[f, i], k]
                    slopes[rows[f, own], k] += product


@kernel(float32(float32), fastmath=True, inline="always")
def _tanh(x: np.float32) -> np.float32:
    """Return tanh to a few units in the last place, by arithmetic that vectorises."""
    x = min(max(x, np.float32(-7.9)), np.float32(7.9))
    y = x * x
    p = np.float32(-2.76076847742355e-16)
    p = y * p + np.float32(2.00018790482477e-13)
    p = y * p + np.float32(-8.60467152213735e-11)
    p = y * p + np.float32(5.12229709037114e-08)
    p = y * p + np.float32(1.48572235717979e-05)
    p = y * p + np.float32(6.37261928875436e-04)
    p = y * p + np.float32(4.89352455891786e-03)
    q = np.float32(1.19825839466702e-06)
    q = y * q + np.float32(1.18534705686654e-04)
    q = y * q + np.float32(2.26843463243900e-03)
    q = y * q + np.float32(4.89352518554385e-03)
    return np.float32(x * p / q)


@kernel(void(_COLUMNS, int64[::1], _TABLE, _TABLE, _TABLE), fastmath=True)
def set_terms(columns: Layout, touched: Array, odds: Array, values: Array, table: Array) -> None:
    """Write the values of some columns' bits, and their terms, from the parameters of a slab."""
    terms, width = len(table) // len(odds), odds.shape[1]
    for column in touched:
        first, last = columns.starts[column], columns.starts[column + 1]
        if columns.binary[column]:
            for k in range(width):
                values[first, k] = -_tanh(odds[first, k] * np.float32(0.5))
        else:
            for k in range(width):
                largest = odds[first, k]
                for bit in range(first + 1, last):
                    largest = max(largest, odds[bit, k])
                total = np.float32(0.0)
                for bit in range(first, last):
                    values[bit, k] = math.exp(odds[bit, k] - largest)
                    total += values[bit, k]
                for bit in range(first, last):
                    values[bit, k] /= total
        for term in range(terms * first, terms * last):
            bit, intercept, factor = term // terms, columns.intercepts[term], columns.factors[term]
            for k in range(width):
                table[term, k] = intercept + factor * values[bit, k]


@kernel(
    void(_COLUMNS, int64[::1], _PARAMETERS, _TABLE, float32[::1], _RATES, _TABLE),
    fastmath=True,
)
def update(
    columns: Layout,
    touched: Array,
    parameters: Parameters,
    slopes: Array,
    centres: Array,
    rates: Rates,
    table: Array,
) -> None:
    """Make Adam's step on a slab's parameters of the touched columns, and clear their slopes.

    ``centres``, ``(bits,)``, are the parameters' means over all components, to which they are
    pulled.
    """
    odds, momentum, power, values = parameters
    terms, width = len(table) // len(odds), odds.shape[1]
    one, half, least = np.float32(1.0), np.float32(0.5), np.float32(1e-12)
    mean = np.empty(width, np.float32)
    for column in touched:
        first, last = columns.starts[column], columns.starts[column + 1]
        mean[:] = 0.0
        for bit in range(first, last):
            # The derivative by the bit's value, left in the slopes of its first term.
            own = terms * bit
            factor = columns.factors[own]
            for k in range(width):
                slopes[own, k] *= factor
            for term in range(own + 1, own + terms):
                factor = columns.factors[term]
                for k in range(width):
                    slopes[own, k] += slopes[term, k] * factor
                    slopes[term, k] = 0.0
            for k in range(width):
                mean[k] += slopes[own, k] * values[bit, k]
        for bit in range(first, last):
            # Loops over few arrays each: of more, the compiler makes no vectors.
            own, centre = terms * bit, centres[bit]
            if columns.binary[column]:
                for k in range(width):
                    slopes[own, k] *= (values[bit, k] * values[bit, k] - one) * half
            else:
                for k in range(width):
                    slopes[own, k] = values[bit, k] * (slopes[own, k] - mean[k])
            for k in range(width):
                momentum[bit, k] += (one - rates.momentum) * (slopes[own, k] - momentum[bit, k])
            for k in range(width):
                power[bit, k] += (one - rates.power) * (slopes[own, k] ** 2 - power[bit, k])
            for k in range(width):
                odds[bit, k] -= rates.step * momentum[bit, k] / (math.sqrt(power[bit, k]) + least)
            for k in range(width):
                odds[bit, k] -= rates.pull * (odds[bit, k] - centre)
                slopes[own, k] = 0.0
    set_terms(columns, touched, odds, values, table)

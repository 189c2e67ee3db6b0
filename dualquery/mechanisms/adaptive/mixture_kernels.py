"""Compiled loops of mixtures of products: means of products, and a gradient step on their errors.

Every array holds one slab of W components, and sums over slabs are taken in their order, so results
do not depend on threads. Single precision and reordered sums: all is post-processing.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float32, int32, int64, types, void
from numpy.typing import NDArray

from dualquery.runtime.array_types import kernel

Array = NDArray[Any]


class Layout(NamedTuple):
    """Where the parameters of each column lie; terms ``intercept + factor * value`` of bits.

    ``starts``, ``(columns + 1,)``, are the columns' first bits; ``binary`` ones have the log-odds
    of their one bit as parameter, others logarithms of shares. Each bit has as many terms.
    """

    starts: Array
    binary: Array
    intercepts: Array
    factors: Array


class Parameters(NamedTuple):
    """A slab of a mixture in the course of a fit: float32, shape ``(bits, W)`` each.

    Log-odds of binary columns, logarithms of shares (up to a constant) of others; Adam's averages
    of slopes, and of their squares; means of signs and indicators.
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


class Runs(NamedTuple):
    """Products; those that differ in their last term only follow each other, and are a run.

    ``rows``, ``(f, k)``, are the terms that each multiplies, padded on the right with -1;
    ``starts`` the runs' first rows, and f; ``lengths`` how many terms are common to a run.
    """

    rows: Array
    starts: Array
    lengths: Array


def run_order(rows: Array) -> tuple[Array, Runs]:
    """Return an order of products in which runs are as long as they can be, and their runs."""
    lengths = (rows >= 0).sum(axis=1) - 1
    common = np.where(np.arange(rows.shape[1]) == lengths[:, None], -2, rows)
    order = np.lexsort(common.T[::-1])
    changes = (np.diff(common[order], axis=0) != 0).any(axis=1)
    starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    return order, Runs(rows[order], np.append(starts, len(rows)), lengths[order][starts])


_TABLE = float32[:, ::1]
_RUNS = types.NamedTuple((int32[:, ::1], int64[::1], int64[::1]), Runs)
_LAYOUT = types.NamedTuple((int64[::1], boolean[::1], float32[::1], float32[::1]), Layout)
_PARAMETERS = types.NamedUniTuple(_TABLE, 4, Parameters)
_RATES = types.NamedUniTuple(float32, 4, Rates)


@kernel(void(_TABLE, int32[::1], float32[::1]), fastmath=True, inline="always")
def _multiply(table: Array, terms: Array, products: Array) -> None:
    for term in terms:
        for k in range(len(products)):
            products[k] *= table[term, k]


@kernel(void(_RUNS, _TABLE, float32[::1]), fastmath=True)
def sum_products(runs: Runs, table: Array, sums: Array) -> None:
    """Write the sums of products over the components of a slab, ``(terms, W)``: ``(f,)``."""
    width = table.shape[1]
    first = np.empty(width, np.float32)
    for run, most in enumerate(runs.lengths):
        begin, end = runs.starts[run], runs.starts[run + 1]
        for k in range(width):
            first[k] = np.float32(1.0)
        _multiply(table, runs.rows[begin, :most], first)
        for f in range(begin, end):
            last, total = runs.rows[f, most], np.float32(0.0)
            for k in range(width):
                total += first[k] * table[last, k]
            sums[f] = total


@kernel(void(_RUNS, _TABLE, float32[::1], _TABLE), fastmath=True)
def add_slopes(runs: Runs, table: Array, errors: Array, slopes: Array) -> None:
    """Add to ``slopes``, ``(terms, W)``, the derivatives of half the squared errors by the terms.

    ``errors``, ``(f,)``, are those by the sums of the products.
    """
    width = table.shape[1]
    # Of a run: the product of its common terms, and the derivative by it.
    first, slope, part = np.empty((3, width), np.float32)
    for run, most in enumerate(runs.lengths):
        begin, end = runs.starts[run], runs.starts[run + 1]
        common = runs.rows[begin, :most]
        for k in range(width):
            first[k], slope[k] = np.float32(1.0), np.float32(0.0)
        _multiply(table, common, first)
        for f in range(begin, end):
            last, error = runs.rows[f, most], errors[f]
            for k in range(width):
                slopes[last, k] += error * first[k]
                slope[k] += error * table[last, k]
        if most == 2:
            a, b = common
            for k in range(width):
                slopes[a, k] += slope[k] * table[b, k]
                slopes[b, k] += slope[k] * table[a, k]
            continue
        for own in range(most):
            for k in range(width):
                part[k] = slope[k]
            _multiply(table, common[:own], part)
            _multiply(table, common[own + 1 :], part)
            term = common[own]
            for k in range(width):
                slopes[term, k] += part[k]


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


@kernel(void(_LAYOUT, int64[::1], _TABLE, _TABLE, _TABLE), fastmath=True)
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
            bit = term // terms
            intercept = columns.intercepts[term]
            factor = columns.factors[term]
            for k in range(width):
                table[term, k] = intercept + factor * values[bit, k]


@kernel(void(_LAYOUT, int64[::1], _PARAMETERS, _TABLE, float32[::1], _RATES, _TABLE), fastmath=True)
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

    ``centres``, ``(bits,)``, are the means over all components, to which parameters are pulled.
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

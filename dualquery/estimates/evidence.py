"""What noisy measurements say about the cells of some columns.

A measured number is a product of factors, one a column, so it is a linear functional of the cells.
One that looks at other columns, too, is of use as part of a sum: numbers that differ in the values
of these only, and go through all of them, add up to one that does not look at them. Each number is
used once, so that the noise stays independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.estimates.measurements import Factors, Measurements, factors_of
from dualquery.rows.repeats import first_occurrences

if TYPE_CHECKING:
    from dualquery.estimates.total import Total

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]

MOST_CELLS, MOST_PRODUCTS = 1 << 15, 1 << 21
"""Cells of the columns of a question, and products of factors on them; more are not looked at."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Numbers with independent noise about the cells of some columns.

    Parameters
    ----------
    factors
        For each column the factors that numbers have on it, float64 ``(factors, values)``; the
        first is 1 everywhere.
    places
        int64, shape ``(m,)``, increasing: the product of factors that each number is, as its place
        in the table of all products, in C order.
    less
        float64, shape ``(m,)``: what is taken off the product, on every cell.
    values
        float64, shape ``(m,)``: the noisy numbers.
    deviations
        float64, shape ``(m,)``, > 0: standard deviations of their noise.
    kurtosis
        float64, shape ``(m,)``: excess kurtosis of their noise; 0 if Gaussian.
    absent
        float64, shape ``(m,)``: what a row that is not there contributes; NaN where unknown.
    """

    factors: tuple[Float64, ...]
    places: Int64
    less: Float64
    values: Float64
    deviations: Float64
    kurtosis: Float64
    absent: Float64

    @cached_property
    def chosen(self) -> tuple[Int64, ...]:
        """For each column the factors of the numbers, by their places: int64 ``(m,)`` each."""
        return np.unravel_index(self.places, tuple(len(each) for each in self.factors))

    @property
    def functionals(self) -> Float64:
        """Each number's value on each cell, in C order: float64, shape ``(m, cells)``."""
        lines = np.ones((len(self.places), 1))
        for factors, chosen in zip(self.factors, self.chosen, strict=True):
            wider = lines[:, :, None] * factors[chosen][:, None, :]
            lines = wider.reshape(len(lines), wider.shape[1] * wider.shape[2])
        return lines - self.less[:, None]

    def with_total(self, total: Total) -> Evidence:
        """Return the evidence with one number more: the sum of all cells, a measured total.

        Numbers are then of the rows alone, over the total's copies: what rows that are not there
        contribute is taken off, from numbers and functionals; unknown, a number is left out.
        """
        known = ~np.isnan(self.absent)
        absent, excess = self.absent[known], 0.0 if total.noise == "gaussian" else 3.0
        return Evidence(
            factors=self.factors,
            places=np.append(0, self.places[known]),
            less=np.append(0.0, self.less[known] + absent),
            values=np.append(total.estimate / total.copies, self.values[known] - absent),
            deviations=np.append(total.deviation, self.deviations[known]),
            kurtosis=np.append(excess, self.kurtosis[known]),
            absent=np.zeros(len(absent) + 1),
        )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers with independent noise: products of factors with codes; those of a scope together.

    Codes are from 1 on, 0 for none: literals first, then signs and contrasts.
    """

    codes: NDArray[np.int32]
    values: Float64
    variances: Float64
    fourth: Float64
    """Excess of the noise's fourth cumulant."""
    absent: Float64
    scope: Int64

    def take(self, places: NDArray[Any]) -> _Numbers:
        return _Numbers(*(each[places] for each in vars(self).values()))

    def added(self, owner: Int64, codes: NDArray[np.int32], scope: Int64) -> _Numbers:
        """Return sums of numbers: owners are the places of what they are a part of."""
        values, variances, fourth, absent = (
            _sums(owner, each, len(codes))
            for each in (self.values, self.variances, self.fourth, self.absent)
        )
        return _Numbers(codes, values, variances, fourth, absent, scope)

    def merged(self, owner: Int64, first: Int64) -> _Numbers:
        """Return the means, by precision, of numbers that measure the same."""
        weights = 1.0 / self.variances
        total = _sums(owner, weights, len(first))[owner]
        share = weights / total
        scaled = _Numbers(
            self.codes, share * self.values, share**2 * self.variances, share**4 * self.fourth,
            share * self.absent, self.scope,
        )  # fmt: skip
        return scaled.added(owner, self.codes[first], self.scope[first])


class Measured:
    """Measurements, ordered so that those about some columns are found.

    Parameters
    ----------
    measurements
        What a release measured. Numbers that are no products of factors are left out.
    domain
        The columns.
    """

    def __init__(self, measurements: Measurements, domain: Domain) -> None:
        self.domain = domain
        lengths = np.diff(measurements.starts)
        known = np.flatnonzero((lengths > 0) & (measurements.deviations > 0))
        way = int(lengths[known].max(initial=1))
        place = np.arange(way)
        present = place < lengths[known, None]
        at = np.where(present, measurements.starts[known, None] + place, 0)
        factors = measurements.factors[at] if len(known) else np.zeros((0, way), np.int32)
        shifted = np.where(factors >= 0, factors + 1, 2 * domain.bits - factors)
        codes = np.sort(np.where(present, shifted, 0), axis=1).astype(np.int32)

        columns = np.sort(self._columns(codes), axis=1)
        columns[:, 1:][columns[:, 1:] == columns[:, :-1]] = -1
        first, scope = _distinct(np.sort(columns, axis=1))
        self._scopes = [tuple(c for c in row if c >= 0) for row in columns[first].tolist()]
        self._ways = np.array([len(each) for each in self._scopes], np.int64)
        self._scopes_of: dict[int, list[int]] = {}
        for number, columns_of in enumerate(self._scopes):
            for column in columns_of:
                self._scopes_of.setdefault(column, []).append(number)

        variances = measurements.deviations[known] ** 2
        laplace = 3.0 if measurements.noise == "discrete laplace" else 0.0
        values, absent = measurements.values[known], measurements.absent[known]
        every = _Numbers(codes, values, variances, laplace * variances**2, absent, scope)
        first, owner = _distinct(codes - 1)
        merged = every.merged(owner, first)
        self._numbers = merged.take(np.argsort(merged.scope, kind="stable"))
        self._summed: dict[tuple[bool, ...], tuple[_Numbers, Int64]] = {}

    def about(self, columns: Sequence[int]) -> Evidence | None:
        """Return the numbers about the cells of some columns, increasing; None of too many."""
        sizes = axis_sizes(self.domain)[list(columns)]
        if np.prod(sizes.astype(float)) > MOST_CELLS:
            return None
        near: dict[tuple[bool, ...], list[int]] = {}
        for scope in {each for column in columns for each in self._scopes_of.get(column, ())}:
            inner = tuple(column in columns for column in self._scopes[scope])
            near.setdefault(inner, []).append(scope)
        parts = [self._numbers.take(np.zeros(0, np.int64))]
        for inner, scopes in near.items():
            numbers, starts = self._over_others(inner)
            spans = [np.arange(starts[each], starts[each + 1]) for each in scopes]
            parts.append(numbers.take(np.concatenate(spans)))
        joined = _Numbers(
            *map(np.concatenate, zip(*(vars(p).values() for p in parts), strict=True))
        )
        factors, chosen = [], []
        of_factors = self._columns(joined.codes)
        for column, size in zip(columns, sizes.tolist(), strict=True):
            codes = np.sort(np.where(of_factors == column, joined.codes, 0), axis=1)
            codes = np.concatenate((np.zeros((1, codes.shape[1]), np.int32), codes))
            first, kind = _distinct(codes - 1)
            factors.append(self._on_values(codes[first], column, size))
            chosen.append(kind[1:])
        shape = tuple(len(each) for each in factors)
        if math.prod(shape) > MOST_PRODUCTS:
            return None
        places = np.ravel_multi_index(chosen, shape)
        places, first, owner = np.unique(places, return_index=True, return_inverse=True)
        found = joined.merged(owner.ravel(), first)
        return Evidence(
            factors=tuple(factors),
            places=places,
            less=np.zeros(len(places)),
            values=found.values,
            deviations=np.sqrt(found.variances),
            kurtosis=found.fourth / found.variances**2,
            absent=found.absent,
        )

    def _over_others(self, inner: tuple[bool, ...]) -> tuple[_Numbers, Int64]:
        """Return the sums over other columns of numbers, and the place where each scope begins.

        ``inner`` says of each column of a scope whether it stays.
        """
        if inner not in self._summed:
            every = self._numbers
            wide = np.flatnonzero(self._ways == len(inner))
            scopes = np.array([self._scopes[each] for each in wide], np.int64)
            scopes = scopes.reshape(len(wide), len(inner))
            cells = axis_sizes(self.domain)[scopes[:, np.logical_not(inner)]].prod(axis=1)
            needed = np.full(len(self._scopes), np.inf)
            needed[wide] = cells
            enough = np.bincount(every.scope, minlength=len(needed)) >= needed
            found = every.take(enough[every.scope])
            if not all(inner):
                found = self._complete(found, inner, needed)
            ends = np.searchsorted(found.scope, np.arange(len(needed) + 1))
            self._summed[inner] = found, ends
        return self._summed[inner]

    def _complete(self, some: _Numbers, inner: tuple[bool, ...], needed: Float64) -> _Numbers:
        """Return the sums of as many numbers as a scope needs, which differ in other columns."""
        domain, column = self.domain, self._columns(some.codes)
        scopes, row = np.unique(some.scope, return_inverse=True)
        columns = np.array([self._scopes[each] for each in scopes], np.int64)
        others = columns.reshape(-1, len(inner))[:, np.logical_not(inner)]
        outside = (column[:, :, None] == others[row.ravel()][:, None, :]).any(axis=2)
        # A value of another column: its positive literal, or any literal of a binary one.
        binary = domain.sizes[column] == 1
        value = (some.codes <= 2 * domain.bits) & (binary | (some.codes & 1 == 1))
        usable = (~outside | value).all(axis=1) & (outside.sum(axis=1) == inner.count(False))
        some, codes = some.take(usable), np.where(outside, 0, some.codes)[usable]
        # The first code names the scope: the same sums of different scopes have other noise.
        keys = np.column_stack((some.scope, np.sort(codes, axis=1)))
        first, owner = _distinct(keys - 1)
        complete = np.bincount(owner, minlength=len(first)) == needed[some.scope[first]]
        kept, number = complete[owner], np.cumsum(complete) - 1
        first = first[complete]
        found = some.take(kept).added(number[owner[kept]], codes[first], some.scope[first])
        return found.take(np.argsort(found.scope, kind="stable"))

    def _columns(self, codes: NDArray[Any]) -> Int64:
        """Return the column that each factor looks at; -1 for none."""
        of_bit = self.domain.column_of_bit
        return np.where(codes > 0, of_bit[self._factors(codes).bits], -1).astype(np.int64)

    def _on_values(self, codes: NDArray[Any], column: int, size: int) -> Float64:
        """Return the product of factors on each value of one column: ``(m, size)``."""
        first = int(self.domain.offsets[column])
        shift = 1 if self.domain.sizes[column] == 1 else 0  # the bit says value 1
        product = np.ones((len(codes), size))
        for code in codes.T[:, :, None]:
            bit, at_zero, at_one = self._factors(code)
            here = np.arange(size) == bit - first + shift
            product *= np.where(code > 0, np.where(here, at_one, at_zero), 1.0)
        return product

    def _factors(self, codes: NDArray[Any]) -> Factors:
        """Return the factors with some of our codes; any for none."""
        literals = 2 * self.domain.bits
        kept = np.where(codes > 0, codes, 1)
        return factors_of(np.where(kept <= literals, kept - 1, literals - kept), self.domain)


def _sums(owner: Int64, numbers: Float64, count: int) -> Float64:
    return np.bincount(owner, numbers, count).astype(np.float64)


def _distinct(rows: NDArray[Any]) -> tuple[Int64, Int64]:
    """Return the first of all equal rows, integers from -1 on, and which of these each row is."""
    first = first_occurrences(rows, int(rows.max(initial=0)) + 1)
    places, owner = np.unique(first, return_inverse=True)
    return places.astype(np.int64), owner.ravel()

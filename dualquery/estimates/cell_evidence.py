"""Noisy measurements of the cells of some columns.

A measured number is a product of factors, one a column, so it is a linear functional of the cells.
Numbers that also look at other columns, and differ in the values of these only, are added up if
there is one for each of these values. Each number is used once: the noise stays independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.estimates.measurements import Measurements, factors_of
from dualquery.rows.repeats import first_occurrences

if TYPE_CHECKING:
    from dualquery.estimates.intervals import Total

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]

MOST_CELLS, MOST_PRODUCTS = 1 << 15, 1 << 21  # of a question's columns; more are not looked at
MOST_VALUES = 1 << 13  # of one of them: least squares hold their products, dense


@dataclass(frozen=True, eq=False)
class CellEvidence:
    """``m`` numbers with independent noise about the cells of some columns; float64 ``(m,)``."""

    factors: tuple[Float64, ...]  # one ``(factors, values)`` a column; the first factor is 1
    chosen: Int64  # the places of each number's factors, ``(columns, m)``; no two are equal
    less: Float64  # what is taken off the product of the factors, on every cell
    values: Float64
    deviations: Float64  # standard deviations of the noise, above 0
    kurtosis: Float64  # excess kurtosis of the noise; 0 if Gaussian
    absent: Float64  # what a row that is not there contributes; NaN where unknown

    def with_total(self, total: Total) -> CellEvidence:
        """Return the evidence with one number more: the sum of all cells, a measured total.

        What absent rows contribute, known of all others, is taken off. All are then of the rows
        alone, over the total's copies.
        """
        absent, excess = self.absent, 0.0 if total.noise == "gaussian" else 3.0
        return CellEvidence(
            self.factors,
            np.insert(self.chosen, 0, 0, axis=1),
            less=np.append(0.0, self.less + absent),
            values=np.append(total.estimate / total.copies, self.values - absent),
            deviations=np.append(total.deviation, self.deviations),
            kurtosis=np.append(excess, self.kurtosis),
            absent=np.zeros(len(absent) + 1),
        )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """``m`` numbers with independent noise: products of factors with codes.

    Codes, int32 ``(m, k)``, are from 1 on, 0 for none: literals first, then signs and contrasts.
    Moments, float64 ``(4, m)``: value, variance and excess fourth cumulant of the noise, absent.
    """

    codes: NDArray[np.int32]
    moments: Float64
    scope: Int64

    def take(self, places: NDArray[Any]) -> _Numbers:
        return _Numbers(self.codes[places], self.moments[:, places], self.scope[places])

    def added(self, owner: Int64, first: Int64) -> _Numbers:
        """Return the sums of the numbers of each owner, with the codes of the first of each."""
        sums = [np.bincount(owner, each, len(first)) for each in self.moments]
        return _Numbers(self.codes[first], np.array(sums, np.float64), self.scope[first])

    def merged(self, owner: Int64, first: Int64) -> _Numbers:
        """Return the means, by precision, of numbers that measure the same."""
        weights = 1.0 / self.moments[1]
        share = weights / np.bincount(owner, weights, len(first))[owner]
        moments = self.moments * share ** np.array([[1], [2], [4], [1]])
        return _Numbers(self.codes, moments, self.scope).added(owner, first)


class Measured:
    """Measured products of factors, ordered so that those about some columns are found."""

    def __init__(self, measurements: Measurements, domain: Domain, of_rows: bool = False) -> None:
        self.domain = domain
        lengths = np.diff(measurements.starts)
        # Beside a measured total a number is of use if it is known what absent rows contribute.
        known = np.flatnonzero((lengths > 0) & ~(of_rows & np.isnan(measurements.absent)))
        place = np.arange(int(lengths[known].max(initial=1)))
        present = place < lengths[known, None]
        at = np.where(present, measurements.starts[known, None] + place, 0)
        factors = measurements.factors[at]
        shifted = np.where(factors >= 0, factors + 1, 2 * domain.bits - factors)
        codes = np.sort(np.where(present, shifted, 0), axis=1).astype(np.int32)

        columns = np.sort(self._columns(codes), axis=1)
        columns[:, 1:][columns[:, 1:] == columns[:, :-1]] = -1
        first, scope = _distinct(np.sort(columns, axis=1))
        self._scopes = [tuple(c for c in row if c >= 0) for row in columns[first].tolist()]
        self._scopes_of: dict[int, list[int]] = {}
        for number, columns_of in enumerate(self._scopes):
            for column in columns_of:
                self._scopes_of.setdefault(column, []).append(number)

        variances = measurements.deviations[known] ** 2
        laplace = 3.0 if measurements.noise == "discrete laplace" else 0.0
        values, absent = measurements.values[known], measurements.absent[known]
        moments = np.stack((values, variances, laplace * variances**2, absent))
        first, owner = _distinct(codes - 1)
        merged = _Numbers(codes, moments, scope).merged(owner, first)
        self._numbers = merged.take(np.argsort(merged.scope, kind="stable"))
        self._starts = np.searchsorted(self._numbers.scope, np.arange(len(self._scopes) + 1))

    def about(self, columns: Sequence[int]) -> CellEvidence | None:
        """Return the numbers about the cells of some columns, increasing; None of too many."""
        sizes = axis_sizes(self.domain)[list(columns)]
        if np.prod(sizes.astype(float)) > MOST_CELLS or sizes.max() > MOST_VALUES:
            return None
        near: dict[tuple[bool, ...], list[int]] = {}
        for scope in sorted({s for column in columns for s in self._scopes_of.get(column, ())}):
            inner = tuple(column in columns for column in self._scopes[scope])
            near.setdefault(inner, []).append(scope)
        parts = [self._numbers.take(np.zeros(0, np.int64))]
        parts += [self._over_others(inner, scopes) for inner, scopes in near.items()]
        joined = np.concatenate([part.codes for part in parts])
        moments = np.concatenate([part.moments for part in parts], axis=1)
        factors, chosen = [], []
        of_factors = self._columns(joined)
        for column, size in zip(columns, sizes.tolist(), strict=True):
            codes = np.sort(np.where(of_factors == column, joined, 0), axis=1)
            codes = np.concatenate((np.zeros((1, codes.shape[1]), np.int32), codes))
            first, kind = _distinct(codes - 1)
            factors.append(self._on_values(codes[first], column, size))
            chosen.append(kind[1:])
        if math.prod(len(each) for each in factors) > MOST_PRODUCTS:
            return None
        first, owner = _distinct(np.transpose(chosen))
        numbers = _Numbers(joined, moments, np.zeros(len(joined), np.int64))
        value, variance, fourth, absent = numbers.merged(owner, first).moments
        less, excess = np.zeros_like(value), fourth / variance**2
        kept = np.array(chosen)[:, first]
        return CellEvidence(tuple(factors), kept, less, value, np.sqrt(variance), excess, absent)

    def _over_others(self, inner: tuple[bool, ...], scopes: list[int]) -> _Numbers:
        """Return numbers of scopes, summed over all cells of the columns that are not ``inner``."""
        domain, of = self.domain, np.array(scopes)
        others = np.array([self._scopes[each] for each in scopes])[:, np.logical_not(inner)]
        needed = axis_sizes(domain)[others].prod(axis=1)
        of = of[np.diff(self._starts)[of] >= needed]
        spans = [np.arange(self._starts[each], self._starts[each + 1]) for each in of]
        some = self._numbers.take(np.concatenate([np.zeros(0, np.int64), *spans]))
        if all(inner):
            return some
        column, row = self._columns(some.codes), np.searchsorted(scopes, some.scope)
        outside = (column[:, :, None] == others[row][:, None, :]).any(axis=2)
        # A value of another column: its positive literal, or any literal of a binary one.
        binary = domain.sizes[column] == 1
        value = (some.codes <= 2 * domain.bits) & (binary | (some.codes & 1 == 1))
        usable = (~outside | value).all(axis=1) & (outside.sum(axis=1) == inner.count(False))
        inside = _Numbers(np.where(outside, 0, some.codes), some.moments, some.scope).take(usable)
        # The first code names the scope: the same sums of different scopes have other noise.
        first, owner = _distinct(np.column_stack((inside.scope, np.sort(inside.codes, axis=1))) - 1)
        complete = np.bincount(owner, minlength=len(first)) == needed[row[usable][first]]
        return inside.added(owner, first).take(complete)

    def _columns(self, codes: NDArray[Any]) -> Int64:
        """Return the column that each factor looks at; -1 for none."""
        of_bit = self.domain.column_of_bit
        return np.where(codes > 0, of_bit[self._factors(codes)[0]], -1).astype(np.int64)

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

    def _factors(self, codes: NDArray[Any]) -> tuple[Int64, Int64, Int64]:
        """Return the factors with some of our codes; any for none."""
        literals = 2 * self.domain.bits
        kept = np.where(codes > 0, codes, 1)
        return factors_of(np.where(kept <= literals, kept - 1, literals - kept), self.domain)


def _distinct(rows: NDArray[Any]) -> tuple[Int64, Int64]:
    """Return the first of all equal rows, integers from -1 on, and which of these each row is."""
    first = first_occurrences(rows, int(rows.max(initial=0)) + 1)
    places, owner = np.unique(first, return_inverse=True)
    return places.astype(np.int64), owner.ravel()

"""What noisy measurements say about the cells of some columns.

A measured number is a linear functional of the rows. If it looks at no other columns, it is one of
the cells. If it does, it is of use as part of a sum: numbers that differ in the values of the other
columns only, and go through all of them, add up to one that does not look at these columns. Each
number is used once, so that the noise stays independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.estimates.measurements import Factors, Measurements, factors_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dualquery.estimates.total import Total

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]

MOST_CELLS = 1 << 15
"""Cells of the columns of a question; more are not looked at."""

MOST_ENTRIES = 1 << 25
"""Of the matrix from cells to numbers, 12 bytes each."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Numbers with independent noise about the cells of some columns.

    Parameters
    ----------
    functionals
        Sparse float64, shape ``(m, cells)``: each number's value on each cell, in C order.
    values
        float64, shape ``(m,)``: the noisy numbers.
    deviations
        float64, shape ``(m,)``, > 0: standard deviations of their noise.
    kurtosis
        float64, shape ``(m,)``: excess kurtosis of their noise; 0 if Gaussian.
    absent
        float64, shape ``(m,)``: what a row that is not there contributes; NaN where unknown.
    """

    functionals: csr_array
    values: Float64
    deviations: Float64
    kurtosis: Float64
    absent: Float64

    def with_total(self, total: Total) -> Evidence:
        """Return the evidence with one number more: the sum of all cells, a measured total.

        Numbers are then of the rows alone, over the total's copies: what rows that are not there
        contribute is taken off, from numbers and functionals. Numbers of which it is not known are
        left out.
        """
        from scipy.sparse import csr_array, vstack

        known = ~np.isnan(self.absent)
        lines, absent = self.functionals[known], self.absent[known]
        cells = csr_array(np.ones((1, self.functionals.shape[1])))
        if absent.any():
            lines = lines - csr_array(absent[:, None]) @ cells
        excess = 0.0 if total.noise == "gaussian" else 3.0
        return Evidence(
            functionals=csr_array(vstack((lines, cells))),
            values=np.append(self.values[known] - absent, total.estimate / total.copies),
            deviations=np.append(self.deviations[known], total.deviation),
            kurtosis=np.append(self.kurtosis[known], excess),
            absent=np.zeros(len(absent) + 1),
        )


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
        # Codes from 1 on, 0 for padding: literals first, then signs and contrasts.
        factors = measurements.factors[at] if len(known) else np.zeros((0, way), np.int32)
        shifted = np.where(factors >= 0, factors + 1, 2 * domain.bits - factors)
        codes = np.sort(np.where(present, shifted, 0), axis=1)
        self.codes, owner = np.unique(codes, axis=0, return_inverse=True)
        weight = measurements.deviations[known] ** -2.0
        count = len(self.codes)

        # Of a number that was measured repeatedly, the mean.
        total = _sums(owner.ravel(), weight, count)
        self.values = _sums(owner.ravel(), weight * measurements.values[known], count) / total
        self.absent = _sums(owner.ravel(), weight * measurements.absent[known], count) / total
        self.deviations = total**-0.5
        laplace = 3.0 if measurements.noise == "discrete laplace" else 0.0
        self.kurtosis = laplace * _sums(owner.ravel(), weight**2, count) / total**2

        bits = self._factors(self.codes).bits
        self._columns: Int64 = np.where(self.codes > 0, domain.column_of_bit[bits], -1)
        scopes = np.sort(self._columns, axis=1)
        scopes[:, 1:][scopes[:, 1:] == scopes[:, :-1]] = -1
        distinct, scope_of = np.unique(np.sort(scopes, axis=1), axis=0, return_inverse=True)
        self._scopes = [tuple(c for c in row if c >= 0) for row in distinct.tolist()]
        self._members = np.split(
            np.argsort(scope_of.ravel(), kind="stable"),
            np.cumsum(np.bincount(scope_of.ravel(), minlength=len(distinct)))[:-1],
        )
        self._scopes_of: dict[int, list[int]] = {}
        for number, scope in enumerate(self._scopes):
            for column in scope:
                self._scopes_of.setdefault(column, []).append(number)
        self._sums: dict[tuple[int, tuple[int, ...]], tuple[Int64, Int64]] = {}

    def about(self, columns: Sequence[int]) -> Evidence | None:
        """Return what is known of the cells of some columns; None if they are too many.

        Parameters
        ----------
        columns
            Increasing, at least one.
        """
        sizes = axis_sizes(self.domain)[list(columns)]
        if np.prod(sizes.astype(float)) > MOST_CELLS:
            return None
        near = sorted({scope for column in columns for scope in self._scopes_of.get(column, ())})
        empty = np.zeros(0, np.int64)
        parts = [(empty, empty), *(self._part(scope, columns) for scope in near)]
        rows, members, owners, count = [], [], [], 0
        for found, owner in parts:
            first = np.unique(owner, return_index=True)[1]
            rows.append(found[first])
            members.append(found)
            owners.append(owner + count)
            count += len(first)
        lines = self._functionals(np.concatenate(rows), columns)
        if lines is None:
            return None
        member, owner = np.concatenate(members), np.concatenate(owners)
        variance = self.deviations[member] ** 2
        total = np.bincount(owner, variance, count)
        return Evidence(
            functionals=lines,
            values=_sums(owner, self.values[member], count),
            deviations=np.sqrt(total),
            kurtosis=np.bincount(owner, self.kurtosis[member] * variance**2, count) / total**2,
            absent=_sums(owner, self.absent[member], count),
        )

    def _part(self, scope: int, columns: Sequence[int]) -> tuple[Int64, Int64]:
        """Return the numbers about one set of columns that are of use, and which add up."""
        members = self._members[scope]
        inner = tuple(column for column in self._scopes[scope] if column in columns)
        if inner == self._scopes[scope]:
            return members, np.arange(len(members))
        key = scope, inner
        if key not in self._sums:
            self._sums[key] = self._complete(members, inner, self._scopes[scope])
        return self._sums[key]

    def _complete(
        self, members: Int64, inner: tuple[int, ...], scope: tuple[int, ...]
    ) -> tuple[Int64, Int64]:
        """Return which numbers add up to one about the inner columns alone, and the sum of each."""
        domain, empty = self.domain, np.zeros(0, np.int64)
        others = [column for column in scope if column not in inner]
        cells = int(axis_sizes(domain)[others].prod())
        if len(members) < cells:
            return empty, empty
        codes, column = self.codes[members], self._columns[members]
        outside = (column >= 0) & ~np.isin(column, inner)
        # A value of another column: its positive literal, or any literal of a binary one.
        binary = domain.sizes[column] == 1
        value = (codes <= 2 * domain.bits) & (binary | (codes & 1 == 1))
        usable = (~outside | value).all(axis=1) & (outside.sum(axis=1) == len(others))
        members = members[usable]
        keys = np.sort(np.where(outside, 0, codes)[usable], axis=1)
        _, owner, times = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
        complete = times == cells
        kept = complete[owner.ravel()]
        return members[kept], (np.cumsum(complete) - 1)[owner.ravel()[kept]]

    def _functionals(self, members: Int64, columns: Sequence[int]) -> csr_array | None:
        """Return numbers' values on the cells, factors on other columns left out."""
        from scipy.sparse import csr_array

        sizes = axis_sizes(self.domain)[list(columns)].tolist()
        codes, column = self.codes[members], self._columns[members]
        row, cell, entry = np.arange(len(members)), np.zeros(len(members), np.int64), np.ones(
            len(members)
        )  # fmt: skip
        for axis, size in zip(columns, sizes, strict=True):
            values = self._on_values(np.where(column == axis, codes, 0), axis, size)
            width = np.count_nonzero(values, axis=1)
            if int(width[row].sum()) > MOST_ENTRIES:
                return None
            start = np.concatenate(([0], np.cumsum(width)))
            _, at = np.nonzero(values)
            repeats = width[row]
            within = np.arange(int(repeats.sum())) - np.repeat(
                np.cumsum(repeats) - repeats, repeats
            )
            place = at[np.repeat(start[row], repeats) + within]
            row = np.repeat(row, repeats)
            cell = np.repeat(cell, repeats) * size + place
            entry = np.repeat(entry, repeats) * values[row, place]
        return csr_array((entry, (row, cell)), shape=(len(members), int(np.prod(sizes))))

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
        """Return the factors with some of our codes; any for padding."""
        literals = 2 * self.domain.bits
        return factors_of(np.where(codes <= literals, codes - 1, literals - codes), self.domain)


def _sums(owner: Int64, numbers: Float64, count: int) -> Float64:
    return np.bincount(owner, numbers, count).astype(np.float64)

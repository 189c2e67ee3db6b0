"""What noisy measurements say about the cells of some columns.

A measured number is a linear functional of the rows. If it looks at no other columns, it is one of
the cells. If it does, it is of use as part of a sum: numbers that differ in the values of the other
columns only, and go through all of them, add up to one that does not look at these columns. Each
number is used once, so that the noise stays independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.estimates.measurements import Measurements

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
        # Codes from 1 on, 0 for padding: literals first, then signs.
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

    @cached_property
    def _columns(self) -> Int64:
        """The column of each factor, -1 for padding."""
        literals = 2 * self.domain.bits
        bits = np.where(self.codes <= literals, (self.codes - 1) >> 1, self.codes - literals - 1)
        found: Int64 = np.where(self.codes > 0, self.domain.column_of_bit[bits], -1)
        return found

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
        inside = np.isin(self._columns, columns)
        near = np.flatnonzero(inside.any(axis=1))
        outside = (self._columns[near] >= 0) & ~inside[near]
        whole = near[~outside.any(axis=1)]
        parts = [(whole, np.arange(len(whole)))]
        parts += self._sums(near[outside.any(axis=1)], columns)
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

    def _sums(self, members: Int64, columns: Sequence[int]) -> list[tuple[Int64, Int64]]:
        """Return which numbers add up to one about the columns alone, and the sum of each."""
        domain = self.domain
        codes, column = self.codes[members], self._columns[members]
        outside = (column >= 0) & ~np.isin(column, columns)
        bit = (codes - 1) >> 1
        binary = domain.sizes[column] == 1
        # A value of another column: its positive literal, or any literal of a binary one.
        value = (codes <= 2 * domain.bits) & (binary | (codes & 1 == 1))
        usable = (~outside | value).all(axis=1)
        members, codes, column = members[usable], codes[usable], column[usable]
        outside, bit, binary = outside[usable], bit[usable], binary[usable]
        others = np.sort(np.where(outside, column, -1), axis=1)
        repeated = ((others[:, 1:] == others[:, :-1]) & (others[:, 1:] >= 0)).any(axis=1)
        inner = np.sort(np.where(outside, 0, codes), axis=1)
        keys = np.concatenate((inner, others), axis=1)[~repeated]
        members = members[~repeated]
        if not len(members):
            return []
        _, first, owner, times = np.unique(
            keys, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        others = others[~repeated][first]
        cells = np.where(others >= 0, axis_sizes(domain)[others], 1).prod(axis=1)
        complete = times == cells
        number = np.cumsum(complete) - 1
        kept = complete[owner.ravel()]
        return [(members[kept], number[owner.ravel()[kept]])]

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
        first, literals = int(self.domain.offsets[column]), 2 * self.domain.bits
        shift = 1 if self.domain.sizes[column] == 1 else 0  # the bit says value 1
        product = np.ones((len(codes), size))
        for factor in codes.T:
            sign = factor > literals
            bit = np.where(sign, factor - literals - 1, (factor - 1) >> 1)
            here = np.arange(size) == (bit - first + shift)[:, None]
            negated = (factor - 1) & 1 == 1
            literal = here ^ negated[:, None]
            on = np.where(sign[:, None], 1.0 - 2.0 * here, literal)
            product *= np.where(factor[:, None] > 0, on, 1.0)
        return product


def _sums(owner: Int64, numbers: Float64, count: int) -> Float64:
    return np.bincount(owner, numbers, count).astype(np.float64)

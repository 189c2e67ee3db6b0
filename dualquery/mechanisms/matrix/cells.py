"""Whole marginals whose cells were measured, as the features that they are made of.

Cells with alike and independent noise determine the means of all features of their marginal, and
the noise of features of different columns is uncorrelated: products of contrasts are orthogonal
there. What several marginals say of the same feature is taken together, so that the answers that
features give have less noise than the cells that were measured. Post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.mechanisms.matrix.expansion import Expansion, places_of
from dualquery.mechanisms.matrix.product_terms import ProductTerms
from dualquery.queries.conjunctions import Workload
from dualquery.queries.forms.cuboids import Cuboids
from dualquery.rows.repeats import pad_right

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CellFeatures:
    """The features that the cells of whole marginals are made of.

    Parameters
    ----------
    workload
        Whole marginals.
    expansion
        Its queries as sums of features, in blocks: contrasts and signs, all of them.
    """

    workload: Workload
    expansion: Expansion

    @property
    def products(self) -> ProductTerms:
        """The features, as a mixture is fitted to them."""
        return ProductTerms.of_features(self.expansion.features)

    def answers(self, means: Float64) -> Float64:
        """Add up the features of each query."""
        return self.expansion.answers(means)

    def deviations(self, deviations: Float64) -> Float64:
        """Return the answers' standard deviations from those of the features."""
        spread: Float64 = np.sqrt(self.expansion.variances(deviations**2))
        return spread

    def told_by(self, noisy: Float64, deviation: float) -> tuple[Float64, Float64]:
        """Return the features' means, and standard deviations of their noise: ``(f,)`` each.

        As of features that are measured, each with noise of its own, and then brought to what
        contrasts can be (`Expansion.projection`).

        Parameters
        ----------
        noisy
            float64, shape ``(m,)``: the queries' noisy answers.
        deviation
            Standard deviation of the noise of each.
        """
        sums, precisions = np.zeros((2, len(self.expansion.features)))
        for columns, cells in _by_shape(self.workload, noisy):
            for chosen in _subsets(columns.shape[1]):
                bits, means, variance = self._contrasts(columns, cells, chosen)
                places = places_of(bits, self.expansion.features)
                precision = 1.0 / (variance * deviation**2)
                np.add.at(sums, places, precision * means)
                np.add.at(precisions, places, precision)
        return sums / precisions, precisions**-0.5

    def _contrasts(
        self, columns: NDArray[np.int64], cells: Float64, chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], Float64, float]:
        """Return what cells say of the features of some of their columns.

        Parameters
        ----------
        columns, cells
            As of `_by_shape`.
        chosen
            bool, shape ``(k,)``: which columns.

        Returns
        -------
        The features' bits, their means, one each, and the variance of these for cells of variance
        1: a wide column's contrasts have n^2 before they are brought to sums of 0.
        """
        domain = self.workload.domain
        variance = 1.0
        for axis, taken in enumerate(chosen.tolist(), 1):
            size, total = int(cells.shape[axis]), cells.sum(axis=axis, keepdims=True)
            if not taken:
                cells, variance = total, size * variance
            elif size == 2:
                # The sign is of a bit's 1s: the second value, or the first of two bits.
                first = np.take(cells, [0], axis=axis)
                alone = (domain.sizes[columns[:, axis - 1]] == 1).reshape(-1, *[1] * len(chosen))
                cells = np.where(alone, 2.0 * first - total, total - 2.0 * first)
                variance *= 2.0
            else:
                cells, variance = total - size * cells, size**2 * variance
        bits = np.zeros((*cells.shape, int(chosen.sum())), np.int32)
        for place, axis in enumerate(np.flatnonzero(chosen).tolist()):
            values = np.arange(cells.shape[axis + 1])
            values = values.reshape(-1, *[1] * (len(chosen) - axis - 1))
            offsets = domain.offsets[columns[:, axis]].reshape(-1, *[1] * len(chosen))
            bits[..., place] = offsets + values
        flat = bits.reshape(-1, bits.shape[-1])
        missing = self.expansion.features.bits.shape[1] - flat.shape[1]
        padded = np.pad(flat, ((0, 0), (0, missing)), constant_values=-1)
        return pad_right(padded), cells.ravel(), float(variance)


def _by_shape(workload: Workload, answers: Float64) -> list[tuple[NDArray[np.int64], Float64]]:
    """Return the marginals, those together whose columns have as many values.

    Returns
    -------
    For each shape ``(n_1, ..., n_k)``, the columns, increasing: int64, shape ``(c, k)``; and the
    answers to the cells: float64, shape ``(c, n_1, ..., n_k)``, values in order.
    """
    domain, literals = workload.domain, workload.literals.astype(np.int64)
    present = literals >= 0
    column = np.where(present, domain.column_of_bit[literals >> 1], domain.columns)
    order = np.argsort(column, axis=1, kind="stable")
    column = np.take_along_axis(column, order, axis=1)
    literals = np.take_along_axis(literals, order, axis=1)
    present = literals >= 0
    sizes = np.where(present, np.append(axis_sizes(domain), 1)[column], 1)
    within = np.minimum(column, domain.columns - 1)
    values = (literals >> 1) - domain.offsets[within]
    values = np.where(domain.sizes[within] == 1, 1 - (literals & 1), values)
    cell = np.zeros(len(literals), np.int64)
    for place in range(literals.shape[1]):
        cell = cell * sizes[:, place] + np.where(present[:, place], values[:, place], 0)
    cuboids = Cuboids.of(workload)
    of = np.repeat(np.arange(len(cuboids)), np.diff(cuboids.indptr))
    members = cuboids.members[np.lexsort((cell[cuboids.members], of))]
    leaders = members[cuboids.indptr[:-1]]
    shapes, shape_of = np.unique(sizes[leaders], axis=0, return_inverse=True)
    found = []
    for number, shape in enumerate(shapes):
        which = np.flatnonzero(shape_of.ravel() == number)
        held = cuboids.indptr[which][:, None] + np.arange(int(shape.prod()))
        way = int(present[leaders[which[0]]].sum())
        cells = answers[members[held]].reshape(len(which), *shape[:way].tolist())
        found.append((column[leaders[which], :way], cells))
    return found


def _subsets(count: int) -> list[NDArray[np.bool_]]:
    """Return all choices of one column or more of so many."""
    return [(number >> np.arange(count) & 1).astype(bool) for number in range(1, 1 << count)]

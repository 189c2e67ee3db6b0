"""Whole sets of columns: measured by contrasts, whose noise has no part that answers need.

Cells are sums of the contrasts of a set of columns and of its subsets (ResidualPlanner's base
mechanism: Xiao, He, Zhang and Kifer, arXiv 2305.08175, Section 4). Independent noise on all
contrasts, and the projection that centres them along every wide column, is the correlated noise of
that paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualquery.data.cells import axis_sizes
from dualquery.data.domain import Domain
from dualquery.room.features import MOST_CELLS, Features
from dualquery.rows.repeats import first_occurrences, pad_right

Float64 = NDArray[np.float64]

_WHOLE = 0.5
"""Share of a set's cells from which on all are measured: contrasts of all cost no more privacy."""


def with_whole_sets(listed: NDArray[np.int32], domain: Domain) -> Features:
    """Return features, those of nearly whole sets of columns as whole blocks of contrasts.

    Parameters
    ----------
    listed
        int32, shape ``(f, k)``: distinct products as of `Features`, with all products of some of
        their factors.
    domain
        The columns.
    """
    columns = np.where(listed >= 0, domain.column_of_bit[listed], np.int32(-1))
    sizes = domain.sizes[columns]
    wide = (listed >= 0) & (sizes > 2)
    leaders, of = np.unique(first_occurrences(columns, domain.columns), return_inverse=True)
    cells = np.where(wide, sizes, 1)[leaders].prod(axis=1, dtype=np.float64)
    asked = np.bincount(of.ravel(), minlength=len(leaders))
    whole = wide[leaders].any(axis=1) & (asked >= _WHOLE * cells) & (cells <= MOST_CELLS)
    blocks = [_cells(domain, columns[leader]) for leader in leaders[whole]]
    kept = listed[~whole[of.ravel()]]
    bits = np.concatenate((kept, *blocks))
    return Features(bits, domain, np.arange(len(bits)) >= len(kept))


def _cells(domain: Domain, columns: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a product for each cell of the wide columns of a set, in C order."""
    used = columns[columns >= 0]
    values = [np.arange(size if size > 2 else 1) for size in domain.sizes[used].tolist()]
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(used))
    bits = np.full((len(grid), len(columns)), -1, np.int32)
    bits[:, : len(used)] = grid + domain.offsets[used]
    return bits


@dataclass(frozen=True, eq=False)
class Projection:
    """The projection of measured features to what contrasts can be.

    Parameters
    ----------
    features
        As made by `with_whole_sets`: the cells of a block follow each other in C order.
    """

    features: Features

    @cached_property
    def _shapes(self) -> list[tuple[int, tuple[int, ...]]]:
        """The first feature of each block with wide columns, and its wide columns' sizes."""
        blocks, sizes = self.features.blocks, axis_sizes(self.features.domain)
        first = blocks.features[np.unique(blocks.of, return_index=True)[1]]
        return [
            (start, tuple(size for size in sizes[row[row >= 0]].tolist() if size > 2))
            for start, row, count in zip(
                first.tolist(), blocks.columns, blocks.cells.tolist(), strict=True
            )
            if count > 1
        ]

    def __call__(self, means: Float64) -> Float64:
        """Return means of features with those of blocks centred along every wide column."""
        projected = means.copy()
        for start, shape in self._shapes:
            cells = projected[start : start + int(np.prod(shape))].reshape(shape)
            for axis in range(len(shape)):
                cells -= cells.mean(axis=axis, keepdims=True)
        return projected

    def inner(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Float64:
        """Return entries of the projection: of pairs of features of one block, float64, each."""
        features = self.features
        sizes = features.values[first]
        wide = features.contrasts[first] & (sizes > 2)
        same = features.bits[first] == features.bits[second]
        entries: Float64 = np.where(wide, same - 1.0 / sizes, 1.0).prod(axis=1)
        return entries


def in_contrasts(
    terms: NDArray[np.int32], centred: NDArray[np.bool_], domain: Domain
) -> tuple[NDArray[np.int64], NDArray[np.int32], Float64]:
    """Multiply out the indicators of some terms as ``(1 - contrast) / n``.

    Parameters
    ----------
    terms
        int32, shape ``(t, k)``: products of indicators and signs, padded with -1.
    centred
        bool, shape ``(t,)``: the terms whose indicators are replaced.
    domain
        The columns.

    Returns
    -------
    int64, int32 ``(s, k)``, float64: of each new term the old one, its factors, its coefficient.
    """
    sizes = np.where(terms >= 0, axis_sizes(domain)[domain.column_of_bit[terms]], 1)
    replaced = (sizes > 2) & centred[:, None]
    owners, rows, coefficients = [], [], []
    for pattern in product((False, True), repeat=terms.shape[1]):
        kept = np.array(pattern)
        # What is not replaced is always kept; contrasts are kept, or 1 takes their place.
        owner = np.flatnonzero((replaced | (kept == (terms >= 0))).all(axis=1) & (
            kept <= (terms >= 0)
        ).all(axis=1))  # fmt: skip
        factors = np.where(replaced[owner], np.where(kept, -1.0, 1.0) / sizes[owner], 1.0)
        owners.append(owner)
        rows.append(np.where(kept, terms[owner], np.int32(-1)))
        coefficients.append(factors.prod(axis=1))
    return np.concatenate(owners), pad_right(np.concatenate(rows)), np.concatenate(coefficients)

"""Queries as products of functions of single columns: the form in which families reach MWEM.

A parity or a box of intervals is ``q(x) = prod_c f_c(x_c)`` over a few columns. Each f_c is a short
sum over a basis of its column; index 0 is the constant 1, and index v >= 1 is

- ``[x = v]`` on most columns;
- ``[x >= v]`` on *cumulative* ones, where an interval is one or two terms however long it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Products:
    """``m`` products of functions of single columns.

    Parameters
    ----------
    sizes
        int64, shape ``(columns,)``: number of values of each column, at least 2.
    columns
        int32, shape ``(m, k)``: increasing columns of each query, padded with -1.
    factors
        int32, shape ``(m, k)``: the factor on each of them, padded with -1.
    factor_column
        int32, shape ``(f,)``: column of each factor.
    indptr, index, coefficient
        int64 ``(f + 1,)``, int32 and float64 ``(terms,)``: the terms of each factor.
    cumulative
        bool, shape ``(columns,)``: the basis of each column.
    scale
        float64, shape ``(m,)``: query j is its product times ``scale[j]``; products lie in [-1, 1].
    """

    sizes: NDArray[np.int64]
    columns: NDArray[np.int32]
    factors: NDArray[np.int32]
    factor_column: NDArray[np.int32]
    indptr: NDArray[np.int64]
    index: NDArray[np.int32]
    coefficient: NDArray[np.float64]
    cumulative: NDArray[np.bool_]
    scale: NDArray[np.float64]


def terms_of(values: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Write a function of a column as coefficients of 1, [x = 1], [x = 2], ..."""
    coefficient = np.concatenate((values[:1], values[1:] - values[0]))
    index = np.flatnonzero(coefficient).astype(np.int32)
    return index, coefficient[index]

"""Counting and listing the ways to choose one literal from each of k different columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.runtime.errors import BadInputError

Columns: TypeAlias = Sequence[int] | NDArray[np.int64]
"""Positions of columns in the table, from 0, in any order."""


def chosen_columns(domain: Domain, columns: Columns | None, way: int) -> NDArray[np.int64]:
    """Return the columns that queries may use, increasing; all of them for None.

    `BadInputError` when a column does not exist or is named twice, or there are fewer than ``way``.
    """
    if columns is None:
        chosen = np.arange(domain.columns, dtype=np.int64)
    else:
        chosen = np.sort(np.asarray(columns, np.int64))
        outside = chosen[(chosen < 0) | (chosen >= domain.columns)]
        if len(outside):
            raise BadInputError(
                f"query column {outside[0]} does not exist: the table has {domain.columns} columns,"
                " numbered from 0"
            )
        twice = chosen[1:][chosen[1:] == chosen[:-1]]
        if len(twice):
            raise BadInputError(f"query column {twice[0]} is named twice")
    if way < 1:
        raise BadInputError(f"a query needs at least one literal, not way = {way}")
    if way > len(chosen):
        raise BadInputError(
            f"{way}-way queries need {way} different columns, but there are {len(chosen)}; "
            f"ask for --way {len(chosen)} at most"
        )
    return chosen


def count_choices(sizes: NDArray[np.int64], way: int) -> int:
    """Return in how many ways one item each can be taken from ``way`` of the sets, exactly.

    This is the elementary symmetric polynomial of degree ``way`` of the ``sizes``.
    """
    values, multiplicities = np.unique(sizes, return_counts=True)
    # Sets of one size contribute the binomial (1 + size z)^count: fast for very many columns.
    polynomial = [1]
    for size, count in zip(values.tolist(), multiplicities.tolist(), strict=True):
        factor = [1]
        for i in range(min(way, count)):
            factor.append(factor[-1] * (count - i) * size // (i + 1))
        length = min(way + 1, len(polynomial) + len(factor) - 1)
        polynomial = [
            sum(
                polynomial[i] * factor[j - i]
                for i in range(max(0, j - len(factor) + 1), min(j + 1, len(polynomial)))
            )
            for j in range(length)
        ]
    return polynomial[way] if way < len(polynomial) else 0


def list_choices(
    indptr: NDArray[np.int64], items: NDArray[np.int32], way: int
) -> NDArray[np.int32]:
    """Return every way to take one item each from ``way`` of the sets, 1 or more.

    Set ``i`` is ``items[indptr[i]:indptr[i + 1]]``. int32, shape ``(count_choices(sizes, way),
    way)``, in lexicographic order of the positions.
    """
    sets = len(indptr) - 1
    set_of_item = np.repeat(np.arange(sets), np.diff(indptr))
    rows = np.zeros((1, 0), np.int32)
    start = np.zeros(1, np.int64)
    for left in range(way, 0, -1):
        # The next item comes from a later set that leaves enough sets for the rest.
        stop = indptr[sets - left + 1]
        repeats = stop - start
        origin = np.repeat(np.arange(len(rows)), repeats)
        ends = np.cumsum(repeats)
        position = np.arange(len(origin)) - (ends - repeats)[origin] + start[origin]
        rows = np.column_stack((rows[origin], position.astype(np.int32)))
        start = indptr[set_of_item[position] + 1]
    return items[rows]

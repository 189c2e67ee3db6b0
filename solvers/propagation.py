"""What linear constraints allow: ranges of their sums, and values that they force."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.constraints import Rows
from solvers.groups import Groups

FREE = -1
"""Value of an attribute that is not decided."""


class Ranges(NamedTuple):
    """Bounds on the sums of R rows with N entries over the records that are still possible.

    A group that a row does not name wholly contributes 0 by its other members. The range without
    one group member is taken to be the whole range.
    """

    least: NDArray[np.float64]  # (R,): the least sum
    most: NDArray[np.float64]  # (R,): the largest sum
    least_if: NDArray[np.float64]
    """(2, N): the least sum of an entry's row if its attribute is 0, and 1."""
    most_if: NDArray[np.float64]  # (2, N): the largest


def ranges(
    rows: Rows, groups: Groups, group_of: NDArray[np.int32], value: NDArray[np.int8]
) -> Ranges:
    """Return the ranges of the rows' sums.

    A group is decided if a member is 1; ``group_of`` is that of each attribute, or -1;
    ``value`` is 0, 1, or -1 if it is not decided.
    """
    decided = value[rows.attributes]
    free = decided == FREE
    group = group_of[rows.attributes]
    alone = free & (group < 0)
    low = np.where(decided == 1, rows.coefficients, 0.0)
    high = low.copy()
    low[alone] = np.minimum(rows.coefficients[alone], 0.0)
    high[alone] = np.maximum(rows.coefficients[alone], 0.0)
    least_if = np.stack((-low, rows.coefficients - low))
    most_if = np.stack((-high, rows.coefficients - high))
    least, most = rows.sums(low), rows.sums(high)

    grouped = free & (group >= 0)
    if grouped.any():
        members_left, ones = _group_counts(groups, value)
        grouped &= ones[group] == 0
    entries = np.flatnonzero(grouped)
    if len(entries):
        key = rows.row_of[entries].astype(np.int64) * len(groups) + group[entries]
        pairs, of = np.unique(key, return_inverse=True)
        coefficients = rows.coefficients[entries]
        smallest = np.full(len(pairs), np.inf)
        np.minimum.at(smallest, of, coefficients)
        largest = np.full(len(pairs), -np.inf)
        np.maximum.at(largest, of, coefficients)
        others = members_left[pairs % len(groups)] > np.bincount(of)
        smallest[others] = np.minimum(smallest[others], 0.0)
        largest[others] = np.maximum(largest[others], 0.0)
        least += np.bincount(pairs // len(groups), smallest, minlength=len(rows))
        most += np.bincount(pairs // len(groups), largest, minlength=len(rows))
        least_if[:, entries] = np.stack((np.zeros(len(entries)), coefficients - smallest[of]))
        most_if[:, entries] = np.stack((np.zeros(len(entries)), coefficients - largest[of]))
    least_if += least[rows.row_of]
    most_if += most[rows.row_of]
    least_if[:, ~free], most_if[:, ~free] = -np.inf, np.inf
    return Ranges(least, most, least_if, most_if)


def propagate(
    rows: Rows, groups: Groups, group_of: NDArray[np.int32], value: NDArray[np.int8]
) -> Ranges | None:
    """Decide the values that single rows force, in place; return the ranges before that.

    Returns None if the rows contradict each other or the groups.
    """
    found = ranges(rows, groups, group_of, value)
    lower, upper = rows.lower - rows.slack, rows.upper + rows.slack
    if (found.least > upper).any() or (found.most < lower).any():
        return None
    impossible = (found.least_if > upper[rows.row_of]) | (found.most_if < lower[rows.row_of])
    zeros, ones = rows.attributes[impossible[1]], rows.attributes[impossible[0]]
    value[zeros] = 0
    value[ones] = 1
    if (value[zeros] != 0).any():
        return None
    if len(groups) and len(zeros) + len(ones):
        members_left, chosen = _group_counts(groups, value)
        if ((members_left == 0) & (chosen == 0) | (chosen > 1)).any():
            return None
    return found


def _group_counts(
    groups: Groups, value: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many members of each group are not 0 or 1 yet, and how many are 1."""
    members = value[groups.members]
    undecided = ((members != 0) & (members != 1)).astype(np.int64)
    starts = groups.indptr[:-1]
    return np.add.reduceat(undecided, starts), np.add.reduceat(
        (members == 1).astype(np.int64), starts
    )

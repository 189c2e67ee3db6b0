"""Canonical arrays of weighted conjunctions."""

import numpy as np
from numpy.typing import NDArray

_PADDING = np.iinfo(np.int32).max
"""Stands for the code -1 while rows are sorted, so that padding ends up on the right."""


def is_canonical(terms: NDArray[np.int32]) -> bool:
    """Tell whether every row is non-empty, right-padded and ascending in distinct attributes."""
    if terms.shape[0] == 0:
        return True
    if terms.shape[1] == 0 or bool((terms[:, 0] < 0).any()):
        return False
    attributes = terms >> 1
    ascending = (attributes[:, 1:] > attributes[:, :-1]) & (attributes[:, :-1] >= 0)
    return bool((ascending | (attributes[:, 1:] < 0)).all())


def merge_terms(
    attributes: int, terms: NDArray[np.int32], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64], float]:
    """Bring weighted conjunctions to their canonical form and add up equal ones.

    Literals are sorted within each row and repeated ones removed; a row that holds a literal and
    its negation is false on every record and is dropped; an empty conjunction is true on every
    record and goes into the constant; equal rows add their weights; rows of net weight 0 vanish.

    Parameters
    ----------
    attributes
        Number of attributes of a record.
    terms
        int32, shape ``(J, k)``: literal codes ``2 * attribute + negated``, padded with -1.
    weights
        float64, shape ``(J,)``.

    Returns
    -------
    terms, weights, constant
        The merged conjunctions (in ascending order of their rows, whatever the order of the input),
        their weights, and the weight of the empty conjunction.
    """
    if terms.shape[0] == 0 or _is_merged(attributes, terms, weights):
        return terms, weights, 0.0
    rows = np.where(terms < 0, _PADDING, terms)
    rows.sort(axis=1)
    repeated = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] != _PADDING)
    if repeated.any():
        rows[:, 1:][repeated] = _PADDING
        rows.sort(axis=1)
    contradictory = ((rows[:, 1:] ^ rows[:, :-1]) == 1).any(axis=1)
    if contradictory.any():
        rows, weights = rows[~contradictory], weights[~contradictory]
    rows[rows == _PADDING] = -1

    order, first = sorted_runs(attributes, rows)
    starts = np.flatnonzero(first)
    if len(starts) == 0:
        return rows, weights, 0.0
    totals = np.add.reduceat(weights[order], starts)
    rows = rows[order[starts]]
    constant = 0.0
    # The row of padding sorts before every other one.
    if rows.shape[1] == 0 or rows[0, 0] < 0:
        constant = float(totals[0])
        rows, totals = rows[1:], totals[1:]
    kept = totals != 0
    return np.ascontiguousarray(rows[kept]), totals[kept], constant


def _is_merged(attributes: int, terms: NDArray[np.int32], weights: NDArray[np.float64]) -> bool:
    """Tell whether there is nothing to merge, where that is told quickly."""
    if not (weights.all() and is_canonical(terms)):
        return False
    keys = _keys(attributes, terms)
    return keys is not None and bool((keys[1:] > keys[:-1]).all())


def _keys(attributes: int, rows: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return numbers in the order of the rows, the same for equal rows; None if rows are long."""
    base = 2 * attributes + 1
    if base ** rows.shape[1] >= 2**63:
        return None
    keys = np.zeros(len(rows), np.int64)
    for column in range(rows.shape[1]):
        keys *= base
        keys += rows[:, column]
        keys += 1
    return keys


def sorted_runs(
    attributes: int, rows: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return a stable order that brings equal rows together, and where each run of them starts."""
    first = np.ones(len(rows), np.bool_)
    keys = _keys(attributes, rows)
    if keys is not None:
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        first[1:] = ranked[1:] != ranked[:-1]
    else:
        order = np.lexsort(rows.T[::-1])
        ordered = rows[order]
        first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, first

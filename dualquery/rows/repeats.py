"""Rows of integer codes, padded with -1: sorting each, and finding repeated ones."""

import numpy as np
from numpy.typing import NDArray


def first_occurrences(literals: NDArray[np.int32], codes: int) -> NDArray[np.int64]:
    """Return for each row the number of the first row that is equal to it.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``, entries in ``-1 .. codes - 1``.
    codes
        Number of different literal codes.

    Returns
    -------
    int64, shape ``(m,)``: row ``i`` is new when its entry is ``i``.
    """
    keys = _row_keys(literals, codes)
    # Stable sorts, so that the first of a run of equal rows is also the first in the list.
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys)
    begins = np.ones(len(order), bool)
    if len(order):
        begins[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    first = np.empty(len(order), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def _row_keys(literals: NDArray[np.int32], codes: int) -> list[NDArray[np.uint64]]:
    """Pack rows into as few 64-bit keys as hold them."""
    width = codes.bit_length()
    each = max(1, 64 // width)
    keys = []
    for start in range(0, literals.shape[1], each):
        key = np.zeros(len(literals), np.uint64)
        for column in literals.T[start : start + each]:
            key = (key << np.uint64(width)) | (column + 1).astype(np.uint64)
        keys.append(key)
    return keys


def pad_right(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sort each row, with the padding -1 to the right."""
    # As unsigned numbers the padding -1 is the largest.
    return np.sort(rows.view(np.uint32), axis=1).view(np.int32)


def side_by_side(*lists: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return one list of rows, one list after another; shorter rows are padded with -1."""
    way = max(rows.shape[1] for rows in lists)
    return np.concatenate(
        [np.pad(rows, ((0, 0), (0, way - rows.shape[1])), constant_values=-1) for rows in lists]
    )

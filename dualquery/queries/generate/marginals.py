"""Workloads of whole marginals: every cell of a marginal of k columns is one query."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.choices import Columns, chosen_columns, count_choices, list_choices
from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

MEMORY_LIMIT = 2 * 2**30
"""Default limit on the memory that making and answering a workload takes, in bytes."""

_LISTED_SETS = 1_000_000
"""Up to this many sets of columns are listed and chosen from; above it sets are drawn."""


def all_marginals(
    domain: Domain,
    way: int,
    signed: bool = True,
    columns: Columns | None = None,
    limit: int = MEMORY_LIMIT,
) -> Workload:
    """Return every cell of every ``way``-way marginal of the columns.

    Parameters
    ----------
    domain
        The bits and their columns.
    way
        Columns of a marginal, 1 .. number of columns.
    signed
        Whether a binary column ``x`` has both cells, ``x`` and ``1 - x``, or only ``x``. A one-hot
        column always has one cell for each bit.
    columns
        The columns, by position; all of them for None.
    limit
        Most memory in bytes that making and answering the queries may take.

    Raises
    ------
    BadInputError
        When they would take more memory, or the columns are not right.
    """
    chosen = chosen_columns(domain, columns, way)
    indptr, literals = _cells(domain, chosen, signed)
    _check_memory(count_choices(np.diff(indptr), way), way, limit)
    description = {
        "kind": "all marginals",
        "way": way,
        "signed": signed,
        "columns": None if columns is None else chosen.tolist(),
    }
    return Workload(list_choices(indptr, literals, way), domain, description)


def random_marginals(
    domain: Domain,
    count: int,
    way: int,
    max_cells: int,
    seed: int = 0,
    columns: Columns | None = None,
    limit: int = MEMORY_LIMIT,
) -> Workload:
    """Return every cell of ``count`` different random marginals.

    The marginals are uniform over the sets of ``way`` columns with at most ``max_cells`` cells; a
    binary column has two cells, a one-hot column one for each bit. ``seed`` is that of the public
    draw; the rest as for `all_marginals`. `BadInputError` also when too few marginals are that
    small, or an argument is out of its range.
    """
    chosen = chosen_columns(domain, columns, way)
    if count < 1 or max_cells < 1 or seed < 0:
        raise BadInputError(
            "random marginals need a positive number of marginals and cells and a seed from 0 on, "
            f"not {count} marginals, {max_cells} cells, seed {seed}"
        )
    indptr, literals = _cells(domain, chosen, signed=True)
    sizes = np.diff(indptr)
    sets = _draw_sets(sizes, count, way, max_cells, np.random.default_rng(seed))
    _check_memory(int(sizes[sets].prod(axis=1).sum()), way, limit)
    description = {
        "kind": "random marginals",
        "marginals": count,
        "way": way,
        "max_cells": max_cells,
        "seed": seed,
        "columns": None if columns is None else chosen.tolist(),
    }
    return Workload(literals[_expand(indptr, sets)], domain, description)


def target_marginals(
    domain: Domain, target: int, columns: Columns | None = None, limit: int = MEMORY_LIMIT
) -> Workload:
    """Return every cell of every marginal of a target column and two others.

    What a model learns that predicts the target from pairs of columns. The 2-way marginals, with
    the target and without, are sums of these cells. Where there is one other column, its marginal
    with the target is all.

    ``target`` is its position, whether it is named among ``columns`` or not; the rest as for
    `all_marginals`. `BadInputError` also when there is no other column.
    """
    chosen = chosen_columns(domain, columns, 1)
    others = chosen[chosen != target]
    if not len(others):
        raise BadInputError("a target needs another column from which to predict it")
    pairs = min(len(others), 2)
    indptr, literals = _cells(domain, np.arange(domain.columns), signed=True)
    listed = list_choices(np.arange(len(others) + 1), np.arange(len(others), dtype=np.int32), pairs)
    sets = np.sort(np.column_stack((others[listed], np.full(len(listed), target))), axis=1)
    sizes = np.diff(indptr)
    _check_memory(int(_cell_counts(sizes, sets).sum()), pairs + 1, limit)
    description = {
        "kind": "target marginals",
        "target": int(target),
        "columns": None if columns is None else chosen.tolist(),
    }
    return Workload(literals[_expand(indptr, sets)], domain, description)


def _cells(
    domain: Domain, chosen: NDArray[np.int64], signed: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the literals of the cells of each column, as ``indptr`` and ``literals``."""
    sizes = domain.sizes[chosen]
    two_sided = signed & (sizes == 1)
    cells = np.where(two_sided, 2, sizes)
    indptr = np.concatenate(([0], np.cumsum(cells)))
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], cells)
    # A two-sided bit b has the cells 2 b and 2 b + 1, the other columns 2 b, 2 (b + 1), ...
    step = np.repeat(np.where(two_sided, 1, 2), cells)
    codes = 2 * np.repeat(domain.offsets[chosen], cells) + within * step
    return indptr, codes.astype(np.int32)


def _check_memory(queries: int, way: int, limit: int) -> None:
    # Listing, sorting and answering hold up to three copies of the literals, eight words a query.
    needed = queries * (12 * way + 64)
    if needed > limit:
        raise BadInputError(
            f"these marginals have {queries:,} cells, each a query, which needs about {needed:,} "
            f"bytes, above the limit of {limit:,}; choose fewer columns or marginals, or a smaller "
            "way"
        )


def _draw_sets(
    sizes: NDArray[np.int64], count: int, way: int, max_cells: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw different sets of ``way`` columns with at most ``max_cells`` cells; rows increasing."""
    # A column that is too large next to the smallest others is in no such set.
    smallest = math.prod(np.sort(sizes)[: way - 1].tolist())
    usable = np.flatnonzero(sizes <= max_cells // smallest)
    possible = math.comb(len(usable), way)
    if possible < count:
        raise _too_few(possible, count, way, max_cells)
    if possible <= _LISTED_SETS:
        columns = np.arange(len(usable), dtype=np.int32)
        listed = usable[list_choices(np.arange(len(usable) + 1), columns, way)]
        listed = listed[_cell_counts(sizes, listed) <= max_cells]
        if len(listed) < count:
            raise _too_few(len(listed), count, way, max_cells)
        return listed[np.sort(rng.choice(len(listed), count, replace=False))]
    found: NDArray[np.int64] = np.zeros((0, way), np.int64)
    # After 200 tries without success nearly no set is small enough.
    for _ in range(200):
        drawn = np.sort(rng.choice(usable, (max(2 * count, 10_000), way)), axis=1)
        fits = (drawn[:, 1:] > drawn[:, :-1]).all(axis=1)
        fits &= _cell_counts(sizes, drawn) <= max_cells
        found = np.concatenate((found, drawn[fits]))
        new = first_occurrences(found.astype(np.int32), len(sizes)) == np.arange(len(found))
        found = found[new][:count]
        if len(found) == count:
            return found
    raise _too_few(len(found), count, way, max_cells)


def _cell_counts(sizes: NDArray[np.int64], sets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of cells of each set; a float, which cannot overflow to a small number."""
    counts: NDArray[np.float64] = sizes[sets].astype(np.float64).prod(axis=1)
    return counts


def _too_few(found: int, count: int, way: int, max_cells: int) -> BadInputError:
    return BadInputError(
        f"{count} random {way}-way marginals of at most {max_cells} cells asked, but only {found} "
        "were found; ask for fewer or allow more cells"
    )


def _expand(indptr: NDArray[np.int64], sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the literals of every cell of every set, one cell a row."""
    shape = np.diff(indptr)[sets]
    cells = shape.prod(axis=1)
    owner = np.repeat(np.arange(len(sets)), cells)
    rest = np.arange(len(owner)) - np.repeat(np.cumsum(cells) - cells, cells)
    positions = np.empty((len(owner), sets.shape[1]), np.int64)
    # The number of a cell within its marginal is read like digits, the last column fastest.
    for j in range(sets.shape[1] - 1, -1, -1):
        rest, digit = np.divmod(rest, shape[owner, j])
        positions[:, j] = indptr[sets[owner, j]] + digit
    return positions

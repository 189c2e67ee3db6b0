"""Workloads by choice of columns: random conjunctions, and whole marginals.

Never two literals on one column; every cell of a marginal of k columns is one query.
"""

import math
import operator
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

Columns: TypeAlias = Sequence[int] | NDArray[np.int64]
"""Positions of columns in the table, from 0, in any order."""

MEMORY_LIMIT = 2 * 2**30
"""Default limit on the memory that making and answering a workload takes, in bytes."""

_LISTED_SETS = 1_000_000
"""Up to this many sets of columns are listed and chosen from; above it sets are drawn."""


def chosen_columns(domain: Domain, columns: Columns | None, way: int) -> NDArray[np.int64]:
    """Return the columns that queries may use, increasing; all of them for None.

    `BadInputError` when a column does not exist or is named twice, or there are fewer than ``way``.
    """
    if columns is None:
        chosen = np.arange(domain.columns, dtype=np.int64)
    else:
        chosen = np.sort(np.array([*map(operator.index, columns)], np.int64))
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
    rows, start = np.zeros((1, 0), np.int32), np.zeros(1, np.int64)
    for left in range(way, 0, -1):
        # The next item comes from a later set that leaves enough sets for the rest.
        repeats = indptr[sets - left + 1] - start
        origin = np.repeat(np.arange(len(rows)), repeats)
        ends = np.cumsum(repeats)
        position = np.arange(len(origin)) - (ends - repeats)[origin] + start[origin]
        rows = np.column_stack((rows[origin], position.astype(np.int32)))
        start = indptr[set_of_item[position] + 1]
    return items[rows]


def count_distinct(
    domain: Domain, way: int, signed: bool = True, columns: Columns | None = None
) -> int:
    """Return how many different conjunctions `random_conjunctions` can draw, exactly."""
    sizes = domain.sizes[chosen_columns(domain, columns, way)]
    return count_choices(sizes, way) * (2**way if signed else 1)


def random_conjunctions(
    domain: Domain,
    m: int,
    way: int = 3,
    signed: bool = True,
    seed: int = 0,
    columns: Columns | None = None,
) -> Workload:
    """Draw ``m`` different conjunctions of ``way`` literals.

    The bits of a query are uniform over all sets of ``way`` bits on ``way`` different columns: the
    distribution of drawing bits uniformly and drawing again until their columns differ. Signs are
    fair coins. Queries that were drawn before are drawn again.

    Parameters
    ----------
    domain
        The bits and their columns.
    m
        Number of queries, at least 1.
    way
        Literals of each query, 1 .. number of columns.
    signed
        Whether literals may be negated.
    seed
        Seed of the public draw; the workload depends on it and the other arguments only.
    columns
        The columns that queries may use, by position; all of them for None.

    Raises
    ------
    BadInputError
        When there are fewer than ``m`` different queries, fewer than ``way`` columns, or an
        argument is out of its range.
    """
    chosen = chosen_columns(domain, columns, way)
    exist = count_distinct(domain, way, signed, columns)
    if not 1 <= m <= exist:
        kind = "signed" if signed else "positive"
        raise BadInputError(
            f"{m} queries asked, but the number of different {kind} {way}-way queries on "
            f"{len(chosen)} columns is {exist}: ask for 1 to {exist}"
        )
    if seed < 0:
        raise BadInputError(f"the seed of a workload is a whole number from 0 on, not {seed}")
    rng = np.random.default_rng(seed)
    if 2 * m > exist:
        # Drawing again and again would take long to find the last ones.
        literals = _every_conjunction(domain, chosen, way, signed)
        literals = literals[rng.choice(exist, m, replace=False)]
    else:
        literals = np.zeros((0, way), np.int32)
        while len(literals) < m:
            missing = m - len(literals)
            drawn = _draw(domain, chosen, missing + missing // 16 + 16, way, signed, rng)
            literals = np.concatenate((literals, drawn))
            new = first_occurrences(literals, 2 * domain.bits) == np.arange(len(literals))
            literals = literals[new][:m]
    description = {
        "kind": "random conjunctions",
        "queries": m,
        "way": way,
        "signed": signed,
        "seed": seed,
        "columns": None if columns is None else chosen.tolist(),
    }
    return Workload(literals, domain, description)


def _every_conjunction(
    domain: Domain, chosen: NDArray[np.int64], way: int, signed: bool
) -> NDArray[np.int32]:
    signs = 2 if signed else 1
    bits = np.flatnonzero(np.isin(domain.column_of_bit, chosen))
    codes = (2 * bits[:, None] + np.arange(signs)).ravel().astype(np.int32)
    indptr = np.concatenate(([0], np.cumsum(signs * domain.sizes[chosen])))
    return list_choices(indptr, codes, way)


def _draw(
    domain: Domain,
    chosen: NDArray[np.int64],
    count: int,
    way: int,
    signed: bool,
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Draw conjunctions independently, literals in the order of their columns."""
    sizes, starts = domain.sizes[chosen], domain.offsets[chosen]
    # below[r][i] counts the sets of r bits on different ones of the last i columns. Sizes are
    # scaled (shares stay the same) because the count itself may exceed the range of a float.
    scaled = sizes[::-1] * (way / sizes.sum())
    below = [np.ones(len(chosen) + 1)]
    for _ in range(way):
        below.append(np.concatenate(([0.0], np.cumsum(scaled * below[-1][:-1]))))
    literals = np.empty((count, way), np.int32)
    last = np.full(count, len(chosen))
    for position in range(way):
        table = below[way - position]
        last = np.searchsorted(table, (1.0 - rng.random(count)) * table[last], side="left") - 1
        column = len(chosen) - 1 - last
        literals[:, position] = starts[column] + rng.integers(0, sizes[column])
    literals *= 2
    if signed:
        literals += rng.integers(0, 2, literals.shape, np.int32)
    return literals


def all_marginals(
    domain: Domain, way: int, signed: bool = True, columns: Columns | None = None
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

    Raises
    ------
    BadInputError
        When they would take more memory, or the columns are not right.
    """
    chosen = chosen_columns(domain, columns, way)
    indptr, literals = _cells(domain, chosen, signed)
    _check_memory(count_choices(np.diff(indptr), way), way)
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
    _check_memory(int(sizes[sets].prod(axis=1).sum()), way)
    description = {
        "kind": "random marginals",
        "marginals": count,
        "way": way,
        "max_cells": max_cells,
        "seed": seed,
        "columns": None if columns is None else chosen.tolist(),
    }
    return Workload(literals[_expand(indptr, sets)], domain, description)


def target_marginals(domain: Domain, target: int, columns: Columns | None = None) -> Workload:
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
    _check_memory(int(_cell_counts(np.diff(indptr), sets).sum()), pairs + 1)
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


def _check_memory(queries: int, way: int) -> None:
    # Listing, sorting and answering hold up to three copies of the literals, eight words a query.
    needed = queries * (12 * way + 64)
    if needed > MEMORY_LIMIT:
        raise BadInputError(
            f"these marginals have {queries:,} cells, each a query, which needs about {needed:,} "
            f"bytes, above the limit of {MEMORY_LIMIT:,}; choose fewer columns or marginals, or a "
            "smaller way"
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
    return np.asarray(sizes[sets].astype(np.float64).prod(axis=1))


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

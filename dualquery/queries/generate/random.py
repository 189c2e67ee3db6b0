"""Random "sensible" conjunctions: never two literals on one column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.choices import Columns, chosen_columns, count_choices, list_choices
from dualquery.queries.conjunctions import Workload
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError


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
    sizes = domain.sizes[chosen]
    starts = domain.offsets[chosen]
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
        share = (1.0 - rng.random(count)) * table[last]
        last = np.searchsorted(table, share, side="left") - 1
        column = len(chosen) - 1 - last
        literals[:, position] = starts[column] + rng.integers(0, sizes[column])
    literals *= 2
    if signed:
        literals += rng.integers(0, 2, literals.shape, np.int32)
    return literals

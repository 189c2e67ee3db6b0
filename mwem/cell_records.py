"""Turn a distribution over cells into a table of records."""

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes, rows_of_values
from dualquery.models.mixture import apportion
from dualquery.runtime.errors import BadInputError


def sampled_table(
    shares: NDArray[np.float64], domain: Domain, count: int, generator: np.random.Generator
) -> NDArray[np.uint8]:
    """Draw records from a histogram.

    Parameters
    ----------
    shares
        float64, one axis a column of the domain: weights of the cells, >= 0, not all 0.
    domain
        The columns.
    count
        Number of records, >= 0.
    generator
        Source of randomness; nothing private depends on it.

    Returns
    -------
    uint8, shape ``(count, bits)``.

    Raises
    ------
    BadInputError
        If the histogram does not fit the domain or is no distribution.
    """
    weights = _checked(shares, domain)
    cumulative = np.cumsum(weights)
    point = generator.random(count) * cumulative[-1]
    return rows_of_cells(np.searchsorted(cumulative, point, side="right"), domain)


def rounded_table(shares: NDArray[np.float64], domain: Domain, count: int) -> NDArray[np.uint8]:
    """Round a histogram to ``count`` records: no run of cells is off by more than 1.

    Parameters, result and errors are those of `sampled_table`; nothing is random, and records are
    in the order of their cells.
    """
    number = apportion(_checked(shares, domain), count)
    return rows_of_cells(np.repeat(np.arange(len(number)), number), domain)


def _checked(shares: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    shape = tuple(axis_sizes(domain).tolist())
    if shares.shape != shape:
        raise BadInputError(f"a histogram of shape {shape} is needed, not {shares.shape}")
    if not (np.isfinite(shares.sum()) and (shares >= 0).all() and shares.any()):
        raise BadInputError("a histogram needs finite weights of at least 0, not all of them 0")
    return shares.ravel().astype(np.float64)


def rows_of_cells(cells: NDArray[np.int64], domain: Domain) -> NDArray[np.uint8]:
    """Return the legal records of cells, numbered in the order of the histogram."""
    shape = tuple(axis_sizes(domain).tolist())
    return rows_of_values(np.stack(np.unravel_index(cells, shape), axis=1), domain)

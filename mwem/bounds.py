"""What theory promises of MWEM."""

from __future__ import annotations

import math

from dualquery.errors import BadInputError


def theorem_2_2_bound(
    *, n: int, log_domain: float, queries: int, iterations: int, epsilon: float
) -> tuple[float, float]:
    """Return Theorem 2.2's bound on the largest error of the average distribution.

    Hardt, Ligett and McSherry 2012: for linear queries with values in [-1, 1],
    ``max |q(A) - q(B)| <= 2 n sqrt(ln |D| / T) + 10 T ln |Q| / epsilon`` rows with probability at
    least ``1 - 2T / |Q|``, for Figure 1 as printed: ``average=True, repetitions=1``, pure epsilon.

    Parameters
    ----------
    n
        Number of rows, >= 1.
    log_domain
        Natural logarithm of the number of different records, >= 0.
    queries
        |Q|, >= 1.
    iterations
        T, >= 1.
    epsilon
        Budget of the whole run, > 0.

    Returns
    -------
    tuple[float, float]
        The bound as a share of the rows (may exceed 1: then it says nothing), and the probability
        with which it may fail (at most 1).

    Raises
    ------
    BadInputError
        If an argument is out of its range.
    """
    if min(n, queries, iterations) < 1 or not epsilon > 0 or not log_domain >= 0:
        raise BadInputError(
            "Theorem 2.2 needs n, queries and iterations of at least 1, epsilon above 0 and a "
            f"logarithm of at least 0, not {n}, {queries}, {iterations}, {epsilon}, {log_domain}"
        )
    rows = 2.0 * n * math.sqrt(log_domain / iterations)
    rows += 10.0 * iterations * math.log(queries) / epsilon
    return rows / n, min(1.0, 2.0 * iterations / queries)

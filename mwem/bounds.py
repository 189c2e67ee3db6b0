"""Bounds on errors: an upper one for MWEM, a lower one for mechanisms that see queries only."""

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.privacy.neighbours import Neighbours
from dualquery.runtime.errors import BadInputError


def theorem_2_2_bound(
    *, n: int, log_domain: float, queries: int, iterations: int, epsilon: float
) -> tuple[float, float]:
    """Return Theorem 2.2's bound on the largest error of the average distribution.

    Hardt, Ligett and McSherry 2012: for linear queries that one change of the table moves by 1 at
    most (in [-1, 1] if a record is added or removed, in [0, 1] also if one is replaced),
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
    if not (n >= 1 and queries >= 1 and iterations >= 1 and epsilon > 0 and log_domain >= 0):
        raise BadInputError(
            "Theorem 2.2 needs n, queries and iterations of at least 1, epsilon above 0 and a "
            f"logarithm of at least 0, not {n}, {queries}, {iterations}, {epsilon}, {log_domain}"
        )
    rows = 2.0 * n * math.sqrt(log_domain / iterations)
    rows += 10.0 * iterations * math.log(queries) / epsilon
    return rows / n, min(1.0, 2.0 * iterations / queries)


def svd_bound(
    matrix: NDArray[np.float64],
    *,
    epsilon: float,
    delta: float,
    neighbours: Neighbours = Neighbours.REPLACE_ONE,
) -> float:
    """Return the SVD lower bound on the total squared error of the matrix mechanism.

    That mechanism measures a strategy A with Gaussian noise of variance P at sensitivity 1 (here
    ``2 ln(2 / delta) / epsilon^2``) and infers W from it, at an error of
    ``P Delta_A^2 ||W A^+||_F^2`` (Li and Miklau, PVLDB 2012). The nuclear norm of W is at most
    ``||W A^+||_F ||A||_F``, so for N cells the error is at least ``P ||W||_*^2 / N`` where a record
    is added or removed; where one is replaced, with W centred by C = I - 1 1^T / N, the mean of
    squared distances of columns gives ``2 P ||W C||_*^2 / (N - 1)``. The identity attains both.

    Parameters
    ----------
    matrix
        W: float64, shape ``(m, N)``: value of each query on each cell.
    epsilon
        Budget, > 0.
    delta
        In (0, 1).
    neighbours
        Which of the two; the paper's is one record added or removed.

    Returns
    -------
    float
        In squared rows, summed over the queries.

    Raises
    ------
    BadInputError
        If an argument is out of its range.
    """
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise BadInputError(
            f"the SVD bound needs epsilon above 0 and delta between 0 and 1, not {epsilon}, {delta}"
        )
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
        raise BadInputError(
            f"the SVD bound needs a matrix of finite values, queries by cells, not {matrix.shape}"
        )
    unit_variance = 2.0 * math.log(2.0 / delta) / epsilon**2
    cells = int(matrix.shape[1])
    if not neighbours.replaces:
        return unit_variance * _nuclear_norm(matrix) ** 2 / cells
    if cells == 1:
        return 0.0
    centred = matrix - matrix.mean(axis=1, keepdims=True)
    return unit_variance * 2.0 * _nuclear_norm(centred) ** 2 / (cells - 1)


def _nuclear_norm(matrix: NDArray[np.float64]) -> float:
    return math.fsum(np.linalg.svd(matrix, compute_uv=False))

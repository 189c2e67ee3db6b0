"""A spectral bound on the number of differing queries, for queries on binary columns."""

from itertools import combinations
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from dualquery.room.sensitivity.combinatorial import Conjunctions

Float64 = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
# Dense matrices of columns by columns; of pairs of columns by pairs of columns.
_COLUMNS, _COLUMNS_QUARTIC = 2_000, 80
_SWEEPS = 100
# Squares of the cubic coefficients add up to at most this, so that products of them stay exact.
_EXACT_SQUARES = 2**48
# Sums of a few thousand rounded positive terms are within this factor of the truth.
_SAFETY = 1 + 1e-9


def spectral_bound(conjunctions: Conjunctions, records: int = 2) -> int | None:
    """Bound the differing queries by norms of the queries' Fourier coefficients.

    Every query must have a positive literal, and all of these on columns of two values; drop the
    negative ones, which can only make more queries true. A record is y in {-1, 1}^n, a query with
    signs s is prod (1 + s_i y_i) / 2, and T(y), the number of true ones, is a polynomial in y. By
    (1) of `moves`, D(x, x') <= T(x) + T(x') <= 2 max T; one record contributes at most max T.
    The maximum is at most the constant plus bounds on

    - the linear and quadratic part: `quadratic_bound`;
    - the cubic part: `cubic_bound`;
    - the rest: the sum of the absolute values of its coefficients, at most the number of sets of
      four or more literals of a query times 2^-p.

    Coefficients are integers times 2^-k and held exactly.
    None when there are too many columns for dense matrices.
    """
    wide = np.unique(
        conjunctions.column_of_value[conjunctions.positive[conjunctions.positive >= 0]]
    )
    n, k = len(wide), conjunctions.positive.shape[1]
    if n > _COLUMNS or k > 30:
        return None
    number = np.zeros(len(conjunctions.offsets) - 1, np.int64)
    number[wide] = np.arange(n)
    constant, linear, quadratic, tail = 0, np.zeros(n), np.zeros(n * n), 0
    cubic_places, cubic_amounts = [], []
    for p in range(1, k + 1):
        asked = conjunctions.positive_values(conjunctions.positives == p, p)
        if not len(asked):
            continue
        weight = 2 ** (k - p)
        column = number[conjunctions.column_of_value[asked]]
        sign = 2.0 * (asked - conjunctions.offsets[conjunctions.column_of_value[asked]]) - 1
        constant += weight * len(asked)
        for i in range(p):
            linear += weight * np.bincount(column[:, i], sign[:, i], n)
        for i, j in combinations(range(p), 2):
            place = column[:, i] * n + column[:, j]
            quadratic += weight * np.bincount(place, sign[:, i] * sign[:, j], n * n)
        for i, j, h in combinations(range(p), 3):
            cubic_places.append((column[:, i] * n + column[:, j]) * n + column[:, h])
            cubic_amounts.append(weight * sign[:, i] * sign[:, j] * sign[:, h])
        tail += weight * len(asked) * (2**p - 1 - p - p * (p - 1) // 2 - p * (p - 1) * (p - 2) // 6)
    largest = quadratic_bound(linear, quadratic.reshape(n, n))
    if cubic_places:
        place, inverse = np.unique(np.concatenate(cubic_places), return_inverse=True)
        amount = np.bincount(inverse, np.concatenate(cubic_amounts))
        triple = np.array([place // (n * n), place // n % n, place % n])
        largest += cubic_bound(triple[:, amount != 0], amount[amount != 0], n)
    return int(records * (constant + tail + largest * _SAFETY) / 2**k * _SAFETY)


def quadratic_bound(linear: Float64, quadratic: Float64) -> float:
    """Bound ``sum linear_i y_i + sum quadratic_ij y_i y_j`` over y in {-1, 1}^n.

    With z = (1, y) it is z'Mz for a symmetric M without diagonal. For every weight vector w,
    z'Mz = sum w + z'(M - diag w)z <= sum w + (n + 1) max(0, largest eigenvalue of M - diag w). The
    best w is the dual solution of the semidefinite relaxation of Goemans and Williamson; the
    mixing method (Wang, Chang, Kolter 2017) comes close to it, and any w gives a valid bound.

    The diagonal of ``quadratic``, ``(n, n)``, is zero.
    """
    size = len(linear) + 1
    matrix = np.zeros((size, size))
    matrix[0, 1:] = linear / 2
    matrix[1:, 1:] = quadratic / 2
    matrix += matrix.T.copy()
    vectors = np.random.default_rng(0).standard_normal((size, int(sqrt(2 * size)) + 2))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sweeps = max(1, min(_SWEEPS, 10**10 // (vectors.size * size)))
    weights = np.zeros(size)
    for _ in range(sweeps):
        for row in range(size):
            pull = matrix[row] @ vectors
            weights[row] = np.linalg.norm(pull)
            if weights[row] > 0:
                vectors[row] = pull / weights[row]
    matrix[np.diag_indices(size)] = -weights
    return fsum(weights) + size * max(0.0, largest_eigenvalue_bound(matrix))


def cubic_bound(triple: NDArray[np.int64], amount: Float64, n: int) -> float:
    """Bound ``F(y) = sum_t amount_t y_i y_j y_h`` over y in {-1, 1}^n, ``(i, j, h)`` = triple t.

    ``triple``, int64 ``(3, triples)``, has increasing columns, no triple twice; amounts are
    integers. The smallest of the sum of |amount|; a flattening: with C_i the coefficients of y_i in
    the ``P`` pairs that occur, three times F is sum_i y_i <C_i, Y> <= sqrt(n) sqrt(P) ||C||, and
    ||C||^2 is the largest eigenvalue of the n by n matrix CC'; of few columns `quartic_bound`.
    """
    from scipy.sparse import csr_array

    plain = float(np.abs(amount).sum())
    if not 0 < float(amount @ amount) <= _EXACT_SQUARES:
        return plain
    owner = triple.ravel()
    others = np.concatenate([triple[[1, 2]], triple[[0, 2]], triple[[0, 1]]], axis=1)
    others.sort(axis=0)
    pairs, pair = np.unique(others[0] * n + others[1], return_inverse=True)
    flattened = csr_array((np.tile(amount, 3), (owner, pair)), shape=(n, len(pairs)))
    gram = (flattened @ flattened.T).toarray()
    bound = min(plain, sqrt(n * len(pairs) * max(0.0, largest_eigenvalue_bound(gram))) / 3)
    return min(bound, quartic_bound(triple, amount, n)) if n <= _COLUMNS_QUARTIC else bound


def quartic_bound(triple: NDArray[np.int64], amount: Float64, n: int) -> float:
    """Bound the cubic form of `cubic_bound` by way of a quartic one.

    Let C be the symmetric tensor of F, so that 6 F = sum_h y_h g_h with g_h = sum_ij C_hij y_i y_j.
    By Cauchy and Schwarz (6 F)^2 <= n Q, Q = sum_h g_h^2, a quartic form. Y has an entry
    y_i y_j for each of the N pairs i < j, so ||Y||^2 = N. Two ways to write Q over Y:

    - Q = 4 Y'GY with G[{i,i'}, {j,j'}] = sum_h C_hii' C_hjj';
    - with the factors regrouped, Q = 2 Y'RY + 2 y'Hy - tr H, where
      R[{i,i'}, {j,j'}] = sum_h (C_hij C_hi'j' + C_hij' C_hi'j), and H = sum_h C_h C_h, the sum of
      squares, covers i = i' and j = j'.

    Any mix alpha, 1 - alpha of both is Q. Diagonals are constants, since y_i^2 = 1, and the rest is
    bounded by eigenvalues (Allen, O'Donnell and Witmer, "How to refute a random CSP", FOCS 2015).
    """
    tensor = np.zeros((n, n, n))
    for axes in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        tensor[tuple(triple[list(axes)])] = amount
    first, second = np.triu_indices(n, 1)
    size = len(first)
    own = tensor[:, first, second]
    own = own.T @ own
    regrouped = np.empty((size, size))
    start = 0
    for i in range(n - 1):
        # products[r, j, j'] = sum_h C_hij C_h(i+1+r)j'
        products = (tensor[:, i, :].T @ tensor[:, i + 1 :, :].reshape(n, -1)).reshape(n, -1, n)
        rows = slice(start, start := start + n - 1 - i)
        regrouped[rows] = products[first, :, second].T + products[second, :, first].T
    squares = tensor.reshape(n * n, n).T @ tensor.reshape(n * n, n)
    trace = float(np.trace(squares))
    np.fill_diagonal(squares, 0)
    pairs_of_columns = trace + 2 * n * max(0.0, largest_eigenvalue_bound(squares))
    best = np.inf
    for alpha in (0.0, 0.125):
        mixed = 4 * alpha * own + 2 * (1 - alpha) * regrouped
        diagonal = float(np.trace(mixed))
        np.fill_diagonal(mixed, 0)
        quartic = diagonal + size * max(0.0, largest_eigenvalue_bound(mixed))
        best = min(best, quartic + (1 - alpha) * pairs_of_columns)
    return sqrt(n * best) / 6


def largest_eigenvalue_bound(matrix: Float64) -> float:
    """Return a proven upper bound on the largest eigenvalue of a symmetric matrix.

    The bound b is checked, not computed: a Cholesky factorisation in floating point that runs to
    completion proves that S + E is positive semidefinite for an E with ||E|| <= g tr(S),
    g = (n + 1) u / (1 - (n + 1) u), u = 2^-53 (Rump, "Verification of positive definiteness",
    BIT 2006; it holds for every order of summation). So S = b I - M - g' tr(S) I with
    g' > g, formed with room for its own rounding, proves that b is at least all eigenvalues of M.
    """
    from scipy.linalg import LinAlgError, cholesky
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    size = len(matrix)
    scale = float(np.abs(matrix).sum(axis=1).max(initial=0))
    if scale == 0:
        return 0.0
    if size > _COLUMNS + 1:
        start = np.random.default_rng(0).standard_normal(size)
        options = {"which": "LA", "v0": start, "tol": 1e-6, "return_eigenvectors": False}
        try:
            estimate = float(eigsh(matrix, 1, **options)[0])
        except ArpackNoConvergence:
            estimate = float(np.linalg.eigvalsh(matrix)[-1])
    else:
        estimate = float(np.linalg.eigvalsh(matrix)[-1])
    diagonal = np.diag_indices(size)
    slack = 8 * (size + 2) * _UNIT_ROUNDOFF
    gap = 1e-6 * abs(estimate) + 1e-12 * scale
    while True:
        # Every diagonal entry of S is at most bound - min M_ii, so the trace is at most room.
        bound = estimate + gap
        room = size * (bound - min(0.0, float(matrix[diagonal].min())))
        shifted = -matrix
        shifted[diagonal] += bound - slack * abs(room) - slack * scale
        try:
            cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            gap *= 4
            continue
        return bound

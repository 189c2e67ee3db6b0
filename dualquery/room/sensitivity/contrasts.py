"""How far blocks of contrasts move: exactly on few columns, by proven bounds on many.

A *block* holds the products of the contrasts (`dualquery.room.features`) of all values of the wide
columns of a set A, and of one value of its binary columns; all have noise of the same scale.

**Lemma.** Let ``c_v(x) = 1 - n [x = v]`` for a column of n values. Over all values v,
``sum c_v(x) c_v(x')`` is ``n (n - 1)`` if ``x = x'``, and ``(n - 2) - 2 (n - 1) = -n`` if not. Of a
binary column one value is measured, and the product is 1 or -1. So with ``g_i = n_i (n_i - 1)``, or
1 for a binary column, and ``t_i = 1 / (n_i - 1)``, the products over a block, which are those of
their columns, have the sum

    G_A prod over i in A and D of (-t_i),    G_A = prod over i in A of g_i,

where D is the set of columns in which x and x' differ. Hence the block's squared length on every
record is G_A: what adding or removing a record costs. Replacing x by x' costs

    sum over A of  2 w_A G_A (1 - prod over i in A and D of (-t_i)),                      (1)

w_A being one over the squared scale; blocks that hold nothing of D add nothing. This is the trace
of ResidualPlanner (Xiao, He, Zhang and Kifer, arXiv 2305.08175, Theorem 4.4) for add or remove; (1)
is the same argument for pairs.

**The largest value of (1)** depends on D alone. It is found

- exactly, by trying every D, if the blocks are about `MOST_TRIED` columns at most (where records
  have at most r 1s, every D of at most 2r columns of one bit);
- else by trying every D of as many columns, those of the fewest values, and block by block for the
  others. With q a block's product over the tried columns, and t the largest ``t_i`` of its others:
  its product over these others is 1 if none of them differs, and else in [-t, t], as each factor is
  at most 1 in size. So (*) all of it is at least ``q`` where q is negative, and at least ``-t q``
  where it is positive; that is ``(1 - t) / 2 q - (1 + t) / 2 |q|``, whose sums over the blocks are
  found as those of q are. Of a block without others it is q: t = -1;
- or, if that is less, so for the blocks that have a wide column, and for those of p binary columns
  together: a block changes, by 4 w, when an odd number of its columns differ. If a of the d binary
  columns differ, that are at most ``K_p(a) = sum over odd i of C(a, i) C(d - a, p - i)`` blocks,
  hence at most the sum of the K_p(a) largest weights; if records have at most r 1s, a is at most
  2r. Where all columns are binary, there may be thousands: this alone is looked at.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

MOST_TRIED = 20
"""Columns, at most, if every set of them is tried."""


def squared_lengths(domain: Domain, columns: Int64) -> Float64:
    """Return G of blocks, float64 ``(b,)``; their columns are int64 ``(b, k)``, padded with -1."""
    sizes = axis_sizes(domain)
    own = np.where(sizes == 2, 1, sizes * (sizes - 1)).astype(np.float64)
    return np.asarray(np.where(columns >= 0, own[columns], 1.0).prod(axis=1))


def largest_distance(domain: Domain, columns: Int64, weights: Float64) -> float:
    """Return a bound on (1) over all pairs of legal records, but for rounding.

    ``columns`` as for `squared_lengths`, no set twice; ``weights`` are one over each block's
    squared scale.
    """
    lengths = weights * squared_lengths(domain, columns)
    if len(np.unique(columns[columns >= 0])) <= MOST_TRIED:
        return _tried_apart(domain, columns, lengths)
    binary = ((columns < 0) | (axis_sizes(domain)[columns] == 2)).all(axis=1)
    counted = _signs_apart(domain, columns[binary], weights[binary])
    if binary.all():
        return counted
    counted += _tried_apart(domain, columns[~binary], lengths[~binary])
    return min(counted, _tried_apart(domain, columns, lengths))


def _tried_apart(domain: Domain, columns: Int64, lengths: Float64) -> float:
    """Bound (1) by every set of the tried columns; ``lengths`` are squared, times weights."""
    # By (*), for every D of the tried columns; these are cut in halves.
    ratios = (1.0 / (axis_sizes(domain) - 1.0)).astype(np.float64)
    used = np.unique(columns[columns >= 0])
    tried = np.sort(used[np.argsort(-ratios[used], kind="stable")[:MOST_TRIED]])
    is_tried = (columns >= 0) & np.isin(columns, tried)
    place = np.searchsorted(tried, columns)
    codes = np.where(is_tried, 1 << np.minimum(place, MOST_TRIED), 0).sum(axis=1)
    largest = np.where((columns >= 0) & ~is_tried, ratios[columns], -1.0).max(axis=1, initial=-1.0)

    half = len(tried) // 2
    first, second = codes & (1 << half) - 1, codes >> half
    left, at_left = np.unique(first, return_inverse=True)
    right, at_right = np.unique(second, return_inverse=True)

    def sums_of(coefficients: Float64, factors: Float64) -> Float64:
        """Return the sums of coefficients times products, for every D."""
        table = np.zeros((len(left), len(right)))
        np.add.at(table, (at_left.ravel(), at_right.ravel()), coefficients)
        return _products(factors[:half], left) @ table @ _products(factors[half:], right).T

    own = ratios[tried]
    sums = sums_of(lengths * (1.0 - largest) / 2.0, -own)
    sums -= sums_of(lengths * (1.0 + largest) / 2.0, own)
    if domain.max_ones is not None:
        one_bit: Float64 = (domain.sizes[tried] == 1).astype(np.float64)
        parts = slice(half), slice(half, None)
        apart = [_products(np.exp2(one_bit[part]), np.array([-1]))[:, 0] for part in parts]
        sums[np.outer(*apart) > 2.0 ** min(2 * domain.max_ones, len(tried))] = np.inf
    return 2.0 * (float(lengths.sum()) - float(sums.min()))


def _products(factors: Float64, sets: Int64) -> Float64:
    """Return the products of the factors in D and in each of some sets, for every D."""
    products = np.ones((1 << len(factors), len(sets)))
    every = np.arange(len(products))
    for place, factor in enumerate(factors.tolist()):
        products[np.ix_(every >> place & 1 == 1, sets >> place & 1 == 1)] *= factor
    return products


def _signs_apart(domain: Domain, columns: Int64, weights: Float64) -> float:
    """Bound what blocks of binary columns add to (1), by how many of these differ."""
    ways = (columns >= 0).sum(axis=1)
    d = len(np.unique(columns[columns >= 0]))
    most = d if domain.max_ones is None else min(d, 2 * domain.max_ones)
    changed = np.zeros(most + 1)
    for way in np.unique(ways).tolist():
        heaviest = np.sort(weights[ways == way])[::-1]
        total = np.concatenate(([0.0], np.cumsum(heaviest)))
        for a in range(most + 1):
            sets = sum(math.comb(a, i) * math.comb(d - a, way - i) for i in range(1, way + 1, 2))
            changed[a] += total[min(sets, len(heaviest))]
    return 4.0 * float(changed.max())

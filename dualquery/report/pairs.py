"""How strongly pairs of columns go together in a release, and which of them noise may explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.measurements import factors_of
from dualquery.report.facts import BitShares

if TYPE_CHECKING:
    from dualquery.releases.keep.folder import Release

MOST_BITS = 600
"""Bits, the most frequent ones, whose pairs are looked at."""

MOST_RECORDS = 20_000
"""Synthetic records from which pairs are counted: their own error is then below 0.004."""

_EXPECTED = 5
"""Records that must be expected in the rarest cell of two binary columns."""

_RARE = 0.001
"""Values of a column that are rarer do not count: two that meet once would look like a tie."""

_WRONG = 0.05
"""The chance that of all pairs, were they independent, one is more than noise explains."""

Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """How strongly columns go together."""

    columns: NDArray[np.int64]  # their numbers in the schema, increasing
    strength: Float64  # Cramér's V, of shape (columns, columns): 1 where one determines the other
    telling: NDArray[np.bool_]  # which pairs are stronger than chance and known noise explain
    noise_known: bool  # whether something was measured about two columns together

    def strongest(self, count: int) -> list[tuple[int, int, float]]:
        """Return telling pairs of columns' numbers with their strength, the strongest first."""
        first, second = np.nonzero(np.triu(self.telling, 1))
        strength = self.strength[first, second]
        order = np.argsort(-strength, kind="stable")[:count]
        found = (self.columns[first], self.columns[second], strength)
        return [*zip(*(each[order].tolist() for each in found), strict=True)]


def pairs(release: Release, known: BitShares) -> Pairs | None:
    """Return the strength of association of the columns' pairs in the records; None without any.

    Of a wide table, the columns of its most frequent bits.
    """
    from scipy.stats import chi2

    records = release.records
    if records is None or len(records) == 0:
        return None
    domain = release.schema.domain
    frequent = np.argsort(-np.nan_to_num(known.share), kind="stable")[:MOST_BITS]
    columns = np.unique(domain.column_of_bit[frequent]).astype(np.int64)
    bits = np.flatnonzero(np.isin(domain.column_of_bit, columns))
    if len(bits) > 2 * MOST_BITS:
        return None
    # Evenly over all: equal records may stand together.
    some = records[:: -(-len(records) // MOST_RECORDS), bits].astype(np.float32)
    single = domain.sizes[domain.column_of_bit[bits]] == 1
    together = (some.T @ some / len(some)).astype(np.float64)
    share = np.diag(together).copy()
    owner = np.searchsorted(columns, domain.column_of_bit[bits])
    share[~single & (share < _RARE)] = 0.0
    chi = _chi_squares(together, share, single)
    sums = np.zeros((len(columns), len(columns)))
    np.add.at(sums, (owner[:, None], owner[None, :]), chi)
    present = np.bincount(owner, share > 0, minlength=len(columns))
    categories = np.where(np.bincount(owner, single, minlength=len(columns)) > 0, 2, present)
    degrees = np.maximum(np.minimum(categories[:, None], categories[None, :]) - 1, 1)
    rarest = np.ones(len(columns))
    np.minimum.at(rarest, owner[single], share[single])
    telling = _telling(sums, categories, rarest, len(some))
    off, measured = _off_independence(release, known.share, columns)
    # Of a x b numbers as many as a - 1 times b - 1 are free in what sampling does.
    numbers, others = np.maximum(measured, 1), np.maximum(categories - 1, 1)
    free = np.minimum(numbers, np.outer(others, others))
    least = numbers / free * chi2.isf(_WRONG / _count(len(columns)), free)
    if noise_known := bool(measured.any()):
        telling &= off > least  # and about which something was measured
    np.fill_diagonal(telling, False)
    return Pairs(columns, np.sqrt(np.clip(sums / degrees, 0, 1)), telling, noise_known)


def _count(columns: int) -> int:
    return max(columns * (columns - 1) // 2, 1)


def _off_independence(
    release: Release, share: Float64, columns: NDArray[np.int64]
) -> tuple[Float64, Float64]:
    """Return how far measured numbers are from those of independent columns, and how many."""
    # Squared distances from the product of the factors' means, in variances: of noise, and of
    # chance in as many independent rows. Their sum over an independent pair is about chi-square.
    domain = release.schema.domain
    found = np.zeros((2, len(columns), len(columns)))
    if (kept := release.measurements) is None:
        return found[0], found[1]
    both = np.flatnonzero((np.diff(kept.starts) == 2) & (kept.deviations > 0))
    bit, at_zero, at_one = factors_of(kept.factors[kept.starts[both, None] + [0, 1]], domain)
    mean = (at_zero + (at_one - at_zero) * share[bit]).prod(axis=1)
    square = (at_zero**2 + (at_one**2 - at_zero**2) * share[bit]).prod(axis=1)
    chance = (square - mean**2) / release.base.rows_at_least
    off = (kept.values[both] - mean) ** 2 / (kept.deviations[both] ** 2 + chance)
    place = np.full(len(domain.sizes), -1)
    place[columns] = np.arange(len(columns))
    one, other = place[domain.column_of_bit[bit]].T
    usable = (one >= 0) & (other >= 0) & (one != other) & ~np.isnan(off)
    for ends in ((one[usable], other[usable]), (other[usable], one[usable])):
        np.add.at(found[0], ends, off[usable])
        np.add.at(found[1], ends, 1.0)
    return found[0], found[1]


def _telling(
    sums: Float64, categories: Float64, rarest: Float64, records: int
) -> NDArray[np.bool_]:
    """Return which pairs are too strong for chance, by the test of chi-square."""
    # Of all pairs, were they independent, one would pass on average. The test needs some records in
    # each cell: as usual, five must be expected where two binary columns are both 1.
    from scipy.stats import chi2

    free = np.maximum(categories - 1, 1)
    least = chi2.isf(1 / (_count(len(categories)) + 1), np.outer(free, free))
    enough = records * np.outer(rarest, rarest) >= _EXPECTED
    return np.asarray(enough & (records * sums > least))


def _chi_squares(together: Float64, share: Float64, single: NDArray[np.bool_]) -> Float64:
    """Return what each pair of bits adds to its columns' mean square contingency."""
    # A binary column's one bit stands for both of its cells: their deviations from independence are
    # equal but for the sign, so the sum over both is that of one times 1 / (1 - share).
    off = (together - np.outer(share, share)) ** 2
    spread = np.where(single, share * (1 - share), share)
    bottom = np.outer(spread, spread)
    return np.asarray(np.divide(off, bottom, out=np.zeros_like(off), where=bottom > 1e-12))

"""Queries as sums of features, by multiplying out their literals.

A literal on a column of three or more values is its indicator, or 1 less it; a literal on a binary
column is ``(1 - s) / 2`` or ``(1 + s) / 2`` with s the column's sign. Whole sets of columns are
measured by contrasts (ResidualPlanner: Xiao, He, Zhang and Kifer, arXiv 2305.08175, Section 4):
independent noise, and the projection that centres them, are that paper's correlated noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.mechanisms.protocol import BYTES_A_QUERY, Task
from dualquery.queries.conjunctions import Workload
from dualquery.queries.literals import LiteralRows
from dualquery.room.features import MOST_CELLS, Features
from dualquery.rows.repeats import first_occurrences, pad_right, side_by_side
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

MOST_LITERALS = 8
"""Of one query: it has up to 2 to this power terms."""

MOST_TERMS = 1 << 28
"""Terms of all queries together. A public limit, so that a plan does not depend on free memory."""


def expansion_bytes(queries: int, way: int) -> int:
    """Return the bytes that it takes to multiply out queries of ``way`` literals."""
    return (queries << way) * (8 * way + 48)


_LOADED_LATER = 140 << 20
"""Bytes of libraries that are not there yet while features are sought."""


def bytes_on_features(task: Task) -> int:
    """Return the bytes of a run: of features, and of the answers or the search for equal ones."""
    way = task.queries.way
    features = expansion_bytes(len(task.queries), way)
    return max(features + BYTES_A_QUERY * len(task.queries), way * features - _LOADED_LATER)


@dataclass(frozen=True, eq=False)
class Expansion:
    """``m`` queries as sums of distinct features: ``constant`` ``(m,)`` plus the queries' terms."""

    features: Features
    constant: Float64
    query: Int64
    feature: Int64
    coefficient: Float64

    @staticmethod
    def of(workload: Workload) -> Expansion:
        """Multiply out the literals of all queries; BadInputError if these are too long or many."""
        way, m, domain = workload.way, len(workload), workload.domain
        if way > MOST_LITERALS:
            raise BadInputError(
                f"a query has {way} literals; at most {MOST_LITERALS} can be multiplied out"
            )
        if m << way > MOST_TERMS:
            raise BadInputError(
                f"{m:,} queries of up to {way} literals have {m << way:,} terms; at most "
                f"{MOST_TERMS:,} are multiplied out"
            )
        check_memory(
            expansion_bytes(m, way),
            f"multiplying out {m:,} queries of up to {way} literals",
            "take fewer or shorter queries",
        )
        bits, negated, possible = literals_of(workload)
        binary, present = domain.has_two_values[bits], bits >= 0
        # What a literal contributes to a term with its factor, and to a term without it.
        inside = np.where(binary, 0.5, 1.0) * np.where(binary ^ negated, -1.0, 1.0)
        outside = np.where(binary, 0.5, np.where(negated, 1.0, 0.0))
        inside, outside = np.where(present, inside, 0.0), np.where(present, outside, 1.0)
        rows, owners, coefficients = [], [], []
        for pattern in range(1 << way):
            chosen = (pattern >> np.arange(way) & 1).astype(bool)
            coefficient = np.where(chosen, inside, outside).prod(axis=1)
            owner = np.flatnonzero((coefficient != 0) & possible)
            rows.append(np.where(chosen, bits[owner], np.int32(-1)))
            owners.append(owner)
            coefficients.append(coefficient[owner])
        terms = pad_right(np.concatenate(rows))
        query, coefficient = np.concatenate(owners), np.concatenate(coefficients)
        columns = np.where(terms >= 0, domain.column_of_bit[terms], -1)
        clash = ((columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] >= 0)).any(axis=1)
        whole = terms[:, 0] < 0
        constant = np.bincount(query[whole], coefficient[whole], m).astype(np.float64)
        kept = ~clash & ~whole
        terms, query, coefficient = terms[kept], query[kept], coefficient[kept]
        listed = _closed(terms, domain.bits)
        first = first_occurrences(np.concatenate((listed, terms)), domain.bits)
        features, places = Features(listed, domain), first[len(listed) :]
        return Expansion(features, constant, query, places, coefficient)

    def in_blocks(self) -> Expansion:
        """Return the same queries with whole sets of columns as blocks of contrasts."""
        old, m = self.features, len(self.constant)
        features = with_whole_sets(old.bits, old.domain)
        assert features.centred is not None
        owner, rows, factor = in_contrasts(
            old.bits, features.centred[places_of(old.bits, features)], old.domain
        )
        place = places_of(rows, features)
        # Every term of a query becomes the terms of its feature.
        order = np.argsort(owner, kind="stable")
        count = np.bincount(owner, minlength=len(old))
        last = np.cumsum(count)[self.feature]
        times = count[self.feature]
        term = np.repeat(np.arange(len(times)), times)
        within = np.arange(len(term)) - np.repeat(np.cumsum(times), times) + last[term]
        new = order[within]
        query = self.query[term]
        coefficient = self.coefficient[term] * factor[new]
        whole = place[new] < 0
        return Expansion(
            features,
            self.constant + np.bincount(query[whole], coefficient[whole], m),
            *_merged(query[~whole], place[new][~whole], coefficient[~whole]),
        )

    @cached_property
    def _shapes(self) -> list[tuple[int, tuple[int, ...]]]:
        """The first feature of each block with wide columns, and its wide columns' sizes."""
        blocks, sizes = self.features.blocks, axis_sizes(self.features.domain)
        first = blocks.features[np.unique(blocks.of, return_index=True)[1]]
        listed = zip(first.tolist(), blocks.columns, blocks.cells.tolist(), strict=True)
        return [
            (start, tuple(size for size in sizes[row[row >= 0]].tolist() if size > 2))
            for start, row, count in listed
            if count > 1
        ]

    def projected(self, means: Float64) -> Float64:
        """Return means of features with those of blocks centred along every wide column."""
        projected = means.copy()
        for start, shape in self._shapes:
            cells = projected[start : start + int(np.prod(shape))].reshape(shape)
            for axis in range(len(shape)):
                cells -= cells.mean(axis=axis, keepdims=True)
        return projected

    def inner(self, first: Int64, second: Int64) -> Float64:
        """Return entries of that projection: of pairs of features of one block, float64, each."""
        features, sizes = self.features, self.features.values[first]
        wide = features.contrasts[first] & (sizes > 2)
        same = features.bits[first] == features.bits[second]
        return np.asarray(np.where(wide, same - 1.0 / sizes, 1.0).prod(axis=1))

    def answers(self, means: Float64) -> Float64:
        """Return the answers that the means of the features over the rows give: ``(m,)``."""
        terms = self.coefficient * self.projected(means)[self.feature]
        return self.constant + np.bincount(self.query, terms, len(self.constant))

    @cached_property
    def uses(self) -> Float64:
        """What each term adds to its query's variance at variance 1, but for `_together`."""
        return self.coefficient**2 * self.inner(self.feature, self.feature)

    @cached_property
    def _together(self) -> tuple[Int64, Int64, Float64]:
        """Query, feature and weight of what pairs of a query's terms of one block add."""
        blocks = self.features.blocks
        block = np.full(len(self.features), -1)
        block[blocks.features] = blocks.of
        own = block[self.feature]
        order = np.lexsort((own, self.query))
        order = order[own[order] >= 0]
        query, own = self.query[order], own[order]
        found = [(np.zeros(0, np.int64),) * 2]
        for apart in range(1, len(order)):
            same = (query[apart:] == query[:-apart]) & (own[apart:] == own[:-apart])
            if not same.any():
                break
            found.append((order[:-apart][same], order[apart:][same]))
        first, second = (np.concatenate(part) for part in zip(*found, strict=True))
        inner = self.inner(self.feature[first], self.feature[second])
        both = 2.0 * self.coefficient[first] * self.coefficient[second] * inner
        return self.query[first], self.feature[first], both

    def variances(self, variances: Float64) -> Float64:
        """Return the answers' variances if features have these, the same in a block: ``(m,)``."""
        m = len(self.constant)
        total = np.bincount(self.query, self.uses * variances[self.feature], m)
        query, feature, both = self._together
        total += np.bincount(query, both * variances[feature], m)
        # Rounding must not make a variance negative.
        return np.maximum(total, 0.0).astype(np.float64)


def places_of(terms: Int32, features: Features) -> Int64:
    """Return which features terms are: int64, one each; -1 for a term without factors."""
    listed = features.bits
    first = first_occurrences(side_by_side(listed, terms), features.domain.bits)[len(listed) :]
    return np.where((terms >= 0).any(axis=1), first, -1)


def _merged(query: Int64, feature: Int64, coefficient: Float64) -> tuple[Int64, Int64, Float64]:
    """Add up the coefficients of the same feature in the same query."""
    count = feature.max(initial=0) + 1
    both, place = np.unique(query * count + feature, return_inverse=True)
    return *np.divmod(both, count), np.bincount(place, coefficient).astype(np.float64)


def _closed(terms: Int32, bits: int) -> Int32:
    """Return the distinct rows, and all products of some of their factors."""
    found, places = terms, np.arange(terms.shape[1])
    for size in range(terms.shape[1], 0, -1):
        found = found[first_occurrences(found, bits) == np.arange(len(found))]
        longest = found[(found >= 0).sum(axis=1) == size]
        shorter = [np.where(places == place, np.int32(-1), longest) for place in range(size)]
        if size > 1:
            found = np.concatenate((found, *map(pad_right, shorter)))
    return found


def chances_of_literals(bits: Int32, negated: NDArray[np.bool_], shares: Float64) -> Float64:
    """Return how often each literal of `literals_of` holds, given shares of 1s; 1 for padding."""
    return np.where(bits >= 0, np.where(negated, 1.0 - shares[bits], shares[bits]), 1.0)


def products_of_others(factors: Float64) -> Float64:
    """Return the product of all other factors in the place of each: float64, ``(m, k)``, both."""
    places = range(factors.shape[1])
    return np.stack([np.delete(factors, place, axis=1).prod(axis=1) for place in places], axis=1)


def pairs_and_more(common: Float64, apart: Float64) -> tuple[Float64, Float64]:
    """Return sums over all pairs of factors, and over all choices of three or more: ``(m,)``.

    Each adds what the chosen have ``apart`` times what the others have in ``common``, ``(m, k)``.
    """
    none, one, pairs, more = np.ones(len(common)), *np.zeros((3, len(common)))
    for alike, own in zip(common.T, apart.T, strict=True):
        more = more * (alike + own) + pairs * own
        none, one, pairs = none * alike, one * alike + none * own, pairs * alike + one * own
    return pairs, more


def literals_of(workload: LiteralRows) -> tuple[Int32, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the literals' bits and signs, and which queries some legal record satisfies.

    One-hot columns of two bits have their first bit; repeated literals become padding.
    """
    domain, codes = workload.domain, workload.literals
    present = codes >= 0
    bits = np.where(present, codes >> 1, np.int32(-1))
    negated = present & (codes & 1 == 1)
    column = np.where(present, domain.column_of_bit[bits], -1)
    second = present & (domain.sizes[column] == 2) & (bits > domain.offsets[column])
    bits = np.where(second, bits - 1, bits).astype(np.int32)
    negated ^= second
    possible = np.ones(len(codes), np.bool_)
    for i in range(1, codes.shape[1]):
        for j in range(i):
            same_bit = (bits[:, i] == bits[:, j]) & (bits[:, i] >= 0)
            possible &= ~same_bit | (negated[:, i] == negated[:, j])
            both_asked = (column[:, i] == column[:, j]) & (column[:, i] >= 0)
            both_asked &= ~negated[:, i] & ~negated[:, j] & ~same_bit
            possible &= ~both_asked
            bits[same_bit, i] = -1
            negated[same_bit, i] = False
    return bits, negated, possible


def sets_of(columns: Int32, most: int) -> tuple[Int64, Int64]:
    """Return the first row of each set of columns, and each row's set; ``most`` columns exist."""
    leaders, of = np.unique(first_occurrences(columns, most), return_inverse=True)
    return leaders, of.ravel()


def with_whole_sets(listed: Int32, domain: Domain) -> Features:
    """Return features; where half the cells of a set of columns are asked, blocks of contrasts.

    They cost no more. ``listed`` are distinct, with products of some factors: int32, ``(f, k)``.
    """
    columns = np.where(listed >= 0, domain.column_of_bit[listed], np.int32(-1))
    sizes = domain.sizes[columns]
    wide = (listed >= 0) & (sizes > 2)
    leaders, of = sets_of(columns, domain.columns)
    cells = np.where(wide, sizes, 1)[leaders].prod(axis=1, dtype=np.float64)
    asked = np.bincount(of, minlength=len(leaders))
    whole = wide[leaders].any(axis=1) & (2 * asked >= cells) & (cells <= MOST_CELLS)
    blocks = [_cells(domain, columns[leader]) for leader in leaders[whole]]
    kept = listed[~whole[of]]
    bits = np.concatenate((kept, *blocks))
    return Features(bits, domain, np.arange(len(bits)) >= len(kept))


def _cells(domain: Domain, columns: Int32) -> Int32:
    """Return a product for each cell of the wide columns of a set, in C order."""
    used = columns[columns >= 0]
    values = [np.arange(size if size > 2 else 1) for size in domain.sizes[used].tolist()]
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, len(used))
    bits = np.full((len(grid), len(columns)), -1, np.int32)
    bits[:, : len(used)] = grid + domain.offsets[used]
    return bits


def in_contrasts(
    terms: Int32, centred: NDArray[np.bool_], domain: Domain
) -> tuple[Int64, Int32, Float64]:
    """Multiply out indicators as ``(1 - contrast) / n``; return old terms, factors, numbers."""
    present = terms >= 0
    sizes = np.where(present, axis_sizes(domain)[domain.column_of_bit[terms]], 1)
    replaced = (sizes > 2) & centred[:, None]
    owners, rows, coefficients = [], [], []
    for kept in map(np.array, product((False, True), repeat=terms.shape[1])):
        # What is not replaced is always kept; contrasts are kept, or 1 takes their place.
        fits = (replaced | (kept == present)) & (kept <= present)
        owner = np.flatnonzero(fits.all(axis=1))
        factors = np.where(replaced[owner], np.where(kept, -1.0, 1.0) / sizes[owner], 1.0)
        owners.append(owner)
        rows.append(np.where(kept, terms[owner], np.int32(-1)))
        coefficients.append(factors.prod(axis=1))
    return np.concatenate(owners), pad_right(np.concatenate(rows)), np.concatenate(coefficients)


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """Products of features' factors, or of queries' ``literals``; ``bits``, int32 ``(f, k)``.

    Of a bit's two terms the ``second`` is the negation of a literal, or a wide column's contrast.
    """

    domain: Domain
    bits: Int32
    second: NDArray[np.bool_]
    literals: bool

    @staticmethod
    def of_features(features: Features) -> ProductTerms:
        """Return the products that a mixture is fitted to when features are measured."""
        wide = features.contrasts & (features.values > 2)
        return ProductTerms(features.domain, features.bits, wide, literals=False)

    def part(self, places: NDArray[Any]) -> ProductTerms:
        """Return some of the products."""
        return replace(self, bits=self.bits[places], second=self.second[places])

    @property
    def sets(self) -> Int64:
        """Numbers of the products' sets of columns: ``(f,)``."""
        columns = np.where(self.bits >= 0, self.domain.column_of_bit[self.bits], np.int32(-1))
        return sets_of(np.sort(columns, axis=1), self.domain.columns)[1]

    def rows(self, held: Int64) -> Int32:
        """Return which of `terms` each product multiplies, padded on the right with -1."""
        places = 2 * np.searchsorted(held, np.maximum(self.bits, 0)) + self.second
        rows = np.where(self.bits >= 0, places, -1).astype(np.int32)
        # Literals that repeat others left padding between the rest.
        return np.ascontiguousarray(pad_right(rows))

    def terms(self, held: Int64) -> tuple[Float32, Float32]:
        """Return intercepts and factors of terms in the values of bits: signs' means, or shares."""
        binary = self.domain.has_two_values[held]
        if self.literals:
            # The probabilities of a literal and of its negation.
            intercept, factor = np.where(binary, 0.5, 0.0), np.where(binary, -0.5, 1.0)
            intercepts = np.stack((intercept, 1.0 - intercept), axis=1)
            factors = np.stack((factor, -factor), axis=1)
        else:
            # A sign or an indicator, and a contrast.
            sizes = np.where(binary, 0.0, axis_sizes(self.domain)[self.domain.column_of_bit[held]])
            intercepts = np.stack((np.zeros(len(held)), ~binary), axis=1)
            factors = np.stack((np.ones(len(held)), -sizes), axis=1)
        return intercepts.ravel().astype(np.float32), factors.ravel().astype(np.float32)

    def factors(self, chances: Float64) -> tuple[Float64, Float64]:
        """Return the means of factors and their slopes in the shares of their bits: ``(f, k)``."""
        constants, slopes = self.linear()
        means = constants + slopes * chances[self.bits]
        return np.where(self.bits >= 0, means, 1.0), np.where(self.bits >= 0, slopes, 0.0)

    def linear(self) -> tuple[Float64, Float64]:
        """Return the means of factors where their bits have share 0, and their slopes."""
        if self.literals:
            return np.where(self.second, 1.0, 0.0), np.where(self.second, -1.0, 1.0)
        sizes = axis_sizes(self.domain)[self.domain.column_of_bit[self.bits]].astype(np.float64)
        contrast = self.second | self.domain.has_two_values[self.bits]
        return np.where(contrast, 1.0, 0.0), np.where(contrast, -sizes, 1.0)

"""A mixture of product distributions: what `adaptive` and independent columns fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import float32, float64, int32, int64, uint8, uint64, void
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.literals import LiteralRows
from dualquery.runtime.array_types import GOLDEN, Array, kernel, mix, read_only

_ROUNDING = 1e-3
"""Most by which the chances of a column's values, kept as float32, miss a sum of 1."""


@dataclass(frozen=True, eq=False)
class ProductMixture:
    """Components of independent columns, each with a weight.

    ``weights`` are float64, shape ``(components,)``, at least 0, not all of them 0; their sum is
    the whole. ``chances``, float32, shape ``(bits, components)``, are those of a bit to be 1 under
    each component; those of a one-hot column add up to 1, but for rounding.
    """

    domain: Domain
    weights: NDArray[np.float64]
    chances: NDArray[np.float32]

    kind: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        weights, chances = self.weights, self.chances
        if weights.ndim != 1 or chances.shape != (self.domain.bits, len(weights)):
            raise ValueError(f"chances of {self.domain.bits} bits expected, not {chances.shape}")
        if not ((weights >= 0).all() and weights.sum() > 0 and np.isfinite(weights).all()):
            raise ValueError("weights are at least 0, and not all of them 0")
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("chances lie in [0, 1]")
        if (weights.dtype, chances.dtype) != (np.dtype(np.float64), np.dtype(np.float32)):
            raise ValueError(f"weights of {weights.dtype} and chances of {chances.dtype}")
        sums = np.add.reduceat(chances, self.domain.offsets[:-1], axis=0, dtype=np.float64)
        if (np.abs(sums - 1.0)[self.domain.sizes > 1] > _ROUNDING).any():
            raise ValueError("the chances of the values of a column add up to 1")

    @staticmethod
    def single(domain: Domain, chances: NDArray[np.float64]) -> ProductMixture:
        """Return independent columns: ``chances`` is float64, shape ``(bits,)``."""
        return ProductMixture(domain, np.ones(1), chances[:, None].astype(np.float32))

    def answers(self, queries: LiteralRows) -> NDArray[np.float64]:
        """Return the chance of every conjunction: float64, shape ``(m,)``, in [0, 1]."""
        answers = np.empty(len(queries))
        conjunction_chances(
            np.ascontiguousarray(queries.literals),
            self.domain.column_of_bit,
            self.weights / self.weights.sum(),
            np.ascontiguousarray(self.chances),
            answers,
        )
        return np.clip(answers, 0.0, 1.0)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return the mixture rounded to records: uint8, shape ``(count, bits)``, legal.

        Each component gets its share of the records, to the nearest whole number, and each value of
        a column its share of the component's. What rounding leaves is carried over to the next
        component, so that counts differ by less than 2 in any first components. Which of a
        component's records get which value is random.
        """
        sizes = apportion(self.weights, count)
        counts = np.zeros(self.chances.shape, np.int64)
        round_values(self.domain.offsets, np.ascontiguousarray(self.chances), sizes, counts)
        records = np.zeros((count, self.domain.bits), np.uint8)
        order = generator.permutation(count)
        word = np.uint64(generator.integers(2**64, dtype=np.uint64))
        deal(self.domain.offsets, counts, sizes, order, word, records)
        return records

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return weights and chances."""
        return {"weights": self.weights, "chances": self.chances}


_INTS, _FLOATS, _CHANCES = read_only(int64), read_only(float64), read_only(float32, 2)


@kernel(void(read_only(int32, 2), read_only(int32), _FLOATS, _CHANCES, float64[:]))
def conjunction_chances(
    literals: Array, column_of_bit: Array, weights: Array, chances: Array, out: Array
) -> None:
    """Write the chance of every conjunction, float64 ``(m,)``.

    Literals, int32 ``(m, k)``, increase in a row, then padding -1. A one-hot column takes a single
    value: two positive literals on it exclude each other, a positive one implies the negations of
    others, and the chances of negated values add up. ``weights``, float64 ``(K,)``, add up to 1.
    """
    way, components = literals.shape[1], len(weights)
    product = np.empty(components)
    other = np.empty(components)
    for query in range(len(literals)):
        product[:] = weights
        first = 0
        while first < way and literals[query, first] >= 0:
            column = column_of_bit[literals[query, first] >> 1]
            stop, positives, positive = first, 0, 0
            other[:] = 1.0
            while (
                stop < way
                and literals[query, stop] >= 0
                and column_of_bit[literals[query, stop] >> 1] == column
            ):
                code = literals[query, stop]
                if code & 1:
                    other -= chances[code >> 1]
                else:
                    positives += 1
                    positive = code >> 1
                stop += 1
            if positives > 0:
                for k in range(components):
                    product[k] *= chances[positive, k] if positives == 1 else 0.0
            else:
                for k in range(components):
                    product[k] *= max(other[k], 0.0)
            first = stop
        out[query] = product.sum()


@kernel(void(_INTS, _CHANCES, _INTS, int64[:, :]))
def round_values(offsets: Array, chances: Array, sizes: Array, counts: Array) -> None:
    """Write how many records of each component have each bit: int64 ``(bits, K)``, all 0 before.

    Within a column, what a value got too little or too much so far is added to its share of the
    next component; whole parts are given out, then the largest rests. Those of a one-hot column add
    up to ``sizes``, the records of each component.
    """
    widest = max(2, np.diff(offsets).max())
    owed, rest = np.empty(widest), np.empty(widest)
    given = np.empty(widest, np.int64)
    for column in range(len(offsets) - 1):
        first = offsets[column]
        bits = offsets[column + 1] - first
        values = max(bits, 2)  # a binary column: 1, then 0
        owed[:] = 0.0
        for component in range(len(sizes)):
            size, total = sizes[component], 0.0
            if size == 0:
                continue
            for value in range(bits):
                total += chances[first + value, component]
            total = 1.0 if bits == 1 else total
            left = size
            for value in range(values):
                share = 1.0 - chances[first, component]
                if value < bits:
                    share = chances[first + value, component] / total
                owed[value] += size * share
                given[value] = max(int(np.floor(owed[value])), 0)
                rest[value] = owed[value] - given[value]
                left -= given[value]
            while left != 0:
                step, best = (1 if left > 0 else -1), -1
                for value in range(values):
                    usable = step > 0 or given[value] > 0
                    if usable and (best < 0 or step * rest[value] > step * rest[best]):
                        best = value
                given[best] += step
                rest[best] -= step
                left -= step
            for value in range(values):
                owed[value] = rest[value]
                if value < bits:
                    counts[first + value, component] = given[value]


@kernel(void(_INTS, read_only(int64, 2), _INTS, _INTS, uint64, uint8[:, :]))
def deal(
    offsets: Array, counts: Array, sizes: Array, order: Array, key: np.uint64, records: Array
) -> None:
    """Deal the values of every column to the records of each component at random.

    ``counts`` and ``sizes`` as of `round_values`; ``order``, int64 ``(n,)``, has the places of the
    records by component; ``key`` seeds the (public) random words. ``records``, uint8 ``(n, bits)``,
    all 0, is the result.
    """
    begin, step = 0, np.uint64(0)
    for component in range(len(sizes)):
        size = sizes[component]
        if size == 0:
            continue
        hand = order[begin : begin + size].copy()
        for column in range(len(offsets) - 1):
            first, stop = offsets[column], offsets[column + 1]
            # The most common value goes to those that are left; 0 of a binary column is unwritten.
            dealt, last = 0, -1
            if stop - first > 1:
                last = first + np.argmax(counts[first:stop, component])
            for bit in range(first, stop):
                if bit == last:
                    continue
                for _ in range(counts[bit, component]):
                    step += np.uint64(1)
                    word = mix(key + step * GOLDEN) >> np.uint64(32)
                    other = dealt + int((word * np.uint64(size - dealt)) >> np.uint64(32))
                    hand[dealt], hand[other] = hand[other], hand[dealt]
                    records[hand[dealt], bit] = 1
                    dealt += 1
            if last >= 0:
                for place in range(dealt, size):
                    records[hand[place], last] = 1
        begin += size


@kernel(void(read_only(int64, 2), read_only(float64, 2), float64[:, :], int64[:]))
def round_targets(cells: Array, chances: Array, owed: Array, targets: Array) -> None:
    """Write a value of the target for each record, in order.

    A record gets the value after which two sums of squares together are least: of what its cells
    are owed, on average over the pairs, and of what the record is owed itself.

    ``cells`` int64 ``(r, p)``: each record's, one a pair of columns; ``chances`` float64 ``(r,
    values)``, adding up to 1; ``owed`` float64 ``(cells, values)``, changed in place.
    """
    pairs, values = cells.shape[1], chances.shape[1]
    claim = np.empty(values)
    for record in range(len(cells)):
        claim[:] = 0.0
        for pair in range(pairs):
            cell = cells[record, pair]
            claim += owed[cell]
        best = 0
        for value in range(values):
            claim[value] += 2 * pairs * chances[record, value]
            if claim[value] > claim[best]:
                best = value
        targets[record] = best
        for pair in range(pairs):
            cell = cells[record, pair]
            owed[cell] += chances[record]
            owed[cell, best] -= 1.0


def apportion(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round shares, some of them above 0, so that no run of them is off by more than 1."""
    reached = np.cumsum(shares)
    ends = np.rint(reached / reached[-1] * total).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))

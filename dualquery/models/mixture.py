"""A mixture of product distributions: what `adaptive` and independent columns fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.queries.literals import LiteralRows

Float64 = NDArray[np.float64]

_AT_ONCE = 1 << 18
"""Chances that are multiplied at once."""

_TOGETHER = 1 << 29
"""Records times bits times columns, about, up to which pairs are dealt: a second or two."""

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
        literals = queries.literals
        weights = self.weights / self.weights.sum()
        some = max(_AT_ONCE // len(weights), 1)
        parts = [np.zeros(0)]
        for first in range(0, len(literals), some):
            chances = self._chances(literals[first : first + some], weights)
            # Added up one by one, as compiled loops do it: in any other order bits would differ.
            parts.append(np.add.accumulate(chances, axis=1)[:, -1])
        return np.clip(np.concatenate(parts), 0.0, 1.0)

    def _chances(self, literals: NDArray[np.int32], weights: Float64) -> Float64:
        """Return each component's part of each conjunction's chance: ``(m, components)``."""
        # Literals increase in a row, then padding -1. A one-hot column takes a single value: two
        # positive literals on it exclude each other, a positive one implies the others' negations,
        # and the chances of negated values add up.
        product = np.repeat(weights[None], len(literals), axis=0)
        # Of the column that each row has reached: its chance so far, and if its value is given.
        reached = np.ones_like(product)
        given = np.zeros((len(literals), 1), bool)
        columns = np.where(literals >= 0, self.domain.column_of_bit[literals >> 1], -1)
        for place, code in enumerate(literals.T[:, :, None]):
            if place:
                new = columns[:, place] != columns[:, place - 1]
                product[new] *= np.maximum(reached[new], 0.0)
                reached[new], given[new] = 1.0, False
            own = self.chances[code[:, 0] >> 1]
            positive = (code >= 0) & (code & 1 == 0)
            negative = (code >= 0) & ~positive & ~given
            reached = np.where(negative, reached - own, reached)
            reached = np.where(positive, np.where(given, 0.0, own), reached)
            given |= positive
        return product * np.maximum(reached, 0.0)

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
        """Return the mixture rounded to records: uint8, shape ``(count, bits)``, legal.

        Each component gets its share of the records, rounded to be that on average, and each value
        of a column its share of these, usually by less than 2 in any first components. Which of a
        component's records get which value is random; of tables up to a size, counts of pairs of
        values are kept near their shares, too.
        """
        from dualquery.models.rounding import deal

        domain, sizes = self.domain, apportion(self.weights, count, generator.random())
        records = np.zeros((count, domain.bits), np.uint8)
        order = generator.permutation(count)
        word = np.uint64(generator.integers(2**64, dtype=np.uint64))
        cells = records.size + 16 * int(domain.sizes.max(initial=2)) ** 2
        together = domain.columns * (domain.columns * cells <= _TOGETHER)
        values = np.zeros((together, count), np.uint16)
        chances = np.ascontiguousarray(self.chances)
        deal(domain.offsets, chances, sizes, order, word, values, records)
        return records

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return weights and chances."""
        return {"weights": self.weights, "chances": self.chances}


def apportion(shares: NDArray[np.float64], total: int, start: float = 0.5) -> NDArray[np.int64]:
    """Round shares, some of them above 0, so that no run of them is off by more than 1.

    With a random start in [0, 1) each is its share on average (systematic sampling, Madow 1949).
    """
    reached = np.cumsum(shares)
    ends = np.floor(reached / reached[-1] * total + start).astype(np.int64).clip(max=total)
    return np.asarray(np.diff(ends, prepend=0))

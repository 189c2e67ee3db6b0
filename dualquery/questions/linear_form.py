"""Linear forms: sums of products of weights, one of each column's values.

The mean of a form over the rows is a linear function of the answers of conjunctions, so it can be
computed from records, from a model, or from noisy measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain, axis_sizes
from dualquery.questions.allowed_values import Pieces
from dualquery.questions.disjoint_boxes import Box
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.runtime.errors import BadInputError

Float64: TypeAlias = NDArray[np.float64]

Term: TypeAlias = Mapping[int, Float64]
"""Weights of the values of some columns: their product. A column that is absent has weight 1."""

MOST_CONJUNCTIONS = 1 << 20
"""Of a form."""


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A sum of terms: each maps numbers of columns to weights, one a value of the column."""

    domain: Domain
    terms: tuple[Term, ...]

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The columns that it looks at, increasing."""
        return tuple(sorted({column for term in self.terms for column in term}))

    @cached_property
    def factors(self) -> tuple[LinearForm, ...]:
        """The forms of single columns whose product it is, if their weights are from 0 to 1.

        None of a sum of several products, or of fewer than two columns.
        """
        if len(self.terms) != 1 or len(self.terms[0]) < 2:
            return ()
        (term,) = self.terms
        if not all(((weights >= 0) & (weights <= 1)).all() for weights in term.values()):
            return ()
        return tuple(LinearForm(self.domain, ({column: term[column]},)) for column in term)

    def on_values(self, values: NDArray[np.int64]) -> Float64:
        """Return the form of every record, given by its columns' values, int64 ``(r, columns)``."""
        total = np.zeros(len(values))
        for term in self.terms:
            factors = (weights[values[:, column]] for column, weights in term.items())
            total += math.prod(factors, start=np.ones(len(values)))
        return total

    def table(self, columns: Sequence[int]) -> Float64:
        """Return the form on every cell of some columns, all of its own among them."""
        total = np.zeros(tuple(axis_sizes(self.domain)[list(columns)].tolist()))
        for term in self.terms:
            total += math.prod(np.ix_(*(term.get(c, np.ones(1)) for c in columns)))
        return total

    def conjunctions(self) -> tuple[NDArray[np.int32], Float64, float]:
        """Return the form as conjunctions, their coefficients, and a constant.

        int32 ``(t, k)`` literal codes padded with -1, without repeats; float64 ``(t,)``; a number.
        `BadInputError` if there are more than `MOST_CONJUNCTIONS`.
        """
        sizes = axis_sizes(self.domain)
        rows: list[NDArray[np.int32]] = [np.zeros((0, 1), np.int32)]
        factors: list[Float64] = [np.zeros(0)]
        total = 0
        for term in self.terms:
            literals = np.zeros((1, 0), np.int32)
            product = np.ones(1)
            for column, weights in sorted(term.items()):
                codes, coefficients = _literals(self.domain, column, weights)
                total += len(literals) * len(codes)
                if total > MOST_CONJUNCTIONS:
                    raise BadInputError(
                        f"this question is the sum of more than {MOST_CONJUNCTIONS:,} conjunctions "
                        f"over columns of {', '.join(map(str, sizes[list(term)]))} values; ask "
                        "about fewer columns at a time"
                    )
                literals = np.column_stack(
                    (np.repeat(literals, len(codes), axis=0), np.tile(codes, len(literals)))
                )
                product = np.repeat(product, len(codes)) * np.tile(coefficients, len(product))
            rows.append(pad_right(literals.astype(np.int32)) if literals.size else literals[:, :0])
            factors.append(product)
        way = max(1, *(each.shape[1] for each in rows))
        padded = [
            np.pad(each, ((0, 0), (0, way - each.shape[1])), constant_values=-1) for each in rows
        ]
        literals, coefficients = np.concatenate(padded), np.concatenate(factors)
        first = first_occurrences(literals, 2 * self.domain.bits)
        summed = np.bincount(first, coefficients, len(first))
        kept = (summed != 0) & (literals[:, 0] >= 0)
        return literals[kept], summed[kept], float(coefficients[literals[:, 0] < 0].sum())


@dataclass(frozen=True, eq=False)
class Bounds:
    """A form at least, likely and at most; the same object where no bucket is cut."""

    low: LinearForm
    likely: LinearForm
    high: LinearForm

    @property
    def exact(self) -> bool:
        """Whether the form is known on every record."""
        return self.low is self.high

    @property
    def distinct(self) -> tuple[LinearForm, ...]:
        """The likely form; and its limits, where they are others."""
        return (self.likely,) if self.exact else (self.likely, self.low, self.high)

    @staticmethod
    def of_boxes(
        boxes: Sequence[Box],
        pieces: Mapping[int, Pieces],
        domain: Domain,
        worth: tuple[int, tuple[Float64, Float64, Float64]] | None = None,
    ) -> Bounds:
        """Return the indicator of boxes that exclude each other, times what a column is worth.

        ``worth`` is a column, and the least, likely and largest worth of its pieces; None for 1.
        """
        low: list[Term] = []
        likely: list[Term] = []
        high: list[Term] = []
        exact = True
        for box in boxes:
            three = {column: pieces[column].weights(allowed) for column, allowed in box.items()}
            if worth is not None:
                column, worths = worth
                allowed = box.get(column, pieces[column].every) & pieces[column].numbered
                three[column] = pieces[column].weights(allowed, worths)
            exact &= all((each[0] == each[2]).all() for each in three.values())
            likely.append({column: each[1] for column, each in three.items()})
            target = None if worth is None else worth[0]
            low += _signed(three, target, 0)
            high += _signed(three, target, 2)
        middle = LinearForm(domain, tuple(likely))
        if exact:
            return Bounds(middle, middle, middle)
        return Bounds(LinearForm(domain, tuple(low)), middle, LinearForm(domain, tuple(high)))


def _signed(three: Mapping[int, Float64], target: int | None, bound: int) -> list[Term]:
    """Return terms of a bound; where the target is negative, the others' other bound counts."""
    term = {column: each[bound] for column, each in three.items()}
    if target is None or (term[target] >= 0).all():
        return [term]
    other = {column: each[2 - bound] for column, each in three.items()}
    return [
        {**term, target: np.maximum(term[target], 0.0)},
        {**other, target: np.minimum(term[target], 0.0)},
    ]


def _literals(domain: Domain, column: int, weights: Float64) -> tuple[NDArray[np.int32], Float64]:
    """Return weights of a column's values as few literals: codes (-1 for none), coefficients."""
    first = int(domain.offsets[column])
    if domain.sizes[column] == 1:
        codes = np.array([2 * first + 1, 2 * first])
    else:
        codes = 2 * np.arange(first, first + len(weights))
    # Relative to the commonest weight only the others need a literal.
    distinct, times = np.unique(weights, return_counts=True)
    common = float(distinct[np.argmax(times)])
    # Near 0, if all differ, a literal each; far from 0 sums of shares are 1 only but for rounding.
    if common == 0.0 or (times.max() == 1 and np.ptp(weights) > np.abs(weights).max() / 2.0):
        kept = weights != 0
        return codes[kept].astype(np.int32), weights[kept]
    kept = weights != common
    codes = np.append(codes[kept], -1)
    return codes.astype(np.int32), np.append(weights[kept] - common, common)

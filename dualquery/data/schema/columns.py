"""The kinds of columns a table may have; their bits are counted from 0 within the column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema import within as spreads
from dualquery.data.schema.checks import (
    NO_OPEN_END,
    Described,
    OneHot,
)
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.numbers import number_text, rounded_text
from dualquery.runtime.errors import BadInputError

MOST_DECIMALS = 6


@dataclass(frozen=True)
class Binary(Described):
    """A column of two values, held by one bit.

    `BadInputError` if the two values are the same.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    zero, one
        The texts of the values that leave the bit at 0 and set it to 1.
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "binary"

    name: str
    zero: str = "0"
    one: str = "1"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        if self.zero == self.one:
            raise BadInputError(
                f"{self.where}: both values of a binary column are {self.one!r}; declare two "
                "different ones"
            )

    @property
    def bits(self) -> int:
        """Always 1."""
        return 1

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """The texts of each value of the bit, as a categorical column has them."""
        return (self.zero,), (self.one,)

    @property
    def codes(self) -> Mapping[str, int]:
        """Value of the bit for each text that the column may hold."""
        return {self.zero: 0, self.one: 1}

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of the one bit: the empty text, since the column's name says it all."""
        return ("",)


@dataclass(frozen=True)
class Categorical(OneHot):
    """A column of named categories, one bit each; exactly one of the bits is 1.

    The bits are, in this order: the categories, "(other)" if declared, "(missing)" if declared.
    `BadInputError` if fewer than two bits result or a value occurs twice.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    values
        One tuple of texts a bit; a tuple of several texts merges them.
    missing
        What a missing value does: it is an error, or a category of its own.
    outside
        What a value that is not in ``values`` does: it is an error, or falls in "(other)".
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "categorical"
    OUTSIDE: ClassVar[str] = "other"

    name: str
    values: tuple[tuple[str, ...], ...]
    missing: Literal["error", "category"] = "error"
    outside: Literal["error", "other"] = "error"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        if not all(self.values):
            raise BadInputError(f"{self.where}: a category without any value")
        reserved = {*self.extra_labels}
        seen: set[str] = set()
        for value in itertools.chain.from_iterable(self.values):
            if value in seen:
                raise BadInputError(f"{self.where}: the value {value!r} is declared twice")
            if value in reserved:
                raise BadInputError(
                    f"{self.where}: the value {value!r} has the name of a bit that the choices for "
                    "missing or outside values add; rename it"
                )
            seen.add(value)
        self.check_bits("value")

    @property
    def other_bit(self) -> int | None:
        """Local bit of values that are not declared, or None where they are errors."""
        return len(self.values) if self.outside == "other" else None

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """Local bit of each declared text."""
        return {text: bit for bit, texts in enumerate(self.values) for text in texts}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit; merged values are joined by a bar."""
        return (*("|".join(texts) for texts in self.values), *self.extra_labels)

    def to_dict(self) -> dict[str, object]:
        """Return the column as JSON-able values."""
        values = [texts[0] if len(texts) == 1 else list(texts) for texts in self.values]
        return {**super().to_dict(), "values": values}


@dataclass(frozen=True)
class Numeric(OneHot):
    """A column of numbers in buckets, one bit each; exactly one of the bits is 1.

    Bucket ``i`` holds ``edges[i] <= v < edges[i + 1]``; the last one also holds its upper edge,
    unless it is one wide in a column of whole numbers: then it holds one number, as others do.
    The bits are the buckets and then "(missing)" if declared.
    `BadInputError` if a bucket, or its rule, holds no number that the column may have.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    edges
        Finite, strictly increasing; kept as floats.
    integer
        Whether the column holds whole numbers only.
    missing
        What a missing value does: it is an error, or a category of its own.
    outside
        What a number below the first or above the last edge does: it is an error, or falls in the
        nearest bucket.
    unparsable
        What a text that is no finite number (or, with ``integer``, no whole one) does: it is an
        error, or counts as missing.
    within
        How values lie in the buckets: a rule for all of them, or a list with one for each (see
        `dualquery.data.schema.within`). Records draw their values by it.
    decimals
        How many decimals the numbers have that records draw, 1 to 6; None for as many as cut
        their bucket into a thousand parts.
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "numeric"
    OUTSIDE: ClassVar[str] = "clip"

    name: str
    edges: tuple[float, ...]
    integer: bool = False
    missing: Literal["error", "category"] = "error"
    outside: Literal["error", "clip"] = "error"
    unparsable: Literal["error", "missing"] = "error"
    within: spreads.Within = "uniform"
    decimals: int | None = None
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))
        if len(self.edges) < 2:
            raise BadInputError(f"{self.where}: {len(self.edges)} edges; two buckets need three")
        for low, high in itertools.pairwise(self.edges):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise BadInputError(
                    f"{self.where}: the edges must be finite and increase, but {number_text(high)} "
                    f"follows {number_text(low)}"
                    + (f"; {NO_OPEN_END}" if math.isinf(low) or math.isinf(high) else "")
                )
        largest = max(map(abs, self.edges))
        if self.integer and largest >= 2**63:
            raise BadInputError(
                f"{self.where}: whole numbers beyond 64 bits; set integer to false, or declare "
                "smaller edges"
            )
        self.check_bits("bucket")
        for first, last in self.bounds if self.integer else ():
            if first > last:
                raise BadInputError(
                    f"{self.where}: a bucket below {number_text(first)} holds no whole number; "
                    "merge it with a neighbour or set integer to false"
                )
        if self.decimals is not None:
            self._check_decimals(self.decimals, largest)
        object.__setattr__(self, "within", spreads.without_lists(self.within))
        _ = self.rules  # checks them

    def _check_decimals(self, decimals: int, largest: float) -> None:
        where = f"{self.where}: decimals is {decimals!r}"
        if type(decimals) is not int or not 1 <= decimals <= MOST_DECIMALS or self.integer:
            raise BadInputError(
                f"{where}; it is 1 to {MOST_DECIMALS}, and integer says that there are none"
            )
        if largest * 10**decimals >= 2**53:
            raise BadInputError(f"{where}, more than numbers as large as these hold")
        for ends in self.bounds:
            nearest = spreads.shortened(np.array(ends[:1]), ends, decimals)
            if np.round(nearest, decimals) != nearest:
                raise BadInputError(
                    f"{where}, but the bucket that starts at {number_text(ends[0])} holds no such "
                    "number; declare more of them, or merge it with a neighbour"
                )

    @property
    def buckets(self) -> int:
        """Number of buckets, the missing category not counted."""
        return len(self.edges) - 1

    @property
    def places(self) -> int | None:
        """Decimals of the numbers that records draw: 0 of whole numbers; None if not said."""
        return 0 if self.integer else self.decimals

    @property
    def _holds_one(self) -> bool:
        """Whether the last of several buckets is one wide, and no rule of it names its end."""
        low, top = self.edges[-2:]
        within: Any = self.within
        rules = within[-1] if isinstance(within, list | tuple) and within else ()
        named = rules if isinstance(rules, list | tuple) else (rules,)
        return self.buckets > 1 and top - low == 1 and low.is_integer() and top not in named

    @cached_property
    def edge_texts(self) -> tuple[str, ...]:
        """Each edge as labels show it: rounded to six digits if all of them then still differ."""
        texts = tuple(map(rounded_text, self.edges))
        if self.integer or len(set(texts)) < len(texts):
            return tuple(map(number_text, self.edges))
        return texts

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit: ``low-high``, or the number where a bucket holds only one.

        Where an end has a minus sign, the two are joined by ``to``: ``-20 to -10``.
        """
        names = [
            f"{low} to {high}" if "-" in low + high else f"{low}-{high}"
            for low, high in itertools.pairwise(self.edge_texts)
        ]
        if self.integer:
            names = [
                number_text(first) if first == last else name
                for name, (first, last) in zip(names, self.bounds, strict=True)
            ]
        return (*names, *self.extra_labels)

    @cached_property
    def rules(self) -> tuple[spreads.Rule, ...]:
        """How values lie in each bucket."""
        return spreads.rules_of(self.where, self.within, self.bounds, self.integer)

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each bucket."""
        if self.integer:
            firsts = [math.ceil(edge) for edge in self.edges]
            last = firsts[-1] - 1 if self._holds_one else math.floor(self.edges[-1])
            ends = [first - 1 for first in firsts[1:-1]] + [last]
            return tuple((float(low), float(high)) for low, high in zip(firsts, ends, strict=False))
        *inner, outer = itertools.pairwise(self.edges)
        return (*((low, math.nextafter(high, low)) for low, high in inner), outer)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of the values of each bucket, by its rule: float64, shape ``(buckets,)``."""
        pairs = zip(self.rules, self.bounds, strict=True)
        return np.array([spreads.mean_of(*each, self.places) for each in pairs])

    def draw(
        self,
        buckets: NDArray[np.int64],
        generator: np.random.Generator,
        avoided: Sequence[float] = (),
    ) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return a value of each bucket: int64 for an integer column, else float64.

        Bucket numbers are int64, shape ``(r,)``; numbers that stand for a missing value are
        ``avoided``.
        """
        values = np.empty(len(buckets))
        order = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=self.buckets)
        for bucket, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
            rule, ends = self.rules[bucket], self.bounds[bucket]
            if isinstance(rule, tuple):
                rule = spreads.kept(rule, avoided)
            values[rows] = spreads.drawn(rule, ends, self.places, len(rows), generator)
            for place in rows[np.isin(values[rows], avoided)].tolist():
                values[place] = spreads.another(values[place], ends, self.integer, avoided)
        return values.astype(np.int64) if self.integer else values


Column: TypeAlias = Binary | Categorical | Numeric | Dates

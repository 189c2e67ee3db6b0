"""Columns of numbers in buckets, and how numbers lie within a bucket.

A bucket's rule is said by the public schema, and records draw their values by it: ``"uniform"``,
``"sloped"`` (an older word for it), ``"log-uniform"`` (the logarithms are uniform), a number (the
only one that is used), or a list of numbers, each as likely as often as it is listed.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.columns import Column
from dualquery.data.schema.numbers import (
    NUMBER_RANGE,
    finite_number,
    in_another_style,
    number_text,
    rounded_text,
)
from dualquery.runtime.errors import BadInputError

NO_OPEN_END = (
    "every bucket needs two ends: write the last number that matters as the edge; with "
    '"outside": "clip" numbers beyond it count in the nearest bucket'
)
MOST_DECIMALS = 6

Rule: TypeAlias = str | float | tuple[float, ...]  # of one bucket

Within: TypeAlias = Rule | tuple[Rule, ...]


class ExampleNumbers(tuple[float, ...]):
    """Numbers that tell how a bucket's values lie, as a list does; others are possible, too."""

    __slots__ = ()


SPREADS = ("uniform", "sloped", "log-uniform")

Bounds: TypeAlias = Sequence[tuple[float, float]]
"""Lowest and highest value of each bucket; whole numbers if all values are."""


class Buckets(Column):
    """A column of numbers or dates in buckets; "(missing)" is the last bit if declared."""

    _drawn: Callable[..., NDArray[np.float64]]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """How values lie in each bucket."""
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each bucket, of dates the days from 1970."""
        raise NotImplementedError

    @property
    def buckets(self) -> int:
        """Number of buckets, the missing category not counted."""
        return self.bits - len(self.extra_labels)

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers, as days are."""
        return getattr(self, "integer", True)

    def draw(
        self,
        buckets: NDArray[np.int64],
        generator: np.random.Generator,
        avoided: Sequence[float] = (),
    ) -> pl.Series:
        """Return a value of each bucket, int64, shape ``(r,)``; none that is ``avoided``."""
        values = self._drawn(buckets, generator, avoided)
        for _ in range(20 * bool(avoided)):  # after that, those beside them
            again = np.flatnonzero(np.isin(values, avoided))
            values[again] = self._drawn(buckets[again], generator, avoided)
        for place in np.flatnonzero(np.isin(values, avoided)).tolist():
            values[place] = self.another(values[place], self.bounds[buckets[place]], avoided)
        return pl.Series(self.name, values.astype(np.int64) if self.whole else values)

    def another(self, value: float, ends: tuple[float, float], avoided: Sequence[float]) -> float:
        """Return a value of a bucket beside one that is avoided; the value itself if all are."""
        steps = len(avoided) + 1
        places = getattr(self, "places", 0)
        step = _step(places) or (ends[1] / 2 - ends[0] / 2) / (steps + 1)
        found = (value + sign * step * number for number in range(1, steps + 1) for sign in (-1, 1))
        found = (round(each, places) for each in found) if places else found
        inside = (each for each in found if ends[0] <= each <= ends[1] and each not in avoided)
        return next(inside, value)

    def decoded(
        self, codes: NDArray[np.int32], generator: np.random.Generator, avoided: Sequence[float]
    ) -> pl.Series:
        """Return values of local bits. What is missing is drawn like the first bucket first."""
        missing = codes == self.buckets
        drawn = self.draw(np.where(missing, 0, codes).astype(np.int64), generator, avoided)
        return drawn.scatter(np.flatnonzero(missing), None) if missing.any() else drawn

    def check_missing(self, where: str, everywhere: Sequence[str]) -> None:
        """Refuse what `Column.check_missing` does, and buckets that hold missing values only."""
        super().check_missing(where, everywhere)
        avoided = self.avoided((*everywhere, *self.missing_values))
        rules = zip(self.labels, self.bounds, self.rules, strict=False)
        for label, (low, high), rule in rules if avoided else ():
            values: Sequence[float] | None = possible(rule)
            if values is None:
                inside = [each for each in avoided if low <= each <= high][:1]
                values = [self.another(each, (low, high), avoided) for each in inside]
            if values and {*values} <= {*avoided}:
                raise BadInputError(
                    f"{where}: all that {label} holds stands for missing values; take it out of "
                    "missing_values, or out of the edges, dates or values that within lists"
                )


@dataclass(frozen=True)
class Numeric(Buckets):
    """A column of numbers in buckets, one bit each; exactly one of the bits is 1.

    Bucket ``i`` holds ``edges[i] <= v < edges[i + 1]``; the last one also holds its upper edge,
    unless it is one wide in a column of whole numbers: then it holds one number, as others do.
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
        `dualquery.data.schema.numeric`). Records draw their values by it.
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
    within: Within = "uniform"
    decimals: int | None = None
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))
        object.__setattr__(self, "within", without_lists(self.within))
        if len(self.edges) < 2:
            raise BadInputError(f"{self.where}: {len(self.edges)} edges; two buckets need three")
        for low, high in itertools.pairwise(self.edges):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise BadInputError(
                    f"{self.where}: the edges must be finite and increase, but {number_text(high)} "
                    f"follows {number_text(low)}"
                    + (f"; {NO_OPEN_END}" if math.isinf(low) or math.isinf(high) else "")
                )
        self.check_bits("bucket")
        for first, last in self.bounds if self.integer else ():
            if first > last:
                raise BadInputError(
                    f"{self.where}: a bucket below {number_text(first)} holds no whole number; "
                    "merge it with a neighbour or set integer to false"
                )
        if self.decimals is not None:
            self._check_decimals(self.decimals, max(map(abs, self.edges)))
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
            nearest = shortened(np.array(ends[:1]), ends, decimals)
            if np.round(nearest, decimals) != nearest:
                raise BadInputError(
                    f"{where}, but the bucket that starts at {number_text(ends[0])} holds no such "
                    "number; declare more of them, or merge it with a neighbour"
                )

    @property
    def places(self) -> int | None:
        """Decimals of the numbers that records draw: 0 of whole numbers; None if not said."""
        return 0 if self.integer else self.decimals

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
    def rules(self) -> tuple[Rule, ...]:
        """How values lie in each bucket."""
        return rules_of(self.where, self.within, self.bounds, self.integer)

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest value of each bucket."""
        if self.integer:
            firsts = [math.ceil(edge) for edge in self.edges]
            low, top = self.edges[-2:]
            last: Any = self.within[-1:] if isinstance(self.within, tuple) else ()
            named = last[0] if last and isinstance(last[0], tuple) else last
            one = len(self.edges) > 2 and top - low == 1 and low.is_integer() and top not in named
            ends = [first - 1 for first in firsts[1:-1]] + [math.floor(top) - one]
            return tuple((float(low), float(high)) for low, high in zip(firsts, ends, strict=False))
        *inner, outer = itertools.pairwise(self.edges)
        return (*((low, math.nextafter(high, low)) for low, high in inner), outer)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of the values of each bucket, by its rule: float64, shape ``(buckets,)``."""
        pairs = zip(self.rules, self.bounds, strict=True)
        return np.array([mean_of(*each, self.places) for each in pairs])

    def _drawn(
        self, buckets: NDArray[np.int64], generator: np.random.Generator, avoided: Sequence[float]
    ) -> NDArray[np.float64]:
        lows, highs = np.transpose(self.bounds)
        if np.array_equal(lows, highs):  # a bucket, a number: nothing is left to draw
            return np.asarray(lows[buckets])
        values = np.empty(len(buckets))
        order = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=self.buckets)
        for bucket, rows in enumerate(np.split(order, np.cumsum(counts)[:-1])):
            rule = self.rules[bucket]
            rule = kept(rule, avoided) if isinstance(rule, tuple) else rule
            values[rows] = drawn(rule, self.bounds[bucket], self.places, len(rows), generator)
        return values

    def _place(self, text: str) -> int | None:
        if ends := NUMBER_RANGE.fullmatch(text):
            # Each end as the schema has it or as labels show it.
            known = [{*each} for each in zip(self.edges, map(float, self.edge_texts), strict=True)]
            low, high = map(float, ends.groups())
            pairs = enumerate(itertools.pairwise(known))
            found = (place for place, (a, b) in pairs if low in a and high in b)
            return next((each for each in found if NUMBER_RANGE.fullmatch(self.labels[each])), None)
        if (number := finite_number(text)) is None or in_another_style(text, whole=self.integer):
            return None
        inside = self.edges[0] <= number <= self.bounds[-1][1]
        if not inside or (self.integer and not number.is_integer()):
            return None
        return min(int(np.searchsorted(self.edges, number, side="right")), self.buckets) - 1


def without_lists(within: Any) -> Any:
    """Return what a schema file says with tuples for its lists: a column can be hashed."""
    if isinstance(within, ExampleNumbers) or not isinstance(within, list | tuple):
        return within
    return tuple(map(without_lists, within))


def rules_of(where: str, within: object, bounds: Bounds, integer: bool) -> tuple[Rule, ...]:
    """Return the rule of each bucket of a column."""
    if isinstance(within, str):
        within = (within,) * len(bounds)
    if not isinstance(within, tuple) or len(within) != len(bounds):
        raise BadInputError(
            f"{where}: within is {within!r}; it is {' or '.join(SPREADS)}, or a list with a rule "
            f"for each of the {len(bounds)} buckets, which edges cut"
        )
    return tuple(_checked(where, *each, integer) for each in zip(within, bounds, strict=True))


def _checked(column: str, rule: object, ends: tuple[float, float], integer: bool) -> Rule:
    low, high = ends
    where = f"{column}, within, bucket from {low:g} to {high:g}"
    if isinstance(rule, str):
        if rule not in SPREADS:
            raise BadInputError(f"{where}: {rule!r} is none of {', '.join(SPREADS)}")
        if rule == "log-uniform" and low <= 0:
            raise BadInputError(f"{where}: log-uniform is for buckets above 0; use uniform")
        return rule
    values: Sequence[Any] = rule if isinstance(rule, tuple) else (rule,)
    if not values:
        raise BadInputError(f"{where}: the list of values is empty")
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high or (integer and not float(value).is_integer()):
            kind = "whole number" if integer else "number"
            raise BadInputError(f"{where}: {value!r} is no {kind} in the bucket")
    if isinstance(rule, ExampleNumbers):
        return rule
    return tuple(map(float, values)) if isinstance(rule, tuple) else float(values[0])


def drawn(
    rule: Rule,
    ends: tuple[float, float],
    places: int | None,
    count: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Return ``count`` values of a bucket in random order, with some decimal ``places``.

    One comes from each of ``count`` equal parts of the rule's distribution: their mean and
    quantiles are nearly the rule's.
    """
    levels = (generator.permutation(count) + generator.random(count)) / max(count, 1)
    if isinstance(rule, float):
        return np.full(count, rule)
    if isinstance(rule, tuple):
        return np.array(rule)[(levels * len(rule)).astype(np.int64)]
    low, top = ends[0], _top(ends, places)
    if logarithms := rule == "log-uniform":
        low, top = math.log(low), math.log(top)
    # Each end by its part: the distance of two huge ones may be infinite.
    values = (1.0 - levels) * low + levels * top
    # Cut off, not rounded: else the first number gets half a part, the last one one and a half.
    return shortened((np.exp(values) if logarithms else values) - _step(places) / 2, ends, places)


def kept(values: tuple[float, ...], avoided: Sequence[float]) -> tuple[float, ...]:
    """Return those of a bucket's listed numbers that are not avoided; all if all are."""
    return tuple(value for value in values if value not in avoided) or values


def shortened(
    values: NDArray[np.float64], ends: tuple[float, float], decimals: int | None = None
) -> NDArray[np.float64]:
    """Return values of a bucket rounded to some decimals, where it has any such number.

    None is for as many as cut it into a thousand parts or more.
    """
    length = ends[1] / 2 - ends[0] / 2
    if not length > 1e-290:  # too short for decimals
        return np.clip(values, *ends) + 0.0
    if decimals is None:
        decimals = 3 - math.floor(math.log10(length))
    found = np.round(values, decimals)
    # The end of a bucket is the next one's first value.
    found = np.where(found > ends[1], np.round(found - 10.0**-decimals, decimals), found)
    found = np.where(found < ends[0], np.round(found + 10.0**-decimals, decimals), found)
    fits = (ends[0] <= found) & (found <= ends[1])  # it need not: [0.95, 0.99] has no decimal
    return np.where(fits, found, np.clip(values, *ends)) + 0.0  # -0.03 is rounded to -0.0


def mean_of(rule: Rule, ends: tuple[float, float], places: int | None) -> float:
    """Return the mean of a bucket's values, as they are `drawn`."""
    if (values := listed(rule)) is not None:
        return math.fsum(values) / len(values)
    return _mean(rule, ends[0], _top(ends, places), _step(places))


def _mean(rule: Rule, low: float, top: float, step: float) -> float:
    if low == top:
        return low
    middle = low / 2 + top / 2
    if rule == "log-uniform":
        middle = (top - low) / math.log1p((top - low) / low)
    return max(low, middle - step / 2)  # what is drawn is cut off


def part_between(
    rule: Rule, ends: tuple[float, float], places: int | None, low: float, high: float
) -> tuple[float, float]:
    """Return which part of a bucket's values is in ``low <= x < high``, and the mean of these.

    ``ends``: its start, and what follows its last number. Without values the mean is the middle.
    """
    middle = low / 2 + high / 2
    if (values := listed(rule)) is not None:
        inside = [value for value in values if low <= value < high]
        return len(inside) / len(values), math.fsum(inside) / len(inside) if inside else middle
    start, low, high, stop = (
        each if places is None else _steps(each, places) / 10**places
        for each in (ends[0], low, high, ends[1])
    )
    mean = _mean(rule, low, high, _step(places)) if low < high else middle
    if rule != "log-uniform":
        return (high - low) / (stop - start), mean
    return math.log(high / low) / math.log(stop / start), mean


def quantile_of(rule: Rule, places: int | None, low: float, high: float, level: float) -> float:
    """Return the number below which a share, in [0, 1], of a part of a bucket's values lies.

    The part is ``low <= x <= high``. Of numbers with decimal ``places``, or listed, it is one.
    """
    if (values := listed(rule)) is not None:
        inside = sorted(value for value in values if low <= value <= high)
        if inside:
            return inside[min(max(math.ceil(level * len(inside)) - 1, 0), len(inside) - 1)]
    steps = range(0) if places is None else range(_steps(low, places), 1 - _steps(-high, places))
    first, top = (steps.start, steps.stop) if steps else (low, high)
    found = first + level * (top - first)
    if rule == "log-uniform":
        found = first * (top / first) ** level
    return min(math.floor(found), steps[-1]) / 10 ** (places or 0) if steps else min(found, high)


def listed(rule: Rule) -> tuple[float, ...] | None:
    """Return the values of a bucket as a list; None if they are spread."""
    if isinstance(rule, str):
        return None
    return rule if isinstance(rule, tuple) else (rule,)


def possible(rule: Rule) -> tuple[float, ...] | None:
    """Return the only values of a bucket; None if others are possible, too."""
    return None if isinstance(rule, ExampleNumbers) else listed(rule)


def _top(ends: tuple[float, float], places: int | None) -> float:
    """Return where a bucket ends, whose last number is as long as all others."""
    if places is None or round(ends[1], places) != ends[1]:
        return ends[1]
    return ends[1] + _step(places)


def _steps(number: float, places: int) -> int:
    """Return how many steps of some decimal places reach a number, as it is written."""
    return math.ceil(Decimal(repr(float(number))).scaleb(places))


def _step(places: int | None) -> float:
    """Return the distance of numbers with some decimal places; 0 if that is not said."""
    return 0.0 if places is None else 10.0**-places

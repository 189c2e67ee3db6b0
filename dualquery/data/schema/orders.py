"""Orders: rules that the number in one column is at most that in another.

Buckets of two columns may be together in a record if some of their values keep the order. The
values of a record are then drawn under that condition.

**Why pairs are enough.** Along a chain ``a <= b <= c`` the first value may be at most the last one,
so the orders are closed under chains. If every pair of the closure has values that keep its order,
then giving each column, in the order of the chains, the least of its values that is at least those
before it keeps all orders: for a column with neighbours on both sides whose values are an interval
that is the largest of the least values before it, which by the pairs is not beyond its own greatest
value. `Orders.of` refuses chains through other columns. Numbers that stand for a missing value may
leave a gap: each column's greatest value, but no more than the greatest ones of those behind it, is
then no such number, if none of these lies in a gap of a column before it; nor does `Orders.of` take
others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Binary, Categorical, Column, Numeric
from dualquery.data.schema.dates import CYCLES, Dates
from dualquery.data.schema.rules import Rule, unquoted
from dualquery.data.schema.within import Sample, another, kept, listed, shortened
from dualquery.runtime.errors import BadInputError

Float64: TypeAlias = NDArray[np.float64]

_NAME = r'"(?:[^"]|"")*"|[^"=!<>&()]+?'
_ORDER = re.compile(rf"\s*({_NAME})\s*(<=|<|>=|>)\s*({_NAME})\s*", re.DOTALL)

_MOST_PAIRS = 1 << 22
"""Of values of two columns that an order compares."""

_REDRAWS = 20
"""Times that values which break an order are drawn anew, before they are drawn one by one."""


@dataclass(frozen=True)
class Order:
    """The number in column ``less`` is at most that in column ``more``, or less if ``strict``."""

    less: int
    more: int
    strict: bool


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers that records may have in a column, for each of its values; NaN for no number."""

    low: Float64
    high: Float64
    interval: bool
    """Whether all numbers between (whole ones, if ``whole``) are possible, for each value; but for
    those that stand for a missing value."""
    whole: bool


def read_order(rule: Rule, names: Sequence[str]) -> tuple[str, str, bool] | None:
    """Return which column is at most which other one, and whether less; None for another rule."""
    found = _ORDER.fullmatch(rule) if isinstance(rule, str) else None
    if found is None:
        return None
    one, other = unquoted(found[1]), unquoted(found[3])
    if one not in names or other not in names:
        return None
    strict = len(found[2]) == 1
    return (one, other, strict) if found[2][0] == "<" else (other, one, strict)


@dataclass(frozen=True, eq=False)
class Orders:
    """The orders among the columns of a schema."""

    columns: tuple[Column, ...]
    given: tuple[Order, ...]
    avoided: tuple[Sequence[float], ...]

    @staticmethod
    def of(
        columns: Sequence[Column], rules: Sequence[Rule], avoided: Sequence[Sequence[float]]
    ) -> Orders:
        """Return the orders among rules.

        Parameters
        ----------
        columns
            Those of a schema.
        rules
            Its rules.
        avoided
            For each column, the numbers that stand for a missing value.

        Raises
        ------
        BadInputError
            If columns cannot be compared, orders go in a circle, or a chain of them leads through
            a column whose values may lack the one that is needed.
        """
        names = [column.name for column in columns]
        read = (read_order(rule, names) for rule in rules)
        found = tuple(
            Order(names.index(less), names.index(more), strict)
            for less, more, strict in filter(None, read)
        )
        orders = Orders(tuple(columns), found, tuple(avoided))
        if found:
            orders._check()
        return orders

    @cached_property
    def numbers(self) -> dict[int, Numbers]:
        """What the ordered columns may hold."""
        named = {place for order in self.given for place in (order.less, order.more)}
        return {
            place: _numbers(self.columns[place], self.avoided[place]) for place in sorted(named)
        }

    @cached_property
    def closed(self) -> tuple[Order, ...]:
        """The orders, and those that follow from chains of them."""
        strict = {(order.less, order.more): order.strict for order in self.given}
        for order in self.given:
            pair = order.less, order.more
            strict[pair] |= order.strict
        for middle in self.numbers:
            for (first, to), one in list(strict.items()):
                for (start, last), other in list(strict.items()):
                    if to == middle == start:
                        pair = first, last
                        strict[pair] = strict.get(pair, False) | one | other
        return tuple(Order(less, more, less_only) for (less, more), less_only in strict.items())

    def forbidden(self, order: Order) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Yield sets of values of both columns no pair of which has numbers that keep an order.

        Together they hold all such pairs.
        """
        low, high = self.numbers[order.less].low, self.numbers[order.more].high
        pairs = _beyond(low[:, None], high[None, :], strict=order.strict)
        # The higher a bucket ends, the fewer are beyond it.
        for beyond in np.unique(pairs, axis=1).T:
            together = pairs[beyond].all(axis=0)
            if beyond.any() and together.any():
                yield beyond, together

    def keep(
        self,
        codes: NDArray[np.int32],
        values: dict[int, Float64],
        draw: Callable[[int, NDArray[np.int64]], Float64],
        generator: np.random.Generator,
    ) -> None:
        """Draw values anew, in place, where they break an order: by their law, given the orders.

        Parameters
        ----------
        codes
            int32, shape ``(columns, r)``: the value of every column of the records.
        values
            The numbers of the ordered columns, ``(r,)`` each; NaN for none.
        draw
            Draws numbers of a column anew, for some records.
        generator
            Public.
        """
        rows = self._broken(values, np.arange(codes.shape[1]))
        for _ in range(_REDRAWS):
            if not len(rows):
                return
            for place in values:
                values[place][rows] = draw(place, rows)
            rows = self._broken(values, rows)
        if len(rows):
            self._settle(codes, values, rows, generator)

    def _broken(self, values: dict[int, Float64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        broken = np.zeros(len(rows), bool)
        for order in self.given:
            less, more = values[order.less][rows], values[order.more][rows]
            broken |= _beyond(less, more, strict=order.strict)
        return rows[broken]

    def _settle(
        self,
        codes: NDArray[np.int32],
        values: dict[int, Float64],
        rows: NDArray[np.int64],
        generator: np.random.Generator,
    ) -> None:
        """Draw values that keep the orders, one column after the other."""
        most: dict[int, Float64] = {}
        for place in reversed(self._sorted):
            known = self.numbers[place]
            top = known.high[codes[place, rows]]
            for order in self.given:
                if order.less == place:
                    top = np.fmin(top, self._stepped(place, most[order.more], order.strict, -1))
            most[place] = np.floor(top) if known.whole else top
        for place in self._sorted:
            known = self.numbers[place]
            bottom = known.low[codes[place, rows]]
            for order in self.given:
                if order.more == place:
                    before = values[order.less][rows]
                    bottom = np.fmax(bottom, self._stepped(place, before, order.strict, 1))
            for row, low, high in zip(rows.tolist(), bottom, most[place], strict=True):
                # Of a record that breaks the rules some numbers cannot be put in order.
                if not math.isnan(values[place][row]) and low <= high:
                    found = self._between(place, int(codes[place, row]), low, high, generator)
                    if found in self.avoided[place]:
                        # The number before it in the order need not be whole.
                        ends = (math.ceil(low), math.floor(high)) if known.whole else (low, high)
                        found = another(ends, known.whole, self.avoided[place])
                    values[place][row] = found

    def _stepped(self, place: int, values: Float64, strict: bool, sign: int) -> Float64:
        if not strict:
            return values
        if self.numbers[place].whole:
            return np.floor(values) + 1 if sign > 0 else np.ceil(values) - 1
        return np.nextafter(values, sign * np.inf)

    def _between(
        self, place: int, value: int, low: float, high: float, generator: np.random.Generator
    ) -> float:
        """Return a number of a value, from ``low`` to ``high``."""
        column = self.columns[place]
        if not isinstance(column, Numeric | Dates):
            return low
        rule = column.rules[value] if isinstance(column, Numeric) else "uniform"
        if isinstance(rule, float):
            return rule
        if isinstance(rule, tuple):
            inside = [each for each in kept(rule, self.avoided[place]) if low <= each <= high]
            if inside:
                return float(generator.choice(inside))
        if self.numbers[place].whole:
            return float(generator.integers(math.ceil(low), math.floor(high) + 1))
        found = np.clip(low + generator.random(1) * (high - low), low, high)
        decimals = column.decimals if isinstance(column, Numeric) else None
        short = shortened(found, (low, high), decimals)
        if decimals is not None and np.round(short, decimals) != short:
            short = shortened(found, (low, high))  # the order leaves no number of so many
        return float(short[0])

    @cached_property
    def _sorted(self) -> tuple[int, ...]:
        """The ordered columns, each behind those that are at most it."""
        before = dict.fromkeys(self.numbers, 0)
        for order in self.closed:
            before[order.more] += 1
        return tuple(sorted(before, key=lambda place: before[place]))

    def _check(self) -> None:
        names = [column.name for column in self.columns]
        for order in self.closed:
            if order.less == order.more:
                raise BadInputError(
                    f"schema: the orders of column {names[order.less]!r} go in a circle; of "
                    "columns that are always equal, keep one"
                )
        for order in self.closed:
            one, other = (self.columns[place].bits for place in (order.less, order.more))
            if one * other > _MOST_PAIRS:
                raise BadInputError(
                    f"schema: an order of columns {names[order.less]!r} and {names[order.more]!r} "
                    f"compares {one:,} values with {other:,}; at most {_MOST_PAIRS:,} pairs are "
                    "possible: take fewer buckets"
                )
        for order in self.given:
            dated = [isinstance(self.columns[p], Dates) for p in (order.less, order.more)]
            if any(dated) and not _same_periods(self.columns[order.less], self.columns[order.more]):
                raise BadInputError(
                    f"schema: columns {names[order.less]!r} and {names[order.more]!r} stand in an "
                    "order; dates are compared with dates in buckets of the same period"
                )
        less = {order.less for order in self.given}
        for order in self.given:
            if order.more in less:
                self._check_middle(order.more)

    def _check_middle(self, place: int) -> None:
        """Refuse a column between two others unless its values are intervals without gaps."""
        around = [o for o in self.given if place in (o.less, o.more)]
        known, name = self.numbers[place], self.columns[place].name
        closed = {p for o in self.closed if place in (o.less, o.more) for p in (o.less, o.more)}
        mixed = known.whole and not all(self.numbers[p].whole for p in closed)
        if not known.interval or mixed or any(order.strict for order in around):
            raise BadInputError(
                f"schema: column {name!r} stands between others in a chain of orders; there it "
                "needs <= (not <), buckets without listed values, and whole numbers only if all "
                "columns of the chain have them"
            )
        gaps = [
            number
            for number in self.avoided[place]
            if ((known.low < number) & (number < known.high)).any()
        ]
        for order in self.closed:
            after = self.columns[order.more]
            ending = np.isin(self.numbers[order.more].high, gaps)
            if order.less == place and ending.any():
                bucket = after.labels[int(ending.argmax())]
                raise BadInputError(
                    f"schema: column {name!r} stands between others in a chain of orders; its "
                    f"missing_values have the last number or day of {bucket} of column "
                    f"{after.name!r}, which some records would need in {name!r}: move an edge of "
                    "one of the two, or take an order out"
                )


def _beyond(less: Float64, more: Float64, *, strict: bool) -> NDArray[np.bool_]:
    """Return where an order does not hold; it holds where there is no number."""
    found: NDArray[np.bool_] = less >= more if strict else less > more
    return found


def _same_periods(one: Column, other: Column) -> bool:
    return isinstance(one, Dates) and isinstance(other, Dates) and one.by == other.by


def _numbers(column: Column, avoided: Sequence[float]) -> Numbers:
    if isinstance(column, Dates) and column.by in CYCLES:
        raise BadInputError(
            f"schema: column {column.name!r} stands in an order, but its buckets by {column.by} "
            "come again and again; name columns by year, quarter, month or day"
        )
    if not isinstance(column, Numeric | Dates):
        return _of_texts(column)
    whole = isinstance(column, Dates) or column.integer
    rules = column.rules if isinstance(column, Numeric) else ()
    low, high = _intervals(column, avoided, whole=whole)
    lists = [None if isinstance(rule, Sample) else listed(rule) for rule in rules]
    for bucket, values in enumerate(lists):
        if values is not None:
            low[bucket], high[bucket] = min(kept(values, avoided)), max(kept(values, avoided))
    return Numbers(low, high, interval=not any(lists), whole=whole)


def _intervals(
    column: Numeric | Dates, avoided: Sequence[float], *, whole: bool
) -> tuple[Float64, Float64]:
    """Return the ends of buckets, NaN for the missing category."""
    bounds = np.array(column.bounds, np.float64)
    low, high = bounds if isinstance(column, Dates) else bounds.T
    for _ in avoided:
        after, before = np.nextafter(low, high), np.nextafter(high, low)
        low = np.where(np.isin(low, avoided), low + 1 if whole else after, low)
        high = np.where(np.isin(high, avoided), high - 1 if whole else before, high)
    none = [math.nan] * (column.bits - column.buckets)
    return np.array([*low, *none]), np.array([*high, *none])


def _of_texts(column: Binary | Categorical) -> Numbers:
    texts = (
        [column.zero, column.one]
        if isinstance(column, Binary)
        else [merged[0] for merged in column.values]
    )
    try:
        found = list(map(float, texts))
    except ValueError:
        raise BadInputError(
            f"schema: column {column.name!r} stands in an order, but holds texts, such as "
            f"{texts[0]!r}; an order needs numbers or dates. A numeric column with such texts in "
            '"missing_values" and "missing": "category" can stand in one'
        ) from None
    numbers = np.array([*found, *[math.nan] * (max(column.bits, 2) - len(found))])
    return Numbers(numbers, numbers, interval=False, whole=all(each.is_integer() for each in found))

"""Rules between columns as a schema holds them, and the orders of two columns. Public.

What another text means is for `dualquery.rules.reading` to say. Buckets of two columns may be
together in a record if some of their values keep the order; its values are drawn under that
condition. Pairs are enough: if every pair of the orders, closed under chains, has values that keep
its order, then giving each column, along the chains, the least of its values that is at least those
before it keeps all. A column between two others needs values without gaps (see `Orders.of`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Column
from dualquery.data.schema.dates import CYCLES
from dualquery.data.schema.numbers import finite_number
from dualquery.data.schema.numeric import Buckets, Numeric, kept, listed, possible, shortened
from dualquery.runtime.errors import BadInputError

MOST_RULES = 10_000  # of a schema

_FOLLOWS = re.compile(r"\s*+(.*?)(?<!\s)\s++follows\s++from\s++(.*?)(?<!\s)\s*+", re.I | re.S)
_FORM = (
    'a rule is a text, such as "age<15 => marital=never", or {"rule": "region follows from '
    'district", "mapping": {"a district": "its region"}}'
)

Float64: TypeAlias = NDArray[np.float64]

_NAME = r'"(?:[^"]|"")*"|[^"=!<>&()]+?'  # below, blanks are matched once: else n take n^3 steps
_ORDER = re.compile(rf"\s*+({_NAME})(?<!\s)\s*+(<=|<|>=|>)\s*+({_NAME})(?<!\s)\s*+", re.S)

_MOST_PAIRS = 1 << 22  # of values of two columns that an order compares

_MOST_CHAINS = 256  # of orders between two columns, through such as may be missing
_REDRAWS = 20  # times that values which break an order are drawn anew, before they are moved


@dataclass(frozen=True)
class Follows:
    """The value of a column is a public function of the ``source`` column's.

    ``mapping`` has the column's only value that one of the source allows; others allow all.
    """

    column: str
    source: str
    mapping: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        names = self.column, self.source  # reading takes quotation marks away
        both = (x if unquoted(x.strip()) == x else '"' + x.replace('"', '""') + '"' for x in names)
        return " follows from ".join(both)


Rule: TypeAlias = str | Follows


def rules_from(stored: object) -> tuple[Rule, ...]:
    """Return the rules that a schema file lists."""
    if not isinstance(stored, list | tuple):
        raise BadInputError(f"schema: rules is {stored!r}; it is a list: {_FORM}")
    if len(stored) > MOST_RULES:
        raise BadInputError(f"schema: {len(stored):,} rules; at most {MOST_RULES:,} are read")
    return tuple(_rule(number, each) for number, each in enumerate(stored, 1))


def rules_entry(rules: Sequence[Rule]) -> dict[str, object]:
    """Return the entry of a schema file for rules: none if there are none."""
    stored = [
        each if isinstance(each, str) else {"rule": str(each), "mapping": dict(each.mapping)}
        for each in rules
    ]
    return {"rules": stored} if stored else {}


def _rule(number: int, stored: Any) -> Rule:
    where = f"schema, rule {number}"
    if isinstance(stored, str):
        if _follows(stored) is not None:
            raise BadInputError(
                f"{where} ({stored!r}): which value follows from which? Write "
                f'{{"rule": "{stored}", "mapping": {{...}}}}'
            )
        return stored
    mapping = stored.get("mapping") if isinstance(stored, Mapping) else None
    follows = _follows(stored.get("rule")) if isinstance(stored, Mapping) else None
    if follows is None or not isinstance(mapping, Mapping) or not mapping or len(stored) > 2:
        raise BadInputError(f"{where} is {stored!r}; {_FORM}")
    for value in mapping.values():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise BadInputError(f"{where}: the mapping holds {value!r}, which is not a text")
    return Follows(*follows, tuple((str(key), str(value)) for key, value in mapping.items()))


def _follows(text: object) -> tuple[str, str] | None:
    """Return the names in ``column follows from source``; None for another text."""
    found = _FOLLOWS.fullmatch(text) if isinstance(text, str) else None
    return None if not found or "=>" in found[0] else (unquoted(found[1]), unquoted(found[2]))


def unquoted(name: str) -> str:
    """Return a name without the quotation marks around it."""
    return name[1:-1].replace('""', '"') if len(name) >= 2 and name[0] == name[-1] == '"' else name


@dataclass(frozen=True)
class Order:
    """The number in column ``less`` is at most that in column ``more``, or less if ``strict``."""

    less: int
    more: int
    strict: bool
    through: frozenset[int] = frozenset()  # of a chain, it holds where these have a number

    def broken(self, less: Float64, more: Float64) -> NDArray[np.bool_]:
        """Return where the order does not hold; it holds where there is no number."""
        return np.asarray(less >= more if self.strict else less > more)


@dataclass(frozen=True, eq=False)
class AllowedNumbers:
    """The numbers that records may have in a column, for each of its values; NaN for no number."""

    low: Float64
    high: Float64
    interval: bool  # whether all numbers between (whole ones, if ``whole``) are possible
    whole: bool


def read_order(rule: Rule, names: Sequence[str]) -> tuple[str, str, bool] | None:
    """Return which column is at most which other one, and whether less; None for another rule."""
    if not isinstance(rule, str) or (found := _ORDER.fullmatch(rule)) is None:
        return None
    one, other = unquoted(found[1]), unquoted(found[3])
    if one not in names or other not in names:
        return None
    less, more = (one, other) if found[2][0] == "<" else (other, one)
    return less, more, len(found[2]) == 1


@dataclass(frozen=True, eq=False)
class Orders:
    """The orders among columns; ``avoided`` has each one's numbers that stand for missing ones."""

    columns: tuple[Column, ...]
    given: tuple[Order, ...]
    avoided: tuple[Sequence[float], ...]

    def __post_init__(self) -> None:
        for order in self.closed:
            less, more = self.columns[order.less], self.columns[order.more]
            both = f"columns {less.name!r} and {more.name!r}"
            if order.less == order.more:
                raise BadInputError(
                    f"schema: the orders of column {less.name!r} go in a circle; of columns that "
                    "are always equal, keep one"
                )
            if less.bits * more.bits > _MOST_PAIRS:
                raise BadInputError(
                    f"schema: an order of {both} compares {less.bits:,} values with {more.bits:,}; "
                    f"at most {_MOST_PAIRS:,} pairs are possible: take fewer buckets"
                )
            if getattr(less, "by", None) != getattr(more, "by", None):
                raise BadInputError(
                    f"schema: {both} stand in an order; dates are compared with dates in buckets "
                    "of the same period"
                )
            low, high = self.numbers[order.less].low, self.numbers[order.more].high
            below, above = (getattr(each, "outside", "") == "clip" for each in (less, more))
            off = below and order.broken(np.nanmin(low, keepdims=True), high).any()
            if off or (above and order.broken(low, np.nanmax(high, keepdims=True)).any()):
                raise BadInputError(
                    f"schema: {both} stand in an order that is lost where numbers beyond the edges "
                    "count in the outermost buckets; give both the same edges, and take <="
                )
        for middle in {order.less for order in self.given} & {order.more for order in self.given}:
            self._check_middle(middle)

    @staticmethod
    def of(
        columns: Sequence[Column], rules: Sequence[Rule], avoided: Sequence[Sequence[float]]
    ) -> Orders:
        """Return the orders among rules; refuse columns that cannot be compared, and circles."""
        names = [column.name for column in columns]
        read = filter(None, (read_order(rule, names) for rule in rules))
        found = tuple(Order(names.index(a), names.index(b), strict) for a, b, strict in read)
        return Orders(tuple(columns), found, tuple(avoided))

    @cached_property
    def numbers(self) -> dict[int, AllowedNumbers]:
        """What the ordered columns may hold."""
        named = sorted({place for order in self.given for place in (order.less, order.more)})
        return {place: _numbers(self.columns[place], self.avoided[place]) for place in named}

    @cached_property
    def closed(self) -> tuple[Order, ...]:
        """The orders, and those that follow from chains of them."""
        strict = {(o.less, o.more): o.strict for o in sorted(self.given, key=lambda o: o.strict)}
        # Of chains of the same two columns those that need the fewest numbers say all.
        chains = {pair: [frozenset[int]()] for pair in strict}
        lacking = {place for place, known in self.numbers.items() if np.isnan(known.low).any()}
        for middle in sorted(self.numbers, key=lambda place: place in lacking):
            found = [(*pair, each) for pair, own in chains.items() for each in own]
            before = [(first, each) for first, to, each in found if to == middle]
            behind = [(last, each) for start, last, each in found if start == middle]
            for (first, one), (last, other) in itertools.product(before, behind):
                through = one | other | ({middle} & lacking)
                own = chains.get((first, last), [])
                if not any(each <= through for each in own):
                    chains[first, last] = [*(x for x in own if not through <= x), through]
                if len(own) >= _MOST_CHAINS:
                    both = f"columns {self.columns[first].name!r} and {self.columns[last].name!r}"
                    raise BadInputError(f"schema: too many chains of orders between {both}")
        # `_check_middle` refuses chains of strict ones.
        return tuple(Order(*at, strict.get(at, False), by) for at in chains for by in chains[at])

    def forbidden(self, order: Order) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Yield sets of values of both columns; no pair of theirs has numbers that keep an order.

        Together they hold all such pairs.
        """
        low, high = self.numbers[order.less].low, self.numbers[order.more].high
        pairs = order.broken(low[:, None], high[None, :])
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
    ) -> None:
        """Draw values anew, in place, where they break an order; move what still breaks one.

        ``codes``, int32 of shape ``(columns, r)``, has the value of every column of the records,
        ``values`` the numbers of the ordered columns, NaN for none; ``draw`` draws some anew.
        """
        rows = self._broken(values, np.arange(codes.shape[1]))
        for _ in range(_REDRAWS):
            for place in values if len(rows) else ():
                values[place][rows] = draw(place, rows)
            rows = self._broken(values, rows)
        given, most = self.given, dict[int, Float64]()
        # A number off the grid of its decimals may leave none on it beyond: it is the last resort.
        for on_grid in (True, False):
            for at in reversed(self._sorted):
                high = self.numbers[at].high[codes[at, rows]]
                above = [self._stepped(o, most[o.more], -1) for o in given if o.less == at]
                top = np.where(np.isnan(high), math.nan, reduce(np.fmin, above, high))
                if decimals := on_grid and getattr(self.columns[at], "decimals", None):
                    ends = zip(self.numbers[at].low[codes[at, rows]], top, strict=True)
                    top = np.array([shortened(np.array(e[1:]), e, decimals)[0] for e in ends])
                most[at] = np.floor(top) if self.numbers[at].whole else top
            for at in self._sorted:
                below = [self._stepped(o, values[o.less][rows], 1) for o in given if o.more == at]
                bottom = reduce(np.fmax, below, self.numbers[at].low[codes[at, rows]])
                bottom = np.ceil(bottom) if self.numbers[at].whole else bottom
                for row, low, high in zip(rows.tolist(), bottom, most[at], strict=True):
                    bucket, wished = int(codes[at, row]), values[at][row]
                    # Of a record that breaks the rules some numbers cannot be put in order.
                    if low <= high and not math.isnan(wished):
                        values[at][row] = self._nearest(at, bucket, wished, low, high)
            rows = self._broken(values, rows)

    def _broken(self, values: dict[int, Float64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        broken = np.zeros(len(rows), bool)
        for order in self.given:
            broken |= order.broken(values[order.less][rows], values[order.more][rows])
        return rows[broken]

    def _stepped(self, order: Order, values: Float64, sign: int) -> Float64:
        """Return the next possible numbers of an order's other column, above or below some."""
        if not order.strict:
            return values
        if self.numbers[order.more if sign > 0 else order.less].whole:
            return sign * (np.floor(sign * values) + 1)
        return np.nextafter(values, sign * np.inf)

    def _nearest(self, place: int, bucket: int, wished: float, low: float, high: float) -> float:
        """Return the number of a bucket next to a wished one, from ``low`` to ``high``."""
        column, avoided = self.columns[place], self.avoided[place]
        found = min(max(wished, low), high)
        if isinstance(column, Buckets):
            values = kept(listed(column.rules[bucket]) or (), avoided)
            if inside := [value for value in values if low <= value <= high]:
                return min(inside, key=lambda value: abs(value - wished))
            if isinstance(column, Numeric) and not column.integer:
                found = float(shortened(np.array([found]), (low, high), column.decimals)[0])
            return column.another(found, (low, high), avoided) if found in avoided else found
        return found

    @cached_property
    def _sorted(self) -> tuple[int, ...]:
        """The ordered columns, each behind those that are at most it."""
        pairs = {(order.less, order.more) for order in self.closed}
        return tuple(sorted(self.numbers, key=[more for _, more in pairs].count))

    def _check_middle(self, place: int) -> None:
        """Refuse a column between two others unless its values are intervals without gaps."""
        known = self.numbers[place]
        strict = any(o.strict for o in self.given if place in (o.less, o.more))
        chain = {p for o in self.closed if place in (o.less, o.more) for p in (o.less, o.more)}
        mixed = known.whole and not all(self.numbers[p].whole for p in chain)
        gaps = any(((known.low < each) & (each < known.high)).any() for each in self.avoided[place])
        if not known.interval or mixed or strict or gaps:
            raise BadInputError(
                f"schema: column {self.columns[place].name!r} stands between others in a chain of "
                "orders; there it needs <= (not <), buckets without listed values or "
                "missing_values inside them, and whole numbers only if all columns of the chain "
                "have them"
            )


def _numbers(column: Column, avoided: Sequence[float]) -> AllowedNumbers:
    """Return the numbers that rows may have in a column: lists only say how values lie."""
    where = f"schema: column {column.name!r} stands in an order, but"
    if getattr(column, "by", None) in CYCLES:
        raise BadInputError(
            f"{where} its buckets by its period come again and again; name columns by year, "
            "quarter, month or day"
        )
    own = np.append(column.means, np.full(len(column.extra_labels), math.nan))
    if not isinstance(column, Buckets):
        if np.isnan(column.means).any():
            text = next(each for each in column.texts if finite_number(each) is None)
            raise BadInputError(
                f"{where} holds texts, such as {text!r}; an order needs numbers or dates. A "
                'numeric column with such texts in "missing_values" and "missing": "category" can '
                "stand in one"
            )
        if merged := [text for text, at in column.codes.items() if finite_number(text) != own[at]]:
            raise BadInputError(f"{where} merges {merged[0]!r}")
        return AllowedNumbers(own, own, interval=False, whole=not np.any(column.means % 1))
    low, high = np.array(getattr(column, "spans", column.bounds), np.float64).T
    whole = column.whole
    for _ in avoided:
        after, before = np.nextafter(low, high), np.nextafter(high, low)
        low = np.where(np.isin(low, avoided), low + 1 if whole else after, low)
        high = np.where(np.isin(high, avoided), high - 1 if whole else before, high)
    ends = np.append(low, own[len(low) :]), np.append(high, own[len(low) :])
    return AllowedNumbers(*ends, interval=not any(map(possible, column.rules)), whole=whole)

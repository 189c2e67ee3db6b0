"""What literals say of a column: which of its values, and which parts of its buckets.

A value is a position on the column's axis: 0 and 1 of a binary column, the bits of any other. The
ends of ranges may cut a bucket into *pieces*, which hold a part of its numbers. Numbers lie in a
bucket as its schema says (`dualquery.data.schema.numeric`). For numbers beyond the outer edges see
`dualquery.questions.remarks`.
"""

import itertools
import math
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualquery.data.schema.columns import Binary, Column
from dualquery.data.schema.dates import Dates
from dualquery.data.schema.numbers import (
    NUMBER_RANGE,
    exact_number,
    finite_number,
    in_another_style,
)
from dualquery.data.schema.numeric import Numeric, part_between
from dualquery.questions.syntax_tree import Among, Between, Comparison, Flag, Literals
from dualquery.runtime.errors import BadInputError

Float64: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """Numbers ``low <= x < high``; for a column of whole numbers both are whole, or infinite.

    Of dates, the places of periods.
    """

    low: float
    high: float


_CODE = re.compile(r"[-+]?0\d")  # how numbers begin that are codes

Allowed: TypeAlias = frozenset[int] | tuple[Span, ...]  # some values, or ranges


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a column's values that a question tells apart, in the order of the values."""

    value: NDArray[np.int64]  # the value that each is a part of
    part: Float64  # in [0, 1]: which part of it; those of a value add up to 1
    low: Float64  # the least number in it; NaN, as the next two, where there are no numbers
    mean: Float64
    high: Float64
    # Where it begins on the axis that ranges are of: ``low``, but for dates, and for numbers beyond
    # the edges, whose ``low``, ``mean`` and ``high`` are the edge.
    begins: Float64

    @property
    def every(self) -> int:
        """All pieces, as the bits of a whole number."""
        return (1 << len(self.value)) - 1

    @property
    def numbered(self) -> int:
        """The pieces that are numbers: all but missing and undeclared values."""
        return _as_bits(np.isfinite(self.mean))

    def of(self, allowed: Allowed) -> int:
        """Return the pieces that a literal allows, as the bits of a whole number.

        The ends of a range must be among the cuts that the pieces were made with.
        """
        if isinstance(allowed, frozenset):
            return _as_bits(np.isin(self.value, list(allowed)))
        inside = np.zeros(len(self.value), bool)
        for span in allowed:
            inside |= (span.low <= self.begins) & (self.begins < span.high)
        return _as_bits(inside)

    def weights(
        self, pieces: int, worth: tuple[Float64, Float64, Float64] | None = None
    ) -> Float64:
        """Return each value's least, likely and largest weight: float64, shape ``(3, values)``.

        Of the allowed pieces, by the least, likely and largest worth of each; None for 1.
        """
        allowed = np.array([pieces >> i & 1 for i in range(len(self.value))], bool)
        one = np.ones(len(allowed))
        least, likely, most = (np.where(allowed, each, 0.0) for each in worth or (one, one, one))
        size = int(self.value[-1]) + 1
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        # A row of this value lies in one of its pieces, and is worth nothing in one not allowed.
        np.minimum.at(low, self.value, least)
        np.maximum.at(high, self.value, most)
        return np.stack((low, np.bincount(self.value, self.part * likely, size), high))


def pieces_of(column: Column, literals: Iterable[Allowed]) -> Pieces:
    """Return the pieces that tell apart what literals allow of a column."""
    if isinstance(column, Dates):
        places = np.arange(column.bits)
        no_number = np.full(column.bits, np.nan)
        begins = np.where(places < column.buckets, places, np.nan)
        return Pieces(places, np.ones(column.bits), no_number, no_number, no_number, begins)
    if not isinstance(column, Numeric):
        numbers = _text_numbers(column) or np.full((3, values_of(column)), np.nan)
        low, mean, high = np.array(numbers, np.float64)
        return Pieces(np.arange(len(low)), np.ones(len(low)), low, mean, high, low)
    spans = [span for each in literals if isinstance(each, tuple) for span in each]
    cuts = sorted({end for span in spans for end in (span.low, span.high)})
    found: list[tuple[float, ...]] = []
    for bucket, (start, stop) in enumerate(_buckets(column)):
        ends = (start, *(cut for cut in cuts if start < cut < stop), stop)
        for low_end, high_end in itertools.pairwise(ends):
            last = high_end - 1 if column.integer else min(high_end, column.edges[-1])
            part, middle = 1.0, float(column.means[bucket])
            if len(ends) > 2:
                rule, whole = column.rules[bucket], (start, stop)
                part, middle = part_between(rule, whole, column.places, low_end, high_end)
            found.append((bucket, part, low_end, middle, last))
    beyond = range(column.buckets, column.bits)
    found += [(bit, 1.0, math.nan, math.nan, math.nan) for bit in beyond]
    value, parts, lows, means, highs = (
        np.array(each, np.float64) for each in zip(*found, strict=True)
    )
    return Pieces(value.astype(np.int64), parts, lows, means, highs, lows)


def values_of(column: Column) -> int:
    """Return the number of values of a column: 2 if binary, else one a bit."""
    return max(column.bits, 2)


def allowed_by(literal: Literals, column: Column) -> Allowed:
    """Return what a literal allows of its column.

    Raises
    ------
    BadInputError
        If the column has no such value, or not the order that a range needs.
    """
    match literal:
        case Flag():
            if not isinstance(column, Binary):
                raise BadInputError(
                    f"column {column.name!r} needs a value, such as "
                    f"{column.name}={column.labels[0]}"
                )
            return frozenset((1,))
        case Among(_, texts):
            parts = [_equal(column, text) for text in texts]
            values = frozenset().union(*(each for each in parts if isinstance(each, frozenset)))
            spans = [span for each in parts if isinstance(each, tuple) for span in each]
            if spans and isinstance(column, Numeric | Dates):
                return (*spans, *_as_spans(column, values))
            return values
        case Between(_, low, high):
            return _between(column, low, high)
        case Comparison(_, "=", text):
            return _equal(column, text)
        case Comparison(_, "!=", text):
            found = _equal(column, text)
            if isinstance(found, frozenset):
                return frozenset(range(values_of(column))) - found
            raise BadInputError(
                f"column {column.name!r}: {text!r} is a range; write not {column.name}={text}"
            )
        case Comparison(_, relation, text):
            return _ordered(column, relation, _number(column, text, relation))


def _require_numbers(column: Column, what: str) -> None:
    if isinstance(column, Dates):
        raise BadInputError(
            f"column {column.name!r} holds dates, so it has no {what} here; ask for the shares of "
            "its periods"
        )
    if not isinstance(column, Numeric) and _text_numbers(column) is None:
        shown = next(text for text in column.codes if finite_number(text) is None)
        raise BadInputError(
            f"column {column.name!r} holds texts, such as {shown!r}, so it has no {what}; ask for "
            "the shares of its values, with = or in"
        )


def require_amounts(column: Column, what: str) -> None:
    """Refuse means and the like of a column of texts, or of codes such as ``01067``.

    Raises
    ------
    BadInputError
        If values of the column are no numbers, or one is written with zeros before it.
    """
    _require_numbers(column, what)
    code = next((text for text in column.codes if _CODE.match(text.strip())), None)
    if code is not None:
        raise BadInputError(
            f"column {column.name!r} holds codes, such as {code!r}, whose zeros in front say that "
            f"they are no amounts, so it has no {what}; ask for the shares of its values, with = "
            "or in"
        )


def _equal(column: Column, text: str) -> Allowed:
    """Return what ``column=text`` means: a value, or else a range with both ends inside."""
    try:
        bit, negated = column.find_bit(text)
    except BadInputError:
        if isinstance(column, Dates) and (places := _places_within(column, text)):
            return (Span(places[0], places[1] + 1),)
        ends = NUMBER_RANGE.fullmatch(text)
        if ends is None or not isinstance(column, Numeric):
            raise
        return _between(column, ends[1], ends[2])
    return frozenset((int(not negated) if isinstance(column, Binary) else bit,))


def _between(column: Column, low: str, high: str) -> Allowed:
    first, last = _number(column, low, ">="), _number(column, high, "<=")
    if first > last:
        before = "earlier date" if isinstance(column, Dates) else "smaller number"
        raise BadInputError(
            f"column {column.name!r}: nothing lies between {low} and {high}; write the {before} "
            "first"
        )
    above, below = _ordered(column, ">=", first), _ordered(column, "<=", last)
    if isinstance(above, tuple) and isinstance(below, tuple):
        return (Span(above[0].low, below[0].high),)
    assert isinstance(above, frozenset)
    assert isinstance(below, frozenset)
    return above & below


def _ordered(column: Column, relation: str, number: Any) -> Allowed:
    """Return the numbers before or behind a number; of dates, periods by their place."""
    if isinstance(column, Numeric | Dates):
        at = number
        if isinstance(column, Dates) or column.integer:
            at = math.floor(number) + 1 if relation in ("<=", ">") else math.ceil(number)
        elif relation in ("<=", ">"):
            # The number itself is on the lower side: an edge is in the bucket above.
            at = math.nextafter(number, math.inf)
        return (Span(-math.inf, at) if relation in ("<", "<=") else Span(at, math.inf),)
    _require_numbers(column, "order")
    numbers = _text_numbers(column)
    assert numbers is not None
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[relation]
    ends = [np.array([compare(x, number) for x in each]) for each in (numbers[0], numbers[2])]
    if len(split := np.flatnonzero(ends[0] != ends[1])):
        raise BadInputError(
            f"column {column.name!r}: the merged category {column.labels[split[0]]!r} lies on both "
            f"sides of {float(number):g}"
        )
    return frozenset(np.flatnonzero(ends[0]).tolist())


def _as_spans(column: Numeric | Dates, values: Iterable[int]) -> Iterator[Span]:
    buckets = list(_buckets(column))
    for value in sorted(values):
        if value >= len(buckets):
            raise BadInputError(
                f"column {column.name!r}: ask for ranges and for missing values apart, joined by or"
            )
        start, stop = buckets[value]
        # A bucket has the numbers beyond the edges that are counted in it.
        yield Span(start if value else -math.inf, stop if value < column.buckets - 1 else math.inf)


def _buckets(column: Numeric | Dates) -> Iterator[tuple[float, float]]:
    """Return where each bucket starts and stops; of whole numbers, both are whole."""
    if isinstance(column, Dates):
        yield from itertools.pairwise(range(column.buckets + 1))
    elif column.integer:
        yield from ((int(first), int(last) + 1) for first, last in column.bounds)
    else:
        top = math.nextafter(column.edges[-1], math.inf)  # the last bucket holds its upper edge
        yield from itertools.pairwise((*column.edges[:-1], top))


def _text_numbers(column: Column) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None:
    """Return the least, mean and largest number of each value of texts; None if some has none."""
    # "(other)" and "(missing)" are NaN; whole numbers stay exact.
    numbers = np.full((3, values_of(column)), np.nan, object)
    for value, merged in enumerate(getattr(column, "values", ())):
        known: list[Any] = [exact_number(x) for x in merged if finite_number(x) is not None]
        if len(known) < len(merged):
            return None
        numbers[:, value] = min(known), math.fsum(known) / len(known), max(known)
    return numbers[0], numbers[1], numbers[2]


def _number(column: Column, text: str, relation: str) -> Any:
    """Return the number that a column is compared with; of dates, the place of the period."""
    if isinstance(column, Dates):
        return _place_of_end(column, text, relation)
    if other := in_another_style(text, whole=isinstance(column, Numeric) and column.integer):
        raise BadInputError(f"column {column.name!r}: {other}")
    if (found := finite_number(text)) is None:
        raise BadInputError(
            f"column {column.name!r} is compared with {text!r}, which is no number; a value that "
            "begins with < or > needs = before it"
        )
    return found if isinstance(column, Numeric) else exact_number(text)


def _as_bits(inside: NDArray[np.bool_]) -> int:
    return sum(1 << place for place in np.flatnonzero(inside).tolist())


# Periods, such as 2024 and 2024-03, are all of their days: ``day>=2024`` is from its first day on,
# ``day>2024`` behind its last. A range may begin or end where all dates do.


def _places_within(column: Dates, text: str) -> tuple[int, int] | None:
    """Return the first and the last place of a period, if the column has any of it; else None."""
    places = column.places_of_text(text)
    if places is None or places[0] >= column.buckets or places[1] < 0:
        return None
    return places


def _place_of_end(column: Dates, text: str, relation: str) -> int:
    """Return the place that a date or period is compared by."""
    places = column.places_of_text(text)
    behind = relation in ("<=", ">")
    if places is not None:
        # Where all places begin or end is a place to compare by, though it lies beside them.
        end = places[behind]
        beside = -1 if behind else column.buckets
        if column.outside == "clip" or end == beside or _places_within(column, text):
            return end
    column.find_bit(text)  # refuses all but labels of what is no date
    raise BadInputError(f"column {column.name!r} is compared with {text!r}, which is no date")


def end_of_period(column: Dates, text: str, relation: str) -> str:
    """Return the label of the place that a date or period is compared by.

    One beyond all places stays as it is written.
    """
    place = _place_of_end(column, text, relation)
    return column.labels[place] if 0 <= place < column.buckets else text

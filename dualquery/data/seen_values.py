"""What a pass over a table shows of one column: enough to draft it, and never much more."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np
import polars as pl

from dualquery.data.encode import can_become_bits, missing_mask, to_numbers
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.column_choice import ColumnChoice, select_columns
from dualquery.runtime.errors import BadInputError

MAX_CATEGORIES = 64
"""A column with more distinct values is numeric, or has its rare values merged."""

FEWEST_NAMES = 20
"""Values without a repetition that look like identifiers; fewer may differ by chance."""

MISSING_VALUES = ("",)

# A day written 2024-01-31, 31.1.2024, 1/31/24 or the like; a time may follow.
_DATE = re.compile(r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})(?!\d)")

_DIGITS = re.compile(r"([0-9]+)")


class TakesValues(Protocol):
    """What looks at one column, block by block."""

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block."""
        ...


T = TypeVar("T", bound=TakesValues)


def see_columns(
    source: TableSource, columns: ColumnChoice | None, look: Callable[[str], T]
) -> dict[str, T]:
    """Show every block of the chosen columns to what ``look`` makes for a column's name.

    Raises
    ------
    BadInputError
        If the table has no rows, or lacks a chosen column.
    """
    present = list(source.columns())
    names = present
    if columns is not None:
        names = [present[position] for position in select_columns(columns, present)]
    seen = {name: look(name) for name in names}
    empty = True
    for frame in source.frames(names):
        empty = empty and not frame.height
        for name in names:
            seen[name].add(frame[name])
    if empty:
        raise BadInputError(f"{source.label}: no rows below the header")
    return seen


@dataclass(frozen=True)
class _Look:
    """What the distinct values of a block show."""

    missing: bool
    texts: tuple[str, ...]
    words: tuple[str, ...]
    low: float
    high: float
    whole: bool


def _looked(values: pl.Series, missing_values: tuple[str, ...]) -> tuple[int, _Look]:
    """Return the number of distinct values of a block, and what they show."""
    kind = values.dtype
    if (kind == pl.Boolean or kind.is_integer()) and len(values) and not values.null_count():
        low, high = values.min(), values.max()
        if high - low <= 1:  # type: ignore[operator]  # numbers; most columns of wide tables
            return 1 + (low != high), _of_bits(kind, low, high, missing_values)  # type: ignore[arg-type]
    distinct = values.unique()
    return distinct.drop_nulls().len(), _look(distinct, missing_values)


@lru_cache
def _of_bits(kind: pl.DataType, low: int, high: int, missing_values: tuple[str, ...]) -> _Look:
    return _look(pl.Series([low, high], dtype=kind).unique(), missing_values)


def _look(distinct: pl.Series, missing_values: tuple[str, ...]) -> _Look:
    absent = missing_mask(distinct, missing_values)
    distinct = distinct.filter(pl.Series(~absent))
    numbers = to_numbers(distinct)
    finite = np.isfinite(numbers)
    found = numbers[finite]
    texts = texts_of(distinct)
    return _Look(
        bool(absent.any()),
        tuple(texts.head(MAX_CATEGORIES + 1)),
        tuple(texts.filter(pl.Series(~finite)).head(MAX_CATEGORIES + 1)),
        float(found.min(initial=math.inf)),
        float(found.max(initial=-math.inf)),
        bool(np.all(found == np.floor(found))),
    )


@dataclass
class SeenValues:
    """What has been seen of one column: never more than a few of its distinct values."""

    name: str
    missing_values: tuple[str, ...] = MISSING_VALUES
    refused: str | None = None
    texts: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    many: bool = False
    missing: bool = False
    rows: int = 0
    repeats: bool = False
    whole: bool = True
    boolean: bool = True
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block; of a column that is refused already, none."""
        if self.refused is not None:
            return
        if not can_become_bits(values):
            self.refused = f"type {values.dtype}, which cannot become bits"
            return
        self.boolean &= values.dtype == pl.Boolean
        filled = len(values) - values.null_count()
        self.rows += filled
        distinct, look = _looked(values, self.missing_values)
        self.repeats |= distinct < filled
        self.missing |= look.missing
        self.words.update(look.words)
        if len(self.words) > MAX_CATEGORIES:
            what = "values that are not numbers"
            if values.dtype in (pl.Date, pl.Datetime) or starts_with_a_day(self.words):
                what = "dates"
            self.refused = f"more than {MAX_CATEGORIES} distinct {what}"
            return
        if not self.many:
            self.texts.update(look.texts)
            self.many = len(self.texts) > MAX_CATEGORIES
        self.low = min(self.low, look.low)
        self.high = max(self.high, look.high)
        self.whole = self.whole and look.whole

    @property
    def integer(self) -> bool:
        """Whether the numbers are whole, and small enough to be kept as such: below 2^62."""
        return self.whole and max(abs(self.low), abs(self.high)) < 2.0**62

    def fault(self) -> str | None:
        """Return why no column can be drafted from the values, or None if one can."""
        if self.refused is None and self.many and self.low == self.high:
            return f"more than {MAX_CATEGORIES} distinct values, and only one number among them"
        return self.refused

    def identifies(self) -> bool:
        """Return whether the values look like names of rows: whole numbers or texts, none twice."""
        return not self.repeats and self.rows >= FEWEST_NAMES and (self.whole or bool(self.words))


def starts_with_a_day(texts: Iterable[str]) -> bool:
    """Return whether each text begins with a day such as 2024-01-31 or 31.1.24."""
    return all(map(_DATE.match, texts))


def texts_of(values: pl.Series) -> pl.Series:
    """Return values as texts, whole numbers without a point."""
    if values.dtype.is_float():
        whole = values.round().eq(values) & (values.abs() < 2.0**53)
        return values.cast(pl.String).zip_with(
            ~whole, values.cast(pl.Int64, strict=False).cast(pl.String)
        )
    return values.cast(pl.String)


def order_of_text(text: str) -> tuple[bool, float, list[str | tuple[int, str]], str]:
    """Return the key that sorts numbers by value and before words, and ``9th`` before ``10th``.

    No two texts have the same key: ``0`` comes before ``00``.
    """
    parts: list[str | tuple[int, str]] = [*_DIGITS.split(text)]
    for place in range(1, len(parts), 2):  # digits, as many as there may be: the longer is larger
        number = str(parts[place]).lstrip("0")
        parts[place] = len(number), number
    try:
        return False, float(text), parts, text
    except ValueError:
        return True, 0.0, parts, text

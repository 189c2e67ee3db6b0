"""What a pass over a table shows of a column of dates: how they are written, and their range."""

from __future__ import annotations

import datetime

import polars as pl

from dualquery.data.schema.moments import CLOCKS, read_moments

_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%m/%d/%y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")

_DIGITS = "%Y%m%d"
_CLOCK = "%H:%M:%S"
_CENTURIES = r"^(?:19|20)\d{6}$"

_SLIPS = 0.02
"""The part of the values that may be no dates, such as 31 February, where all others are."""

Range = tuple[datetime.datetime, datetime.datetime]


class SeenMoments:
    """Which ways of writing dates fit nearly all values so far, and the range that each gives."""

    def __init__(self) -> None:
        ways: list[str | None] = [None, *(day + time for day in _DAYS for time in _TIMES)]
        ways += [_DIGITS, *CLOCKS]
        self._ranges: dict[str | None, Range | None] = dict.fromkeys(ways)
        self._slips: dict[str | None, set[str]] = {way: set() for way in ways}
        self._missed: dict[str | None, int] = dict.fromkeys(ways, 0)
        self._count = 0

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block, without the missing ones."""
        if not self._ranges or not len(values):
            return
        if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
            self._ranges = {None: self._ranges.get(None)} if None in self._ranges else {}
        elif values.dtype == pl.Time:
            self._ranges = {_CLOCK: self._ranges.get(_CLOCK)} if _CLOCK in self._ranges else {}
            values = values.dt.strftime(_CLOCK)
        elif values.dtype.is_integer():
            self._ranges = {_DIGITS: self._ranges.get(_DIGITS)} if _DIGITS in self._ranges else {}
            values = values.cast(pl.String)
        elif values.dtype != pl.String:
            self._ranges = {}
        self._count += len(values)
        for pattern, known in list(self._ranges.items()):
            # A block of many values is parsed only if its first values are dates, but for one.
            if self._read(values.head(3), pattern).null_count() > 1:
                del self._ranges[pattern]
                continue
            read = self._read(values, pattern)
            self._missed[pattern] += read.null_count()
            if self._missed[pattern] > _SLIPS * self._count:
                del self._ranges[pattern]
                continue
            if read.has_nulls():
                self._slips[pattern].update(values.filter(read.is_null()).head(3))
            low, high = read.min(), read.max()
            assert isinstance(low, datetime.datetime)
            assert isinstance(high, datetime.datetime)
            self._ranges[pattern] = (
                (low, high) if known is None else (min(low, known[0]), max(high, known[1]))
            )

    @property
    def several(self) -> bool:
        """Whether more than one way of writing fits as well."""
        return [self._missed[way] for way in self._ranges].count(self._fewest) > 1

    @property
    def slips(self) -> list[str]:
        """Some values that are no dates, where the others are."""
        found = self.found()
        return [] if found is None else sorted(self._slips[found[0]])[:3]

    @property
    def _fewest(self) -> int:
        return min((self._missed[way] for way in self._ranges), default=0)

    def found(self) -> tuple[str | None, datetime.datetime, datetime.datetime] | None:
        """Return the way that fits best with its range, or None if the values are no dates."""
        for pattern, ends in self._ranges.items():
            if ends is not None and self._missed[pattern] == self._fewest:
                return pattern, *ends
        return None

    @staticmethod
    def _read(values: pl.Series, pattern: str | None) -> pl.Series:
        if pattern == _DIGITS:
            values = values.set(~values.str.contains(_CENTURIES), None)
        if values.dtype == pl.String:
            return read_moments(values.str.strip_chars(), pattern)
        if values.dtype == pl.Date:
            return values.cast(pl.Datetime("us"))
        return values.dt.replace_time_zone(None).cast(pl.Datetime("us"))

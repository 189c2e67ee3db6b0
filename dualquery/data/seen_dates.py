"""What a pass over a table shows of a column of dates: how they are written, and their range."""

from __future__ import annotations

import datetime

import polars as pl

from dualquery.data.schema.dates import read_moments

_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%y", "%m/%d/%y")
_TIMES = ("", " %H:%M", " %H:%M:%S")

Range = tuple[datetime.datetime, datetime.datetime]


class SeenMoments:
    """Which ways of writing dates fit every value so far, and the range that each gives."""

    def __init__(self) -> None:
        ways: list[str | None] = [None, *(day + time for day in _DAYS for time in _TIMES)]
        self._ranges: dict[str | None, Range | None] = dict.fromkeys(ways)

    def add(self, values: pl.Series) -> None:
        """Take in the values of a block, without the missing ones."""
        if not self._ranges or not len(values):
            return
        if values.dtype == pl.Date or isinstance(values.dtype, pl.Datetime):
            self._ranges = {None: self._ranges.get(None)} if None in self._ranges else {}
        elif values.dtype != pl.String:
            self._ranges = {}
        for pattern, known in list(self._ranges.items()):
            # A block of many values is parsed only if its first value is a date.
            if not self._fits(values.head(1), pattern) or not self._fits(values, pattern):
                del self._ranges[pattern]
                continue
            read = self._read(values, pattern)
            low, high = read.min(), read.max()
            assert isinstance(low, datetime.datetime)
            assert isinstance(high, datetime.datetime)
            self._ranges[pattern] = (
                (low, high) if known is None else (min(low, known[0]), max(high, known[1]))
            )

    @property
    def several(self) -> bool:
        """Whether more than one way of writing fits."""
        return len(self._ranges) > 1

    def found(self) -> tuple[str | None, datetime.datetime, datetime.datetime] | None:
        """Return the first way that fits with its range, or None if the values are no dates."""
        for pattern, ends in self._ranges.items():
            if ends is not None:
                return pattern, *ends
        return None

    def _fits(self, values: pl.Series, pattern: str | None) -> bool:
        return not self._read(values, pattern).has_nulls()

    @staticmethod
    def _read(values: pl.Series, pattern: str | None) -> pl.Series:
        if values.dtype == pl.String:
            return read_moments(values.str.strip_chars(), pattern)
        if values.dtype == pl.Date:
            return values.cast(pl.Datetime("us"))
        return values.dt.replace_time_zone(None).cast(pl.Datetime("us"))

"""Dates, times and periods of the calendar as texts."""

from __future__ import annotations

import calendar
import datetime
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

ISO = (
    "%Y-%m-%d",
    *(f"%Y-%m-%d{t}%H:%M{seconds}" for t in ("T", " ") for seconds in ("", ":%S%.f", ":%S%.fZ")),
)
"""ISO 8601, as texts are read where a schema names no format."""

CLOCKS = ("%H:%M", "%H:%M:%S")
"""Formats of times without a date: hours of the day."""


MONTHS_OF_PERIOD = {"decade": 120, "year": 12, "quarter": 3, "month": 1}

_LABELS = {
    "decade": re.compile(r"(\d{3}0)s", re.ASCII),
    "year": re.compile(r"(\d{4})", re.ASCII),
    "quarter": re.compile(r"(\d{4})-Q([1-4])", re.ASCII),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII),
}
"""How periods are written; the groups are a year and which of its quarters or months."""


def read_moments(texts: pl.Series, pattern: str | None) -> pl.Series:
    """Return texts as times without a zone, null where they are not written so."""
    import polars as pl

    if pattern is None:
        read = pl.Series([None], dtype=pl.Datetime("us")).new_from_index(0, len(texts))
        for iso in ISO:
            read = read.fill_null(read_moments(texts, iso))
        return read
    if pattern in CLOCKS:
        times = texts.str.to_time(pattern, strict=False)
        return (times.to_physical() // 1000).cast(pl.Datetime("us"))
    if "%Y" in pattern:  # which would take 22 for a year of the first century
        texts = texts.set(~texts.str.contains(r"\d{4}"), None)
    if any(sign in pattern for sign in ("%H", "%I", "%T", "%R", "%c")):
        return texts.str.to_datetime(pattern, strict=False, time_unit="us")
    return texts.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))


def days_of_period(text: str) -> tuple[datetime.date, datetime.date] | None:
    """Return the first and the last day of a period; None if the text is none."""
    for period, label in _LABELS.items():
        found = label.fullmatch(text)
        if found is None or not int(found[1]):  # there is no year 0
            continue
        year, *part = map(int, found.groups())
        months = MONTHS_OF_PERIOD[period]
        first = (part[0] - 1) * months if part else 0
        later, last = divmod(first + months - 1, 12)
        end = calendar.monthrange(year + later, last + 1)[1]
        return datetime.date(year, first + 1, 1), datetime.date(year + later, last + 1, end)
    return None

"""Periods of the calendar as they are written: ``1980s``, ``2014``, ``2014-Q1``, ``2014-03``."""

from __future__ import annotations

import calendar
import datetime
import re

MONTHS_OF_PERIOD = {"decade": 120, "year": 12, "quarter": 3, "month": 1}

_LABELS = {
    "decade": re.compile(r"(\d{3}0)s", re.ASCII),
    "year": re.compile(r"(\d{4})", re.ASCII),
    "quarter": re.compile(r"(\d{4})-Q([1-4])", re.ASCII),
    "month": re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII),
}
"""How periods are written; the groups are a year and which of its quarters or months."""


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

"""Dates and times as texts."""

from __future__ import annotations

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


def read_moments(texts: pl.Series, pattern: str | None) -> pl.Series:
    """Return texts as times without a zone, null where they are not written so.

    Parameters
    ----------
    texts
        String.
    pattern
        Signs of ``strftime``; None for ISO 8601.
    """
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

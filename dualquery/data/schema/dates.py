"""A column of dates or times, in buckets of the calendar."""

import calendar
import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.columns import check_choice
from dualquery.data.schema.numeric import Buckets, Rule
from dualquery.runtime.errors import BadInputError

ISO = (
    *("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z"),
    *("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f%#z"),
)
"""ISO 8601, as texts are read where a schema names no format."""

CLOCKS = ("%H:%M", "%H:%M:%S")  # formats without a date that drafts try: hours of the day

_PERIOD = re.compile(r"\d{3}0s|\d{4}(?:-Q(?P<quarter>[1-4])|-(?P<month>0[1-9]|1[0-2]))?", re.ASCII)
"""How periods are written, but for days."""

Period: TypeAlias = Literal["decade", "year", "quarter", "month", "day"]
Cycle: TypeAlias = Literal["month of year", "day of week", "hour of day"]

_MONTHS = {"decade": 120, "year": 12, "quarter": 3, "month": 1}
_LABELS = {"year": "%Y", "quarter": "%Y-Q%q", "month": "%Y-%m", "day": "%Y-%m-%d"}

_DATE = re.compile(r"%[-_0]?[aAbBcCdDeFgGhjmsuUvVwWxyY+]")
_TIME = re.compile(r"[\sT,]*%[-_0]?[HIklrRTX].*")
"""A sign of a date in a format, and the time behind it."""

UNPARSABLE, BELOW, ABOVE = -2, -4, -5
"""Codes of cells that are no date or number, and of those before the first or after the last."""

CYCLES: dict[str, tuple[str, ...]] = {
    "month of year": tuple(calendar.month_name[1:]),
    "day of week": tuple(calendar.day_name),
    "hour of day": tuple(f"{hour:02}" for hour in range(24)),
}
_MOST_BUCKETS = 10_000
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Dates(Buckets):
    """A column of dates or times in buckets of the calendar, one bit each; exactly one is 1.

    `BadInputError` if a key holds no such value, or there are not 2 to 10,000 buckets.

    Parameters
    ----------
    name
        Name of the column in the user's table.
    by
        What a bucket is: a ``"decade"``, ``"year"``, ``"quarter"``, ``"month"`` or ``"day"``,
        from that of ``first`` to that of ``last``, or a ``"month of year"``, ``"day of week"`` or
        ``"hour of day"``, which records have in place of a date.
    first, last
        Dates, as ISO 8601 (``2014-01-31``); public. For periods only. Records have dates from one
        to the other, unless rules move them; others in the same periods count as well.
    format
        How texts are written, in the signs of ``strftime`` such as ``%d.%m.%Y``; None for ISO
        8601. Dates of records are written so, too.
    missing
        What a missing value does: it is an error, or a category of its own.
    outside
        What a date before the first or after the last bucket does: it is an error, or falls in the
        nearest bucket.
    unparsable
        What a text that is no such date does: it is an error, or counts as missing.
    missing_values
        Texts that stand for a missing value in this column, besides those of all columns.
    """

    KIND: ClassVar[str] = "date"
    OUTSIDE: ClassVar[str] = "clip"

    name: str
    by: Period | Cycle
    first: str | None = None
    last: str | None = None
    format: str | None = None
    missing: Literal["error", "category"] = "error"
    outside: Literal["error", "clip"] = "error"
    unparsable: Literal["error", "missing"] = "error"
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.check_choices()
        check_choice(self.where, "by", self.by, (*_MONTHS, "day", *CYCLES))
        if self.format is not None and not _is_read(self.format):
            raise BadInputError(
                f"{self.where}: format is {self.format!r}; write it with signs such as %d.%m.%Y, "
                "and hours with minutes, %H:%M"
            )
        if self.by in CYCLES:
            if self.first is not None or self.last is not None:
                raise BadInputError(
                    f"{self.where}: buckets by {self.by} come again every year or day; leave out "
                    "first and last"
                )
            return
        if not 2 <= (periods := max(len(self._starts) - 1, 0)) <= _MOST_BUCKETS:
            raise BadInputError(
                f"{self.where}: from {self.first} to {self.last} there are {periods:,} buckets by "
                f"{self.by}; 2 to {_MOST_BUCKETS:,} are possible"
            )

    @cached_property
    def _days(self) -> NDArray[np.int64]:
        """The first and the last day that records have, counted from 1970."""
        days = []
        for key, text in (("first", self.first), ("last", self.last)):
            try:
                days.append(datetime.date.fromisoformat(text or "").toordinal() - _EPOCH)
            except (TypeError, ValueError):
                raise BadInputError(
                    f"{self.where}: {key} is {text!r}; a date such as 2014-01-31 is expected"
                ) from None
        return np.array(days, np.int64)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """First day of each bucket, and of the period behind the last, counted from 1970."""
        ends = self._days.astype("datetime64[D]")
        if self.by == "day":
            return np.arange(self._days[0], self._days[1] + 2)
        step = _MONTHS[self.by]
        first, last = ends.astype("datetime64[M]").astype(np.int64) // step * step
        months = np.arange(first, last + step + 1, step).astype("datetime64[M]")
        return months.astype("datetime64[D]").astype(np.int64)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Label of each bit: ``1980s``, ``2014``, ``2014-Q1``, ``2014-03``, ``Monday``."""
        if self.by in CYCLES:
            return (*CYCLES[self.by], *self.extra_labels)
        starts = pl.Series(self._starts[:-1]).cast(pl.Int32).cast(pl.Date)
        return (*starts.dt.strftime(_LABELS.get(self.by, "%Ys")), *self.extra_labels)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Days of a period are equally likely."""
        return ("uniform",) * self.buckets

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """First and last day, from 1970, of each bucket between ``first`` and ``last``."""
        if self.by in CYCLES:
            return ()
        ends = np.stack([self._starts[:-1], self._starts[1:] - 1]).clip(*self._days)
        return tuple(map(tuple, ends.T.tolist()))

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """First and last day of each period, whatever ``first`` and ``last`` are."""
        return tuple(zip(self._starts[:-1].tolist(), (self._starts[1:] - 1).tolist(), strict=True))

    @property
    def means(self) -> NDArray[np.float64]:
        """The place of each bucket: float64."""
        return np.arange(self.buckets, dtype=np.float64)

    def _drawn(
        self, buckets: NDArray[np.int64], generator: np.random.Generator, *_: object
    ) -> NDArray[np.float64]:
        low, high = np.array(self.bounds, np.int64)[buckets].T
        return np.asarray(generator.integers(low, high, endpoint=True), np.float64)

    def draw(
        self,
        buckets: NDArray[np.int64],
        generator: np.random.Generator,
        avoided: Sequence[float] = (),
    ) -> pl.Series:
        """Return a value of each bucket: a day of a period, each as likely; the name in a cycle."""
        if self.by in CYCLES:
            return pl.Series(self.name, CYCLES[self.by]).gather(buckets)
        return super().draw(buckets, generator, avoided).cast(pl.Int32).cast(pl.Date)

    def written(self, dates: pl.Series) -> pl.Series:
        """Return dates as texts, if the column has a format that says their buckets."""
        if self.format is None or self.by in CYCLES:
            return dates
        texts = _written(dates, self.format)
        return texts if np.array_equal(self.bits_of(texts), self.bits_of(dates)) else dates

    def bits_of(self, values: pl.Series) -> NDArray[np.int32]:
        """Return the local bit of each value, or `BELOW`, `ABOVE`, or `UNPARSABLE` (of nulls, too).

        Times count by the clock of their own time zone. Texts may be labels of buckets, too.
        """
        found = self._places(self._moments(values))
        places = found.fill_null(0).to_numpy()
        kinds = [found.is_null().to_numpy(), places < 0, places >= self.buckets]
        codes = np.select(kinds, [UNPARSABLE, BELOW, ABOVE], places)
        if values.dtype == pl.String:
            labels, bits = [*self.labels[: self.buckets]], [*range(self.buckets)]
            named = values.replace_strict(labels, bits, default=UNPARSABLE, return_dtype=pl.Int32)
            codes = np.where(named.to_numpy() >= 0, named.to_numpy(), codes)
        return codes.astype(np.int32)

    def are_among(self, values: pl.Series, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return which values are a date or time that one of some texts is."""
        if (meant := self._meant(texts)).is_empty():
            return np.zeros(len(values), bool)
        moments = self._moments(values).cast(pl.Datetime("us"))
        return moments.is_in(meant.to_list()).fill_null(False).to_numpy()

    def avoided(self, texts: Sequence[str]) -> list[float]:
        """Return the days, counted from 1970, that some texts are."""
        meant = self._meant(texts)
        days = meant.cast(pl.Date)
        whole = days.filter(days.cast(pl.Datetime("us")) == meant)
        return whole.to_physical().cast(pl.Float64).to_list()

    def _meant(self, texts: Sequence[str]) -> pl.Series:
        """Return the times that texts are: as the table writes them, or by ISO 8601."""
        given = pl.Series(texts, dtype=pl.String).str.strip_chars()
        return read_moments(given, self.format).fill_null(read_moments(given, None)).drop_nulls()

    def _place(self, text: str) -> int | None:
        low, high = self.places_of_text(text) or (-1, -1)
        return low if low == high and 0 <= low < self.buckets else None

    def places_of_text(self, text: str) -> tuple[int, int] | None:
        """Return the places of the first and the last bucket that a text in a query means, or None.

        The text is a period, such as ``2014`` of days, or a date: as the table writes it, with or
        without its time, or by ISO 8601. A place below 0, or from `buckets` on, lies beyond all
        buckets: where the table has no dates there, only by a text that lies there altogether.
        """
        if text in self.labels[: self.buckets]:
            place = self.labels.index(text)
            return place, place
        if self.by not in CYCLES and (days := _days_of_period(text)) is not None:
            low, high = self._periods(days).tolist()
            last = self.buckets - 1
            if self.outside == "clip" or high < 0 or low > last:
                return low, high
            return max(low, 0), min(high, last)
        (place,) = self._places(self._moment(text)).to_list()
        return None if place is None else (int(place), int(place))

    def _moment(self, text: str) -> pl.Series:
        day = _TIME.sub("", self.format or "") or ISO[0]
        # A day without its time is no hour of the day.
        others = () if self.by == "hour of day" else (day, None)
        given = pl.Series([text.strip()])
        return reduce(pl.Series.fill_null, (read_moments(given, p) for p in (self.format, *others)))

    def cut_by(self, text: str) -> list[bool]:
        """Return whether what a text in a query means begins, and ends, within a bucket."""
        if text in self.labels:
            return [False, False]
        days = None if self.by in CYCLES else _days_of_period(text)
        if days is None:
            day = (moment := self._moment(text)).cast(pl.Date)
            if moment[0] is None or self.by in CYCLES or (day.cast(moment.dtype) != moment)[0]:
                return [moment[0] is not None] * 2
            days = day.to_physical().to_numpy().repeat(2)
        ends = (days + (0, 1)).clip(*self._starts[[0, -1]])  # noqa: RUF005
        return [bool(each) for each in ~np.isin(ends, self._starts)]

    def _places(self, moments: pl.Series) -> pl.Series:
        """Return the places of times among the buckets; see `_periods`."""
        if self.by == "month of year":
            return moments.dt.month().cast(pl.Int64) - 1
        if self.by == "day of week":
            return moments.dt.weekday().cast(pl.Int64) - 1
        if self.by == "hour of day":
            return moments.dt.hour().cast(pl.Int64)
        days = moments.cast(pl.Date).to_physical()
        places = self._periods(days.fill_null(0).to_numpy().astype(np.int64))
        return pl.Series(places).set(days.is_null(), None)

    def _periods(self, days: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the buckets in which days lie; beyond all, further off for each further day."""
        first, stop = self._starts[[0, -1]]
        inside = np.searchsorted(self._starts, days, "right") - 1
        return np.asarray(inside + np.minimum(days - first + 1, 0) + np.maximum(days - stop, 0))

    def _moments(self, values: pl.Series) -> pl.Series:
        """Return values as times without a zone, null where they are none."""
        if isinstance(values.dtype, pl.Datetime):
            return values.dt.replace_time_zone(None)
        if values.dtype == pl.Date:
            return values.cast(pl.Datetime("us"))
        if values.dtype == pl.Time and self.by == "hour of day":
            return (values.to_physical() // 1000).cast(pl.Datetime("us"))
        if values.dtype.is_numeric() and self.format is not None:  # such as 20140131
            # One row without a date can make a column of whole numbers one of others.
            whole = values.cast(pl.Int64, strict=False)
            values = whole.set(whole != values, None).cast(pl.String)
        if values.dtype != pl.String:
            return pl.Series([None], dtype=pl.Datetime("us")).new_from_index(0, len(values))
        return read_moments(values.str.strip_chars(), self.format)


def read_moments(texts: pl.Series, pattern: str | None) -> pl.Series:
    """Return texts as times by their own clocks, null where they are not written so."""
    if pattern is None:
        return reduce(pl.Series.fill_null, (read_moments(texts, iso) for iso in ISO))
    if not _DATE.search(pattern):
        times = texts.str.to_time(pattern, strict=False)
        return (times.to_physical() // 1000).cast(pl.Datetime("us"))
    if "%Y" in pattern:  # which would take 22 for a year of the first century
        texts = texts.set(~texts.str.contains(r"\d{4}"), None)
    read = texts.str.to_datetime(pattern, strict=False, time_unit="us")
    if read.dtype == pl.Datetime("us"):
        return read
    days = texts.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))
    return days + texts.str.to_time(pattern, strict=False).cast(pl.Duration("us"))


def _written(dates: pl.Series, pattern: str) -> pl.Series:
    return dates.cast(pl.Datetime("us", "UTC")).dt.strftime(pattern)


def _is_read(pattern: str) -> bool:
    """Return whether a time that is written so is read again, or is a period's name."""
    try:
        written = _written(pl.Series([0]), pattern)
        again = read_moments(written, pattern).null_count() == 0
        return again or _PERIOD.fullmatch(written[0]) is not None
    except pl.exceptions.PolarsError:
        return False


def _days_of_period(text: str) -> NDArray[np.int64] | None:
    """Return the first and the last day of a period, from 1970; None if the text is none."""
    found = _PERIOD.fullmatch(text)
    if found is None or not int(text[:4]):  # there is no year 0
        return None
    quarter, month = found["quarter"], found["month"]
    start = np.datetime64(text[:4], "M") + (3 * int(quarter or 1) - 3 + int(month or 1) - 1)
    length = 120 if text.endswith("s") else 3 if quarter else 1 if month else 12
    ends = np.array([start, start + length]).astype("datetime64[D]").astype(np.int64)
    ends[1] -= 1
    return ends

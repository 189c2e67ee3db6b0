"""Columns of dates: which bucket a date falls in, and back."""

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.schema.dates import ABOVE, BELOW, UNPARSABLE, Dates
from dualquery.data.schema.schema_files import schema_from_dict
from dualquery.data.schema.table import TableSchema
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError

FIRST, LAST = "2019-11-17", "2022-02-03"
PERIODS = ("decade", "year", "quarter", "month", "day")
CYCLES = ("month of year", "day of week", "hour of day")


def column(by: str, **more: object) -> Dates:
    ends = {"first": FIRST, "last": LAST} if by in PERIODS else {}
    return Dates("seen", by, **{**ends, **more})  # type: ignore[arg-type]


def label(moment: datetime.datetime, by: str) -> str:
    """Name the bucket of a moment, by the standard library."""
    return {
        "decade": f"{moment.year // 10}0s",
        "year": f"{moment:%Y}",
        "quarter": f"{moment:%Y}-Q{(moment.month - 1) // 3 + 1}",
        "month": f"{moment:%Y-%m}",
        "day": f"{moment:%Y-%m-%d}",
        "month of year": f"{moment:%B}",
        "day of week": f"{moment:%A}",
        "hour of day": f"{moment:%H}",
    }[by]


MOMENTS = st.datetimes(datetime.datetime(2019, 11, 17), datetime.datetime(2022, 2, 3, 23, 59))


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from(PERIODS + CYCLES))
def test_a_moment_falls_in_a_bucket_of_its_name(moments: list[datetime.datetime], by: str) -> None:
    dates, expected = column(by), [label(moment, by) for moment in moments]
    for values in (
        pl.Series(moments),
        pl.Series([moment.isoformat() for moment in moments]),
        pl.Series([f"{moment:%Y-%m-%d %H:%M}" for moment in moments]),
        pl.Series(expected),
    ):
        assert [dates.labels[bit] for bit in dates.bits_of(values)] == expected


@given(st.sampled_from(PERIODS + CYCLES), st.sampled_from(["error", "category"]))
def test_decoded_dates_encode_to_the_same_bits(by: str, missing: str) -> None:
    schema = TableSchema((column(by, missing=missing),), declared=True)
    records = np.eye(schema.domain.bits, dtype=np.uint8)
    decoded = schema.decode(records)
    assert decoded["seen"].dtype == (pl.Date if by in PERIODS else pl.String)
    again = load(decoded, schema).records
    np.testing.assert_array_equal(again.dense_rows(0, len(records)), records)
    assert schema_from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("by", PERIODS)
def test_records_have_all_days_of_a_bucket_as_often(by: str) -> None:
    schema = TableSchema((column(by),), declared=True)
    last = schema.domain.bits - 1
    records = np.repeat(np.eye(last + 1, dtype=np.uint8)[[0, 1, last]], 4_000, axis=0)
    days = schema.decode(records, np.random.default_rng(3))["seen"].to_physical().to_numpy()
    for place, bucket in enumerate((0, 1, last)):
        drawn = days[place * 4_000 : (place + 1) * 4_000]
        first, final = column(by).bounds[bucket]
        assert first <= drawn.min() <= drawn.max() <= final
        if final - first < 100:
            assert (np.bincount(drawn - first) > 0).all()
        assert abs(drawn.mean() - (first + final) / 2) <= 0.05 * (final - first)
    assert str(schema.decode(records[:4_000])["seen"].min()) >= FIRST
    assert str(schema.decode(records[-4_000:])["seen"].max()) <= LAST


FORMS = "%d.%m.%Y", "%Y%m%d", "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%M%z", "%Y-%m"


@pytest.mark.parametrize("form", FORMS)
def test_records_are_written_as_the_table_is_and_read_again(form: str) -> None:
    schema = TableSchema((column("month", format=form, missing="category"),), declared=True)
    records = np.eye(schema.domain.bits, dtype=np.uint8)
    decoded = schema.decode(records)
    assert decoded["seen"].dtype == pl.String
    assert datetime.datetime.strptime(decoded["seen"][0], form).isoformat()[:7] == FIRST[:7]
    again = load(pl.read_csv(decoded.write_csv().encode()), schema).records
    np.testing.assert_array_equal(again.dense_rows(0, len(records)), records)


def test_what_lies_beyond_and_what_is_no_date() -> None:
    values = pl.Series(["2019-10-31", "2022-02-28", "2022-03-01", "soon", "2022-02-30", None])
    assert column("month").bits_of(values).tolist() == [BELOW, 27, ABOVE, *[UNPARSABLE] * 3]
    schema = TableSchema((column("month", outside="clip"),), declared=True)
    rows = load(pl.DataFrame({"seen": values[:3]}), schema).records.dense_rows(0, 3)
    assert rows.argmax(axis=1).tolist() == [0, 27, 27]
    far = pl.Series([-(2**31), 6_653_000, 2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    for days in far, (far.to_physical().cast(pl.Int64) * 4 * 10**9).cast(pl.Datetime("us")):
        rows = load(pl.DataFrame({"seen": days}), schema).records.dense_rows(0, 3)
        assert rows.argmax(axis=1).tolist() == [0, 27, 27]


def test_an_offset_of_any_minutes_counts_by_its_own_clock(tmp_path: Path) -> None:
    """Polars has zones for whole hours only."""
    schema = TableSchema((column("hour of day"),), declared=True)
    for minutes in (330, -210, 120, 0):
        zone = datetime.timezone(datetime.timedelta(minutes=minutes))
        moments = [datetime.datetime(2020, 1, 1, hour, tzinfo=zone) for hour in (0, 23)]
        kind = pa.timestamp("us", moments[0].isoformat()[-6:])
        made = pa.table({"seen": pa.array(moments, kind)})
        pq.write_table(made, tmp_path / "t.parquet")
        for table in (made, str(tmp_path / "t.parquet"), pd.DataFrame({"seen": moments})):
            rows = load(table, schema).records.dense_rows(0, 2)
            assert rows.argmax(axis=1).tolist() == [0, 23]


def test_other_ways_of_writing_and_other_types() -> None:
    dates = column("day", format="%d.%m.%Y")
    assert dates.bits_of(pl.Series(["18.11.2019", "18/11/2019"])).tolist() == [1, UNPARSABLE]
    assert dates.bits_of(pl.Series(["18.11.19"])).tolist() == [UNPARSABLE]  # not of year 19
    hours = column("hour of day")
    assert hours.bits_of(pl.Series([datetime.time(7, 30), None])).tolist() == [7, UNPARSABLE]
    assert column("year").bits_of(pl.Series([2020, 2021])).tolist() == [UNPARSABLE] * 2
    # By the clock of its own zone: 23:30 in New York is the next day in UTC.
    late = pl.Series([datetime.datetime(2020, 1, 1, 4, 30)]).dt.replace_time_zone("UTC")
    assert hours.bits_of(late.dt.convert_time_zone("America/New_York")).tolist() == [23]
    for form, text in (
        ("%I:%M %p", "11:30 PM"),
        ("%d.%m.%Y %-H:%M", "31.12.2019 23:30"),
        ("%Y-%m-%dT%H:%M:%S%z", "2019-12-31T23:30:00-0500"),
        (None, "2019-12-31 23:30:00-05"),
    ):
        texts = pl.Series([text, "soon"])
        assert column("hour of day", format=form).bits_of(texts).tolist() == [23, UNPARSABLE]


@pytest.mark.parametrize("by", PERIODS)
@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2010s", "2010-01-01", "2019-12-31"),
        ("2021", "2021-01-01", "2021-12-31"),
        ("2021-Q2", "2021-04-01", "2021-06-30"),
        ("2020-02", "2020-02-01", "2020-02-29"),
        ("2022", "2022-01-01", "2022-12-31"),
        ("9999-12", "9999-12-01", "9999-12-31"),
    ],
)
def test_a_period_is_all_of_its_days(by: str, text: str, first: str, last: str) -> None:
    seen = column(by, outside="clip")
    ends = [seen.places_of_text(day) for day in (first, last)]
    assert None not in ends
    low, high = (end[0] for end in ends if end)
    assert seen.places_of_text(text) == (low, high)
    # Where dates beyond its own are errors, there are none of the others.
    inside = (max(low, 0), min(high, seen.buckets - 1)) if low < seen.buckets else (low, high)
    assert column(by).places_of_text(text) == inside


def test_a_question_may_leave_out_the_time() -> None:
    """And write a day by ISO 8601, whatever the column's format."""
    for by, end in (("month", 7), ("day", 10)):
        seen = column(by, format="%d.%m.%Y %H:%M")
        for text in ("05.03.2020 23:59", "05.03.2020", "2020-03-05", "2020-03-05T10:00"):
            place, same = seen.places_of_text(text) or (-1, -1)
            assert place == same
            assert seen.labels[place] == "2020-03-05"[:end]
    assert column("month").places_of_text("2019-10-31") == (-1, -1)
    assert column("month").places_of_text("2022-03-01") == (28, 28)
    assert column("month").places_of_text("2020-02-31") is None
    assert column("month", format="%d.%m.%Y").places_of_text("05.03.20") is None  # not of year 20
    assert column("hour of day", format="%H:%M").places_of_text("2020-03-05") is None
    assert column("hour of day", format="%H:%M").places_of_text("05:30") == (5, 5)


def test_questions_name_a_bucket_or_a_date_in_it() -> None:
    schema = TableSchema((column("quarter"), Dates("day", "day of week")), declared=True)
    assert schema.literal("seen", "2020-Q1") == schema.literal("seen", "2020-02-29") == 2
    assert schema.literal("day", "Tuesday") == schema.literal("day", "2026-11-24")
    with pytest.raises(BadInputError, match="column 'day' has no value 'Tusday'; did you mean 'Tu"):
        schema.literal("day", "Tusday")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"by": "week"}, "by is 'week'; it must be decade or year or quarter or month or day or"),
        ({"by": "year", "first": FIRST}, "last is None; a date such as 2014-01-31 is expected"),
        ({"by": "year", "first": LAST, "last": FIRST}, "there are 0 buckets by year; 2 to 10,000"),
        ({"by": "day", "first": "1900-01-01", "last": LAST}, "there are 44,594 buckets by day"),
        ({"by": "year", "first": FIRST, "last": LAST, "format": "iso"}, "format is 'iso'; write"),
        ({"by": "hour of day", "format": "%Y-%m-%d %H"}, "and hours with minutes, %H:%M"),
    ],
)
def test_bad_descriptions_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        schema_from_dict({"columns": [{"name": "seen", "kind": "date", **fields}]})


def test_numbers_are_dates_whatever_the_type_of_the_column() -> None:
    """A row with half a number changes the type of a column, and no other row."""
    dates = column("day", format="%Y%m%d")
    np.testing.assert_array_equal(dates.bits_of(pl.Series([20191118, 20191117])), [1, 0])
    mixed = dates.bits_of(pl.Series([20191118.0, 20191117.0, 20191118.5, np.nan, np.inf, None]))
    np.testing.assert_array_equal(mixed, [1, 0, *[UNPARSABLE] * 4])

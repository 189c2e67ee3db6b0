"""Drafts from exact counts: types, ranges, categories, missing tokens, dates; what is left out."""

import datetime
import itertools
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, Dates, Numeric
from dualquery.data.drafts import drafting
from dualquery.data.drafts.drafting import DraftedColumn, careful_draft, draft_table_schema
from dualquery.data.drafts.edges import fitting_edges
from dualquery.data.drafts.shapes import Numbers
from dualquery.data.readers.python_objects import FrameSource
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError

ROWS = 3_000


def draft(block_rows: int = 1_000, **columns: object) -> dict[str, DraftedColumn]:
    frame = pl.DataFrame(columns, strict=False)
    drafted = careful_draft(FrameSource(frame, block_rows=block_rows))
    assert drafted.schema.declared is False
    # What it drafts, reads the table.
    records = load(frame, drafted.schema).records.dense_rows(0, len(frame))
    assert (np.add.reduceat(records, drafted.schema.domain.offsets[:-1], axis=1) <= 1).all()
    return {each.name: each for each in drafted.columns}


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def labels(drafted: DraftedColumn) -> tuple[str, ...]:
    return drafted.column.labels


def test_texts_are_listed_in_the_order_of_their_numbers() -> None:
    found = draft(
        age=["10+", "0-4", "5-9"] * 9, one=["x"] * 27, gap=["a", "b", None] * 9,
        say=["(other)", "a", "(missing)"] * 9,
    )  # fmt: skip
    assert labels(found["age"]) == ("0-4", "5-9", "10+")
    assert found["one"].column == Categorical("one", (("x",),), outside="other")
    assert found["gap"].column == Categorical("gap", (("a",), ("b",)), missing="category")
    assert found["say"].column == Categorical("say", (("a",),), "category", "other", ("(missing)",))


def test_long_tails_zeros_and_short_decimals_keep_means_and_values() -> None:
    amounts = rng().lognormal(8.0, 1.5, 20_000).round()
    found = draft(
        long=amounts, hours=rng().choice([0.5, 0.8, 1.0], 20_000),
        zeros=np.where(rng().random(20_000) < 0.6, 0.0, amounts / 100.0),
        pay=np.append(amounts[1:], 19720308).astype(np.int64),
    )  # fmt: skip
    # A tail in one bucket had 1.6 times the mean and 3 times the deviation, spread evenly over it.
    long, pay = found["long"].column, found["pay"].column
    drawn = long.draw(np.searchsorted(long.edges, amounts, "right") - 1, rng()).to_numpy()
    assert (drawn.mean(), drawn.std()) == (
        pytest.approx(amounts.mean(), rel=0.1), pytest.approx(amounts.std(), rel=0.3)
    )  # fmt: skip
    assert 0.001 < (amounts >= long.edges[-2]).mean() < 0.03
    assert (amounts >= pay.edges[-2]).sum() >= 4  # and the largest: no tail is cut off for one
    few = np.append(rng().exponential(50.0, 5_000), [8.2e6] * 4).round()
    assert (few >= draft(few=few)["few"].column.edges[-2]).sum() > 4  # nor for four
    assert found["zeros"].column.edges[:3] == (0.0, 0.01, 2.0)
    assert found["hours"].column.means[-1] == 1.0
    assert found["pay"].column.unparsable == "error"  # a number may look like a date
    part, whole = Numbers(0, 0, False, (0.0, 1.0)), Numbers(0, 0, True, (0.0, 1e5))
    assert (part.bounds[1], whole.bounds[1]) == (1e-6, 1.0)
    shape = drafting.Shape(part, decimals=1)  # the end is a number, too
    assert drafting.propose("part", shape, np.ones(part.cells), 0.0).within == "uniform"
    stars, end = replace(part, ends=(0.0, 5.0)), np.append(np.ones(part.cells - 1), 1e6)
    assert drafting.propose("stars", replace(shape, how=stars), end, 0.0).edges[-2] == 4.9


def test_a_name_that_means_several_columns_to_polars_is_a_name() -> None:
    found = draft(**{"*": ["a", "b"] * 9, "^.*$": ["c", "d"] * 9})
    assert (labels(found["*"]), labels(found["^.*$"])) == (("a", "b"), ("c", "d"))


def test_of_too_many_texts_those_in_a_few_rows_are_others() -> None:
    notes = ["see letter", "call back", *(f"phone {1_000 + place}" for place in range(400))]
    found = draft(
        state=[f"s{i % 70}" for i in range(ROWS)],
        more=[f"m{i % 97}" for i in range(ROWS)],
        note=[notes[place % 2 if place % 10 else 2 + place // 10] for place in range(ROWS)],
        street=[f"s{place // 2 if place % 5 else 1}" for place in range(ROWS)],
        mail=[f"{i}@example.org" for i in range(ROWS)],
    )
    bits = {name: each.column.bits for name, each in found.items() if each.column is not None}
    assert bits == {"state": 70, "more": 64, "note": 3}
    assert labels(found["note"]) == ("call back", "see letter", "(other)")
    assert "of 302 texts" in found["note"].remark
    assert "20% of the rows" in found["street"].remark


def test_zero_and_one_are_one_bit() -> None:
    found = draft(a=[0, 1, 1], b=["1", "1", "1"], c=[True, False, True], d=[0, 1, None])
    assert found["a"].column == Binary("a")
    assert found["b"].column == Binary("b")
    assert found["c"].column == Binary("c", "false", "true")
    assert labels(found["d"]) == ("0", "1", "(missing)")


def test_numbers_and_dates_are_what_the_reader_takes_for_them() -> None:
    days = [datetime.date(2020, 2, 1 if n % 28 else 1 + n // 28) for n in range(600)]
    forms = "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"
    dates = {form: [f"{day:{form}}" for day in days] for form in forms}
    found = draft(bit=["1.0", " 0", "1"] * 200, other=["\u0660", "\u0661"] * 300, **dates)
    assert found["bit"].column == Binary("bit")
    assert labels(found["other"]) == ("\u0660", "\u0661")
    read = {(found[form].column.format, found[form].column.missing) for form in forms}
    assert read == {(form, "error") for form in forms}  # 59 of 60 days are no more than 12


def test_a_few_whole_numbers_get_a_bucket_each() -> None:
    found = draft(n=[*range(3, 35)] * 4, one=[7] * 128)
    assert labels(found["n"]) == tuple(map(str, range(3, 35)))
    assert labels(found["one"]) == ("7", "8")


def test_numbers_that_spread_get_round_buckets() -> None:
    found = draft(age=rng().integers(0, 100, ROWS), share=rng().random(ROWS))
    assert found["age"].column == Numeric(
        "age", tuple(map(float, range(0, 101, 5))), integer=True, outside="clip"
    )
    assert labels(found["share"])[:2] == ("0-0.05", "0.05-0.1")


SKEWED = {
    "income": lambda g, n: np.exp(g.normal(9, 1, n)).round(2),
    "visits": lambda g, n: np.floor(np.exp(g.normal(3, 1, n))),
    "fees": lambda g, n: np.where(g.random(n) < 0.6, 0, np.exp(g.normal(6, 1, n)).round()),
    "profit": lambda g, n: (np.sign(g.normal(size=n)) * np.exp(g.normal(4, 1.5, n))).round(2),
    "hours": lambda g, n: np.where(g.random(n) < 0.5, 40, g.integers(0, 100, n)),
    "rate": lambda g, n: np.where(g.random(n) < 0.8, 1.0, g.random(n).round(2)),
    "far": lambda g, n: np.where(np.arange(n) == 7, 1e12, np.exp(g.normal(10, 1, n))),
}


@pytest.mark.parametrize("name", SKEWED)
def test_no_bucket_of_several_numbers_holds_most_of_a_skewed_column(name: str) -> None:
    values = SKEWED[name](rng(), ROWS)
    column = draft(x=values)["x"].column
    edges = np.array(column.edges)
    assert 8 <= column.buckets <= 32
    for low, high in itertools.pairwise(edges.tolist()):
        inside = values[(values >= low) & (values < high)]
        assert len(inside) < 0.2 * ROWS or inside.min() == inside.max()
    inner = edges[(np.abs(edges) >= 1) & (np.arange(len(edges)) > 0)][:-1]
    assert np.mean([len(f"{edge:g}".strip("-").rstrip("0")) <= 3 for edge in inner]) > 0.6


def test_records_have_the_decimals_of_the_table() -> None:
    weights = rng().normal(75, 12, ROWS)
    found = draft(
        weight=weights.round(1), price=[f"{each:.2f}" for each in weights],
        zero=np.where(rng().random(ROWS) < 0.5, 0.0, weights.round(3)), measured=weights,
        whole=weights.round(),
    )  # fmt: skip
    decimals = [getattr(each.column, "decimals", None) for each in found.values()]
    assert decimals == [1, 2, 3, None, None]
    assert all(edge == round(edge, 1) for edge in found["weight"].column.edges)


def test_codes_stay_codes_by_their_zeros_or_their_name() -> None:
    found = draft(
        zip=[f"{i % 200:05d}" for i in range(ROWS)], few=["01", "02"] * (ROWS // 2),
        hour=[f"{i % 24:02d}" for i in range(ROWS)],
        INDP=rng().integers(100, 364, ROWS), trade_code=rng().choice(range(1000, 9000, 111), ROWS),
    )  # fmt: skip
    assert all(isinstance(each.column, Categorical) for each in found.values())
    assert found["few"].column == Categorical("few", (("01",), ("02",)))
    assert found["zip"].column.bits == 64


@pytest.mark.parametrize("name", ["PatientenNr", "Kundennummer", "order number", "case_nr", "ID"])
def test_names_of_persons_in_many_rows_stay_out(name: str) -> None:
    found = draft(**{name: rng().integers(10000, 18000, ROWS), "age": rng().integers(0, 90, ROWS)})
    assert found[name].column is None
    assert "--unit" in found[name].remark


def test_markers_of_missing_values_are_listed_by_column() -> None:
    found = draft(
        x=["1", "?", "3"] * 40, y=["a", "NA", "b"] * 40, state=["ND", "SD", "n.a."] * 40,
        age=[*map(str, range(20, 136)), "k.A.", ".", "-", "N"],
    )  # fmt: skip
    assert found["y"].column == Categorical(
        "y", (("a",), ("b",)), missing="category", missing_values=("NA",)
    )
    assert "'?' as missing" in found["x"].remark
    assert {*found["age"].column.missing_values} == {"k.A.", ".", "-", "N"}
    assert labels(found["state"]) == ("ND", "SD", "(missing)")


def test_texts_among_many_numbers_count_as_missing() -> None:
    found = draft(x=[*map(str, range(100)), "unknown", "refused"])["x"]
    assert (found.column.missing, found.column.unparsable) == ("category", "missing")
    assert "texts count as missing" in found.remark


def test_dates_become_years_months_or_days() -> None:
    start = datetime.date(2001, 5, 17)
    days = [start + datetime.timedelta(days=i % 2_900) for i in range(ROWS)]
    found = draft(
        born=[start + datetime.timedelta(days=5 * i) for i in range(ROWS)],
        long=[start - datetime.timedelta(days=10 * i) for i in range(ROWS)],
        paid=[f"{start + datetime.timedelta(days=i % 300):%d.%m.%Y}" for i in range(ROWS)],
        seen=[f"{start + datetime.timedelta(days=i % 15)} 10:{i % 60:02}" for i in range(ROWS)],
        digits=[int(f"{day:%Y%m%d}") for day in days],
        slips=["31.02.2003", *(f"{day:%d.%m.%Y}" for day in days[1:])],
        clock=[f"{i % 24:02}:{i % 60:02}" for i in range(ROWS)],
        time=[datetime.time(i % 24, i % 60) for i in range(ROWS)],
    )
    columns = {name: each.column for name, each in found.items()}
    assert all(isinstance(column, Dates) for column in columns.values())
    assert {name: column.by for name, column in columns.items() if isinstance(column, Dates)} == {
        "born": "year", "long": "decade", "paid": "month", "seen": "day", "digits": "year",
        "slips": "year", "clock": "hour of day", "time": "hour of day",
    }  # fmt: skip
    assert labels(found["seen"])[-1] == "2001-05-31"
    assert labels(found["paid"])[0] == "2001-05"
    assert found["paid"].remark.endswith("read as %d.%m.%Y")
    assert labels(found["slips"])[-1] == "(missing)"


def test_what_cannot_be_kept_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    frame = pl.DataFrame(
        {
            "id": [f"id{i}" for i in range(200)],
            "tags": [[1]] * 200,
            "took": [datetime.timedelta(i) for i in range(200)],
            "huge": [(-1e20, 0.0, 2**60)[i % 3] for i in range(200)],
            "tiny": [2e-9 * i for i in range(200)],
            "old": [f"1{i + 600}-01-31" for i in range(200)],
            "nothing": pl.Series([None] * 200, dtype=pl.String),
            "few": ["a", "b"] * 100,
        }
    )
    source = FrameSource(frame, block_rows=10)
    remarks = {each.name: each.remark for each in careful_draft(source).columns}
    assert "List(Int64)" in remarks["tags"]
    assert "Duration" in remarks["took"]
    assert all("by hand" in remarks[name] for name in ("huge", "tiny", "old"))
    assert remarks["nothing"] == "no value at all"
    assert draft_table_schema(source).column_names == ("few",)
    assert "'nothing': no value at all; --columns" in caplog.text
    with pytest.raises(BadInputError, match="no column can be kept"):
        draft_table_schema(source, "0,tags")
    with pytest.raises(BadInputError, match="no rows"):
        careful_draft(FrameSource(frame.clear(), block_rows=10))


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=90, unique=True),
    st.lists(st.integers(0, 10**6), min_size=2, max_size=89),
    st.sampled_from([1.0, 0.01, 1e9]),
)
@example(ends=[0, 1, 10**6], counts=[1, 1], unit=1.79e302)
@example(ends=[-17, 0, 1, 17], counts=[1, 99, 1], unit=1e307)
def test_edges_increase_and_cover(ends: list[int], counts: list[int], unit: float) -> None:
    bounds = np.array(sorted(ends)[: len(counts) + 1], float) * unit
    held = np.array(counts[: len(bounds) - 1], float)
    held[[0, -1]] += 1
    whole = bool(np.all(bounds == np.floor(bounds))) and unit < 1e300
    edges = fitting_edges(bounds, held, 16, whole=whole)
    assert edges[0] <= bounds[0] < bounds[-1] <= edges[-1]
    assert len(edges) - 1 <= 64
    assert Numeric("x", edges, integer=whole).bits >= 2

"""Drafts that a careful person would write, each choice explained."""

from __future__ import annotations

import datetime
from dataclasses import replace
from itertools import compress

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data.buckets import simplest
from dualquery.data.drafting import DraftedColumn, careful_draft
from dualquery.data.edges import fitting_edges
from dualquery.data.readers.python_objects import FrameSource
from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.data.schema.dates import Dates
from dualquery.data.spreads import with_decimals
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError

ROWS = 3_000


def draft(block_rows: int = 1_000, **columns: object) -> dict[str, DraftedColumn]:
    frame = pl.DataFrame(columns, strict=False)
    drafted = careful_draft(FrameSource(frame, block_rows=block_rows))
    assert drafted.schema.declared is False
    # What it drafts, reads the table.
    data = load(frame, drafted.schema)
    records = data.records.dense_rows(0, len(frame))
    starts = drafted.schema.domain.offsets[:-1]
    assert (np.add.reduceat(records, starts, axis=1) <= 1).all()
    return {each.name: each for each in drafted.columns}


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_money_is_cut_where_it_lies() -> None:
    money = np.exp(rng().normal(10.5, 1.2, ROWS)).round(2)
    column = draft(money=money)["money"].column
    assert isinstance(column, Numeric)
    shares = np.histogram(money, column.edges)[0] / ROWS
    assert shares.max() < 0.15
    assert all(len(f"{edge:.0f}".rstrip("0")) <= 3 for edge in column.edges)


def test_records_have_the_decimals_of_the_table() -> None:
    weights = rng().normal(75, 12, ROWS)
    found = draft(
        weight=weights.round(1),
        price=[f"{each:.2f}" for each in weights],
        zero=np.where(rng().random(ROWS) < 0.5, 0.0, weights.round(3)),
        steps=weights.round() + rng().integers(0, 4, ROWS) / 4,
        measured=weights,
        whole=weights.round(),
    )
    columns = {name: each.column for name, each in found.items()}
    assert [getattr(each, "decimals", None) for each in columns.values()] == [
        1,
        2,
        3,
        2,
        None,
        None,
    ]
    assert "(decimals)" not in found["measured"].remark
    assert "; the decimals of its numbers (decimals)" in found["weight"].remark
    weight = columns["weight"]
    assert isinstance(weight, Numeric)
    drawn = weight.draw(np.arange(weight.buckets).repeat(100), rng())
    assert {len(f"{each}".partition(".")[2]) for each in drawn.tolist()} == {1}


def test_a_bucket_too_narrow_for_the_decimals_of_a_table_gets_more() -> None:
    column = Numeric("x", (0, 0.03, 0.08, 0.5))
    assert with_decimals(column, np.array([0.1, 0.2])).decimals == 2
    assert with_decimals(column, np.array([0.1, 1 / 3])) == column


def test_a_row_of_sums_is_pointed_out() -> None:
    found = draft(
        town=[*(f"town {place}" for place in range(ROWS)), "Summe:"],
        kind=[*("ab"[place % 2] for place in range(ROWS)), "Grand total"],
        people=[*map(str, range(ROWS)), " total"],
        note=[*("total loss" for _ in range(ROWS)), "summer"],
    )
    assert found["town"].column is None
    for name, shown in [("town", "Summe:"), ("kind", "Grand total"), ("people", " total")]:
        assert f"; if the row of {shown!r} sums up others, delete it" in found[name].remark
    assert "sums up" not in found["note"].remark


def test_an_amount_that_is_mostly_zero_keeps_zero_apart() -> None:
    amount = np.where(rng().random(ROWS) < 0.9, 0, rng().integers(1, 50_000, ROWS))
    column = draft(amount=amount)["amount"].column
    assert isinstance(column, Numeric)
    assert column.labels[0] == "0"
    assert column.bits > 8


def test_counts_with_a_long_tail_are_cut_at_numbers_that_anybody_would_choose() -> None:
    generator = rng()
    counts = np.floor(np.exp(generator.normal(3, 1.5, ROWS))).clip(1, 511)
    visits = np.where(generator.random(ROWS) < 0.4, 511, counts)
    rare = np.where(generator.random(ROWS) < 0.85, 0, counts)
    found = draft(visits=visits.astype(int), rare=rare.astype(int))
    steps = [1, 1.5, 2, 3, 5, 7]
    scale = {step * power for step in steps for power in (1, 10, 100)}
    column = found["visits"].column
    assert isinstance(column, Numeric)
    assert set(column.edges[1:-3]) <= scale
    assert column.labels[-1] == "511-520"
    assert column.within[-1] == 511
    column = found["rare"].column
    assert isinstance(column, Numeric)
    assert column.labels == ("0", "1", "2-5", "5-10", "10-20", "20-50", "50-100", "100-200",
                             "200-500", "500-1000")  # fmt: skip


LONG_TAILS = {
    "income": lambda g, n: np.exp(g.normal(9, 1, n)).round(2),
    "turnover": lambda g, n: np.exp(g.normal(9, 2, n)).round(2),
    "minutes": lambda g, n: g.exponential(100, n).round(1),
    "visits": lambda g, n: np.floor(np.exp(g.normal(3, 1, n))),
    "use": lambda g, n: np.where(
        g.random(n) < 0.04, np.exp(g.normal(9, 1.2, n)), g.gamma(6, 450, n)
    ).round(),
    "fees": lambda g, n: np.where(g.random(n) < 0.6, 0, np.exp(g.normal(6, 1, n)).round()),
    "profit": lambda g, n: (np.sign(g.normal(size=n)) * np.exp(g.normal(4, 1.5, n))).round(2),
    "claims": lambda g, n: ((1 - g.random(n)) ** (-1 / 1.5) * 20).round(1),
}


def edges_of(name: str, rows: int) -> tuple[list[float], float, float]:
    values = LONG_TAILS[name](rng(), rows)
    column = draft(x=values)["x"].column
    assert isinstance(column, Numeric)
    return list(column.edges), float(values.min()), float(values.max())


@pytest.mark.parametrize("rows", [300, 8_000])
@pytest.mark.parametrize("name", LONG_TAILS)
def test_the_last_bucket_of_a_long_tail_is_neither_long_nor_a_sliver(name: str, rows: int) -> None:
    edges, least, largest = edges_of(name, rows)
    for ends, extreme in ((edges, largest), ([-edge for edge in reversed(edges)], -least)):
        if extreme <= 0:
            continue
        assert ends[-1] <= 5 * ends[-2]
        assert ends[-1] - ends[-2] >= (ends[-2] - ends[-3]) / 2
        assert ends[-1] == float(f"{ends[-1]:.1e}")  # two digits: the largest value has more


@pytest.mark.parametrize("name", [*LONG_TAILS][:-1])  # the last one goes by quantiles
def test_a_few_rows_and_many_get_much_the_same_edges(name: str) -> None:
    few, many = edges_of(name, 300)[0], edges_of(name, 8_000)[0]
    assert np.isin(few[1:-1], many).mean() > 0.6


def test_numbers_of_two_decimals_are_cut_at_two_decimals() -> None:
    often = np.array([9_000, 605, 79, 20, 11, 7, 4, *[0, 1] * 30])
    values = np.r_[np.repeat(np.arange(len(often)) / 100, often), np.ones(2_000)]
    column = draft(rate=values)["rate"].column
    assert isinstance(column, Numeric)
    assert all(edge == round(edge, 2) for edge in column.edges)


def test_a_rate_keeps_none_and_all_apart_and_equal_steps_between() -> None:
    kind = rng().random(ROWS)
    between = np.where(kind < 0.9, 1, rng().beta(1.5, 1.5, ROWS)).round(2)
    column = draft(rate=np.where(kind < 0.6, 0, between))["rate"].column
    assert isinstance(column, Numeric)
    assert column.edges[:2] == (0, 0.01)
    assert column.edges[2:-1] == pytest.approx(np.arange(1, 21) / 20)
    assert (column.within[0], column.within[-1]) == (0, 1)


def test_profits_and_losses_are_cut_alike_on_both_sides_of_zero() -> None:
    size = np.exp(rng().normal(4, 1.8, ROWS)).round(2)
    column = draft(profit=np.where(rng().random(ROWS) < 0.5, size, -size))["profit"].column
    assert isinstance(column, Numeric)
    inner = column.edges[2:-2]
    assert 0 in inner
    assert {-edge for edge in inner if -1000 < edge < 0} == {e for e in inner if 0 < e < 1000}


def test_zero_alone_is_not_joined_with_a_gap_above_it() -> None:
    generator = rng()
    fees = np.floor(np.exp(generator.normal(7, 1, ROWS))).clip(150)
    column = draft(fee=np.where(generator.random(ROWS) < 0.9, 0, fees).astype(int))["fee"].column
    assert isinstance(column, Numeric)
    assert column.labels[0] == "0"
    assert column.edges[2] > 150


def test_numbers_that_no_scale_suits_are_cut_near_their_quantiles() -> None:
    generator = rng()
    near = generator.normal(1_850, 60, ROWS)
    fee = np.where(generator.random(ROWS) < 0.02, generator.integers(1, 5_000, ROWS), near)
    column = draft(fee=fee.astype(int))["fee"].column
    assert isinstance(column, Numeric)
    shares = np.histogram(fee, column.edges)[0] / ROWS
    assert shares.max() < 0.15


def test_numbers_that_spread_get_round_buckets() -> None:
    column = draft(age=rng().integers(0, 100, ROWS))["age"].column
    assert column == Numeric(
        "age", tuple(map(float, range(0, 101, 5))), integer=True, outside="clip"
    )


@pytest.mark.parametrize(("zero", "one"), [("no", "yes"), ("N", "Y"), ("False", "True")])
def test_opposites_are_one_bit(zero: str, one: str) -> None:
    assert draft(x=[one, zero] * 5)["x"].column == Binary("x", zero=zero, one=one)


def test_identifiers_stay_out() -> None:
    found = draft(
        person=np.arange(ROWS) + 1000,
        ticket=rng().permutation(3 * ROWS)[:ROWS],
        customer_id=rng().permutation(10**9 // 2 + np.arange(ROWS) * 10_007),
        mail=[f"{i}@example.org" for i in range(ROWS)],
        account=[f"{i:07d}" for i in range(ROWS)],
        measured=rng().integers(0, 10**12, ROWS),
        kept=["a", "b"] * (ROWS // 2),
    )
    left_out = {name for name, each in found.items() if each.column is None}
    assert left_out == {"person", "ticket", "customer_id", "mail", "account"}
    assert all("names of rows" in found[name].remark for name in left_out)
    assert "leave it out if it names rows" in found["measured"].remark


def test_whole_numbers_beyond_64_bits_are_numbers() -> None:
    huge = [float(2**62 + i * 2**40) for i in range(100)]
    column = draft(x=huge * 2)["x"].column
    assert isinstance(column, Numeric)
    assert not column.integer
    plain = load(pl.DataFrame({"x": huge * 2})).schema.columns[0]  # type: ignore[union-attr]
    assert not plain.integer  # type: ignore[union-attr]


def test_codes_stay_codes() -> None:
    found = draft(zip=[f"{i % 200:05d}" for i in range(ROWS)], few=["01", "02"] * (ROWS // 2))
    column = found["zip"].column
    assert isinstance(column, Categorical)
    assert column.bits == 64
    assert column.outside == "other"
    assert "the 63 most frequent of 200 texts (32%)" in found["zip"].remark
    assert "groups of them, by their first signs perhaps" in found["zip"].remark
    assert found["few"].column == Categorical("few", (("01",), ("02",)))


def test_a_few_texts_too_many_are_listed_all_the_same() -> None:
    found = draft(
        state=[f"s{i % 70}" for i in range(ROWS)],
        gap=[None if i % 90 > 80 else f"g{i % 80}" for i in range(ROWS)],
        more=[f"m{i % 97}" for i in range(ROWS)],
    )
    bits = {name: each.column.bits for name, each in found.items() if each.column is not None}
    assert bits == {"state": 70, "gap": 81, "more": 64}
    assert found["state"].remark == "its 70 texts"


def test_of_too_many_texts_those_in_a_few_rows_are_others() -> None:
    notes = ["see letter", "call back", *(f"phone {1_000 + place}" for place in range(400))]
    found = draft(
        note=[notes[place % 2 if place % 10 else 2 + place // 10] for place in range(ROWS)],
        street=[f"s{place // 2 if place % 5 else 1}" for place in range(ROWS)],
    )
    column = found["note"].column
    assert isinstance(column, Categorical)
    assert column.values == (("call back",), ("see letter",))
    assert column.outside == "other"
    assert found["note"].remark == "the 2 of 302 texts that are in 5 rows or more (90%)"
    assert "of which the most frequent are in 20% of the rows only" in found["street"].remark


def test_minus_one_below_positive_amounts_is_asked_about() -> None:
    money = np.exp(rng().normal(5, 1.5, ROWS)).round(2) + 5
    found = draft(
        cost=np.where(rng().random(ROWS) < 0.01, -1.0, money),
        change=np.where(rng().random(ROWS) < 0.01, -1.0, (money - 5) // 10),
    )
    assert "; -1, apart from all others, may stand for missing" in found["cost"].remark
    assert "may stand for missing" not in found["change"].remark


def test_columns_that_may_say_the_same_are_pointed_out() -> None:
    towns = rng().choice(["Ulm", "Bonn", "Kiel", "Hof"], ROWS, p=[0.4, 0.3, 0.2, 0.1])
    found = draft(
        town=towns,
        key=[{"Ulm": 7, "Bonn": 3, "Kiel": 4, "Hof": 9}[town] for town in towns.tolist()],
        other=rng().permutation(towns)[::-1] == "Ulm",
        even=["a", "b", "c"] * (ROWS // 3),
        even_too=["c", "b", "a"] * (ROWS // 3),
    )
    told = {name for name, each in found.items() if "as frequent as those of" in each.remark}
    assert told == {"key"}
    assert "those of 'town': if each goes with one of these, keep one" in found["key"].remark


def test_what_only_a_person_can_know_is_asked() -> None:
    generator = rng()
    persons = generator.integers(10**6, 10**7, 800)
    wages = (np.exp(generator.normal(10, 0.8, ROWS)) // 50 * 50).astype(int)
    found = draft(
        contact=persons[generator.integers(0, 800, ROWS)],
        wages=np.where(
            generator.random(ROWS) < 0.5, wages, wages + generator.integers(0, 50, ROWS)
        ),
        seconds=(np.exp(generator.normal(7, 0.5, ROWS))).astype(int),
        weight=np.exp(generator.normal(0, 0.5, ROWS)),
        seen=1_600_000_000 + generator.permutation(ROWS) // 2,
        job=[" ?", " clerk", " nurse"] * (ROWS // 3),
        language=["de"] * (ROWS - 3) + ["fr", "fr", "rm"],
    )
    assert {name for name, each in found.items() if "values come again" in each.remark} == {
        "contact"
    }
    assert "give --weight" in found["weight"].remark
    assert "seconds since 1970" in found["seen"].remark
    assert "--csv spaces=trim" in found["job"].remark
    assert "2 in fewer than 5 rows" in found["language"].remark
    assert "fewer than" not in found["wages"].remark + found["seconds"].remark


def test_points_that_may_separate_thousands_and_cells_of_lines_are_pointed_out() -> None:
    use = rng().integers(800, 20_000, ROWS)
    found = draft(
        use=[f"{each:,}".replace(",", ".") for each in use],
        few=[("900", "1.200", "10.000")[i % 3] for i in range(ROWS)],
        measured=[f"{each / 1000:.3f}" for each in rng().integers(1, 20_000, ROWS)],
        short=[f"{each / 1000}" for each in use],
        tariff=["Day", "Night\nDay", "Night"] * (ROWS // 3),
    )
    remarks = {name: each.remark for name, each in found.items()}
    assert "--csv decimal=, reads it so in a CSV file" in remarks["use"]
    assert "; if 1.200 is 1200, --csv decimal=, reads it so" in remarks["few"]
    assert "decimal=," not in remarks["measured"] + remarks["short"]
    assert "is a quotation mark not closed" in remarks["tariff"]


def test_rare_numbers_among_few_are_pointed_out() -> None:
    claims = np.repeat([0, 1, 2, 3, 5, 9, 60], [ROWS - 800, 500, 200, 70, 25, 3, 2])
    found = draft(claims=claims, grade=np.arange(ROWS) % 6)
    assert isinstance(found["claims"].column, Categorical)
    assert "2 in fewer than 5 rows" in found["claims"].remark
    assert "put them into buckets" in found["claims"].remark
    assert found["grade"].remark == "its 6 values"


def test_cells_with_several_answers_are_pointed_out() -> None:
    asked = ["R", "SQL", "Excel", "Julia", "Stata"]
    ticked = rng().random((ROWS, 5)) < 0.5
    shop = [f"{first} St, {last}" for first in "ABCDEFGH" for last in ("Rome", "Bonn", "York")]
    found = draft(
        tools=[";".join(compress(asked, row)) or "none" for row in ticked],
        many=[
            ", ".join(f"item {i}" for i in np.flatnonzero(r))
            for r in rng().random((ROWS, 12)) < 0.5
        ],
        agent=[("Mozilla (X; Y)", "curl", "bot (A; B)", "Opera")[i % 4] for i in range(ROWS)],
        price=[f"{i % 10},{i % 7}5" for i in range(ROWS)],
        shop=[shop[i % len(shop)] for i in range(ROWS)],
    )
    remark = "; if cells such as 'R;SQL' hold several answers, make each answer a column"
    assert remark in found["tools"].remark
    assert found["many"].column is None
    assert "make each answer a column" in found["many"].remark
    assert "make each answer a column" in found["shop"].remark  # only a person can tell
    for name in ("agent", "price"):
        assert "answer" not in found[name].remark


def test_stamps_of_twelve_hours_are_dates_and_unread_ones_are_pointed_out() -> None:
    start = datetime.datetime(2024, 1, 31, 20, 58, 20)
    stamps = [start + datetime.timedelta(hours=i) for i in range(ROWS)]
    found = draft(
        excel=[f"{each:%m/%d/%Y %I:%M %p}" for each in stamps],
        form=[f"{each:%Y/%m/%d %I:%M:%S %p} GMT+1" for each in stamps],
        other=[0, 1] * (ROWS // 2),
    )
    assert isinstance(found["excel"].column, Dates)
    assert found["excel"].column.format == "%m/%d/%Y %I:%M %p"
    assert found["form"].column is None
    assert found["form"].remark.endswith("is a time, write it as 2024-01-31 18:05")


def test_numbers_of_eights_and_nines_apart_from_all_others_are_pointed_out() -> None:
    generator = rng()
    small = generator.integers(0, 90, ROWS)
    found = draft(
        child=generator.choice([0, 1, 2, 3, 8, 9], ROWS),
        trust=generator.choice([*range(1, 11), 77, 99], ROWS),
        income=np.where(
            generator.random(ROWS) < 0.1, -8, np.exp(generator.normal(9, 1, ROWS)) // 1
        ),
        age=np.where(generator.random(ROWS) < 0.1, 999, small),
        score=np.where(generator.random(ROWS) < 0.1, -9, small),
        cylinders=generator.choice([4, 6, 8], ROWS),
        grade=generator.integers(1, 10, ROWS),
        years=generator.integers(0, 100, ROWS),
        money=np.where(np.arange(ROWS) == 5, 99_999, small * 7),  # once is no mark
    )
    told = {name: each.remark for name, each in found.items() if "missing values" in each.remark}
    assert told.keys() == {"child", "trust"}
    assert "8 and 9, apart from all others" in told["child"]
    taken = {name: found[name].remark for name in found.keys() - told.keys()}
    assert {name for name in taken if "as missing" in taken[name]} == {"income", "age", "score"}
    for name, mark in (("income", -8), ("age", 999), ("score", -9)):
        assert f"; {mark}, far from all other numbers, as missing" in taken[name]
        column = found[name].column
        assert isinstance(column, Numeric)
        assert column.missing == "category"
        assert not column.edges[0] <= mark <= column.edges[-1]


@pytest.mark.parametrize("kind", [str, float])
def test_a_number_stands_for_missing_values_by_column(
    kind: type,
) -> None:
    generator = rng()
    degrees = np.round(generator.normal(10, 9, ROWS), 1)
    lost = generator.random((4, ROWS)) < 0.1
    columns = {
        "degrees": np.where(lost[0], -999, degrees),
        "grade": np.where(lost[1], -999, generator.integers(1, 7, ROWS)),
        "word": np.where(lost[2], "-999", generator.choice(["a", "b"], ROWS)),
        "day": np.where(lost[3], "-999", generator.choice(["2024-01-31", "2023-05-06"], ROWS)),
    }
    frame = pl.DataFrame(columns).with_columns(pl.col("degrees", "grade").map_elements(kind, kind))
    source = FrameSource(frame, block_rows=500)
    found = careful_draft(source).schema
    assert found.missing_values == ("",)
    own = {column.name: column.missing_values for column in found.columns}
    written = ("-999.0",) if kind is str else ("-999",)
    assert own == {"degrees": written, "grade": ("-999",), "word": ("-999",), "day": ("-999",)}
    remarks = {each.name: each.remark for each in careful_draft(source).columns}
    assert ", far from all other numbers, as missing" in remarks["degrees"]
    assert remarks["word"].endswith("; -999 as missing in this column")  # it has no other numbers
    rows = load(frame, found).records.dense_rows(0, ROWS)
    for place, column in enumerate(found.columns):
        assert isinstance(column, Numeric | Categorical | Dates)
        bit = column.missing_bit
        assert bit is not None
        missing = rows[:, found.domain.offsets[place] + bit] == 1
        np.testing.assert_array_equal(missing, lost[place])
    # It may be an ordinary number elsewhere.
    place = pl.Series("place", np.arange(-1500, -1500 + ROWS) // 2 * 2 + 1)
    drafted = careful_draft(FrameSource(frame.with_columns(place), block_rows=500)).schema
    assert drafted.columns[:4] == found.columns
    assert drafted.columns[4].missing_values == ()
    assert not drafted.declared


def test_an_ordinary_number_among_very_many_is_not_missing() -> None:
    generator = rng()
    rows = 140_000
    money = generator.integers(0, 900_000, rows)
    money[money == 999] = 1000
    money[1] = 999  # of so many numbers every second one is looked at
    age = np.where(generator.random(rows) < 0.1, 999, generator.integers(0, 90, rows))
    found = draft(age=age, money=money)
    assert [each.column.missing_values for each in found.values() if each.column] == [("999",), ()]


def test_ends_of_ordinary_columns_stand_for_no_missing_values() -> None:
    generator = rng()
    found = draft(
        price=generator.choice([*range(9, 300, 10), 499, 999], ROWS),
        gain=np.where(generator.random(ROWS) < 0.1, generator.integers(1, 420, ROWS) * 100, 0),
        capped=np.minimum(np.exp(generator.normal(7, 2, ROWS)) // 1, 99_999),
        change=generator.poisson(30, ROWS) - generator.poisson(9, ROWS),
        frost=np.round(generator.normal(15, 7, ROWS)),
    )
    assert not [each.remark for each in found.values() if "as missing" in each.remark]


def test_minus_one_far_below_all_others_is_missing() -> None:
    years = np.where(rng().random(ROWS) < 0.1, -1, rng().integers(1950, 2000, ROWS))
    assert "-1, far from all other numbers, as missing" in draft(year=years)["year"].remark


def test_a_long_list_of_codes_is_told_by_frequencies_in_no_order() -> None:
    generator = rng()
    popular = generator.permutation(1 / np.arange(1, 91))
    service = generator.choice(90, 20_000, p=popular / popular.sum())
    service[:90] = range(90)
    age = np.minimum(generator.gamma(4, 10, 20_000), 99).astype(int)
    age[:100] = range(100)
    spread = generator.integers(0, 120, 20_000)
    rounded = np.where(generator.random(20_000) < 0.4, spread // 5 * 5, spread)
    found = draft(service=service, age=age, rounded=rounded)
    column = found["service"].column
    assert isinstance(column, Categorical)
    assert (column.bits, column.outside) == (90, "error")
    assert "taken for codes" in found["service"].remark
    for name in ("age", "rounded"):
        assert isinstance(found[name].column, Numeric)
        assert "if they are codes, list them as categories" in found[name].remark


def test_markers_of_missing_values_are_proposed() -> None:
    frame = pl.DataFrame({"x": ["1", "?", "3"] * 40, "y": ["a", "NA", "b"] * 40})
    drafted = careful_draft(FrameSource(frame, block_rows=50))
    assert drafted.schema.missing_values == ("", "?", "NA")
    assert drafted.columns[0].remark == "its 2 values; '?' as missing"
    assert drafted.columns[1].column == Categorical("y", (("a",), ("b",)), missing="category")
    survey = draft(
        age=[*map(str, range(20, 90)), "k.A.", ".", "#NV"] * 3, state=["ND", "SD", "n.a."] * 73
    )
    assert survey["age"].remark == "its range; '#NV', '.', 'k.A.' as missing"
    assert survey["state"].column == Categorical("state", (("ND",), ("SD",)), missing="category")
    words = draft(x=[*map(str, range(200)), "N", "N"])["x"]
    assert words.remark.startswith("its range; texts such as 'N' count as missing")


def test_dates_become_years_months_or_days() -> None:
    start = datetime.date(2001, 5, 17)
    found = draft(
        born=[start + datetime.timedelta(days=5 * i) for i in range(ROWS)],
        long=[start - datetime.timedelta(days=10 * i) for i in range(ROWS)],
        paid=[f"{start + datetime.timedelta(days=i % 300):%d.%m.%Y}" for i in range(ROWS)],
        seen=[f"{start + datetime.timedelta(days=i % 20)} 10:{i % 60:02}" for i in range(ROWS)],
        either=["01/02/2020", "03/04/2020", None] * (ROWS // 3),
    )
    assert found["born"].column == Dates("born", "year", "2001-01-01", "2042-12-31", outside="clip")
    assert isinstance(found["long"].column, Dates)
    assert found["long"].column.labels[-2:] == ("1990s", "2000s")
    assert (found["long"].column.first, found["long"].column.last) == ("1910-01-01", "2009-12-31")
    paid = found["paid"].column
    assert isinstance(paid, Dates)
    assert (paid.by, paid.format, paid.labels[0]) == ("month", "%d.%m.%Y", "2001-05")
    assert (paid.first, paid.last) == ("2001-05-01", "2002-03-31")
    seen = found["seen"].column
    assert isinstance(seen, Dates)
    assert (seen.by, seen.bits) == ("day", 20)
    assert "may be the other way round" in found["either"].remark


def test_a_date_that_stands_for_no_end_is_pointed_out() -> None:
    start = datetime.date(2021, 5, 17)
    days = [start + datetime.timedelta(days=i) for i in range(ROWS)]
    found = draft(real=days, until=[datetime.date.max if i % 3 else days[i] for i in range(ROWS)])
    assert "9999-12-31 may stand for no end" in found["until"].remark
    assert "no end" not in found["real"].remark


def test_amounts_of_few_values_get_buckets_and_codes_do_not() -> None:
    months = rng().choice([0, 1, 2, 3, 4, 5, 6, *range(8, 75, 3)], ROWS)
    often = np.where(np.isin(np.arange(31), [2, 4, 11, 14, 16, 21, 23]), 90, 5)
    heaped = np.resize(np.repeat(np.r_[0:26, 28, 35, 38, 52, 74], often), ROWS)  # appointments
    found = draft(
        months=months, heaped=heaped, country=np.arange(ROWS) % 41, grade=np.arange(ROWS) % 20 * 3,
        trade_code=rng().choice(range(1000, 9000, 111), ROWS),
    )  # fmt: skip
    assert isinstance(found["months"].column, Numeric)
    assert isinstance(found["heaped"].column, Numeric)
    assert "if they are codes" in found["months"].remark
    for name in ("country", "grade", "trade_code"):
        assert isinstance(found[name].column, Categorical), name


def test_a_word_beside_numbers_does_not_make_them_categories() -> None:
    degrees = np.array([f"{value:.1f}" for value in rng().normal(37, 0.7, ROWS).clip(35, 40)])
    dashes = np.where(rng().random(ROWS) < 0.2, "-", degrees)
    commas = np.char.replace(dashes, ".", ",")
    codes = np.array([f"{code}{'abc'[code % 3]}" if code % 5 else f"{code}" for code in range(40)])
    found = draft(degrees=dashes, commas=commas, code=np.resize(codes, ROWS))
    column = found["degrees"].column
    assert isinstance(column, Numeric)
    assert column.unparsable == "missing"
    assert "'-' count as missing" in found["degrees"].remark
    assert "--csv decimal=," in found["commas"].remark
    assert isinstance(found["code"].column, Categorical)


@pytest.mark.parametrize("name", ["PatientenNr", "Kundennummer", "order number", "case_nr", "ID"])
def test_names_of_persons_in_many_rows_stay_out(name: str) -> None:
    found = draft(
        **{name: rng().integers(10_000, 10_800, ROWS), "age": rng().integers(0, 90, ROWS)}
    )
    assert found[name].column is None
    assert "--unit" in found[name].remark
    assert ("make each list a row" in found[name].remark) == name.startswith("order")


def test_a_marker_at_the_end_of_the_range_has_a_bucket_of_its_own() -> None:
    values = np.where(rng().random(ROWS) < 0.1, 100_000, rng().integers(0, 500, ROWS))
    column = draft(x=values)["x"].column
    assert isinstance(column, Numeric)
    assert column.edges[-2] == 100_000


def test_a_few_numbers_far_beyond_do_not_stretch_the_range() -> None:
    money = np.exp(rng().normal(10, 1, ROWS))
    money[7] = 1e12
    found = draft(x=money)["x"]
    assert isinstance(found.column, Numeric)
    assert found.column.edges[-1] < 1e8
    assert "far beyond are clipped" in found.remark


def test_texts_that_categories_would_not_cover_are_left_out() -> None:
    found = draft(
        name=[f"n{i % 1_000}" for i in range(ROWS)],
        price=[f"${i % 900 + 1_000:,}.00" for i in range(ROWS)],
        share=[f"{i % 90}.{i % 7}%" for i in range(ROWS)],
        patient_id=[f"P{i // 3}" for i in range(ROWS)],
        nothing=[None] * ROWS,
        comma=["1,5", "2,25"] * (ROWS // 2),
        many=[f"{i},{i % 90:02}" for i in range(ROWS)],
        kept=["a", "b"] * (ROWS // 2),
    )
    remarks = {name: each.remark for name, each in found.items() if each.column is None}
    assert remarks.keys() == {"name", "price", "share", "patient_id", "nothing", "many"}
    assert remarks["many"] == (
        "numbers with decimal commas, such as '0,00': --csv decimal=, reads those of a CSV file"
    )
    assert "--csv decimal=, reads those of a CSV file" in found["comma"].remark
    assert "1,000 different texts, each in fewer than 5 rows: group them" in remarks["name"]
    assert remarks["price"].endswith("write them without signs")
    assert "write them without signs" in remarks["share"]
    assert "names of persons" in remarks["patient_id"]


def test_dates_as_digits_clock_times_and_slips() -> None:
    start = datetime.date(2001, 5, 17)
    days = [start + datetime.timedelta(days=i % 2_900) for i in range(ROWS)]
    slips = [f"{day:%d.%m.%Y}" for day in days]
    slips[5] = "31.02.2003"
    found = draft(
        text=[f"{day:%Y%m%d}" for day in days],
        number=[int(f"{day:%Y%m%d}") for day in days],
        month=[int(f"{day:%Y%m}") for day in days],
        time=[f"{i % 24:02}:{i % 60:02}" for i in range(ROWS)],
        clock=[datetime.time(i % 24, i % 60) for i in range(ROWS)],
        slips=slips,
    )
    for name in ("text", "number", "slips"):
        column = found[name].column
        assert isinstance(column, Dates), name
        assert (column.by, column.labels[0]) == ("year", "2001")
    assert "'31.02.2003' count as missing" in found["slips"].remark
    assert isinstance(found["time"].column, Dates)
    assert found["time"].column.by == "hour of day"
    assert isinstance(found["clock"].column, Dates)
    assert found["clock"].column.by == "hour of day"
    assert isinstance(found["month"].column, Numeric)
    assert found["month"].column.edges[:2] == (200101, 200201)


def test_labels_come_in_the_order_of_their_numbers() -> None:
    column = draft(x=["10+", "0-4", "5-9"] * 9)["x"].column
    assert isinstance(column, Categorical)
    assert column.labels == ("0-4", "5-9", "10+")


def test_texts_of_equal_numbers_have_one_order() -> None:
    texts = ["0", "00", "000", "0000", "01", "001", "1"]
    for shuffled in (texts, texts[::-1], sorted(texts, key=len)):
        column = draft(x=shuffled * 9)["x"].column
        assert isinstance(column, Categorical)
        assert column.labels == ("0", "00", "000", "0000", "001", "01", "1")


def test_spellings_in_large_and_small_letters_are_one_category() -> None:
    found = draft(sex=["F", "M", "f", "m", "x"] * 9, one=["No", "no", "NO"] * 15)
    column = found["sex"].column
    assert isinstance(column, Categorical)
    assert column.values == (("F", "f"), ("M", "m"), ("x",))
    assert "taken as one" in found["sex"].remark
    assert isinstance(found["one"].column, Categorical)


def test_a_long_tail_does_not_count_as_its_middle() -> None:
    money = np.exp(rng().normal(8, 1.3, ROWS)).round(2)
    frame = pl.DataFrame({"money": money, "twin": [0, 1] * (ROWS // 2)})
    schema = replace(careful_draft(FrameSource(frame, block_rows=1_000)).schema, declared=True)
    decoded = schema.decode(load(frame, schema).records.dense_rows(0, ROWS))["money"].mean()
    # Uniform in its last bucket, the mean would be more than twice as large.
    assert decoded == pytest.approx(money.mean(), rel=0.1)


def test_a_heap_does_not_count_as_its_whole_bucket() -> None:
    heaped = rng().random(ROWS) < 0.8
    hours = np.where(heaped, rng().choice([20, 30, 35, 45, 60], ROWS), rng().integers(0, 80, ROWS))
    even = rng().integers(0, 75, ROWS)
    frame = pl.DataFrame({"hours": hours, "even": even, "one": 0, "two": [0, 1] * (ROWS // 2)})
    schema = replace(careful_draft(FrameSource(frame, block_rows=1_000)).schema, declared=True)
    decoded = schema.decode(load(frame, schema).records.dense_rows(0, ROWS))
    assert schema.columns[1].within == "uniform"
    for name in ("hours", "even"):  # values even in their buckets of 5 hours would be off by 0.12
        ours, theirs = (np.sort(each[name].to_numpy()) for each in (decoded, frame))
        below = [np.searchsorted(each, range(81)) / ROWS for each in (ours, theirs)]
        assert np.abs(below[0] - below[1]).max() < 0.025


def test_a_bucket_of_one_value_says_so() -> None:
    rates = np.where(rng().random(ROWS) < 0.6, 1.0, rng().random(ROWS).round(2))
    column = draft(rate=rates)["rate"].column
    assert isinstance(column, Numeric)
    assert column.edges[-2] == 1
    assert column.within[-1] == 1


def test_what_cannot_be_kept_is_left_out_and_said() -> None:
    found = draft(tags=[["a"], ["b"]] * 20, many=[f"n{i % 30}" for i in range(40)])
    assert found["tags"].column is None
    assert found["tags"].remark == "type List(String), which cannot become bits"
    with pytest.raises(BadInputError, match="no column can be kept"):
        draft(tags=[["a"], ["b"]])


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=70, max_size=200),
    st.sampled_from([1.0, 0.01, 1e9]),
    st.booleans(),
)
def test_edges_increase_and_cover(numbers: list[int], unit: float, skewed: bool) -> None:
    values = np.array(numbers, float) * unit
    values = values**3 / 1e12 if skewed else values
    whole = bool(np.all(values == np.floor(values))) and np.abs(values).max() < 2**62
    low, high = float(values.min()), float(values.max())
    if low == high:
        return
    edges = fitting_edges(values, low, high, 16, whole=whole)
    assert edges[0] <= low < high <= edges[-1]
    assert len(edges) - 1 <= 48
    assert Numeric("x", edges, integer=whole).bits >= 2


@given(st.fractions(-1000, 1000), st.fractions(0, 100))
def test_the_simplest_number_lies_in_its_range(low: object, width: object) -> None:
    found = simplest(low, low + width, whole=False) if width else 0  # type: ignore[operator,arg-type]
    assert not width or low <= found <= low + width  # type: ignore[operator]

"""Values of records: where the schema says that they lie, and back in the same bucket."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualquery
from dualquery.data import Binary, Categorical, Numeric, TableSchema
from dualquery.data.schema.numeric import mean_of, part_between, quantile_of
from dualquery.data.schema.schema_files import column_from_dict, schema_from_dict
from dualquery.releases.answer.answering import answer_queries
from dualquery.releases.answer.bought import with_mean
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError
from tests.tables import random_records

INCOME = Numeric(
    "income",
    (0, 1, 1000, 5000, 100_000),
    integer=True,
    within=(0, "uniform", (2500, 2500, 4000), "log-uniform"),
)


def test_a_logarithmic_bucket_may_be_as_short_as_numbers_differ() -> None:
    assert mean_of("log-uniform", (10.0, math.nextafter(10.0, 11.0)), None) == pytest.approx(10.0)


def draw(column: Numeric, bucket: int, count: int = 20_000) -> np.ndarray:
    return column.draw(np.full(count, bucket), np.random.default_rng(0)).to_numpy()


def test_each_rule_gives_its_own_distribution() -> None:
    assert set(draw(INCOME, 0)) == {0}
    even = draw(INCOME, 1)
    assert (even.min(), even.max()) == (1, 999)
    assert even.mean() == pytest.approx(500, abs=0.5)
    values, times = np.unique(draw(INCOME, 2), return_counts=True)
    assert values.tolist() == [2500, 4000]
    assert times[0] == pytest.approx(2 * times[1], rel=0.01)
    middle = (math.log(5000) + math.log(100_001)) / 2
    assert np.median(np.log(draw(INCOME, 3).astype(float))) == pytest.approx(middle, abs=0.01)


@pytest.mark.parametrize("within", ["uniform", "log-uniform", ("sloped", "log-uniform", 7.5)])
@pytest.mark.parametrize("integer", [False, True])
def test_stated_means_are_those_of_what_is_drawn(within, integer: bool) -> None:
    if integer and not isinstance(within, str):
        within = ("uniform", "log-uniform", 8)
    column = Numeric("x", (1.0, 3.0, 7.0, 20.0), integer, within=within)
    for bucket in range(3):
        found = draw(column, bucket).mean()
        # The mean of whole numbers by a log-uniform rule is stated to half a number or so.
        assert found == pytest.approx(column.means[bucket], rel=0.002, abs=0.1 if integer else 0)


numbers = st.floats(-1e308, 1e308, allow_nan=False)
edges = st.lists(numbers, min_size=3, max_size=6, unique=True).map(sorted)


@given(edges, st.sampled_from(["uniform", "sloped", "log-uniform"]), st.integers(0, 1000))
def test_what_is_drawn_is_encoded_to_the_same_bits(ends, within, seed) -> None:
    try:
        column = Numeric("x", tuple(ends), within=within)
    except BadInputError:
        return  # log-uniform below 0, or buckets that cannot be
    schema = TableSchema((column,), declared=True)
    records = random_records(schema.domain, 40, np.random.default_rng(seed))
    again = load(schema.decode(records), schema).records
    np.testing.assert_array_equal(again.dense_rows(0, 40), records)


coarse = st.lists(st.integers(-(10**6), 10**6), min_size=3, max_size=6, unique=True).map(sorted)


@given(
    coarse,
    st.integers(0, 7),
    st.integers(1, 6),
    st.sampled_from(["uniform", "sloped", "log-uniform"]),
    st.lists(st.floats(0, 1), min_size=5, max_size=5),
    st.integers(0, 1000),
)
def test_numbers_have_the_decimals_of_the_schema_and_stay_in_their_bucket(
    grid, places, decimals, within, shares, seed
) -> None:
    ends = tuple(edge / 10**places for edge in grid)
    try:
        column = Numeric("x", ends, within=within, decimals=decimals)
    except BadInputError as error:
        column, refused = None, str(error)
    if column is None:
        unfit = within == "log-uniform" and ends[0] <= 0
        assert unfit or (places > decimals and "holds no such number" in refused)
        return
    for each in (column, with_mean(column, np.array(shares[: column.buckets]), column.means[0])):
        schema = TableSchema((each,), declared=True)
        records = random_records(schema.domain, 40, np.random.default_rng(seed))
        decoded = schema.decode(records, np.random.default_rng(seed))
        for table in (decoded, decoded.cast(pl.String)):
            np.testing.assert_array_equal(load(table, schema).records.dense_rows(0, 40), records)
        assert decoded["x"].round(decimals).equals(decoded["x"])


def test_all_numbers_of_so_many_decimals_are_drawn_alike() -> None:
    column = Numeric("x", (0.0, 0.5, 20_000), decimals=1)
    values, times = np.unique(draw(column, 0), return_counts=True)
    assert values.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert times.max() < 1.1 * times.min() + 1
    for at, low, part, mean in ((1, 0.2, 0.4, 0.05), (1, 0.21, 0.6, 0.1), (None, 0.2, 0.4, 0.1)):
        assert part_between("uniform", (0.0, 0.5), at, 0.0, low) == pytest.approx((part, mean))
    assert [quantile_of("uniform", 1, 0.0, 0.49, level) for level in (0.1, 0.5, 1)] == [0, 0.2, 0.4]
    assert len(np.unique(draw(column, 1))) > 5_000  # though the bucket is wide
    assert column.to_dict()["decimals"] == 1
    assert column_from_dict(column.to_dict()) == column
    assert "decimals" not in Numeric("x", (0, 1, 2)).to_dict()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"decimals": 0}, "decimals is 0; it is 1 to 6, and integer says that there are none"),
        ({"decimals": 1, "edges": [0, 0.11, 0.19, 1]}, "starts at 0.11 holds no such number"),
        ({"decimals": 6, "edges": [0, 1, 1e10]}, "more than numbers as large as these hold"),
    ],
)
def test_decimals_that_cannot_be_are_refused(more, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        column_from_dict({"name": "x", "kind": "numeric", "edges": [0, 1, 2], **more})


def test_values_that_mean_missing_are_not_drawn() -> None:
    column = Numeric("x", (0, 3, 10), integer=True, missing="category")
    schema = TableSchema((column,), declared=True, missing_values=("", "1", "7.0"))
    records = random_records(schema.domain, 300, np.random.default_rng(1))
    decoded = schema.decode(records)
    assert not {1, 7} & set(decoded["x"].drop_nulls())
    np.testing.assert_array_equal(load(decoded, schema).records.dense_rows(0, 300), records)
    assert decoded["x"].null_count() == records[:, -1].sum()
    drawn = column.draw(np.ones(7_000, np.int64), np.random.default_rng(2), (7.0,))
    assert np.ptp(np.bincount(drawn)[[3, 4, 5, 6, 8, 9, 10]]) < 200  # 1,000 of each


def test_codes_that_are_whole_numbers_come_back_as_such() -> None:
    schema = TableSchema(
        (
            Categorical("code", (("1",), ("7", "8"), ("-3",)), missing="category"),
            Categorical("zip", (("01",), ("22",))),
            Categorical("mixed", (("1",), ("2",)), outside="other"),
            Categorical("marked", (("5",), ("99",))),
            Binary("kind", zero="1", one="2"),
        ),
        declared=True,
        missing_values=("99.0",),
    )
    records = random_records(schema.domain, 100, np.random.default_rng(0))
    decoded = schema.decode(records)
    texts = dict.fromkeys(("zip", "mixed", "marked"), pl.String)
    assert decoded.schema == {"code": pl.Int64, **texts, "kind": pl.Int64}
    assert set(decoded["code"].drop_nulls()) == {1, 7, -3}
    np.testing.assert_array_equal(load(decoded, schema).records.dense_rows(0, 100), records)


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ("often", "'often' is none of uniform, sloped, log-uniform"),
        (["uniform"], "within is .* a rule for each of the 2 buckets"),
        ([], "within is .* a rule for each of the 2 buckets"),
        ("log-uniform", "log-uniform is for buckets above 0"),
        (["uniform", 5.5], "5.5 is no whole number in the bucket"),
    ],
)
def test_rules_that_cannot_be_are_refused(within, message) -> None:
    fields = {"name": "x", "kind": "numeric", "edges": [0, 5, 10], "integer": True}
    with pytest.raises(BadInputError, match=message):
        column_from_dict({**fields, "within": within})


@pytest.mark.parametrize("last", [(6, 7), (12, 13)], ids=["all-one-wide", "last-one-wide"])
def test_a_last_bucket_one_wide_holds_one_whole_number(last) -> None:
    """Grades 1 to 6, each in a bucket of its own, have edges 1 to 7, as the page says."""
    grades = {"name": "g", "kind": "numeric", "edges": [1, 2, 3, 4, 5, *last], "integer": True}
    schema = schema_from_dict({"declared": True, "columns": [grades]})
    table = pl.DataFrame({"g": [1, 2, 3, 4, 5 if last == (6, 7) else 9, last[0]] * 200})
    made = dualquery.release(
        table, schema=schema, queries="all", way=1, mechanism="independent", epsilon=1e4, seed=1
    )
    assert max(made.synthetic["g"]) == last[0]
    asked = answer_queries(made, [f"g>={last[1]}", "mean(g)", "quantile(g, 0.95)", f"g={last[0]}"])
    beyond, mean, quantile, share = (each["answer"] for each in asked)
    assert beyond == 0
    assert mean == pytest.approx(3.5 if last == (6, 7) else (1 + 2 + 3 + 4 + 8 + 12) / 6, abs=0.01)
    assert quantile == last[0]
    assert share == pytest.approx(1 / 6, abs=0.01)
    told = rf"row 1, column 'g': {last[1]} is outside .*to {last[0]}"
    with pytest.raises(BadInputError, match=told):
        load(pl.DataFrame({"g": [last[1]]}), schema)
    named = dict(grades, within=["uniform"] * 5 + [[last[0], last[1]]])  # as releases may have it
    assert load(pl.DataFrame({"g": [last[1]]}), {"columns": [named]}).n == 1

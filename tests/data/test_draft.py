"""Schemas drafted from the data: what they choose, and that a release can tell."""

from __future__ import annotations

import datetime
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dualquery.data.buckets import tidy_edges
from dualquery.data.draft import draft_table_schema
from dualquery.data.readers.python_objects import FrameSource
from dualquery.data.schema.columns import Binary, Categorical, Numeric
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError


def draft(**columns: object) -> dict[str, object]:
    source = FrameSource(pl.DataFrame(columns, strict=False), block_rows=10)
    schema = draft_table_schema(source)
    assert schema.declared is False
    return {column.name: column for column in schema.columns}


def test_few_values_are_categories_in_order() -> None:
    found = draft(n=["10", "9", "b", "a"], x=[2.5, 1.0, 1.0, 7.0])
    assert found["n"] == Categorical("n", (("9",), ("10",), ("a",), ("b",)))
    assert found["x"] == Categorical("x", (("1",), ("2.5",), ("7",)))


def test_sixty_four_values_are_categories_and_sixty_five_are_buckets() -> None:
    found = draft(n=[*range(64), 0])
    assert isinstance(found["n"], Categorical)
    assert found["n"].bits == 64
    found = draft(n=list(range(65)))
    assert found["n"] == Numeric("n", tuple(np.linspace(0, 64, 17).tolist()), integer=True)


@pytest.mark.parametrize("as_text", [False, True])
def test_missing_values_get_a_category(as_text: bool) -> None:
    values: list[object] = [0.25 * i for i in range(100)] + [None]
    if as_text:
        values = ["" if value is None else str(value) for value in values]
    found = draft(x=values, c=["a", "b", None] * 33 + ["a", "b"])
    assert found["x"] == Numeric("x", tuple(np.linspace(0, 32, 17).tolist()), missing="category")
    assert found["c"] == Categorical("c", (("a",), ("b",)), missing="category")


def test_texts_among_many_numbers_count_as_missing() -> None:
    values = [str(i) for i in range(100)] + ["unknown", "n/a", "inf"]
    column = draft(x=values)["x"]
    assert column == Numeric(
        *("x", tuple(np.linspace(0, 128, 17).tolist())),
        integer=True,
        missing="category",
        unparsable="missing",  # type: ignore[arg-type]
    )
    data = load(pl.DataFrame({"x": values}))
    assert data.records.dense_rows(100, 103)[:, -1].tolist() == [1, 1, 1]


def test_zero_and_one_are_one_bit() -> None:
    found = draft(a=[0, 1, 1], b=["1", "1", "1"], c=[True, False, True], d=[0, 1, None])
    assert found["a"] == Binary("a")
    assert found["b"] == Binary("b")
    assert found["c"] == Binary("c", "false", "true")
    assert found["d"] == Categorical("d", (("0",), ("1",)), missing="category")


def test_constant_and_empty_columns_are_still_groups() -> None:
    found = draft(a=["x", "x"], b=[None, None], c=["y", None])
    assert found["a"] == Categorical("a", (("x",),), outside="other")
    assert found["b"] == Categorical("b", (), missing="category", outside="other")
    assert found["c"] == Categorical("c", (("y",),), missing="category")


def test_many_words_cannot_be_drafted() -> None:
    with pytest.raises(
        BadInputError,
        match=r"table: column 'id' has more than 64 distinct values that are not numbers; make a "
        r"schema, .* drafts one\), or leave it out with --columns '!id'$",
    ):
        draft(id=[f"id{i}" for i in range(65)])


def test_all_columns_that_cannot_be_drafted_are_named_at_once() -> None:
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(70)]
    frame = pl.DataFrame(
        {
            "id": [f"id{i}" for i in range(70)],
            "born": days,
            "seen": [f"{day:%d.%m.%Y} 10:30" for day in days],
            "few": ["2024-01-01", "2024-01-02"] * 35,
            "last, first": [f"n{i}" for i in range(70)],
            "tags": [[1]] * 70,
            "took": [datetime.timedelta(i) for i in range(70)],
            "odd": ["1." + "0" * i for i in range(70)],
        }
    )
    source = FrameSource(frame, block_rows=10)
    with pytest.raises(BadInputError) as error:
        draft_table_schema(source)
    dates = "has more than 64 distinct dates; "
    for part in [
        "column 'id' has more than 64 distinct values that are not numbers; ",
        f"column 'born' {dates}",
        f"column 'seen' {dates}",
        "column 'last, first' has more than 64",
        "column 'tags' has type List(Int64), which cannot become bits; ",
        "column 'took' has type Duration",
        "column 'odd' has more than 64 distinct values, and only one number among them; ",
    ]:
        assert part in str(error.value)
    selection = "!id,!born,!seen,!4,!tags,!took,!odd"
    assert f"drafts one), or leave them out with --columns '{selection}'" in str(error.value)
    assert draft_table_schema(source, selection).column_names == ("few",)
    with pytest.raises(BadInputError, match=r"leave it out with --columns '0,few,!id'"):
        draft_table_schema(source, "0,few")


def test_huge_numbers_have_finite_edges() -> None:
    values = np.concatenate((np.linspace(0, 1, 80), [-1.7e308, 1.7e308]))
    column = draft(x=values)["x"]
    assert isinstance(column, Numeric)
    assert (column.edges[0], column.edges[-1]) == (-1.7e308, 1.7e308)


@pytest.mark.parametrize(
    ("low", "high", "whole", "first", "second", "last"),
    [
        (17, 90, True, 15, 20, 95),
        (0, 64, True, 0, 4, 64),
        (0, 65, True, 0, 5, 80),
        (3, 5, True, 3, 4, 19),
        (-114699.3, 94363.7, False, -120_000, -105_000, 120_000),
        (1.28, 2.05, False, 1.25, 1.3, 2.05),
        (0.1, 0.3, False, 0.09, 0.105, 0.33),
    ],
)
def test_edges_are_tidy(
    low: float, high: float, whole: bool, first: float, second: float, last: float
) -> None:
    edges = tidy_edges(low, high, 16, whole=whole)
    assert (edges[0], edges[1], edges[-1], len(edges)) == (first, second, last, 17)


def ranges() -> st.SearchStrategy[tuple[float, float]]:
    numbers = st.floats(-1e300, 1e300)
    # 64 floats apart at least, as in a column with more than 64 values.
    return st.tuples(numbers, numbers).filter(
        lambda ends: ends[0] + 64 * math.ulp(ends[0]) < ends[1] - 64 * math.ulp(ends[1])
    )


@given(ranges())
@example((5e-324, 1e-321))
@example((1e16, 1e16 + 130))
def test_tidy_edges_cover_the_range_and_are_hardly_wider(ends: tuple[float, float]) -> None:
    low, high = ends
    edges = tidy_edges(low, high, 16, whole=False)
    assert len(edges) == 17
    assert edges[0] <= low < high <= edges[-1]
    assert all(np.diff(edges) > 0)
    # The next tidy width is at most 4/3 of one that is too small, and the start takes one bucket.
    assert edges[1] - edges[0] <= 1.34 * (high - low) / 15 + 4 * math.ulp(max(map(abs, edges)))


@given(st.integers(-(2**40), 2**40), st.integers(64, 2**40))
def test_whole_edges_hold_whole_numbers(low: int, extent: int) -> None:
    edges = tidy_edges(low, low + extent, 16, whole=True)
    assert all(edge.is_integer() for edge in edges)
    assert Numeric("k", edges, integer=True).bits == 16
    assert edges[0] <= low < low + extent <= edges[-1]


def test_a_drafted_schema_reads_its_own_table() -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=500),
            "k": rng.integers(0, 1000, 500),
            "c": rng.choice(["a", "b", "c"], 500),
            "date": pl.Series(rng.integers(0, 20, 500)).cast(pl.Date),
        }
    )
    data = load(frame)
    assert data.schema.domain.sizes.tolist() == [16, 16, 3, 20]
    records = data.records.dense_rows(0, 500)
    assert np.all(np.add.reduceat(records, data.schema.domain.offsets[:-1], axis=1) == 1)
    assert "The schema is not declared" in data.notes[0]


@pytest.mark.parametrize("texts", [("False", "True"), ("FALSE", "TRUE")])
def test_truth_values_written_out_are_binary(texts: tuple[str, str]) -> None:
    assert draft(x=[texts[1], texts[0], texts[0]])["x"] == Binary("x", zero=texts[0], one=texts[1])


def test_what_looks_like_an_identifier_is_said(caplog: pytest.LogCaptureFixture) -> None:
    rows = 40
    draft(
        person=list(range(1000, 1000 + rows)),
        mail=[f"{i}@example.org" for i in range(rows)],
        weight=[0.5 + 1.25 * i for i in range(rows)],
        age=[i // 2 for i in range(rows)],
    )
    assert "all values of 'person', 'mail' are different" in caplog.text
    assert "--columns '!person,!mail'" in caplog.text
    caplog.clear()
    draft(few=["a", "b", "c"])
    assert not caplog.records

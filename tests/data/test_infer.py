"""Schemas drafted from the data: what they choose, and that a release can tell."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from dualquery.data.columns import Binary, Categorical, Numeric
from dualquery.data.infer import draft_table_schema
from dualquery.data.load import load
from dualquery.data.readers.memory import FrameSource
from dualquery.errors import BadInputError


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
    assert found["x"] == Numeric("x", tuple(np.linspace(0, 24.75, 17).tolist()), missing="category")
    assert found["c"] == Categorical("c", (("a",), ("b",)), missing="category")


def test_texts_among_many_numbers_count_as_missing() -> None:
    values = [str(i) for i in range(100)] + ["unknown", "n/a", "inf"]
    column = draft(x=values)["x"]
    assert column == Numeric(
        *("x", tuple(np.linspace(0, 99, 17).tolist())),
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
        match=r"table: column 'id' has more than 64 distinct values that are not numbers; leave it",
    ):
        draft(id=[f"id{i}" for i in range(65)])


def test_huge_numbers_have_finite_edges() -> None:
    values = np.concatenate((np.linspace(0, 1, 80), [-1.7e308, 1.7e308]))
    column = draft(x=values)["x"]
    assert isinstance(column, Numeric)
    assert (column.edges[0], column.edges[-1]) == (-1.7e308, 1.7e308)


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
    assert "not private until it is declared" in data.notes[0]

"""Columns that are encoded together: cell by cell what each would give by itself."""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, Dates, Numeric, TableSchema
from dualquery.data.encoding.cuts import Piece
from dualquery.data.encoding.encode import MISSING, OUTSIDE, encode_frame, local_codes
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.dates import ABOVE, BELOW, UNPARSABLE
from dualquery.data.schema.items import ItemSchema
from dualquery.rows.engines import Engine, load
from dualquery.rows.packed import ListedBlock
from dualquery.runtime.errors import BadInputError

DAY, ENUM = datetime.date(2020, 3, 1), pl.Enum(["0", "1", "x", "n/a", "2020-03", "7"])
MIXED = st.sampled_from(
    ["0", "1", "1.0", "01", "x", "", "n/a", "true", "False", "2020-03", "7", "-3"]
)
KINDS: Mapping[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "bool": (pl.Boolean, st.booleans()),
    "bits": (pl.UInt8, st.integers(0, 1)),
    "int8": (pl.Int8, st.integers(-128, 127)),
    "int64": (pl.Int64, st.sampled_from([-(2**60), -3, 0, 1, 6, 7, 2**60])),
    "uint64": (pl.UInt64, st.sampled_from([0, 1, 7, 2**63 + 1])),
    "float": (pl.Float64, st.sampled_from([0.0, -0.0, 1.0, 1.5, 7.0, np.nan, np.inf, -2.0])),
    "float32": (pl.Float32, st.sampled_from([0.0, 1.0, 7.0, np.nan])),
    "text": (pl.String, MIXED),
    "category": (pl.Categorical, MIXED),
    "enum": (ENUM, st.sampled_from(["0", "x", "n/a", "7"])),
    "date": (pl.Date, st.dates(DAY, DAY + datetime.timedelta(days=90))),
    "null": (pl.Null, st.none()),
}
COLUMNS = (
    Binary("c", missing_values=("7",)),
    Binary("c", "x", "1"),
    Binary("c", "false", "true"),
    Categorical("c", (("0", "x"), ("1",)), missing="category", outside="other"),
    Categorical("c", (("1",), ("7",)), missing="category"),
    Categorical("c", (("1",), ("0",), ("7",))),
    Numeric("c", (0, 1, 2, 7), integer=True, outside="clip", unparsable="missing"),
    Numeric("c", (-3, 0, 1, 8), integer=True, missing="category", missing_values=("1.0",)),
    Numeric("c", (0.0, 1.5, 9.0), missing="category", unparsable="missing"),
    Dates("c", "month", "2020-01-01", "2020-04-30", missing="category", outside="clip"),
    Dates("c", "year", "2020-01-01", "2021-12-31", unparsable="missing", format="%Y-%m"),
)


HOURS = [*(f"{hour:02d}" for hour in range(24)), "Monday", "1.0", "1", "x", "-3", "2020-03", ""]


@pytest.mark.parametrize("column", [*COLUMNS, Dates("c", "hour of day"), Dates("c", "day of week")])
def test_a_text_means_the_same_in_every_type(column: Any) -> None:
    texts = pl.Series("c", HOURS)
    expected = local_codes(column, texts, ("",), "t").tolist()
    for kind in (pl.Categorical(), pl.Enum(HOURS)):
        assert local_codes(column, texts.cast(kind), ("",), "t").tolist() == expected


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableSchema, pl.DataFrame]:
    """Return a table of groups of columns that are alike, in mixed order."""
    rows = draw(st.integers(1, 6))
    columns, series = [], []
    for group in range(draw(st.integers(1, 3))):
        column = draw(st.sampled_from(COLUMNS))
        kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        cells = st.one_of(values, st.none()) if draw(st.booleans()) else values
        for place in range(draw(st.integers(1, 3))):
            name = f"{group} {place}"
            columns.append(replace(column, name=name))
            found = draw(st.lists(cells, min_size=rows, max_size=rows))
            series.append(pl.Series(name, found, dtype=kind, strict=False))
    order = draw(st.permutations(range(len(columns))))
    drop = draw(st.booleans()) and all(getattr(c, "missing", "error") == "error" for c in columns)
    schema = TableSchema(
        tuple(columns[place] for place in order),
        declared=True,
        drop_incomplete=drop,
        missing_values=("", "n/a"),
    )
    return schema, pl.DataFrame(series)


def cell_by_cell(
    schema: TableSchema, frame: pl.DataFrame, stay: np.ndarray
) -> list[list[int]] | tuple[int, str]:
    """Return the bits of each row, each cell looked at alone; of a fault its row and column."""
    rows = []
    for row in np.flatnonzero(stay).tolist():
        bits: list[int] | None = []
        codes = []
        for column in schema.columns:
            cell = frame[column.name].slice(row, 1)
            code = int(local_codes(column, cell, schema.missing_in(column), "")[0])
            if code == OUTSIDE and getattr(column, "outside", "") == "other":
                code = column.other_bit
            if code in (BELOW, ABOVE):
                ends = {BELOW: 0, ABOVE: column.buckets - 1}
                code = ends[code] if column.outside == "clip" else OUTSIDE
            if code == UNPARSABLE and column.unparsable == "missing":
                code = MISSING
            codes.append(code)
        if schema.drop_incomplete and MISSING in codes:
            continue
        for column, code, first in zip(schema.columns, codes, schema.domain.offsets, strict=False):
            if code == MISSING and getattr(column, "missing", "error") == "category":
                code = column.missing_bit
            if code < 0:
                return row + 1, column.name
            if not isinstance(column, Binary) or code == 1:
                bits.append(int(first) + (0 if isinstance(column, Binary) else code))
        rows.append(bits)
    return rows


@settings(max_examples=150)
@given(table=tables(), data=st.data())
def test_every_kind_of_column_is_encoded_as_its_cells_are(table, data) -> None:
    schema, frame = table
    staying = st.lists(st.booleans(), min_size=frame.height, max_size=frame.height)
    stay = np.array(data.draw(staying))
    expected = cell_by_cell(schema, frame, stay)
    if isinstance(expected, tuple):
        row, name = expected
        with pytest.raises(BadInputError) as fault:
            encode_frame(schema, Piece("t", 1, frame, stay))
        assert str(fault.value).startswith(f"t: row {row}, column {name!r}: ")
        return
    found = encode_frame(schema, Piece("t", 1, frame, stay)).listed()
    lists = [np.sort(bits).tolist() for bits in np.split(found.bits, found.indptr[1:-1])]
    assert (lists if len(expected) else []) == [sorted(bits) for bits in expected]


DECIMALS = ["0.1", "0.7", "-9.9"], [pl.Float64, pl.Float32, getattr(pl, "Float16", pl.Float32)]
LONG = [f"90071992547409930{last}" for last in (1, 2, 3)], [pl.Int64, pl.UInt64]


@pytest.mark.parametrize(
    ("column", "texts", "types"),
    [
        (Numeric("c", (-10, 0.1, 0.7, 1)), *DECIMALS),
        (Categorical("c", (("0.1",), ("0.7",)), outside="other"), *DECIMALS),
        (Categorical("c", (("134217728",), ("1e20",))), ["134217728", "1e20", "0.5"], [pl.Float32]),
        (Categorical("c", tuple((text,) for text in LONG[0][:2]), outside="other"), *LONG),
    ],
)
def test_a_number_of_any_type_is_what_its_text_says(column, texts, types) -> None:
    missing = "", texts[-1]
    written = pl.Series("c", [*texts, None])
    for kind in types:
        found = local_codes(column, written.cast(kind), missing, "")
        np.testing.assert_array_equal(found, local_codes(column, written, missing, ""))


@pytest.mark.parametrize(
    ("texts", "cells"),
    [
        (("1,5", "2,5"), pl.Series(["1.5", "2.5"])),
        (("1.5", "1,5"), pl.Series(["1.5", "1,5"])),
        ((str(2**53 + 1), str(2**53)), pl.Series([2**53 + 1, 2**53]).cast(pl.Decimal(38, 0))),
    ],
)
def test_numbers_of_categories_are_those_that_are_written(texts, cells) -> None:
    column = Categorical("c", tuple((text,) for text in texts))
    assert local_codes(column, cells, (), "").tolist() == [0, 1]


@pytest.mark.parametrize("share", [0.002, 0.4], ids=["sparse", "dense"])
def test_wide_tables_of_every_form_are_the_same_records(share, tmp_path, monkeypatch) -> None:
    """Blocks of records do not end where pieces do; 1,003 columns are no whole number of words."""
    monkeypatch.setattr("dualquery.data.readers.source._BLOCK_CELLS", 1 << 21)
    width, height = 1003, 5000
    bits = (np.random.default_rng(0).random((height, width)) < share).astype(np.uint8)
    names = [str(place) for place in range(width)]
    frame = pl.DataFrame(bits, schema=names)
    frame.cast(pl.Boolean).write_parquet(tmp_path / "b.parquet")
    frame.write_csv(tmp_path / "t.csv")
    schema = TableSchema(tuple(map(Binary, names)), declared=True)
    files = tmp_path / "b.parquet", tmp_path / "t.csv"
    for form in (frame, frame.cast(pl.Float64), bits.astype(np.float32), *files):
        records = load(form, None if isinstance(form, np.ndarray) else schema).records
        assert isinstance(records.stored[0], ListedBlock) == (share < 0.1)
        assert np.array_equal(records.dense_rows(0, height), bits)
    with Engine(name="stream").open(tmp_path / "t.csv", schema) as data:
        assert sum(block.nbytes for block in data.records.stream()) == records.nbytes


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_truth_values_are_0_and_1(library) -> None:
    """A bit that nobody described further takes the truth values of any library."""
    truths = pl.DataFrame({"a": [True, False, True], "b": [False, False, True]})
    table = truths.to_pandas() if library == "pandas" else truths
    schema = TableSchema((Binary("a"), Categorical("b", (("1",), ("0",)))), declared=True)
    columns = np.transpose(load(table, schema).records.dense_rows(0, 3))
    assert columns.tolist() == [[1, 0, 1], [0, 0, 1], [1, 1, 0]]


def test_a_matrix_with_other_items_than_the_schema_is_refused_or_cut() -> None:
    bits = np.eye(5, dtype=np.int8)
    items = ItemSchema(np.array([1, 3, 9]), "three", outside="drop", declared=True)
    assert load(bits, items).records.dense_rows(0, 5).tolist() == [
        [int(row == item) for item in (1, 3, 9)] for row in range(5)
    ]
    with pytest.raises(BadInputError, match="row 3: item 2 is not among the 3 items"):
        load(bits, ItemSchema(np.array([0, 1, 3]), "three", declared=True))
    assert source_of(bits).width == 5

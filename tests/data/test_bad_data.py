"""Whatever is wrong with data is one clear message: where it is, what was found, what to do."""

import gzip
import io
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from dualquery.data import Binary, Categorical, ItemSchema, Numeric, TableSchema
from dualquery.data.readers.csv import CsvSource
from dualquery.data.readers.item_text import FimiSource, MatrixSource
from dualquery.data.readers.python_objects import frame_of_pandas
from dualquery.data.schema.any_schema import Schema
from dualquery.rows.engines import load
from dualquery.runtime.errors import BadInputError

SCHEMA = TableSchema(
    (
        Numeric("age", (0.0, 50.0, 100.0), integer=True),
        Categorical("sex", (("Female",), ("Male",))),
        Binary("flag"),
    ),
    name="people",
    declared=True,
)
GOOD = "age,sex,flag\n30,Male,1\n60,Female,0\n"


def refuse(data: object, message: str, schema: Schema | None = None, **options: str) -> None:
    with pytest.raises(BadInputError) as error:
        load(data, schema, **options)
    assert message in str(error.value), str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "t.csv: the file is empty"),
        (b'"age,sex,flag\n' + b"30,Male,1\n" * 30, "quotation mark in the header not closed?"),
        (b"age,sex,flag\n30,Male,1\n60,Female\n", "row 2 has 2 values, but 3 columns are expected"),
        (b'age,sex,flag\n1,Male,1\n"2,Male,1\n', "needs quotes, and these need their ends"),
        (b'age,sex,flag\n"3,5",Male,1\n', "'3,5' is not a whole number; if commas stand before"),
        (b"age,sex,flag\n30,M\xe4le,1\n", "t.csv: not utf-8 text at line 2 ("),
        (GOOD.encode("utf-16-le"), "t.csv: not utf-8 text at line 1 (it has a NUL byte)"),
        (b"age,sx,flag\n1,Male,1\n", "there is no column 'sex', which the schema 'people'"),
        (b"age,sex,flag\n30,Male,1\n130,Male,1\n", "t.csv: row 2, column 'age': '130' is outside"),
        (b"age,sex,flag\n30,Mail,1\n", "t.csv: row 1, column 'sex': 'Mail' is not in the schema"),
        (gzip.compress(GOOD.encode() * 9, mtime=0)[:-9], "t.csv: damaged gzip file (Comp"),
    ],
)
def test_a_bad_csv_file_is_explained(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    refuse(str(tmp_path / "t.csv"), message, SCHEMA)


def test_the_row_is_counted_over_blocks(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    faults = {"30,Neither,1": "t: row 501, column 'sex': 'N", "30,Male": "t: row 501 has 2 values"}
    for last, message in faults.items():
        path.write_text("age,sex,flag\n" + "30,Male,1\n" * 500 + last)
        with pytest.raises(BadInputError, match=message):
            load(CsvSource(path, "t", block_bytes=64), SCHEMA)


def test_the_first_bad_row_is_named_also_after_incomplete_ones() -> None:
    schema = TableSchema(SCHEMA.columns, drop_incomplete=True, declared=True)
    frame = pl.DataFrame({"age": [None, 1, 2], "sex": ["Male", "Male", "X"], "flag": [1, 0, 1]})
    refuse(frame, "table: row 3, column 'sex': 'X' is not in the schema", schema)
    refuse(frame.head(1), "table: no complete rows", schema)


@pytest.mark.parametrize(
    ("form", "content", "message"),
    [
        *((form, b"", "the file is empty") for form in ("fimi", "matrix", "bitstring")),
        ("fimi", b"\n\n", "no row has any item; declare them with --columns"),
        ("fimi", b"1 2\n3 x\n", "line 2: 'x' found where only whole numbers from 0 up"),
        ("fimi", b"0 2\r1\r2\r", r"line 1: '\r' found where only whole numbers from 0 up"),
        ("matrix", b"0 1\r1 1\r", r"line 1: '\r' found where only 0 and 1"),
        ("matrix", b"\n\n", "the file has no rows"),
        ("matrix", b"0 1 1\n0 2 1\n", "line 2: '2' found where only 0 and 1"),
        ("matrix", b"0 1 1\n\n0 1\n",
         "line 3: 3 values expected as in the first row, found 2 with"),
        ("bitstring", b"0101\n", "line 1: expected bits as 0s and 1s, a tab, and a whole count"),
        ("bitstring", b"0101\t3\n0111\t2.5\n", "line 2: expected 4 bits"),
    ],
)  # fmt: skip
def test_bad_items_are_explained(form: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    refuse(f"{form}:{tmp_path / 'f'}", message)


def test_an_item_outside_the_schema_is_explained(tmp_path: Path) -> None:
    (tmp_path / "f.dat").write_text("1 2\n\n2 9\n")
    refuse(
        str(tmp_path / "f.dat"),
        "f.dat: row 3: item 9 is not among the 2 items of the schema 'items'; declare it, or",
        ItemSchema(np.array([1, 2]), declared=True),
    )


def test_a_cell_of_an_item_column_that_is_no_bit_is_explained() -> None:
    frame = pl.DataFrame({"1": [0, 1, 0], "2": [1, 0, 2]})
    schema = ItemSchema(np.array([1, 2]), declared=True)
    refuse(frame, "row 3, column '2': 2 is not in the schema", schema)
    empty = pl.DataFrame({"1": [0, 1, None], "2": [1, 0, 1]})
    refuse(empty, "row 3, column '1': the value is missing", schema)


def test_lines_are_counted_over_blocks(tmp_path: Path) -> None:
    (path := tmp_path / "x").write_text("0 1\n" * 500 + "0 7x\n")
    for source in (FimiSource(path, "x", 10), MatrixSource(path, "x", 10)):
        with pytest.raises(BadInputError, match="x: line 501: "):
            load(source)


def test_odd_objects_are_explained() -> None:
    hidden = np.ma.masked_array(np.eye(2), mask=[[1, 0], [0, 0]])
    twice = scipy.sparse.csr_array((np.ones(2), [0, 0], [0, 2]), shape=(1, 2))
    refuse(hidden, "found MaskedArray of shape (2, 2)")
    refuse(twice, "row 1, column 0: 2.0 found where only 0 and 1")
    refuse(pl.DataFrame({"": [1, 0]}), "column 0 (counted from 0) has no name")


def test_a_bad_npz_file_is_explained(tmp_path: Path) -> None:
    path, buffer = tmp_path / "m.npz", io.BytesIO()
    np.savez(buffer, a=np.eye(2))
    for content in (b"none", b"PK\x03\x04", buffer.getvalue()):
        path.write_bytes(content)
        refuse(str(path), "m.npz: not a matrix written by scipy.sparse.save_npz")
    scipy.sparse.save_npz(path, scipy.sparse.csr_array([[0, 1], [1, 3]]))
    refuse(str(path), "m.npz: row 2, column 1: 3 found where only 0 and 1 are expected")
    path.write_bytes(path.read_bytes()[:100])
    refuse(str(path), "m.npz: not a matrix written by scipy.sparse.save_npz")


def test_a_bad_parquet_file_is_explained(tmp_path: Path) -> None:
    (path := tmp_path / "t.parquet").write_bytes(b"age,sex\n")
    refuse(str(path), "t.parquet: not a parquet file (it starts with b'age,'); if it is text")
    pl.DataFrame({"age": [1, 2]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    refuse(str(path), "t.parquet: damaged parquet file")
    pl.DataFrame({"items": [[1.5]]}).write_parquet(path)
    refuse(str(path), "t.parquet: column 'items' has type List(Float64); lists of item ids")
    pl.DataFrame({"items": [[1], [2, -5]]}).write_parquet(path)
    refuse(str(path), "t.parquet: row 2: the item id -5; ids are whole numbers from 0 up")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.array([[0.0, np.nan]]), "array: row 1, column 1: nan found where only 0 and 1"),
        (np.array([[0, 1], [2, 0]]), "array: row 2, column 0: 2 found where only 0 and 1"),
        ([[0, 1]], "data of type list cannot be read: a path, a NumPy or SciPy matrix"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "table: two columns are named 'a'"),
        (pd.DataFrame({"a": [1, "x"]}), "table: column 'a' mixes values of several types"),
        (pd.DataFrame({"a": [np.True_, 0]}, dtype=object), "table: column 'a' mixes values of"),
        (pd.DataFrame({"a": [date(2020, 1, 1), datetime(2020, 1, 1, 5)]}, dtype=object),
         "table: column 'a' mixes numbers, truth values, dates, times or zones, and the first"),
        (pd.DataFrame({"a": [Decimal(2**53)]}), "(numbers from 2^53 on; as texts they stay exact"),
        (pd.DataFrame({"a": [2**53]}, dtype="category"), "(numbers from 2^53 on; as texts"),
        (pl.DataFrame({"a": [[1]], "b": [[1]]}), "table: no column can be kept"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)  # fmt: skip
def test_a_bad_object_is_explained(data: object, message: str) -> None:
    refuse(data, message)


@pytest.mark.parametrize(("first", "others"), [
    (time(8), 25), (date(2020, 2, 29), 20210101), (2.5, True), (b"a", "b"), (timedelta(1), 3),
])  # fmt: skip
@pytest.mark.parametrize("kind", [object, "category"])
def test_an_object_tells_nothing_of_how_others_are_read(first, others, kind) -> None:
    cells = [None, first, others, others]
    refuse(pd.DataFrame({"a": pd.Series(cells, dtype=object).astype(kind)}), "column 'a' mixes")


@pytest.mark.parametrize("cells", [[np.float32(0.7), 0.25], [Decimal(1), Decimal("0.5")], [7, 0.5]])
@pytest.mark.parametrize("kind", [object, "category"])
def test_what_an_object_becomes_does_not_depend_on_others(cells, kind) -> None:
    columns = (pd.Series(each, dtype=object).astype(kind) for each in (cells, cells[:1]))
    both, alone = (frame_of_pandas(pd.DataFrame({"x": each}), "t").frame["x"] for each in columns)
    assert both.dtype == alone.dtype
    assert both[:1].equals(alone)


def test_sparse_columns_are_those_that_they_stand_for() -> None:
    flags = pd.get_dummies(pd.DataFrame({"x": ["a", "b", "a"]}), sparse=True)
    flags["y"] = pd.arrays.SparseArray([0.5, np.nan, 0.0])
    wanted = {"x_a": [True, False, True], "x_b": [False, True, False], "y": [0.5, None, 0.0]}
    assert frame_of_pandas(flags, "t").frame.to_dict(as_series=False) == wanted


def test_nan_is_a_missing_value() -> None:
    frame = pl.DataFrame({"x": [0.5, float("nan")]})
    edges = (0.0, 1.0, 2.0)
    schema = TableSchema((Numeric("x", edges),), declared=True)
    refuse(frame, "row 2, column 'x': the value is missing (nan)", schema)
    kept = load(frame, TableSchema((Numeric("x", edges, missing="category"),), declared=True))
    assert kept.records.dense_rows(0, 2).tolist() == [[1, 0, 0], [0, 0, 1]]
    clipped = TableSchema((Numeric("x", edges, outside="clip"),), declared=True)
    refuse(pl.DataFrame({"x": [float("inf")]}), "row 1, column 'x': inf is not a number", clipped)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere.csv", "nowhere.csv: there is no such file; the built-in data sets are adult"),
        ("adlut", "adlut: there is no such file; did you mean 'adult'?"),
        ("foo:bar", "foo:bar: there is no such file, and 'foo' is no format; it must be one of"),
    ],
)
def test_a_source_that_is_not_there_is_explained(text: str, message: str) -> None:
    refuse(text, message)


def test_a_format_that_cannot_be_told_is_explained(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(GOOD)
    refuse(str(tmp_path / "t.txt"), "the format cannot be told from the name; write FORMAT:")


def test_a_schema_of_the_wrong_kind_is_explained() -> None:
    refuse(np.eye(3), "array: its rows are numbered items, but the schema 'people'", SCHEMA)
    refuse(pl.DataFrame({"a": [1]}), "table: there is no column '0'", ItemSchema.numbered(1, "x"))
    refuse(pl.DataFrame({"a": [1]}), "columns: there is no column 'b'", columns="b")
    refuse("adult", "--columns: there is no column 'agee'; did you mean 'age'?", columns="agee")
    refuse(
        pl.DataFrame({"a": [1], "b": [1]}),
        "table: there is no column 'age', which the schema 'people' describes; its "
        "own are 'a', 'b': is the schema that of another table?",
        SCHEMA,
    )
    with pytest.raises(BadInputError, match=re.escape("schema of type int; a schema is expected")):
        load("adult", 3)  # type: ignore[arg-type]

"""Every format gives the same rows, gzipped or not, whatever the size of the blocks."""

import datetime
import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from dualquery.data import Binary, Categorical, ItemSchema, Numeric, TableSchema
from dualquery.data.given_table import Table
from dualquery.data.opening import held
from dualquery.data.readers.arrow import open_parquet
from dualquery.data.readers.csv import CsvSource, open_kdd99
from dualquery.data.readers.formats import open_as, parse_source
from dualquery.data.readers.item_text import BitstringSource, FimiSource, MatrixSource
from dualquery.data.readers.python_objects import ArraySource, FrameSource
from dualquery.data.readers.source import ListItems
from dualquery.rows.engines import load

BITS = (np.random.default_rng(5).random((301, 19)) < 0.3).astype(np.uint8)
BITS[17] = 0
CELLS, COUNTS = np.unique(BITS, axis=0, return_counts=True)
NINETEEN = ItemSchema.numbered(19, "nineteen")


def rows(source: object, schema: object = None, columns: str | None = None) -> np.ndarray:
    records = load(source, schema, columns).records  # type: ignore[arg-type]
    return records.dense_rows(0, records.n)


def lines(of_row: Callable[[np.ndarray], str]) -> bytes:
    return "".join(of_row(row) + "\n" for row in BITS).encode()


def npz() -> bytes:
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, scipy.sparse.coo_array(BITS))
    return buffer.getvalue()


def parquet(long: bool) -> bytes:
    buffer = io.BytesIO()
    if long:
        lists = [np.flatnonzero(row).tolist() for row in BITS]
        frame = pl.DataFrame({"items": pl.Series(lists, dtype=pl.List(pl.Int32))})
    else:
        frame = pl.DataFrame(BITS, schema=[str(i) for i in range(19)])
    frame.write_parquet(buffer)
    return buffer.getvalue()


FILES = {
    "fimi": lambda: lines(lambda row: " ".join(map(str, np.flatnonzero(row)))),
    "matrix": lambda: lines(lambda row: ",".join(map(str, row))),
    "npz": npz,
    "parquet": lambda: parquet(long=False),
    "csv": lambda: (
        ",".join(map(str, range(19))).encode() + b"\n" + lines(lambda row: ",".join(map(str, row)))
    ),
}
EXTENSIONS = {"csv": ".csv", "parquet": ".parquet", "npz": ".npz", "fimi": ".dat"}


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_format_is_read_by_prefix_and_extension(form: str, zipped: bool, tmp_path: Path) -> None:
    content = gzip.compress(FILES[form]()) if zipped else FILES[form]()
    path = tmp_path / f"data{EXTENSIONS.get(form, '.txt')}{'.gz' if zipped else ''}"
    path.write_bytes(content)
    np.testing.assert_array_equal(rows(f"{form}:{path}", NINETEEN), BITS)
    if form in EXTENSIONS:
        np.testing.assert_array_equal(rows(path, NINETEEN), BITS)
    piped = open_as(form, held(io.BytesIO(content), "-"), "-")
    assert "content" not in repr(piped)
    np.testing.assert_array_equal(rows(piped, NINETEEN), BITS)
    # What is inside decides about gzip, not the name.
    (other := tmp_path / "data.bin").write_bytes(content)
    np.testing.assert_array_equal(rows(f"{form}:{other}", NINETEEN), BITS)


@pytest.mark.parametrize("separator", [",", " ", ", ", "\t", " ,  "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_matrices_have_commas_or_blanks(separator: str, end: str, tmp_path: Path) -> None:
    text = end.join(separator.join(map(str, row)) for row in BITS)
    (tmp_path / "m").write_bytes((text + end + end).encode())
    np.testing.assert_array_equal(rows(f"matrix:{tmp_path / 'm'}"), BITS)


def test_bitstrings_are_repeated_as_their_counts_say(tmp_path: Path) -> None:
    cells = ["".join(map(str, cell)) for cell in CELLS]
    text = "".join(f"{c}\t{n}\n" for c, n in zip(cells, COUNTS * 12, strict=True)) + "0" * 19
    (tmp_path / "b").write_text(text + "\t0")
    expected = np.repeat(CELLS, COUNTS * 12, axis=0)
    np.testing.assert_array_equal(rows(f"bitstring:{tmp_path / 'b'}"), expected)
    for size, block in [(50, 7), (10_000, 1000)]:
        source = BitstringSource(tmp_path / "b", "b", chunk_bytes=size, block_rows=block)
        np.testing.assert_array_equal(rows(source), expected)


@pytest.mark.parametrize("size", [7, 64, 1 << 20])
def test_rows_do_not_depend_on_the_size_of_blocks(size: int, tmp_path: Path) -> None:
    (path := tmp_path / "data").write_bytes(FILES["fimi"]())
    np.testing.assert_array_equal(rows(FimiSource(path, "data", size), NINETEEN), BITS)
    path.write_bytes(FILES["matrix"]())
    np.testing.assert_array_equal(rows(MatrixSource(path, "data", size)), BITS)
    path.write_bytes(FILES["csv"]())
    if size >= 64:  # the longest row must fit
        table = CsvSource(path, "data", block_bytes=size)
        np.testing.assert_array_equal(rows(table, NINETEEN), BITS)
    for long in (False, True):
        path.write_bytes(parquet(long))
        found = open_parquet(path, "data")
        table = replace(found.table if isinstance(found, ListItems) else found, block_rows=size)
        np.testing.assert_array_equal(rows(ListItems(table) if long else table, NINETEEN), BITS)
    for matrix in (BITS, scipy.sparse.csr_array(BITS)):
        np.testing.assert_array_equal(rows(ArraySource(matrix, block_rows=size)), BITS)
    frame = FrameSource(pl.DataFrame(BITS, schema=list(map(str, range(19)))), block_rows=size)
    np.testing.assert_array_equal(rows(frame, NINETEEN), BITS)


@pytest.mark.parametrize("kind", [pa.decimal32(9), pa.decimal64(18), pa.timestamp("us")])
def test_narrow_and_old_types_of_parquet_keep_their_values(tmp_path: Path, kind) -> None:
    late = kind == pa.timestamp("us")
    cells = pa.array([datetime.datetime(9999, 12, 31) if late else Decimal(4)] * 999, kind)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": cells}), path, use_deprecated_int96_timestamps=True)
    assert pl.concat(open_parquet(path, "t").frames(["x"]))["x"].to_list() == cells.to_pylist()


def test_an_arrow_column_that_is_left_out_may_have_any_type(tmp_path: Path) -> None:
    wide = pa.array([Decimal(1)] * 2, pa.decimal256(50, 2))
    table = pa.table({"z": wide, "b": [0, 1], "a": [1, 1]})
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    schema = TableSchema((Binary("a"), Binary("b")), declared=True)
    assert rows(path, schema).tolist() == [[1, 0], [1, 1]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 10**12), max_size=6), min_size=1, max_size=30),
    st.integers(1, 50),
)
def test_fimi_rows_are_sets_of_any_ids(
    tmp_path_factory: pytest.TempPathFactory, baskets: list[list[int]], size: int
) -> None:
    path = tmp_path_factory.mktemp("fimi") / "f.dat"
    path.write_text("\n".join(" ".join(map(str, basket)) for basket in baskets) + "\n")
    if not any(baskets):
        return
    data = load(FimiSource(path, "f.dat", size))
    assert data.schema.declared is False
    assert data.schema.items.tolist() == sorted(set().union(*baskets))
    dense = data.records.dense_rows(0, data.n)
    found = [set(data.schema.items[row == 1].tolist()) for row in dense]
    assert found == [set(basket) for basket in baskets]


def test_declared_items_need_not_occur_and_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "f.dat").write_text("5 2\n\n9 5 5\n")
    data = load(tmp_path / "f.dat", columns="4-6,2")
    assert data.schema.declared
    assert data.schema.column_names == ["2", "4", "5", "6"]
    assert data.records.dense_rows(0, 3).tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert data.notes == ("Items outside the schema are left out of the records.",)


@pytest.mark.parametrize(
    "data",
    [
        BITS,
        BITS.astype(bool),
        BITS.astype(np.float32),
        np.asfortranarray(BITS),
        scipy.sparse.csr_matrix(BITS),
        scipy.sparse.csc_array(BITS.astype(float)),
        scipy.sparse.coo_array(BITS.astype(bool)),
    ],
    ids=lambda data: f"{type(data).__name__}-{data.dtype}",
)
def test_matrices_in_memory_have_declared_items(data: object) -> None:
    loaded = load(data)
    assert loaded.schema.declared
    np.testing.assert_array_equal(loaded.records.dense_rows(0, 301), BITS)


def test_tables_in_memory_and_on_disk_agree(tmp_path: Path) -> None:
    schema = TableSchema(
        (
            Numeric("age", (0.0, 30.0, 100.0), integer=True, missing="category"),
            Categorical("city", (("Ulm",), ("Bonn", "Köln")), missing="category", outside="other"),
            Binary("flag", "false", "true"),
            Numeric("rate", (0.0, 0.5, 1.0), outside="clip", missing="category"),
        ),
        declared=True,
    )
    frame = pl.DataFrame(
        {
            "age": [30, None, 100, 29],
            "city": ["Ulm", "Köln", None, "Rom, Italy"],
            "flag": [True, False, False, True],
            "rate": [0.5, -3.0, None, 7.5],
        }
    )
    expected = [
        [0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0],
        [0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1],
        [1, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0],
    ]
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    tables = [
        *(frame, frame.to_pandas(), frame.with_columns(pl.col("city").cast(pl.Categorical))),
        *(str(tmp_path / "t.csv"), tmp_path / "t.parquet"),
    ]
    assert all(rows(table, schema).tolist() == expected for table in tables)


def test_quotes_line_feeds_and_byte_order_marks_in_csv(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_bytes('\ufeff"a ""b"", c",d\r\n"x\ny",0\r\n"x,y",1\r\n\r\n'.encode())
    named = Categorical('a "b", c', (("x\ny",), ("x,y",)))
    schema = TableSchema((named, Binary("d")), declared=True)
    assert rows(tmp_path / "q.csv", schema).tolist() == [[1, 0, 0], [0, 1, 1]]
    cells = ["x" * (number % 7) + "\r" * (number % 3) + "\r\ny" for number in range(300)]
    (tmp_path / "q.csv").write_bytes("\r\n".join(["a,b", *(f'"{it}",1' for it in cells)]).encode())
    for size in range(97, 107):  # blocks may end between the two signs
        source = CsvSource(tmp_path / "q.csv", "q", block_bytes=size)
        assert pl.concat(source.frames(["a"]))["a"].to_list() == cells


def test_a_blank_line_is_a_row_of_a_table_with_one_column(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("c\na\n\nb\n")
    schema = TableSchema((Categorical("c", (("a",), ("b",)), missing="category"),), declared=True)
    assert rows(tmp_path / "one.csv", schema).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_incomplete_rows_are_left_out_when_declared() -> None:
    schema = TableSchema(
        (Categorical("c", (("a",), ("b",))), Numeric("x", (0.0, 1.0, 2.0))),
        drop_incomplete=True,
        missing_values=("", "?"),
        declared=True,
    )
    frame = pl.DataFrame({"c": ["a", "?", "b", None, "b"], "x": [0.0, 1.0, None, 0.0, 2.0]})
    data = load(frame, schema)
    assert data.records.dense_rows(0, data.n).tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert "where rows are replaced, how many stay is public" in data.notes[0]


@pytest.mark.parametrize("text", ["-999", "-999.0", "-999,0"])
def test_a_missing_number_may_be_written_as_the_file_has_it(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "t.csv").write_text("x;code\n-999,0;-999,0\n1,5;09\n")
    codes = Categorical("code", (("9",), ("09",)), missing="category", outside="other")
    schema = TableSchema(
        (Numeric("x", (0.0, 1.0, 2.0), missing="category"), codes),
        missing_values=(text, "9,0"),
        declared=True,
    )
    found = rows(Table(str(path), csv="decimal=,").source, schema).tolist()
    # Codes are compared as they are written.
    named = [0, 0, 1, 0] if text == "-999" else [0, 0, 0, 1]
    assert found == [[0, 0, 1, *named], [0, 1, 0, 0, 1, 0, 0]]


def test_kdd99_lines_end_with_a_full_stop(tmp_path: Path) -> None:
    line = ", ".join(["0", "1", "22", *["0"] * 21, *["0.50"] * 7, "9", "9", *["1.00"] * 8, "11."])
    (path := tmp_path / "kdd").write_text(line)
    expected = rows(f"kdd99:{path}")
    assert expected.shape == (1, 396)
    assert expected.sum() == 41
    for end in ("\n", "\r\n"):
        path.write_bytes((end.join([line] * 5) + end).encode())
        for size in (300, 301, 302, 1 << 20):
            small = replace(open_kdd99(path, "kdd"), block_bytes=size)
            np.testing.assert_array_equal(rows(small, "kdd99"), np.tile(expected, (5, 1)))


def test_a_prefix_that_is_no_format_is_part_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("C:x.csv").write_text("a\n1\n0\n")
    assert parse_source("C:x.csv").label == "C:x.csv"
    assert load("C:x.csv").n == 2
    Path("adult").write_text("0 1\n")
    assert load("adult").n == 30_162  # the name of a data set wins; ./adult is the file
    assert load("fimi:adult").n == 1

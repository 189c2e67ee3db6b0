"""Tables as people have them: other separators, encodings, decimals, libraries."""

import datetime
import gzip
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualquery.data import Categorical, Numeric, TableSchema
from dualquery.data.readers.csv import CsvSource, Dialect
from dualquery.data.readers.formats import parse_source
from dualquery.rows.engines import files_of, load
from dualquery.runtime.errors import BadInputError

TEXT = 'name;rate;city\nÄnne;1,5;"a;b"\nJosé;-1.234,25;c\n?;12;d\n'


def read(source: object, dialect: str | None = None) -> pl.DataFrame:
    found = parse_source(str(source), None if dialect is None else Dialect.parse(dialect))
    return pl.concat(found.frames(found.columns()))  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "windows-1252", "utf-16"])
@pytest.mark.parametrize("pack", [bytes, lambda content: gzip.compress(content, mtime=0)])
def test_a_file_in_another_dialect_is_read(tmp_path: Path, encoding: str, pack) -> None:
    (path := tmp_path / "t.csv").write_bytes(pack(TEXT.replace("?", "Zoë").encode(encoding)))
    assert read(path, f"delimiter=;,encoding={encoding},decimal=,").to_dict(as_series=False) == {
        "name": ["Änne", "José", "Zoë"],
        "rate": ["1.5", "-1234.25", "12"],
        "city": ["a;b", "c", "d"],
    }


def test_a_name_that_is_a_pattern_to_polars_is_a_name(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_bytes(b"ab;^a.*$\r\n4;1,5\r\n9;0,5\r\n")
    columns = Numeric("^a.*$", (0.0, 1.0, 2.0)), Categorical("ab", (("4",), ("9",)))
    source = parse_source(str(path), Dialect.parse("delimiter=;,decimal=,"))
    found = load(source, TableSchema(columns, declared=True)).records
    assert found.dense_rows(0, 2).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize(("sign", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_the_header_tells_the_separator_and_it_is_said(
    sign: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path := tmp_path / "t.csv").write_text(f"a{sign}b\n1{sign}2,5\n")
    assert read(path).rows() == [("1", "2,5")]
    assert f"taken as separated by {name}" in caplog.text
    caplog.clear()
    path.write_text(f"a,b{sign}c\n1,2{sign}3\n")
    assert read(path).columns == ["a", f"b{sign}c"]
    assert not caplog.records


def test_no_row_is_lost_to_ends_of_lines_quotes_or_tabs(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text in ("a,b\r1,1\r0,1\r", "a,b\r1,1\n0,1\n"):
        path.write_bytes(text.encode())
        assert read(path).rows() == [("1", "1"), ("0", "1")]
    path.write_bytes(b"a,b\r\n" + b"1,x\r\n" * 22)
    assert sum(map(len, CsvSource(path, "t", block_bytes=32).frames(["a"]))) == 22
    for text in ('a,b\n1,x\n0,"y\n1,z\n', 'a\nx\n"y\nz\n'):
        path.write_text(text)
        with pytest.raises(BadInputError, match="a quotation mark is not closed"):
            read(path)
    (tmp_path / "t.tsv").write_text("a, b\tc\nx, y\t5\n")
    assert read(tmp_path / "t.tsv", "encoding=utf-8").rows() == [("x, y", "5")]


def test_spaces_around_cells_are_left_out_if_it_is_said(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("age, job, town\n39, ?, Bern \n 40,x,Basel\n")
    assert read(path, "spaces=trim").to_dict(as_series=False) == {
        "age": ["39", "40"], "job": ["?", "x"], "town": ["Bern", "Basel"],
    }  # fmt: skip
    path.write_text("age,job\n39, ?\n")
    assert read(path)["job"].to_list() == [" ?"]
    path.write_bytes(Dialect(decimal=",").write(pl.DataFrame({"x": [0.5, 2e-7]}), header=True))
    assert read(path, "decimal=,")["x"].cast(pl.Float64).to_list() == [0.5, 2e-7]


TEXTS = ["a,b", "1.2.3,4", "0.123", "1,5e-05"]


@given(st.floats(-1e9, 1e9).map(lambda value: round(value, 3)), st.booleans())
def test_decimal_commas_become_points(value: float, grouped: bool) -> None:
    written = (f"{value:,.3f}" if grouped else f"{value:.3f}").translate(str.maketrans(",.", ".,"))
    frame = Dialect(";", decimal=",").as_standard(pl.DataFrame({"x": [written, *TEXTS]}))
    assert float(frame["x"][0]) == pytest.approx(value)
    assert frame["x"].to_list()[1:] == [*TEXTS[:3], "1.5e-05"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoding=klingon", "there is no encoding 'klingon'"),
        ("encoding=base64", "is no encoding of text"),
        ("decimal=;", "decimal is ';'; it must be . or ,"),
    ],
)
def test_a_dialect_that_cannot_be_is_explained(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        Dialect.parse(text)


def test_a_wrong_encoding_is_explained(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_bytes("a,b\né,1\n".encode("latin-1"))
    with pytest.raises(BadInputError, match="not utf-8 text at line 2"):
        read(path)
    with pytest.raises(BadInputError, match="not utf-16 text"):
        read(path, "encoding=utf-16")
    (tmp_path / "t.dat").write_text("1 2\n")
    with pytest.raises(BadInputError, match="--csv is about csv and tsv files"):
        parse_source(str(tmp_path / "t.dat"), Dialect())


FRAME = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_and_streams_are_read(tmp_path: Path, stream: bool) -> None:
    path = tmp_path / "t.arrow"
    (FRAME.write_ipc_stream if stream else FRAME.write_ipc)(path)
    assert read(path).equals(FRAME)
    assert files_of(parse_source(str(path))) == [path]
    pl.DataFrame({"items": [[0, 2], None, [1]]}).write_ipc(path)
    assert load(str(path), columns="0-2").records.dense_rows(0, 3).tolist() == [
        [1, 0, 1], [0, 0, 0], [0, 1, 0],
    ]  # fmt: skip
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BadInputError, match="damaged file of Arrow batches"):
        read(path)


def test_duckdb_queries_are_tables(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "d.db"
    with duckdb.connect(str(file)) as connection:
        connection.execute("create table t as select range as a, range % 2 as b from range(5)")
    found = read(f"duckdb:{file}?select a, b from t where a > 1 order by a")
    assert found.rows() == [(2, 0), (3, 1), (4, 0)]
    assert files_of(parse_source(f"duckdb:{file}?select a from t")) == [file]
    (zoned,) = read(f"duckdb:{file}?select timestamptz '2020-01-01 12:00:00+05' as a").dtypes
    assert zoned.time_zone == "UTC"  # on every machine
    for text, message in [
        (f"duckdb:{file}", "write duckdb:FILE"),
        (f"duckdb:{file}?select c from t", "DuckDB refuses"),
        (f"duckdb:{file}?drop table t", "DuckDB refuses"),
        (f"duckdb:{file}?select time '24:00:00' as a", "damaged result"),
        (f"duckdb:{tmp_path}/no.db?select 1", "there is no such file"),
    ]:
        with pytest.raises(BadInputError, match=message):
            read(text)


def test_workbooks_are_read(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    FRAME.write_excel(tmp_path / "t.xlsx")
    assert read(tmp_path / "t.xlsx").rows() == FRAME.cast(pl.String).rows()
    assert files_of(parse_source(str(tmp_path / "t.xlsx"))) == [tmp_path / "t.xlsx"]
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(BadInputError, match="not readable as an Excel workbook"):
        read(tmp_path / "t.xlsx")


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for place, cells in enumerate(rows):
                for column, value in enumerate(cells):
                    sheet.write(place, column, value)
    return path


def test_a_sheet_of_a_workbook_is_chosen(tmp_path: Path, caplog) -> None:
    pytest.importorskip("fastexcel")
    sheets = {"Legend": [["key"], ["x"]], "Empty": [], "Größe 2024 b": [["a"], [1], [2]]}
    path = workbook(tmp_path / "t.xlsx", **sheets)
    assert read(f"xlsx:{path}?Größe 2024 b").rows() == [("1",), ("2",)]
    assert not caplog.records
    for text, message in [
        (f"xlsx:{path}?key", "no sheet 'key'; its sheets are 'Legend', 'Empty', 'Größe 2024 b'$"),
        (f"xlsx:{path}?", "no sheet ''; its sheets are"),
        (f"xlsx:{path}?Empty", "the sheet 'Empty' is empty"),
        (f"xlsx:{tmp_path}/no.xlsx?key", "there is no such file$"),
    ]:
        with pytest.raises(BadInputError, match=message):
            read(text)


MORNING = datetime.datetime(2020, 1, 31, 5)
CELLS = (1, 2.5, True, "x", "1.0", " n/a ", MORNING.date(), MORNING, 1e-10, -1 / 3, 0.1 + 0.2)


@pytest.mark.parametrize("other", [None, *CELLS])
def test_what_a_cell_of_a_workbook_becomes_does_not_depend_on_others(tmp_path, other) -> None:
    """Else a guarantee would fail: a row that is replaced would change what others count as."""
    pytest.importorskip("fastexcel")
    names = [f"c{column}" for column in range(len(CELLS))]
    rows = [names, [*CELLS], [None], [*CELLS], [other] * len(CELLS)]
    texts = ("1", "2.5", "true", "x", "1.0", " n/a ", "2020-01-31", "2020-01-31 05:00:00")
    texts += ("1e-10", "-0.3333333333333333", "0.3")
    assert read(workbook(tmp_path / "t.xlsx", Cells=rows)).rows()[:2] == [texts, texts]


def test_a_query_may_be_longer_than_the_name_of_a_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    (tmp_path / "d.db").touch()
    with pytest.raises(BadInputError, match=r"pip install 'dualquery\[duckdb\]'"):
        read(f"duckdb:{tmp_path / 'd.db'}?select {'1 + ' * 100} 1")


def test_without_a_reader_of_workbooks_the_extra_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(BadInputError, match=r"pip install 'dualquery\[excel\]'"):
        read(tmp_path / "t.xlsx")


def test_several_csv_files_are_one_table(tmp_path: Path) -> None:
    (tmp_path / ".h").mkdir()
    for name in ("0.csv", "1.csv", "2.csv", "_3.tsv", ".4.csv", ".h/5.csv"):
        (tmp_path / name).write_text(f"a;b\n{name[0]};x\n")
    for text in (f"csv:{tmp_path}", f"{tmp_path}/*.csv", f"{tmp_path}/**/*.csv"):
        assert read(text)["a"].to_list() == ["0", "1", "2"]
    (tmp_path / "3.csv").write_text("a;c\n3;x\n")
    with pytest.raises(BadInputError, match=r"3\.csv: its columns .* must have the same columns"):
        read(f"csv:{tmp_path}")
    for text in (tmp_path, f"tsv:{tmp_path}", f"fimi:{tmp_path}"):
        with pytest.raises(BadInputError, match="a folder, not a file, and no file in it is read"):
            read(text)
    for name in ("g=1", "g=2"):
        (tmp_path / "hive" / name).mkdir(parents=True)
        (tmp_path / "hive" / name / "0.csv").write_text("a\nx\n")
    with pytest.raises(BadInputError, match="folder g=1 has the value of a column in its name"):
        read(f"{tmp_path}/hive/*/*.csv")
    assert read(f"{tmp_path}/hive/g=1/*.csv").columns == ["a"]
    shutil.rmtree(tmp_path / "hive")
    (tmp_path / ".h").rename(tmp_path / "h")
    with pytest.raises(BadInputError, match=r"h/5\.csv is in a subfolder"):
        read(f"csv:{tmp_path}")

"""Every form of input, odd and broken ones too: the page says what becomes of it, and it does.

`FORMS` has a maker for each row of the table "What is read, and what is refused" of
``forms.txt``, in its order. A row says ``read``, or quotes words of the message.
"""

from __future__ import annotations

import gzip
import io
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from dualquery.cli.options import given_table
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import ItemSource, TableSource
from dualquery.rows.dataset import load
from dualquery.runtime.errors import BadInputError

PAGE = Path(__file__).with_name("forms.txt")
FRAME = pl.DataFrame({"town": ["Bern", "Zürich", "Genève"], "income": [1.5, 20.25, 3.0]})
BITS = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
ROWS = 3
CSV = FRAME.write_csv()

EXTRAS = ("fastexcel", "duckdb", "adbc_driver_sqlite.dbapi")

Form = Callable[[Path], Any]
"""Makes an input in an empty folder: what a reader takes, or how many rows were read of it."""


def file(name: str, content: bytes | str = CSV, *, csv: str | None = None, form: str = "") -> Form:
    """Return a maker of a file; ``csv`` is its dialect, ``form`` the prefix of its format."""

    def make(folder: Path) -> Any:
        path = written(folder, name, content)
        if csv is None:
            return f"{form}{path}"
        with given_table(path, csv) as source:
            return source_of(source)

    return make


def written(folder: Path, name: str, content: bytes | str = CSV) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def saved(name: str, write: Callable[[Path], Any], *extras: str) -> Form:
    """Return a maker of a file that a library writes; skipped without the extras."""

    def make(folder: Path) -> Any:
        for extra in extras:
            pytest.importorskip(extra)
        write(folder / name)
        return str(folder / name)

    return make


def saved_bytes(write: Callable[[io.BytesIO], Any]) -> bytes:
    """Return what a library writes."""
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def without(module: str, form: Form) -> Form:
    """Return a maker of an input where a module cannot be imported."""

    def make(folder: Path) -> Any:
        sys.modules[module] = None  # type: ignore[assignment]
        return form(folder)

    return make


def sheet(name: str) -> Form:
    """Return a maker of a sheet of a workbook whose second one has the rows."""

    def make(folder: Path) -> Any:
        pytest.importorskip("fastexcel")
        with pytest.importorskip("xlsxwriter").Workbook(folder / "t.xlsx") as book:
            FRAME[:1].write_excel(book, "First")
            FRAME.write_excel(book, "Second")
        return f"xlsx:{folder / 't.xlsx'}?{name}"

    return make


def sqlite(question: str) -> Form:
    """Return a maker of a question to a database of SQLite."""

    def make(folder: Path) -> Any:
        with sqlite3.connect(folder / "d.db") as connection:
            connection.execute("create table t (a int)")
            connection.executemany("insert into t values (?)", [(i,) for i in range(ROWS)])
        connection.close()
        return f"adbc:sqlite:{folder}/d.db{question}"

    return make


def needs(extra: str, form: Form) -> Form:
    """Return a maker that is skipped without an extra."""

    def make(folder: Path) -> Any:
        pytest.importorskip(extra)
        return form(folder)

    return make


def constant(table: Any) -> Form:
    """Return a maker of what needs no folder."""
    return lambda _: table


def duckdb(folder: Path) -> Any:
    database = pytest.importorskip("duckdb")
    with database.connect(str(folder / "d.db")) as connection:
        connection.execute("create table t as select range as a from range(3)")
    return f"duckdb:{folder}/d.db?select a from t"


def duckdb_unread(folder: Path) -> Any:
    return f"duckdb:{written(folder, 'd.db')}?select 1"


def csv_files(folder: Path) -> Any:
    header, *rows = CSV.splitlines(keepends=True)
    for number, row in enumerate(rows):
        written(folder, f"{number}.csv", header + row)
    return f"{folder}/*.csv"


def csv_files_unlike(folder: Path) -> Any:
    written(folder, "1.csv")
    written(folder, "2.csv", "a,b\n1,2\n")
    return f"csv:{folder}"


def csv_folder(folder: Path) -> Any:
    written(folder, "1.csv")
    return str(folder)


def parquet_files(folder: Path) -> Any:
    for row in range(ROWS):
        FRAME[row : row + 1].write_parquet(folder / f"{row}.parquet")
    return str(folder)


def parquet_hive(folder: Path) -> Any:
    (folder / "year=2020").mkdir()
    FRAME.write_parquet(folder / "year=2020" / "t.parquet")
    return str(folder)


def periods(_: Path) -> Any:
    import pandas as pd

    return load(pd.DataFrame({"month": pd.period_range("2020", periods=ROWS, freq="M")})).n


LONG = "a,b\n" + "".join(f"{i},{i * i}\n" for i in range(9_999))
DECIMALS = FRAME.write_csv(separator=";").replace(".", ",")
LISTS = pl.DataFrame({"items": [[1, 2], [], [0]]})
SPARSE = sparse.csr_array(BITS)
NUMERIC = pa.ExtensionArray.from_storage(
    pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(["1.50", None, "2"])
)
"""What PostgreSQL's driver gives for a column of numbers with decimals."""

FORMS: dict[str, Form] = {
    "CSV in UTF-8, with a header": file("t.csv"),
    "CSV with a byte-order mark, lines ended by CR LF": file(
        "t.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode()
    ),
    "CSV with commas, quotation marks and line ends in quoted cells": file(
        "t.csv", 'a,b\n"x,y",1\n"a ""b""\nc",2\n,3\n'
    ),
    "CSV, gzipped, whatever its name": file("t.csv", gzip.compress(CSV.encode(), mtime=0)),
    "CSV separated by semicolons, tabs or bars": file("t.csv", FRAME.write_csv(separator=";")),
    "CSV in Latin-1 with `--csv encoding=latin-1`": file(
        "t.csv", CSV.encode("latin-1"), csv="encoding=latin-1"
    ),
    "CSV with a space after each separator, in the header, too": file(
        "t.csv", CSV.replace(",", ", ")
    ),
    "CSV whose first line is `sep=;`, as Excel writes it": file("t.csv", "sep=;\n" + DECIMALS),
    "CSV in Latin-1, unsaid": file("t.csv", CSV.encode("latin-1")),
    "CSV in UTF-16 with `--csv encoding=utf-16`": file(
        "t.csv", CSV.encode("utf-16"), csv="encoding=utf-16"
    ),
    "CSV in UTF-16, unsaid, with its byte-order mark": file("t.csv", CSV.encode("utf-16")),
    "CSV in UTF-16, unsaid, without a mark": file("t.csv", CSV.encode("utf-16-le")),
    "CSV with decimal commas and `--csv 'delimiter=;,decimal=,'`": file(
        "t.csv", DECIMALS, csv="delimiter=;,decimal=,"
    ),
    "`--csv` with an unknown key or encoding": file("t.csv", csv="encoding=klingon"),
    "`--csv` with a file of another format": file(
        "t.parquet", saved_bytes(FRAME.write_parquet), csv="delimiter=;"
    ),
    "CSV with a row of more or fewer cells": file("t.csv", CSV + "one\n"),
    "CSV with a title above its header": file("t.csv", "Towns\n" + CSV),
    "CSV with a quotation mark that is not closed": file("t.csv", CSV + '"one,1\n'),
    "CSV with two columns of one name": file("t.csv", "a,a\n1,2\n"),
    "CSV of 0 and 1 without a header": file("t.csv", "1,0,1\n0,0,0\n"),
    "CSV whose first line is empty": file("t.csv", "\na,b\n1,2\n"),
    "CSV with a NUL byte": file("t.csv", b"a,b\n1,\0\n"),
    "A gzipped file that ends in the middle": file(
        "t.csv.gz", gzip.compress(LONG.encode(), mtime=0)[:-900]
    ),
    "An empty file": file("t.csv", b""),
    "Several CSV files: `csv:FOLDER` or a pattern such as `data/*.csv`": csv_files,
    "Several CSV files with different headers": csv_files_unlike,
    "`csv:FOLDER` without a CSV file in it": lambda folder: f"csv:{folder}",
    "A folder of CSV files without `csv:`": csv_folder,
    "TSV": file("t.tsv", FRAME.write_csv(separator="\t")),
    "Parquet": saved("t.parquet", FRAME.write_parquet),
    "Several parquet files: a folder, or a pattern": parquet_files,
    "Parquet in subfolders `year=2020`": parquet_hive,
    "Parquet with one column of lists of item ids": saved("t.parquet", LISTS.write_parquet),
    "A parquet file with missing bytes": file("t.parquet", saved_bytes(FRAME.write_parquet)[:-9]),
    "A file of another format, called `.parquet`": file("t.parquet"),
    "Arrow IPC, a file or a stream": saved("t.arrow", FRAME.write_ipc_stream),
    "Arrow IPC with missing bytes": file("t.arrow", saved_bytes(FRAME.write_ipc)[:-40]),
    "Excel, its first sheet (extra `excel`)": saved(
        "t.xlsx", FRAME.write_excel, "fastexcel", "xlsxwriter"
    ),
    "Excel, another sheet: `xlsx:FILE?SHEET`": sheet("Second"),
    "A sheet that the workbook has not": sheet("Data"),
    "Excel without the extra": without("fastexcel", file("t.xlsx", b"PK")),
    "DuckDB, `duckdb:FILE?SELECT ...` (extra `duckdb`)": duckdb,
    "DuckDB without the extra": without("duckdb", duckdb_unread),
    "SQLite by ADBC, `adbc:sqlite:FILE?SELECT ...` (extra `adbc`)": needs(
        "adbc_driver_sqlite", sqlite("?select a from t")
    ),
    "A column of SQLite with texts among numbers": needs(
        "adbc_driver_sqlite", sqlite("?select a from t union select 'x'")
    ),
    "A query that ADBC's database refuses, such as one of a table that is not there": needs(
        "adbc_driver_sqlite", sqlite("?select a from u")
    ),
    "A database by ADBC without the extra": without(
        "adbc_driver_sqlite.dbapi", sqlite("?select a from t")
    ),
    "A driver that is not known": constant("adbc:oracle:host?select 1"),
    "An address of a database with a password in it": constant(
        "adbc:postgresql:postgresql://me:secret@host/db?select 1"
    ),
    "`duckdb:FILE` or `adbc:...` without a query": sqlite(""),
    "FIMI, item ids separated by spaces (`.dat`)": file("t.dat", "0 2\n\n1\n"),
    "FIMI with something that is no item id": file("t.dat", "0 2\nmilk\n"),
    "A SciPy sparse matrix of 0 and 1 (`.npz`)": saved(
        "t.npz", lambda path: sparse.save_npz(path, SPARSE)
    ),
    "`matrix:` rows of 0 and 1": file("t.txt", "1 0 1\n0 0 0\n0 1 0\n", form="matrix:"),
    "`matrix:` with another number than 0 and 1": file("t.txt", "1 0 2\n", form="matrix:"),
    "`bitstring:` bits, a tab and a count": file(
        "t.txt", "101\t1\n000\t1\n010\t1\n", form="bitstring:"
    ),
    "`-`, CSV from the standard input; `FORMAT:-`, a file of another format": lambda _: piped(
        CSV.encode(), "-"
    ),
    "`-` when nothing comes": lambda _: piped(b"", "-"),
    "`-` of a format that is a folder or a query": lambda _: piped(b"", "duckdb:-"),
    "A file whose ending says nothing": file("t.data"),
    "A file packed by zip, xz, bzip2 or zstd": file("t.csv.zip"),
    "Old Excel, OpenDocument, SPSS, Stata, SAS, R, JSON, SQLite by its name": file("t.sav"),
    "A file that is not there": constant("nowhere.csv"),
    "A prefix that is no format": constant("cvs:t.txt"),
    "A Polars table, eager or lazy": constant(FRAME.lazy()),
    "A lazy table that cannot be collected": constant(FRAME.lazy().select("street")),
    "A pandas table": needs("pandas", lambda _: FRAME.to_pandas()),
    "A column of another type than number, text, category, truth value, date or time": needs(
        "pandas", periods
    ),
    "An Arrow table": constant(FRAME.to_arrow()),
    "An Arrow table with types of its own making, such as PostgreSQL's numbers by ADBC": (
        lambda _: pa.table({"x": NUMERIC})
    ),
    "A NumPy matrix of 0 and 1": constant(BITS),
    "A NumPy matrix of other numbers": constant(BITS + 1),
    "A SciPy sparse matrix of 0 and 1": constant(SPARSE),
    "A list of dicts, and any other object": constant(FRAME.to_dicts()),
}


def piped(content: bytes, text: str) -> int:
    """Return how many rows a command would see in its standard input."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        with given_table(text, None) as source:
            return count(source)
    finally:
        sys.stdin = before


def count(table: Any) -> int:
    """Return how many rows a table has, read to its end."""
    source = source_of(table)
    if isinstance(source, ItemSource):
        return sum(len(rows) for rows in source.item_rows())
    assert isinstance(source, TableSource)
    names = source.columns()
    return sum(frame.height for frame in source.frames(names))


def told() -> dict[str, str]:
    """Return what is listed: each form, and what becomes of it."""
    return dict(line.split(" | ") for line in PAGE.read_text("utf-8").splitlines())


def test_the_page_has_every_form_and_no_other() -> None:
    assert [*told()] == [*FORMS]


@pytest.mark.parametrize("name", FORMS)
def test_what_the_page_says_happens(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for module in EXTRAS:  # both are undone afterwards
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.delitem(sys.modules, module)
    folder = tmp_path / "data"
    folder.mkdir()
    says, rows, message = told()[name], 0, ""
    try:
        made = FORMS[name](folder)
        rows = made if isinstance(made, int) else count(made)
    except BadInputError as refused:
        message = str(refused)
    quoted = re.search(r"“(.*)”", says)
    if quoted is None:
        assert says.startswith("read")
        assert (rows, message) == (ROWS, "")
    else:
        assert all(part in message for part in quoted[1].split(" ... ")), (says, message)


def test_no_name_is_not_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"a": [1, 0]}).write_parquet("mine.parquet")
    with pytest.raises(BadInputError, match="the table's name is empty"):
        source_of("")
    there = source_of(".")
    assert isinstance(there, TableSource)
    assert [*there.columns()] == ["a"]

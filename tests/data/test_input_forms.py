"""Every form of input, odd and broken ones too: the page says what becomes of it, and it does.

The table "What is read, and what is refused" of ``dualquery/data/README.md`` has a row for each
function here, by its docstring. A row says ``read``, or quotes words of the message.
"""

from __future__ import annotations

import gzip
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dualquery.cli.given_table import given_table
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import ItemSource, Source, TableSource
from dualquery.runtime.errors import BadInputError

PAGE = Path(__file__).resolve().parents[2] / "dualquery" / "data" / "README.md"
FRAME = pl.DataFrame({"town": ["Bern", "Zürich", "Genève"], "income": [1.5, 20.25, 3.0]})
BITS = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
ROWS = 3
CSV = FRAME.write_csv()

EXTRAS = ("fastexcel", "duckdb", "adbc_driver_sqlite.dbapi")

Form = Callable[[Path], Any]
FORMS: dict[str, Form] = {}


def form(maker: Form) -> Form:
    """Note a maker of an input by its docstring."""
    assert maker.__doc__
    FORMS[maker.__doc__] = maker
    return maker


def file(folder: Path, name: str, content: bytes | str = CSV) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def in_dialect(text: str, csv: str) -> Source:
    with given_table(text, csv) as source:
        return source_of(source)


@form
def csv_plain(folder: Path) -> Any:
    """CSV in UTF-8, with a header"""
    return file(folder, "t.csv")


@form
def csv_mark(folder: Path) -> Any:
    """CSV with a byte-order mark, lines ended by CR LF"""
    return file(folder, "t.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode())


@form
def csv_quoted(folder: Path) -> Any:
    """CSV with commas, quotation marks and line ends in quoted cells"""
    return file(folder, "t.csv", 'a,b\n"x,y",1\n"a ""b""\nc",2\n,3\n')


@form
def csv_zipped(folder: Path) -> Any:
    """CSV, gzipped, whatever its name"""
    return file(folder, "t.csv", gzip.compress(CSV.encode(), mtime=0))


@form
def csv_semicolons(folder: Path) -> Any:
    """CSV separated by semicolons, tabs or bars"""
    return file(folder, "t.csv", FRAME.write_csv(separator=";"))


@form
def csv_latin(folder: Path) -> Any:
    """CSV in Latin-1 with `--csv encoding=latin-1`"""
    return in_dialect(file(folder, "t.csv", CSV.encode("latin-1")), "encoding=latin-1")


@form
def csv_latin_unsaid(folder: Path) -> Any:
    """CSV in Latin-1, unsaid"""
    return file(folder, "t.csv", CSV.encode("latin-1"))


@form
def csv_utf16(folder: Path) -> Any:
    """CSV in UTF-16 with `--csv encoding=utf-16`"""
    return in_dialect(file(folder, "t.csv", CSV.encode("utf-16")), "encoding=utf-16")


@form
def csv_utf16_unsaid(folder: Path) -> Any:
    """CSV in UTF-16, unsaid"""
    return file(folder, "t.csv", CSV.encode("utf-16"))


@form
def csv_decimals(folder: Path) -> Any:
    """CSV with decimal commas and `--csv 'delimiter=;,decimal=,'`"""
    text = FRAME.write_csv(separator=";").replace(".", ",")
    return in_dialect(file(folder, "t.csv", text), "delimiter=;,decimal=,")


@form
def csv_wrong_dialect(folder: Path) -> Any:
    """`--csv` with an unknown key or encoding"""
    return in_dialect(file(folder, "t.csv"), "encoding=klingon")


@form
def dialect_of_parquet(folder: Path) -> Any:
    """`--csv` with a file of another format"""
    FRAME.write_parquet(folder / "t.parquet")
    return in_dialect(str(folder / "t.parquet"), "delimiter=;")


@form
def csv_ragged(folder: Path) -> Any:
    """CSV with a row of more or fewer cells"""
    return file(folder, "t.csv", CSV + "one\n")


@form
def csv_twins(folder: Path) -> Any:
    """CSV with two columns of one name"""
    return file(folder, "t.csv", "a,a\n1,2\n")


@form
def csv_no_header(folder: Path) -> Any:
    """CSV whose first line is empty"""
    return file(folder, "t.csv", "\na,b\n1,2\n")


@form
def csv_nul(folder: Path) -> Any:
    """CSV with a NUL byte"""
    return file(folder, "t.csv", b"a,b\n1,\0\n")


@form
def csv_truncated(folder: Path) -> Any:
    """A gzipped file that ends in the middle"""
    rows = "".join(f"{i},{i * i}\n" for i in range(9999))
    return file(folder, "t.csv.gz", gzip.compress(f"a,b\n{rows}".encode(), mtime=0)[:-900])


@form
def empty(folder: Path) -> Any:
    """An empty file"""
    return file(folder, "t.csv", b"")


@form
def csv_files(folder: Path) -> Any:
    """Several CSV files: `csv:FOLDER` or a pattern such as `data/*.csv`"""
    rows = CSV.splitlines(keepends=True)
    for i, row in enumerate(rows[1:]):
        file(folder, f"{i}.csv", rows[0] + row)
    return f"{folder}/*.csv"


@form
def csv_files_unlike(folder: Path) -> Any:
    """Several CSV files with different headers"""
    file(folder, "1.csv")
    file(folder, "2.csv", "a,b\n1,2\n")
    return f"csv:{folder}"


@form
def csv_folder(folder: Path) -> Any:
    """A folder of CSV files without `csv:`"""
    file(folder, "1.csv")
    return str(folder)


@form
def tsv(folder: Path) -> Any:
    """TSV"""
    return file(folder, "t.tsv", FRAME.write_csv(separator="\t"))


@form
def parquet(folder: Path) -> Any:
    """Parquet"""
    FRAME.write_parquet(folder / "t.parquet")
    return str(folder / "t.parquet")


@form
def parquet_files(folder: Path) -> Any:
    """Several parquet files: a folder, or a pattern"""
    for i in range(ROWS):
        FRAME[i : i + 1].write_parquet(folder / f"{i}.parquet")
    return str(folder)


@form
def parquet_hive(folder: Path) -> Any:
    """Parquet in subfolders `year=2020`"""
    (folder / "year=2020").mkdir()
    FRAME.write_parquet(folder / "year=2020" / "t.parquet")
    return str(folder)


@form
def parquet_lists(folder: Path) -> Any:
    """Parquet with one column of lists of item ids"""
    pl.DataFrame({"items": [[1, 2], [], [0]]}).write_parquet(folder / "t.parquet")
    return str(folder / "t.parquet")


@form
def parquet_damaged(folder: Path) -> Any:
    """A parquet file with missing bytes"""
    FRAME.write_parquet(folder / "t.parquet")
    return file(folder, "u.parquet", (folder / "t.parquet").read_bytes()[:-9])


@form
def parquet_not(folder: Path) -> Any:
    """A file of another format, called `.parquet`"""
    return file(folder, "t.parquet")


@form
def arrow_file(folder: Path) -> Any:
    """Arrow IPC, a file or a stream"""
    FRAME.write_ipc_stream(folder / "t.arrow")
    return str(folder / "t.arrow")


@form
def arrow_damaged(folder: Path) -> Any:
    """Arrow IPC with missing bytes"""
    FRAME.write_ipc(folder / "t.arrow")
    return file(folder, "u.arrow", (folder / "t.arrow").read_bytes()[:-40])


@form
def excel(folder: Path) -> Any:
    """Excel, its first sheet (extra `excel`)"""
    pytest.importorskip("fastexcel")
    pytest.importorskip("xlsxwriter")
    FRAME.write_excel(folder / "t.xlsx")
    return str(folder / "t.xlsx")


@form
def excel_missing(folder: Path) -> Any:
    """Excel without the extra"""
    sys.modules["fastexcel"] = None  # type: ignore[assignment]
    return file(folder, "t.xlsx", b"PK")


@form
def duckdb(folder: Path) -> Any:
    """DuckDB, `duckdb:FILE?SELECT ...` (extra `duckdb`)"""
    database = pytest.importorskip("duckdb")
    with database.connect(str(folder / "d.db")) as connection:
        connection.execute("create table t as select range as a from range(3)")
    return f"duckdb:{folder}/d.db?select a from t"


@form
def duckdb_missing(folder: Path) -> Any:
    """DuckDB without the extra"""
    sys.modules["duckdb"] = None  # type: ignore[assignment]
    return f"duckdb:{file(folder, 'd.db')}?select 1"


def sqlite(folder: Path) -> str:
    import sqlite3

    with sqlite3.connect(folder / "d.db") as connection:
        connection.execute("create table t (a int)")
        connection.executemany("insert into t values (?)", [(i,) for i in range(ROWS)])
    connection.close()
    return f"{folder}/d.db"


@form
def adbc(folder: Path) -> Any:
    """SQLite by ADBC, `adbc:sqlite:FILE?SELECT ...` (extra `adbc`)"""
    pytest.importorskip("adbc_driver_sqlite")
    return f"adbc:sqlite:{sqlite(folder)}?select a from t"


@form
def adbc_writes(folder: Path) -> Any:
    """A query that ADBC's database refuses, such as one of a table that is not there"""
    pytest.importorskip("adbc_driver_sqlite")
    return f"adbc:sqlite:{sqlite(folder)}?select a from u"


@form
def adbc_missing(folder: Path) -> Any:
    """A database by ADBC without the extra"""
    sys.modules["adbc_driver_sqlite.dbapi"] = None  # type: ignore[assignment]
    return f"adbc:sqlite:{sqlite(folder)}?select a from t"


@form
def adbc_unknown(folder: Path) -> Any:
    """A driver that is not known"""
    return "adbc:oracle:host?select 1"


@form
def adbc_password(folder: Path) -> Any:
    """An address of a database with a password in it"""
    return "adbc:postgresql:postgresql://me:secret@host/db?select 1"


@form
def query_missing(folder: Path) -> Any:
    """`duckdb:FILE` or `adbc:...` without a query"""
    return f"adbc:sqlite:{sqlite(folder)}"


@form
def fimi(folder: Path) -> Any:
    """FIMI, item ids separated by spaces (`.dat`)"""
    return file(folder, "t.dat", "0 2\n\n1\n")


@form
def fimi_words(folder: Path) -> Any:
    """FIMI with something that is no item id"""
    return file(folder, "t.dat", "0 2\nmilk\n")


@form
def npz(folder: Path) -> Any:
    """A SciPy sparse matrix of 0 and 1 (`.npz`)"""
    from scipy import sparse

    sparse.save_npz(folder / "t.npz", sparse.csr_array(BITS))
    return str(folder / "t.npz")


@form
def matrix(folder: Path) -> Any:
    """`matrix:` rows of 0 and 1"""
    return "matrix:" + file(folder, "t.txt", "1 0 1\n0 0 0\n0 1 0\n")


@form
def matrix_two(folder: Path) -> Any:
    """`matrix:` with another number than 0 and 1"""
    return "matrix:" + file(folder, "t.txt", "1 0 2\n")


@form
def bitstring(folder: Path) -> Any:
    """`bitstring:` bits, a tab and a count"""
    return "bitstring:" + file(folder, "t.txt", "101\t1\n000\t1\n010\t1\n")


@form
def stdin(folder: Path) -> Any:
    """`-`, CSV from the standard input; `FORMAT:-`, a file of another format"""
    return piped(CSV.encode(), "-")


@form
def stdin_empty(folder: Path) -> Any:
    """`-` when nothing comes"""
    return piped(b"", "-")


@form
def stdin_query(folder: Path) -> Any:
    """`-` of a format that is a folder or a query"""
    return piped(b"", "duckdb:-")


@form
def ending(folder: Path) -> Any:
    """A file whose ending says nothing"""
    return file(folder, "t.data")


@form
def nowhere(folder: Path) -> Any:
    """A file that is not there"""
    return str(folder / "t.csv")


@form
def not_a_format(folder: Path) -> Any:
    """A prefix that is no format"""
    return "cvs:t.txt"


@form
def polars_frame(folder: Path) -> Any:
    """A Polars table, eager or lazy"""
    return FRAME.lazy()


@form
def pandas_frame(folder: Path) -> Any:
    """A pandas table"""
    pytest.importorskip("pandas")
    return FRAME.to_pandas()


@form
def arrow_table(folder: Path) -> Any:
    """An Arrow table"""
    return FRAME.to_arrow()


@form
def numpy_bits(folder: Path) -> Any:
    """A NumPy matrix of 0 and 1"""
    return BITS


@form
def numpy_other(folder: Path) -> Any:
    """A NumPy matrix of other numbers"""
    return BITS + 1


@form
def scipy_bits(folder: Path) -> Any:
    """A SciPy sparse matrix of 0 and 1"""
    from scipy import sparse

    return sparse.csr_array(BITS)


@form
def dicts(folder: Path) -> Any:
    """A list of dicts, and any other object"""
    return FRAME.to_dicts()


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
    """Return the rows of the table on the page."""
    section = PAGE.read_text("utf-8").partition("## What is read, and what is refused")[2]
    lines = section.partition("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {cells[0]: cells[1] for cells in rows[1:]}


def test_the_page_has_every_form_and_no_other() -> None:
    assert [*told()] == [*FORMS]


@pytest.mark.parametrize("name", FORMS, ids=lambda name: FORMS[name].__name__)
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

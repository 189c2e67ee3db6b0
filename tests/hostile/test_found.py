"""What spoilt inputs and bombs once broke, each as small as it can be."""

import contextlib
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dualquery
from dualquery.data.drafts.choose import choose_schema
from dualquery.data.encoding.blocks import encoded_blocks
from dualquery.data.readers.formats import source_of
from dualquery.data.schema.schema_files import load_schema
from dualquery.queries.generate.query_files import workload_of_texts
from dualquery.questions.plain_parser import read_question
from dualquery.releases.keep.folder import load_release
from dualquery.runtime.array_files import read_arrays
from dualquery.runtime.documents import parse_json, parse_toml
from dualquery.runtime.errors import BadInputError
from solvers.errors import MalformedFileError, ProblemTooLargeError
from solvers.formats import read_instance
from tests.tables import SCHEMA, people, reseal


def read(text: str) -> int:
    """Read all rows of a source with a drafted schema; return their number."""
    source = source_of(text)
    return sum(map(len, encoded_blocks(source, choose_schema(source))))


def refused(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read(text)


def parquet(column: pa.Array) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": column}), stream)
    return stream.getvalue()


def npz(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def sparse(shape: tuple[int, int], indptr: list[int], indices: list[int]) -> bytes:
    ones, where = np.ones(len(indices)), np.array(indices, np.int64)
    return npz(format=b"csr", shape=shape, data=ones, indices=where, indptr=indptr)


INVALID_UTF8 = pa.StringArray.from_buffers(
    1, pa.py_buffer(np.array([0, 1], np.int32).tobytes()), pa.py_buffer(b"\xff")
)

TABLES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    # Bombs: a small file that unpacks, or says that it unpacks, to gigabytes.
    "a line without end": ("x.dat.gz", lambda: gzip.compress(b"1 " * 10**7, 1), "has more than"),
    "a header without end": ("x.csv.gz", lambda: gzip.compress(b"a" * 10**7, 1), "unreadable"),
    "a header of a million columns": (
        "x.csv",
        lambda: b",".join(b"%d" % n for n in range(500_000)),
        "500,000 columns; a table has at most",
    ),
    "a cell without end": ("x.csv.gz", lambda: gzip.compress(b'a,b\n"' + b"x" * 10**7, 1), "csv"),
    "a count of all rows": ("bitstring:x", lambda: b"1\t999999999999999999\n", "more than 1,000"),
    "counts beyond 64 bits": ("bitstring:x", lambda: b"1\t999999999999999999\n" * 20, "more than"),
    "a user of his own": ("netflix:x", lambda: b"1:\n5000000,3,2005-09-06\n", "user 5000000"),
    "a shape of all columns": (
        "x.npz", lambda: sparse((1, 2**62), [0, 0], []), "columns are possible"
    ),
    "a shape of all rows": (
        "x.npz",
        lambda: npz(format=b"coo", shape=(10**12, 2), data=np.ones(1), row=[0], col=[0]),
        "rows and",
    ),
    # Crashes: SciPy's loops trust the positions.
    "pointers that go back": ("x.npz", lambda: sparse((2, 2), [0, 10**6, 0], []), "pointers"),
    "positions outside": ("x.npz", lambda: sparse((1, 2), [0, 1], [7]), "damaged sparse matrix"),
    "objects": ("x.npz", lambda: npz(format=b"csr", data=np.array([None])), "not a matrix"),
    # Polars takes texts of Arrow on trust.
    "texts that are no UTF-8": ("x.parquet", lambda: parquet(INVALID_UTF8), "damaged parquet file"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_tables(tmp_path: Path, case: str) -> None:
    name, make, message = TABLES[case]
    form, colon, file = name.rpartition(":")
    (tmp_path / file).write_bytes(make())
    refused(f"{form}{colon}{tmp_path / file}", message)


def test_a_row_that_is_no_utf8_and_too_long_prints_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", printed.append)
    (tmp_path / "x.csv").write_bytes(b"a,b\n1,2\n3,\xff,4\n")
    refused(str(tmp_path / "x.csv"), "not utf-8 text at line 3")
    assert printed == []


def ipc(table: pa.Table, **options: object) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_arrow_batches_are_checked_before_polars_trusts_them(tmp_path: Path) -> None:
    """Offsets beyond the texts once ended the process."""
    for column in (
        INVALID_UTF8,
        pa.StringArray.from_buffers(
            2, pa.py_buffer(np.array([0, 10**6, 2], np.int32).tobytes()), pa.py_buffer(b"ab")
        ),
    ):
        (tmp_path / "x.arrow").write_bytes(ipc(pa.table({"a": column})))
        refused(str(tmp_path / "x.arrow"), "damaged file of Arrow batches")


@pytest.mark.parametrize("values", [["x"], [[1]]], ids=["a column's", "within a column"])
def test_names_in_arrow_batches_that_are_no_utf8(tmp_path: Path, capfd, values) -> None:
    kind = pa.list_(pa.field("abcd", pa.int64())) if values == [[1]] else pa.string()
    table = pa.table({"e" if values == [[1]] else "abcd": pa.array(values, kind)})
    (tmp_path / "x.arrow").write_bytes(ipc(table).replace(b"abcd", b"ab\x80d"))
    refused(str(tmp_path / "x.arrow"), "damaged file of Arrow batches")
    assert capfd.readouterr().err == ""  # no panic of Polars


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_a_row_that_unpacks_to_very_many_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A block has a limit once it is read, and while it is read where the system has one."""
    items, ends = np.zeros(8_000_000, np.int8), pa.array([0, 8_000_000], pa.int64())
    table = pa.table({"items": pa.LargeListArray.from_arrays(ends, items)})
    path = tmp_path / f"x{ending}"
    if ending == ".parquet":
        pq.write_table(table, path)
    else:
        path.write_bytes(ipc(table, compression="zstd"))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("dualquery.data.readers.arrow.LARGEST", 1 << 20)
    refused(str(path), "a block of rows takes more than")
    monkeypatch.setattr("dualquery.data.readers.arrow.limited_space", contextlib.nullcontext)
    refused(str(path), "a block of rows takes more than")


def test_a_workbook_that_states_very_many_cells(tmp_path: Path) -> None:
    """Two cells in opposite corners: 17 billion between them, which the reader would make."""
    pytest.importorskip("fastexcel")
    book = pytest.importorskip("openpyxl").Workbook()
    book.active["A1"] = book.active["XFD1048576"] = 1
    book.save(tmp_path / "x.xlsx")
    refused(str(tmp_path / "x.xlsx"), "not readable as an Excel workbook")


def test_a_view_of_a_database_reads_no_other_file(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    (secret := tmp_path / "secret.csv").write_text("a\n1\n")
    with contextlib.closing(duckdb.connect(tmp_path / "x.db")) as connection:
        connection.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{secret}')")
    refused(f"duckdb:{tmp_path / 'x.db'}?SELECT * FROM v", "DuckDB refuses")


def schema_of(folder: Path, text: str) -> None:
    (folder / "s.json").write_text(text)
    load_schema(folder / "s.json")


def one_array(data: bytes) -> None:
    read_arrays(io.BytesIO(data), 1 << 20)


def promising() -> bytes:
    """Return an array whose header promises more than there is."""
    stream, header = io.BytesIO(), io.BytesIO()
    stated = {"descr": "<i8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, stated)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    return stream.getvalue()


def queried(text: str) -> None:
    with contextlib.suppress(BadInputError):
        read_question(text, SCHEMA)
    workload_of_texts([text], SCHEMA, "list", str)


TEXTS: list[tuple[Callable[..., object], object, str]] = [
    *((source_of, text, "") for text in ("x" * 5000, "a\0b.csv", "a**b/*.parquet")),
    (source_of, "netflix-like:5,99999999999", ""),
    (load_schema, "x" * 5000, ""),
    *((parse_json, text, "") for text in ("[" * 100_000, '{"a": ' * 100_000, "9" * 5000, "1e999")),
    *((parse_json, x, "") for x in ("NaN", '{"a": "\\ud800"}', '{"a": 1, "a": 2}', "9" * 101)),
    *((parse_toml, text, "") for text in ("a = " + "[" * 100_000, "a" + ".a" * 100_000 + " = 1")),
    *((parse_toml, text, "") for text in ("a = inf", "a = " + "9" * 5000)),
    (schema_of, '{"items": "0-5", "max_ones_per_row": 18446744073709551616}', "max_ones_per_row"),
    # These took the square of their length.
    *((queried, text, "") for text in ("age=" + "1" * 19_000 + "x", "a" + " " * 19_000 + '"')),
    *((queried, text, "") for text in ('"' * 61, 'a="' + '""' * 9_000, "age=1.2.3-4")),
    (one_array, npz(a=np.zeros(10**6)), "at most 100 of 1 MiB"),
    (one_array, promising(), "no file of NumPy arrays"),
]


@pytest.mark.parametrize("case", range(len(TEXTS)), ids=lambda n: f"{TEXTS[n][0].__name__} {n}")
def test_texts_and_arrays(tmp_path: Path, case: int) -> None:
    refuses, text, message = TEXTS[case]
    with pytest.raises(BadInputError, match=message or None):
        refuses(tmp_path, text) if refuses is schema_of else refuses(text)


PROBLEMS: dict[str, tuple[str, bytes, str]] = {
    "a variable of its own": ("x.wcnf", b"1 1073741823 0\n", "number them without gaps"),
    "variables of a header": ("x.wcnf", b"p wcnf 1000000000000 1 9\n1 1 0\n", "without gaps"),
    "a weight beyond 64 bits": ("x.wcnf", b"9223372036854775808 1 0\n", "weigh more than 2"),
    "a number of thousands of digits": ("x.wcnf", b"9" * 5000 + b" 1 0\n", "found '9999"),
    "one long clause and many": (
        "x.wcnf",
        b"1 " + b" ".join(b"%d" % n for n in range(1, 20_000)) + b" 0\n" + b"1 1 2 0\n" * 10_000,
        "conjunctions or soft clauses of up to 19999",
    ),
    "damage within gzip": (
        "x.wcnf.gz", gzip.compress(b"1 1 0\n" * 99, mtime=0)[:12] + b"\xff" * 20, "decompressed"
    ),
    "attributes of an LP file": (
        "x.lp",
        b"\\ dualquery attributes 9999999999\nmax\n x\nst\n x <= 1\nbin\n x\nend",
        "no variable",
    ),
    "what makes SCIP crash": ("x.lp", b"max\n " + b"(" * 100_000 + b" x\nst\nend", "SCIP crashed"),
}  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_problems(tmp_path: Path, case: str) -> None:
    name, content, message = PROBLEMS[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises((MalformedFileError, ProblemTooLargeError), match=message):
        read_instance(tmp_path / name)


def test_bombs_of_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solvers.formats.files.LARGEST", 1 << 20)
    lines = b"\n" * 10**7
    for ending, packed in ((".gz", gzip.compress(lines)), (".xz", lzma.compress(lines))):
        path = tmp_path / f"x.wcnf{ending}"
        path.write_bytes(packed)
        with pytest.raises(MalformedFileError, match="more than 1,048,576 bytes of text"):
            read_instance(path)


def test_the_process_of_scip_is_started_again_after_a_crash(tmp_path: Path) -> None:
    crash, good = tmp_path / "a.lp", tmp_path / "b.lp"
    crash.write_bytes(b"max\n " + b"(" * 100_000 + b" x\nst\nend")
    good.write_text("max\n x\nst\n x <= 1\nbin\n x\nend")
    for _ in range(2):
        # Some versions of SCIP crash at once, others answer and are harmed: the next file is read.
        with pytest.raises(MalformedFileError, match=r"SCIP crashed|expected sign"):
            read_instance(crash)
        assert read_instance(good).problem.attributes == 1


@pytest.fixture
def release(tmp_path: Path) -> Path:
    made = dualquery.release(people(50), schema=SCHEMA, queries=9, way=2, mechanism="gaussian")
    made.save(tmp_path / "release")
    return tmp_path / "release"


def test_a_release_with_a_link_is_refused(release: Path, tmp_path: Path) -> None:
    moved = (file := release / "answers.parquet").rename(tmp_path / "elsewhere.parquet")
    try:
        file.symlink_to(moved)
    except OSError:
        pytest.skip("links cannot be made here")
    for _ in range(2):  # to a file, and to none
        with pytest.raises(BadInputError, match="is a link; copy the file itself"):
            load_release(release)
        moved.unlink(missing_ok=True)


@pytest.mark.parametrize("epsilon", [None, [1.0]])
def test_a_release_without_its_epsilon_answers_nothing(release: Path, epsilon: object) -> None:
    stored = json.loads((release / "release.json").read_text())
    stored["options"]["epsilon"] = epsilon
    (release / "release.json").write_text(json.dumps(stored))
    reseal(release)
    loaded = load_release(release)
    with pytest.raises(BadInputError):
        loaded.answer("age=0-25 & flag & sex=Male")

"""Everything that reads what others wrote: valid examples, how they are spoilt, what must hold.

A parser takes a spoilt input and either refuses it with a documented error or accepts it. Of what
it accepts more is asked than that nothing was raised: records are legal, and what was read comes
back the same by another way (other pieces of the file, written and read again, brute force).
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import lzma
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dualquery.data.blocks import choose_schema, encoded_blocks
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import ItemSource, Source
from dualquery.data.schema.files import format_schema, load_schema, schema_from_dict
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.documents import parse_json
from dualquery.runtime.errors import BadInputError
from solvers.errors import SolverError
from tests.hostile.mutation import (
    TEXT,
    Mutator,
    spliced,
    spoil_bytes,
    spoil_json,
    spoil_words,
    zipped,
)
from tests.tables import SCHEMA, people

DOCUMENTED = (BadInputError, SolverError)


@dataclass(frozen=True)
class Parser:
    """One thing that reads.

    Parameters
    ----------
    examples
        Returns valid inputs; called once in a process.
    mutate
        Spoils one.
    read
        Reads an input in an empty folder; raises one of `DOCUMENTED` if it refuses it, and
        `AssertionError` if what it accepted does not hold.
    """

    examples: Callable[[], Sequence[bytes]]
    mutate: Mutator
    read: Callable[[bytes, Path], None]

    def input(self, examples: Sequence[bytes], seed: str) -> bytes:
        """Return the input of a seed."""
        chance = random.Random(seed)
        return self.mutate(chance, spliced(chance, examples))


# Tables and lists of items

_ITEMS = ItemSchema(np.array([0, 1, 2, 3, 5, 8, 1000]), outside="drop", declared=True)


def _rows(source: Source, schema: TableSchema | ItemSchema) -> list[list[int]]:
    """Return the bits of each row, increasing; every row is a legal record."""
    found: list[list[int]] = []
    groups = schema.domain.sizes > 1
    for block in itertools.islice(encoded_blocks(source, schema), 200):
        assert block.indptr[0] == 0
        assert block.indptr[-1] == len(block.bits)
        assert np.all(np.diff(block.indptr) >= 0)
        assert np.all((block.bits >= 0) & (block.bits < schema.domain.bits))
        rows = [sorted({*block.bits[a:b].tolist()}) for a, b in itertools.pairwise(block.indptr)]
        if groups.any():
            for bits in rows:
                ones = np.bincount(schema.domain.column_of_bit[bits], minlength=len(groups))
                assert np.all(ones[groups] == 1)
        found += rows
    return found


def _read_table(form: str, ending: str, data: bytes, folder: Path) -> None:
    """Read a file as a table or as items, with a schema of the tests' own and with a draft."""
    path = folder / f"input{ending}"
    path.write_bytes(data)
    text = f"{form}:{path}" if form else str(path)
    refused: list[BadInputError] = []
    for declared in (True, False):
        try:
            source = source_of(text)
            given: TableSchema | ItemSchema | None = None
            if declared:
                given = _ITEMS if isinstance(source, ItemSource) else SCHEMA
                if getattr(source, "implied_schema", None):
                    given = None
            schema = choose_schema(source, given)
            rows = _rows(source, schema)
            if hasattr(source, "chunk_bytes"):
                assert _rows(replace(source, chunk_bytes=7), schema) == rows
            if hasattr(source, "block_rows"):
                fewer = _rows(replace(source, block_rows=3), schema)
                assert fewer == rows[: len(fewer)]
        except BadInputError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]


def _csv_examples() -> list[bytes]:
    plain = people(12).write_csv().encode()
    return [
        plain,
        plain.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + plain,
        b'age,job,flag,sex,constant\n5,"nu""rse",0,Male,a\n7,"a\nb",1,Female,b\n',
        b"a,b\n1,x\n2,y\n,z\n",
        b"query\nflag\n",
        b"a\n1\n\n3\n",
    ]


def _item_examples() -> dict[str, list[bytes]]:
    return {
        "fimi": [b"0 1 5\n\n2 3 8 1000\n7\n", b"1 2 3", b"1000000 5\r\n3 3 3\n"],
        "matrix": [b"1 0 1 0\n0 0 0 0\n1 1 1 1\n", b"1,0\n\n0,1\n", b"0\n1\n0"],
        "bitstring": [b"101\t3\n000\t1\n111\t900\n", b"1\t0\n0\t7"],
        "netflix": [
            b"1:\n5,3,2005-09-06\n7,1,2005-09-07\n\n2:\n5,5,2004-01-01\n",
            b"17770:\r\n1,3,2005-09-06\r\n",
        ],
    }


def _kdd99_examples() -> list[bytes]:
    schema = load_schema("kdd99")
    records = np.zeros((3, schema.domain.bits), np.uint8)
    for row, shift in enumerate((0, 1, 0)):
        records[row, schema.domain.offsets[:-1] + shift] = 1
    lines = [", ".join(map(str, row)) + ", normal.\n" for row in schema.decode(records).iter_rows()]
    return ["".join(lines).encode(), lines[0].encode()]


def _npz_examples() -> list[bytes]:
    import scipy.sparse

    made = []
    dense = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]])
    for form in ("csr", "csc", "coo", "bsr", "dia"):
        for compressed in (True, False):
            stream = io.BytesIO()
            scipy.sparse.save_npz(
                stream, getattr(scipy.sparse, f"{form}_array")(dense), compressed=compressed
            )
            made.append(stream.getvalue())
    return made


def _spoil_arrays(chance: random.Random, data: bytes) -> bytes:
    """Change the arrays of an .npz file, its headers, or its bytes."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as whole:
            if whole.testzip() is not None:
                raise zipfile.BadZipFile
    except Exception:  # it is two spliced examples
        return spoil_bytes(chance, data)
    if chance.random() < 0.4:
        return spoil_bytes(chance, data)
    stream, out = io.BytesIO(data), io.BytesIO()
    with zipfile.ZipFile(stream) as given, zipfile.ZipFile(out, "w") as made:
        names = given.namelist()
        spoilt = chance.choice(names)
        for name in names:
            content = given.read(name)
            if name == spoilt:
                content = _spoil_array(chance, content)
            kind = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
            made.writestr(name, content, kind)
            if chance.random() < 0.02:
                made.writestr("../../" + name, content)
    return out.getvalue()


def _spoil_array(chance: random.Random, content: bytes) -> bytes:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    match chance.randrange(6):
        case 0:
            return spoil_bytes(chance, content)
        case 1:
            shape = chance.choice(
                (b"(4,)", b"(99999999999,)", b"(0, 4)", b"(-1,)", b"()", b"(2, 2)")
            )
            start = content.find(b"'shape': ") + 9
            return content[:start] + shape + content[content.find(b")", start) + 1 :]
        case 2:
            kind = chance.choice(
                ("float64", "int8", "uint64", "bool", "S3", "U2", "complex64", "O")
            )
            try:
                array = array.astype(kind)
            except (TypeError, ValueError, UnicodeError):
                return content[:20]
        case 3 if array.size and array.dtype.kind in "iuf":
            value = chance.choice((-1, 2, 5, 1000, 2**31 - 1, -(2**31), 2**62))
            array = array.astype(np.int64)
            array.flat[chance.randrange(array.size)] = value
        case 4:
            array = np.resize(array, chance.choice(((0,), (3,), (2, 3), (50,), (1, 2, 2))))
        case _:
            array = array[::-1] if array.ndim else array
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def _parquet_bytes(table: Any, **options: Any) -> bytes:
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def _parquet_examples() -> list[bytes]:
    import pyarrow as pa

    table = people(12).to_arrow()
    lists = pa.table({"items": pa.array([[0, 1], [], None, [5, 8, 1000]], pa.list_(pa.int64()))})
    odd = pa.table(
        {
            "a": pa.array([{"x": 1}, None]),
            "b": pa.array([b"1", b"\xff"]),
            "c": pa.array([[["a"]], []]),
        }
    )
    return [
        _parquet_bytes(table),
        _parquet_bytes(table, compression="none", use_dictionary=False, row_group_size=5),
        _parquet_bytes(table, compression="zstd", data_page_version="2.0", store_schema=False),
        _parquet_bytes(lists),
        _parquet_bytes(lists, compression="gzip"),
        _parquet_bytes(odd),
        people(12).write_parquet(stream := io.BytesIO()) or stream.getvalue(),
    ]


def _spoil_table(chance: random.Random, data: bytes) -> bytes:
    """Change a table's values, types or form, or bytes of its pages; now and then, any bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if chance.random() < 0.3:
        return spoil_bytes(chance, data)
    if chance.random() < 0.4:  # the pages come first, the description of the file last
        end = chance.randrange(4, max(5, len(data) // 2))
        spoilt = spoil_bytes(chance, data[4:end])[: max(0, end - 4)]
        return data[:4] + spoilt.ljust(max(0, end - 4), b"\0") + data[end:]
    try:
        table = pq.read_table(io.BytesIO(data))
    except (pa.ArrowException, OSError):
        return spoil_bytes(chance, data)
    at = chance.randrange(table.num_columns)
    values = table.column(at).to_pylist()
    if values:
        odd = (
            "x",
            "",
            "\0",
            10**12,
            -1,
            2.5,
            float("nan"),
            None,
            True,
            b"x",
            [1, 2],
            [-5],
            {"a": 1},
        )
        values[chance.randrange(len(values))] = chance.choice(odd)
    name = chance.choice(
        (table.column_names[at], table.column_names[0], "", "a.b", "\x1b", "x" * 9999)
    )
    types = (None, pa.int8(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.date32())
    for kind in (chance.choice(types), None, pa.string()):
        try:
            given = (
                [None if v is None else str(v) for v in values] if kind == pa.string() else values
            )
            table = table.set_column(at, name, pa.array(given, kind))
            break
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    options = {
        "compression": chance.choice(("none", "snappy", "zstd", "gzip")),
        "use_dictionary": chance.random() < 0.5,
        "data_page_version": chance.choice(("1.0", "2.0")),
        "store_schema": chance.random() < 0.7,
        "row_group_size": chance.choice((1, 5, 100)),
    }
    return _parquet_bytes(table, **options)


def _read_object(data: bytes, folder: Path) -> None:
    """Read a Python object that a stream of bytes chooses."""
    import pandas as pd
    import polars as pl
    import scipy.sparse

    del folder
    chance = random.Random(data)
    numbers: Any = np.frombuffer(data[: len(data) // 8 * 8], np.uint8) % chance.choice((2, 2, 3))
    shape: Any = chance.choice(((-1, 4), (-1, 8), (-1,), (1, -1, 8), (8, -1), (0, 5)))
    try:
        array = numbers[:0].reshape(shape) if 0 in shape else numbers.reshape(shape)
    except ValueError:
        array = numbers.reshape(1, -1)
    kinds = ("uint8", "float32", "int64", "bool", "complex64", "object", "U3", "float16", "M8[s]")
    array = array.astype(chance.choice(kinds[:4] if chance.random() < 0.7 else kinds))
    if array.dtype.kind == "f" and array.size and chance.random() < 0.3:
        array.flat[0] = chance.choice((np.nan, np.inf, 0.5, -0.0, -1))
    match chance.randrange(4):
        case 0:
            given: Any = array
        case 1 if array.ndim == 2 and array.dtype.kind in "buif" and array.dtype != np.float16:
            given = scipy.sparse.csr_array(array)
            given = getattr(
                given, chance.choice(("tocsr", "tocsc", "tocoo", "tolil", "todok", "todia"))
            )()
            for name in ("indices", "indptr", "data"):
                if hasattr(given, name) and chance.random() < 0.3 and given.nnz and given.ndim == 2:
                    part = getattr(given, name)
                    if isinstance(part, np.ndarray) and part.size and part.dtype != object:
                        part.flat[chance.randrange(part.size)] = chance.choice(
                            (
                                0,
                                1,
                                2,
                                3,
                                100,
                                -1 if part.dtype.kind != "b" and part.dtype.kind != "u" else 1,
                            )
                        )
        case 2:
            cells: list[Any] = [
                "a",
                None,
                1,
                2.5,
                True,
                b"x",
                float("nan"),
                [1],
                {"a": 1},
                "\ud800",
                2**70,
            ]
            columns = {
                f"c{n}": [chance.choice(cells[: 3 + n * 3]) for _ in range(4)] for n in range(3)
            }
            given = pd.DataFrame(columns)
            if chance.random() < 0.2:
                given.columns = chance.choice((["a", "a", "b"], ["", "b", "c"], [1, 2, 3]))
        case _:
            cells = [
                ["a", None, "\x1b"],
                [1, -1, None],
                [0.5, float("nan")],
                [True, None],
                [[1], [2**40], None],
                [b"x"],
                [{"a": 1}],
            ]
            given = pl.DataFrame(
                {
                    f"c{n}": (chance.choice(cells) * 4)[:4]
                    for n in range(chance.choice((1, 1, 2, 3)))
                },
                strict=False,
            )
    source = source_of(given)
    _rows(source, choose_schema(source))


# Schemas, queries, options


def _schema_examples() -> list[bytes]:
    items = ItemSchema(np.array([3, 4, 9]), names=("a", "b", "c"), declared=True)
    return [
        format_schema(SCHEMA).encode(),
        format_schema(_ITEMS).encode(),
        format_schema(items).encode(),
        b'{"columns": [{"name": "i", "kind": "numeric", "edges": [-1, 0, 2.5], "missing": "category",'
        b' "unparsable": "missing", "outside": "clip"}], "declared": true}',
        b'{"items": "0-5,9", "declared": true, "max_ones_per_row": 2}',
        b'{"columns": [{"name": "c", "kind": "categorical", "values": ["x", ["y", "z"], 3]}]}',
    ]


_TOML_SCHEMA = b"""name = "survey"
declared = true
missing_values = ["", "n/a"]
[[columns]]
name = "age"
kind = "numeric"
edges = [0, 18, 30.5]
[[columns]]
name = "member"
kind = "binary"
zero = "no"
one = "yes"
"""


def _read_schema(ending: str, data: bytes, folder: Path) -> None:
    path = folder / f"schema{ending}"
    path.write_bytes(data)
    schema = load_schema(path)
    again = schema_from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    assert again == schema
    fields = parse_json(format_schema(schema))
    assert isinstance(fields, dict)
    assert replace(schema_from_dict(fields), name=schema.name) == schema
    assert schema.domain.columns == len(schema.column_names)
    if schema.domain.bits <= 100_000:
        assert len(schema.bit_labels()) == schema.domain.bits
        records = np.zeros((1, schema.domain.bits), np.uint8)
        records[0, schema.domain.offsets[:-1][schema.domain.sizes > 1]] = 1
        rows = _rows(source_of(schema.decode(records)), schema)
        assert rows == [np.flatnonzero(records[0]).tolist()]


_QUERIES = (
    "age=0-25 & flag",
    "!flag & job!=nurse & sex=Male",
    '"age"="75-100" & job="(missing)"',
    "age=50 & constant=a",
    "sex = Female & flag=1",
)


def _read_query(data: bytes, folder: Path) -> None:
    from dualquery.queries.text import parse_query, print_queries

    del folder
    text = data.decode("utf-8", "surrogateescape")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = data.decode("latin-1")
    literals = parse_query(text, SCHEMA)
    assert np.all(literals[1:] > literals[:-1])
    assert np.all((literals >= 0) & (literals < 2 * SCHEMA.domain.bits))
    again = parse_query(print_queries(literals[None, :], SCHEMA)[0], SCHEMA)
    assert np.array_equal(again, literals)


def _read_query_file(ending: str, data: bytes, folder: Path) -> None:
    from dualquery.queries.generate.files import read_queries, workload_of_texts

    path = folder / f"queries{ending}"
    path.write_bytes(data)
    workload = read_queries(path, SCHEMA)
    again = workload_of_texts(workload.text(SCHEMA), SCHEMA, "again", str)
    assert np.array_equal(again.literals, workload.literals)


def _read_columns(data: bytes, folder: Path) -> None:
    from dualquery.data.schema.column_choice import format_items, select_columns, select_items

    del folder
    text = data.decode("latin-1")
    names = ("age", "job", "a, b", "3", '"x"')
    chosen: list[int] = []
    try:
        chosen = select_columns(text, names)
        assert chosen == sorted({*chosen})
        assert {*chosen} <= {*range(len(names))}
    except BadInputError:
        items = select_items(text)
        assert np.all(np.diff(items) > 0)
        assert np.array_equal(select_items(format_items(items)), items)


def _read_source_name(data: bytes, folder: Path) -> None:
    text = data.decode("latin-1").replace("DIR", str(folder))
    if "/" in text.replace(str(folder), ""):
        text = text.replace("/", "_")  # nothing of the machine's own
    (folder / "a.csv").write_text("a\n1\n2\n")
    source = source_of(text)
    assert isinstance(source.label, str)


_CONFIG = b"""epsilon = 0.5
queries = 100
way = 2
mechanism = "dualquery"
option = {free = "coins", burn_in = 0}
seed = 3
columns = "age,sex"
quiet = true
"""


def _read_config(data: bytes, folder: Path) -> None:
    import typer

    from dualquery.cli.main import app
    from dualquery.cli.options import apply_config
    from dualquery.cli.release import check_options

    path = folder / "config.toml"
    path.write_bytes(data)
    command: Any = typer.main.get_command(app)
    release = command.commands["release"]
    context = release.make_context("release", [])
    given = apply_config(context, path)
    assert given.keys() == context.params.keys()
    check_options(given)


# Releases


_MADE: dict[str, dict[str, bytes]] = {}


def _releases() -> dict[str, dict[str, bytes]]:
    """Return the files of a few tiny releases; made once in a process."""
    if not _MADE:
        import tempfile

        import dualquery
        from dualquery.mechanisms.registry import BUILT_IN

        table = people(60)
        with tempfile.TemporaryDirectory() as place:
            for name in ("dualquery", "gaussian", "mwem", "zero"):
                assert name in BUILT_IN
                made = dualquery.release(
                    table, schema=SCHEMA, queries=20, way=2, mechanism=name, seed=1, delta=1e-4,
                    **({"options": {"rounds": "3", "samples": "4"}} if name == "dualquery" else {}),
                )  # fmt: skip
                made.save(Path(place) / name)
                _MADE[name] = {
                    file.name: file.read_bytes() for file in (Path(place) / name).iterdir()
                }
    return _MADE


def _release_examples(file: str) -> list[bytes]:
    return [
        f"{name}\n".encode() + files[file] for name, files in _releases().items() if file in files
    ]


def _spoil_after_name(mutate: Mutator) -> Mutator:
    def spoil(chance: random.Random, data: bytes) -> bytes:
        name, _, content = data.partition(b"\n")
        if name.decode("latin-1") not in _releases():  # spliced
            name = b"dualquery"
        return name + b"\n" + mutate(chance, content)

    return spoil


def _read_release(file: str, data: bytes, folder: Path) -> None:
    from dualquery.releases.answering import answer_queries
    from dualquery.releases.folder import load_release

    name, _, content = data.partition(b"\n")
    for other, kept in _releases()[name.decode()].items():
        (folder / other).write_bytes(content if other == file else kept)
    release = load_release(folder)
    json.dumps(release.summary(), allow_nan=False)
    assert repr(release)
    assert release.privacy.text()
    assert len(release.answer_table) == len(release.workload) == len(release.answers)
    assert np.all(np.isfinite(release.answers))
    if release.records is not None:
        groups = release.schema.domain.sizes > 1
        sums = np.add.reduceat(release.records, release.schema.domain.offsets[:-1], axis=1)
        assert np.all(sums[:, groups] == 1)
        assert release.synthetic is not None
        text = release.workload.text(release.schema)[0]
        answer_queries(release, [text])


def _counts_examples() -> list[bytes]:
    stream = io.BytesIO()
    np.savez(
        stream,
        format_version=np.array(1),
        key=np.array("k" * 64),
        literals=np.array([[0, 3], [2, -1]], np.int32),
        counts=np.array([5, 7]),
    )
    return [stream.getvalue()]


def _read_counts(data: bytes, folder: Path) -> None:
    from dualquery.rows.counts_file import CountsFile

    path = folder / "counts"
    path.write_bytes(data)
    asked = np.array([[0, 3], [1, 4]], np.int32)
    file = CountsFile(path, "k" * 64)
    counted = file.complete(asked, 10, lambda new: np.arange(len(new)))
    assert counted.shape == (2,)
    assert np.all(counted >= 0)
    assert np.array_equal(file.complete(asked, 10, lambda new: 1 // len(new)), counted)


def _budget_examples() -> list[bytes]:
    import tempfile

    from dualquery.budgets.account import CHARGE, Entry, new_token
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.privacy.composition import Cost

    with tempfile.TemporaryDirectory() as place:
        made = []
        for kind in ("sum", "zcdp"):
            path = Path(place) / kind
            file = BudgetFile.create(path, epsilon=2.0, delta=1e-6, composition=kind)
            made.append(path.read_bytes())
            entry = Entry(CHARGE, new_token(), 0, Cost(0.001, 0.1, 1e-9), "mwem", "", "2026-01-01")
            file.write(lambda _, entry=entry: entry)
            made.append(path.read_bytes())
    return made


def _read_budget(data: bytes, folder: Path) -> None:
    from dualquery.budgets.budget_file import BudgetFile

    path = folder / "budget"
    path.write_bytes(data)
    account = BudgetFile(path).read()
    assert account == BudgetFile(path).read()


# Problems of solvers


def _problem_examples(suffix: str) -> list[bytes]:
    from solvers.formats.clauses import encode
    from solvers.formats.lp import lp_text
    from solvers.formats.mps import mps_text
    from solvers.formats.program import named_program
    from solvers.formats.wcnf import wcnf_text
    from tests.solvers.instances import groups_of, problem, row

    own = problem(
        5,
        {(0, 1): 2.0, (1, ~2, 3): -1.0, (4,): 1.5},
        groups_of([0, 2]),
        (row([1, 3, 4], [1.0, 2.0, 3.0], 1.0, 4.0),),
    )
    if suffix == ".wcnf":
        return [
            wcnf_text(encode(own)).encode(),
            wcnf_text(encode(own), header=True).encode(),
            b"p wcnf 4 5 10\n10 1 2 0\n10 -1 -2 0\n3 3 -4 0\n2 -3 0\n1 4 0\n",
            b"h 1 2 3 0\nh -1 -2 0\nh -1 -3 0\nh -2 -3 0\nh -4 1 0\nh -4 2 0\n5 4 0\n2 -4 -3 0\n",
        ]
    if suffix == ".lp":
        return [
            lp_text(named_program(own)).encode(),
            b"min\n obj: 2 x - 3 y + z\nst\n a: x + y <= 1\n b: x + y + z = 1\n c: z - x >= 0\n"
            b"bounds\n 0 <= z <= 1\nbinary\n x y\ngeneral\n z\nend\n",
        ]
    return [
        mps_text(named_program(own)).encode(),
        b"NAME t\nROWS\n N o\n L r\n G s\n E t\nCOLUMNS\n M1 'MARKER' 'INTORG'\n x o 1 r 1\n x s 2\n"
        b" y o -2 r 1\n y t 1\n M2 'MARKER' 'INTEND'\nRHS\n RHS r 1 s 0\nRANGES\n R r 1\n"
        b"BOUNDS\n BV B x\n UP B y 1\nENDATA\n",
    ]


def _read_problem(ending: str, data: bytes, folder: Path) -> None:
    from solvers.formats import read_instance, write_instance
    from solvers.formats.files import read_clauses

    path = folder / f"problem{ending}"
    path.write_bytes(data)
    instance = read_instance(path)
    problem = instance.problem
    assert np.isfinite(problem.constant)
    chance = np.random.default_rng(0)
    record = chance.integers(0, 2, problem.attributes).astype(np.uint8)
    for group in range(len(problem.groups)):
        members = problem.groups[group]
        record[members] = 0
        record[members[0]] = 1
    values = instance.values(record)
    assert values.shape == (len(instance.variables),)
    assert np.all(values <= 1)
    if ending.startswith(".wcnf"):
        read_clauses(path)
    if problem.attributes > 2000 or len(problem.terms) > 2000:
        return
    assert np.isfinite(problem.value(record))
    again = folder / "again.lp"
    write_instance(again, problem)
    returned = read_instance(again).problem
    if returned.attributes == problem.attributes:
        difference = abs(returned.value(record) - problem.value(record))
        assert difference <= 1e-6 * (1 + np.abs(problem.weights).sum() + abs(problem.constant))
        assert returned.feasible(record) == problem.feasible(record)


def _read_answer(data: bytes, folder: Path) -> None:
    from solvers.backends.maxsat import _AnswerLog
    from solvers.limits import SearchLimits

    del folder
    log = _AnswerLog(6, SearchLimits(0.0, 1.0, 1, 0))
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8", errors="replace"):
        for start in range(0, len(line), 200):
            log.take(line[start : start + 200])
    record = log.record(4)
    if record is not None:
        assert record.shape == (4,)
        assert np.all(record <= 1)


def _read_constraint(data: bytes, folder: Path) -> None:
    """Make a linear constraint of bytes; its clauses must say the same of every record."""
    from solvers.constraints import LinearConstraint
    from solvers.formats.decision_diagram import linear_clauses

    del folder
    numbers = []
    for word in data.decode("latin-1").split():
        try:
            numbers.append(float(word))
        except ValueError:
            continue
    coefficients = np.array(numbers[2:8])
    width = len(coefficients)
    lower, upper = (numbers + [-np.inf, np.inf])[:2] if len(numbers) >= 2 else (-np.inf, np.inf)
    constraint = LinearConstraint(np.arange(width, dtype=np.int32), coefficients, lower, upper)
    fresh = itertools.count(width + 1)
    clauses = linear_clauses(constraint, list(range(1, width + 1)), lambda: next(fresh))
    for record in itertools.product((0, 1), repeat=width):
        true = {n + 1 if bit else -n - 1 for n, bit in enumerate(record)}
        holds = constraint.holds(np.array(record, np.uint8))
        if abs(constraint.activity(np.array(record, np.uint8))) < 1e15:
            assert _satisfiable(clauses, true) == holds


def _satisfiable(clauses: list[list[int]], true: set[int]) -> bool:
    """Return whether clauses can hold: by unit propagation, then by trying both values."""
    true = set(true)
    while True:
        left = [[x for x in c if -x not in true] for c in clauses if true.isdisjoint(c)]
        if not all(left):
            return False
        units = {c[0] for c in left if len(c) == 1}
        if not units:
            break
        true |= units
        if any(-unit in true for unit in units):
            return False
    if not left:
        return True
    choice = left[0][0]
    return _satisfiable(left, true | {choice}) or _satisfiable(left, true | {-choice})


def _texts(*texts: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [text.encode() for text in texts]


def _formats() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of data, each plain and gzipped."""
    yield "csv", Parser(_csv_examples, TEXT, partial(_read_table, "", ".csv"))
    yield "csv.gz", _zipped(_csv_examples, TEXT, partial(_read_table, "", ".csv.gz"))
    for name, examples in _item_examples().items():
        given: Callable[[], Sequence[bytes]] = partial(list, examples)
        yield name, Parser(given, TEXT, partial(_read_table, name, ""))
        yield f"{name}.gz", _zipped(given, TEXT, partial(_read_table, name, ".gz"))
    for name, given, mutate in (
        ("kdd99", _kdd99_examples, TEXT),
        ("npz", _npz_examples, _spoil_arrays),
        ("parquet", _parquet_examples, _spoil_table),
    ):
        yield name, Parser(given, mutate, partial(_read_table, name, ""))
        yield f"{name}.gz", _zipped(given, mutate, partial(_read_table, name, ".gz"))


def _zipped(
    examples: Callable[[], Sequence[bytes]],
    mutate: Mutator,
    read: Callable[[bytes, Path], None],
    packing: Any = gzip,
) -> Parser:
    return Parser(
        lambda: [packing.compress(data) for data in examples()], zipped(mutate, packing), read
    )


def _problems() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of problems, each plain, gzipped and as xz."""
    for suffix in (".wcnf", ".lp", ".mps"):
        examples = partial(_problem_examples, suffix)
        yield suffix[1:], Parser(examples, TEXT, partial(_read_problem, suffix))
        for ending, packing in ((".gz", gzip), (".xz", lzma)):
            read = partial(_read_problem, suffix + ending)
            yield f"{suffix[1:]}{ending}", _zipped(examples, TEXT, read, packing)


PARSERS: dict[str, Parser] = {
    **dict(_formats()),
    "python objects": Parser(_texts("0" * 64, "1" * 63, "ab" * 100), spoil_bytes, _read_object),
    "schema.json": Parser(_schema_examples, spoil_json, partial(_read_schema, ".json")),
    "schema text": Parser(_schema_examples, TEXT, partial(_read_schema, ".json")),
    "schema.toml": Parser(lambda: [_TOML_SCHEMA], TEXT, partial(_read_schema, ".toml")),
    "query": Parser(_texts(*_QUERIES), TEXT, _read_query),
    "query file": Parser(
        _texts("\n".join(_QUERIES), "# x\nflag\n"), TEXT, partial(_read_query_file, ".txt")
    ),
    "query file.csv": Parser(
        _texts("query,id\n" + ",1\n".join(_QUERIES[:2]) + ",2\n"),
        TEXT,
        partial(_read_query_file, ".csv"),
    ),
    "columns": Parser(_texts("age,!job", "0-9,12", '"a, b",3', "1-2,4"), TEXT, _read_columns),
    "source name": Parser(
        _texts("csv:DIR/a.csv", "biased:100,5", "netflix-like:10,5,1", "DIR/*.parquet", "adult"),
        TEXT,
        _read_source_name,
    ),
    "config": Parser(lambda: [_CONFIG], TEXT, _read_config),
    **{
        f"release: {file}": Parser(
            partial(_release_examples, file),
            _spoil_after_name(mutate),
            partial(_read_release, file),
        )
        for file, mutate in (
            ("release.json", spoil_json),
            ("answers.parquet", _spoil_table),
            ("synthetic.parquet", _spoil_table),
            ("trace.parquet", _spoil_table),
        )
    },
    "counts file": Parser(_counts_examples, _spoil_arrays, _read_counts),
    "budget file": Parser(_budget_examples, spoil_bytes, _read_budget),
    **dict(_problems()),
    "maxsat answer": Parser(
        _texts("c hi\no 5\nv 1 -2 3 -4 5 6 0\ns OPTIMUM FOUND\n", "o 3\nv 010101\ns SATISFIABLE\n"),
        TEXT,
        _read_answer,
    ),
    "linear constraint": Parser(
        _texts("-1 3 1 2 -1 1 1 1", "0.5 inf 1 0.25 -3", "-inf 2 1 1 1 1"),
        spoil_words,
        _read_constraint,
    ),
}
"""Every parser by its name."""

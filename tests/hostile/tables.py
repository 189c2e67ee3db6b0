"""Readers of data: tables and lists of items, in files, libraries and memory."""

import contextlib
import functools
import importlib.util
import io
import itertools
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from dualquery.data.drafts.choose import choose_schema
from dualquery.data.encoding.blocks import encoded_blocks
from dualquery.data.encoding.encode import CodedRows
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import ItemSource, Source
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.schema_files import load_schema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError
from tests.hostile.mutation import spoil_bytes, spoil_table, spoil_text
from tests.hostile.parser import Parser, zipped_parser
from tests.tables import SCHEMA, people

ITEMS = ItemSchema(np.array([0, 1, 2, 3, 5, 8, 1000]), outside="drop", declared=True)


_MOST_ROWS = 2000


def legal_rows(source: Source, schema: TableSchema | ItemSchema) -> list[list[int]]:
    """Return the bits of the first rows, increasing; every row is a legal record."""
    found: list[list[int]] = []
    groups = schema.domain.sizes > 1
    for coded in itertools.islice(encoded_blocks(source, schema), 200):
        block = coded.listed() if isinstance(coded, CodedRows) else coded
        assert block.indptr[0] == 0
        assert block.indptr[-1] == len(block.bits)
        assert np.all(np.diff(block.indptr) >= 0)
        assert np.all((block.bits >= 0) & (block.bits < schema.domain.bits))
        ends = itertools.pairwise(block.indptr[: _MOST_ROWS - len(found) + 1])
        rows = [sorted({*block.bits[a:b].tolist()}) for a, b in ends]
        if groups.any():
            for bits in rows:
                ones = np.bincount(schema.domain.column_of_bit[bits], minlength=len(groups))
                assert np.all(ones[groups] == 1)
        found += rows
        if len(found) >= _MOST_ROWS:
            break  # a few bytes may stand for hundreds of millions of rows
    return found


_built_in = functools.cache(load_schema)


def read_table(form: str, ending: str, data: bytes, folder: Path) -> None:
    """Read a file as a table or as items (see `read_source`)."""
    path = folder / f"input{ending}"
    path.write_bytes(data)
    read_source(f"{form}:{path}" if form else str(path), zlib.crc32(data))


def read_source(text: str, chance: int) -> None:
    """Read data with a schema of the tests' own or with a draft, or both, as a number says."""
    declared = (True, False) if chance % 4 == 0 else (chance % 4 == 1,)
    refused: list[BadInputError] = []
    for each in declared:
        try:
            _read_rows(source_of(text), declared=each, in_pieces=chance % 8 < 4)
        except BadInputError as error:
            refused.append(error)
    if len(refused) == len(declared):
        raise refused[0]


def _read_rows(source: Source, *, declared: bool, in_pieces: bool) -> None:
    """Read rows, and again in other pieces."""
    given: TableSchema | ItemSchema | None = None
    if implied := getattr(source, "implied_schema", None):
        given = _built_in(implied)
    elif declared:
        given = ITEMS if isinstance(source, ItemSource) else SCHEMA
    schema = choose_schema(source, given)
    rows = legal_rows(source, schema)
    for piece, size in (("chunk_bytes", 7), ("block_rows", 3)):
        if in_pieces and hasattr(source, piece):
            changed: Any = {piece: size}
            fewer = legal_rows(replace(source, **changed), schema)
            assert fewer == rows[: len(fewer)]


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


def _packed(save: Callable[..., object], *given: Any, **options: Any) -> bytes:
    """Return what is saved in a stream of bytes."""
    stream = io.BytesIO()
    save(stream, *given, **options)
    return stream.getvalue()


def _npz_examples() -> list[bytes]:
    dense = scipy.sparse.csr_array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0]])
    return [
        _packed(scipy.sparse.save_npz, dense.asformat(form), packed)
        for form in ("csr", "csc", "coo", "bsr", "dia")
        for packed in (True, False)
    ]


def _arrow_tables() -> list[Any]:
    table = people(12).to_arrow()
    lists = pa.array([[0, 1], [], None, [5, 8, 1000]], pa.list_(pa.int64()))
    odd = {"a": pa.array([{"x": 1}, None]), "b": pa.array([b"1", b"\xff"]), "c": [[["a"]], []]}
    return [
        table,
        table.set_column(1, "job", table.column(1).cast(pa.string()).dictionary_encode()),
        pa.table({"items": lists}),
        pa.table({"a": pa.array([b"1", None]), "b": pa.array([1.5, None]), "c": [True, False]}),
        pa.table(odd),
    ]


def _parquet_examples() -> list[bytes]:
    return [
        _packed(lambda stream, table, options: pq.write_table(table, stream, **options), *each)
        for each in itertools.product(
            _arrow_tables(),
            (
                {"compression": "none", "use_dictionary": False, "row_group_size": 5},
                {"compression": "zstd", "data_page_version": "2.0", "store_schema": False},
            ),
        )
    ]


def _arrow_examples(stream: bool) -> list[bytes]:
    def write(out: Any, table: Any, packing: str | None) -> None:
        make = pa.ipc.new_stream if stream else pa.ipc.new_file
        with make(out, table.schema, options=pa.ipc.IpcWriteOptions(compression=packing)) as writer:
            writer.write_table(table, max_chunksize=5)

    return [_packed(write, table, each) for table in _arrow_tables()[:4] for each in (None, "zstd")]


def _workbook_examples() -> list[bytes]:
    import openpyxl

    made = []
    for rows in ([people(3).columns, *people(12).rows()], [["a", "b"], [1, "x"], [2.5, None]]):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        made.append(_packed(lambda stream, book: book.save(stream), book))
    return made


def _database_examples() -> list[bytes]:
    import duckdb

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "x.db"
        with contextlib.closing(duckdb.connect()) as connection:
            connection.execute(f"ATTACH '{path}' AS made (BLOCK_SIZE 16384)")
            people(12).write_parquet(Path(place) / "x.parquet")
            connection.execute(f"CREATE TABLE made.t AS SELECT * FROM '{place}/x.parquet'")
        return [path.read_bytes()]


def _read_database(data: bytes, folder: Path) -> None:
    (folder / "x.db").write_bytes(data)
    read_source(f"duckdb:{folder / 'x.db'}?SELECT * FROM t", zlib.crc32(data))


_read_arrow = partial(read_table, "arrow", "")


def _formats() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of data."""
    yield "csv", Parser(_csv_examples, spoil_text, partial(read_table, "", ".csv"))
    yield "csv.gz", zipped_parser(_csv_examples, spoil_text, partial(read_table, "", ".csv.gz"))
    for name, examples in _item_examples().items():
        given: Callable[[], Sequence[bytes]] = partial(list, examples)
        yield name, Parser(given, spoil_text, partial(read_table, name, ""))
    for name, given, mutate in (
        ("kdd99", _kdd99_examples, spoil_text),
        ("npz", _npz_examples, spoil_bytes),
        ("parquet", _parquet_examples, spoil_table),
    ):
        yield name, Parser(given, mutate, partial(read_table, name, ""))


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


TABLES: dict[str, Parser] = {
    **dict(_formats()),
    "arrow file": Parser(partial(_arrow_examples, False), spoil_bytes, _read_arrow),
    "arrow stream": Parser(partial(_arrow_examples, True), spoil_bytes, _read_arrow),
}
if _installed("fastexcel", "openpyxl"):
    TABLES["xlsx"] = Parser(_workbook_examples, spoil_bytes, partial(read_table, "", ".xlsx"))
if _installed("duckdb"):
    TABLES["duckdb"] = Parser(_database_examples, spoil_bytes, _read_database)

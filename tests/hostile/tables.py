"""Readers of data: tables and lists of items, in files and in memory."""

from __future__ import annotations

import functools
import io
import itertools
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dualquery.data.blocks import choose_schema, encoded_blocks
from dualquery.data.encoded import CodedRows
from dualquery.data.readers.formats import source_of
from dualquery.data.readers.source import ItemSource, Source
from dualquery.data.schema.files import load_schema
from dualquery.data.schema.items import ItemSchema
from dualquery.data.schema.table import TableSchema
from dualquery.runtime.errors import BadInputError
from tests.hostile.binary_mutation import parquet_bytes, spoil_arrays, spoil_table
from tests.hostile.mutation import TEXT, spoil_bytes
from tests.hostile.parser import Parser, texts, zipped_parser
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
        parquet_bytes(table),
        parquet_bytes(table, compression="none", use_dictionary=False, row_group_size=5),
        parquet_bytes(table, compression="zstd", data_page_version="2.0", store_schema=False),
        parquet_bytes(lists),
        parquet_bytes(lists, compression="gzip"),
        parquet_bytes(odd),
        people(12).write_parquet(stream := io.BytesIO()) or stream.getvalue(),
    ]


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
    legal_rows(source, choose_schema(source))


def _formats() -> Iterator[tuple[str, Parser]]:
    """Yield the readers of data, each plain and gzipped."""
    yield "csv", Parser(_csv_examples, TEXT, partial(read_table, "", ".csv"))
    yield "csv.gz", zipped_parser(_csv_examples, TEXT, partial(read_table, "", ".csv.gz"))
    for name, examples in _item_examples().items():
        given: Callable[[], Sequence[bytes]] = partial(list, examples)
        yield name, Parser(given, TEXT, partial(read_table, name, ""))
        yield f"{name}.gz", zipped_parser(given, TEXT, partial(read_table, name, ".gz"))
    for name, given, mutate in (
        ("kdd99", _kdd99_examples, TEXT),
        ("npz", _npz_examples, spoil_arrays),
        ("parquet", _parquet_examples, spoil_table),
    ):
        yield name, Parser(given, mutate, partial(read_table, name, ""))
        yield f"{name}.gz", zipped_parser(given, mutate, partial(read_table, name, ".gz"))


TABLES: dict[str, Parser] = {
    **dict(_formats()),
    "python objects": Parser(texts("0" * 64, "1" * 63, "ab" * 100), spoil_bytes, _read_object),
}

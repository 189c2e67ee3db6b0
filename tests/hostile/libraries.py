"""Tables that a library reads whole: Excel, Arrow's IPC format, DuckDB."""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.binary_mutation import ipc_bytes, spoil_ipc, spoil_workbook
from tests.hostile.mutation import spoil_bytes
from tests.hostile.parser import Parser
from tests.hostile.tables import read_source, read_table
from tests.tables import people


def _arrow_tables() -> Iterator[Any]:
    import pyarrow as pa

    table = people(12).to_arrow()
    yield table
    yield table.set_column(1, "job", table.column(1).cast(pa.string()).dictionary_encode())
    yield pa.table({"items": pa.array([[0, 1], [], None, [5, 8, 1000]], pa.list_(pa.int64()))})
    yield pa.table({"a": pa.array([b"1", None]), "b": pa.array([1.5, None]), "c": [True, False]})


def _arrow_examples(stream: bool) -> list[bytes]:
    return [
        ipc_bytes(table, stream, compression=packing)
        for table in _arrow_tables()
        for packing in (None, "zstd")
    ]


def _workbook_examples() -> list[bytes]:
    import openpyxl

    made = []
    for rows in (
        [people(3).columns, *people(12).rows()],
        [["a", "b"], [1, "x"], [2.5, None], [None, "y"]],
    ):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "x.xlsx"
            book.save(path)
            made.append(path.read_bytes())
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


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


LIBRARIES: dict[str, Parser] = {
    "arrow file": Parser(
        partial(_arrow_examples, False), spoil_ipc, partial(read_table, "arrow", "")
    ),
    "arrow stream": Parser(
        partial(_arrow_examples, True), spoil_ipc, partial(read_table, "arrow", "")
    ),
}
if _installed("fastexcel", "openpyxl"):
    LIBRARIES["xlsx"] = Parser(_workbook_examples, spoil_workbook, partial(read_table, "", ".xlsx"))
if _installed("duckdb"):
    LIBRARIES["duckdb"] = Parser(_database_examples, spoil_bytes, _read_database)

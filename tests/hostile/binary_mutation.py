"""Mutators of files of arrays and of tables: they know the formats."""

from __future__ import annotations

import io
import random
import re
import zipfile
from typing import Any

import numpy as np

from tests.hostile.mutation import spoil_bytes


def spoil_arrays(chance: random.Random, data: bytes) -> bytes:
    """Change the arrays of an .npz file, its headers, or its bytes."""
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


def parquet_bytes(table: Any, **options: Any) -> bytes:
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def ipc_bytes(table: Any, stream: bool = False, **options: Any) -> bytes:
    import pyarrow as pa

    out = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=5)
    return out.getvalue()


def spoil_table(chance: random.Random, data: bytes) -> bytes:
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
    options = {
        "compression": chance.choice(("none", "snappy", "zstd", "gzip")),
        "use_dictionary": chance.random() < 0.5,
        "data_page_version": chance.choice(("1.0", "2.0")),
        "store_schema": chance.random() < 0.7,
        "row_group_size": chance.choice((1, 5, 100)),
    }
    return parquet_bytes(_with_a_spoilt_column(chance, table), **options)


def spoil_ipc(chance: random.Random, data: bytes) -> bytes:
    """Change a table of Arrow batches, or bytes of its file: as often some within the batches."""
    import pyarrow as pa

    if chance.random() < 0.7:
        content = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 5))):
            if content:
                at = chance.randrange(len(content))
                content[at] = chance.choice((0, 1, 4, 127, 128, 255, content[at] ^ 1 << at % 8))
        return bytes(content) if chance.random() < 0.8 else spoil_bytes(chance, data)
    try:
        stream = not data.startswith(b"ARROW1")
        opened = (pa.ipc.open_stream if stream else pa.ipc.open_file)(io.BytesIO(data))
        table = opened.read_all()
        table.validate(full=True)
        return ipc_bytes(
            _with_a_spoilt_column(chance, table),
            chance.random() < 0.5,
            compression=chance.choice((None, "lz4", "zstd")),
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # two spliced examples
        return spoil_bytes(chance, data)


def _with_a_spoilt_column(chance: random.Random, table: Any) -> Any:
    """Return an Arrow table with another value, type or name in one column."""
    import pyarrow as pa

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
            return table.set_column(at, name, pa.array(given, kind))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            continue
    return table


def spoil_workbook(chance: random.Random, data: bytes) -> bytes:
    """Change a text within a workbook, which is a zip file, or bytes of the file."""
    if chance.random() < 0.2:
        return spoil_bytes(chance, data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as whole:
            contents = {name: whole.read(name) for name in whole.namelist()}
    except Exception:  # it is two spliced examples
        return spoil_bytes(chance, data)
    texts = [name for name in contents if name.endswith((".xml", ".rels"))]
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice([*texts, *(n for n in texts if "sheet" in n or "shared" in n)])
        spoil = chance.choice((spoil_bytes, spoil_tags, spoil_tags, spoil_tags))
        contents[name] = spoil(chance, contents[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as to:
        for name, content in contents.items():
            to.writestr(name, content)
    return out.getvalue()


def spoil_tags(chance: random.Random, data: bytes) -> bytes:
    """Change an attribute, a number or a tag of an XML text."""
    found = list(re.finditer(rb'"[^"]*"|>[^<>]+<|<[^<>]+>', data))
    if not found:
        return spoil_bytes(chance, data)
    place = chance.choice(found)
    odd = chance.choice(
        (b"-1", b"0", b"1048577", b"XFD1048576", b"A1:XFD9", b"99999999999", b"1e999", b"s", b"b",
         b"e", b"d", b"str", b"inlineStr", b"&#0;", b"&amp;", b"&x;", b"2014-13-40T25:00", b"A0",
         b"\xff", b"9" * 400)
    )  # fmt: skip
    match chance.randrange(4):
        case 0 | 1:
            end = data[place.end() - 1 : place.end()]
            new = data[place.start() : place.start() + 1] + odd + end
        case 2:
            new = b""
        case _:
            new = place[0] * chance.choice((2, 50))
    return data[: place.start()] + new + data[place.end() :]

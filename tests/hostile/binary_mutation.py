"""Mutators of files of arrays and of tables: they know the formats."""

from __future__ import annotations

import io
import random
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
    return parquet_bytes(table, **options)

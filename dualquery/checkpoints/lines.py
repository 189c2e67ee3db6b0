"""A file of JSON lines that is only ever appended to, each with a digest of all before it.

A line that was cut off by a loss of power is dropped when the file is opened again: it was not
synced, so nothing depends on it. The digests show every other change, unless all are computed anew:
the file belongs to the operator.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError

LARGEST_ARRAYS = 1 << 32
"""Bytes of all arrays of a file that is read, at most: 2^29 noisy numbers."""
_BEGINNING = hashlib.sha256(b"dualquery checkpoint").hexdigest()
_DIGITS = 32
_DTYPES = ("uint8", "int64", "float64")

Entry = dict[str, Any]


class Lines:
    """The open file; ``entries`` is what it held when it was opened.

    ``on_full`` is called when the disk is full, and returns whether it made room.
    """

    def __init__(self, path: Path, on_full: Callable[[], bool] = lambda: False) -> None:
        self._path, self._on_full, self._digest = path, on_full, _BEGINNING
        self.entries: list[Entry] = []
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror}") from error
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, entry: Entry, *, sync: bool) -> None:
        """Write an entry; with ``sync`` it and all before it are on the disk when this returns."""
        text = json.dumps(_written(entry), separators=(",", ":"))
        digest = _next(self._digest, text)
        line = memoryview(f"{digest} {text}\n".encode("ascii"))
        while True:
            try:
                while line:
                    line = line[self._file.write(line) :]
                if sync:
                    os.fsync(self._file.fileno())
                break
            except OSError as error:
                if not self._on_full():
                    raise BadInputError(
                        f"cannot write the checkpoint {self._path}: {error.strerror or error}"
                    ) from error
        self._digest = digest

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> None:
        whole, left = 0, [LARGEST_ARRAYS]
        for number, line in enumerate(self._file.readlines(), 1):
            if not line.endswith(b"\n"):
                break
            try:
                digest, _, text = line.decode("ascii").rstrip("\n").partition(" ")
                if digest != _next(self._digest, text):
                    raise ValueError("its digest is of another content")
                self.entries.append(_value(json.loads(text), left))
            except (ValueError, RecursionError, MemoryError) as error:
                raise BadInputError(
                    f"the checkpoint {self._path} is damaged: line {number}: {error}"
                ) from error
            self._digest = digest
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(whole)


def _next(digest: str, text: str) -> str:
    return hashlib.sha256(f"{digest} {text}".encode("ascii", "replace")).hexdigest()[:_DIGITS]


def _written(value: Any) -> Any:
    """Return a value with its arrays as texts."""
    if isinstance(value, np.ndarray):
        packed = base64.b85encode(zlib.compress(value.tobytes(), 1)).decode("ascii")
        return {"array": value.dtype.name, "shape": list(value.shape), "data": packed}
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _value(written: Any, left: list[int]) -> Any:
    """Return a value with its texts as arrays, which take the bytes that are ``left``."""
    if isinstance(written, list):
        return [_value(each, left) for each in written]
    if not isinstance(written, dict):
        return written
    if written.keys() == {"array", "shape", "data"}:
        return _array(written["array"], written["shape"], written["data"], left)
    return {key: _value(each, left) for key, each in written.items()}


def _array(dtype: object, shape: object, data: object, left: list[int]) -> NDArray[Any]:
    lengths = shape if isinstance(shape, list) else [-1]
    if dtype not in _DTYPES or not isinstance(data, str):
        raise ValueError(f"an array of {dtype!r}")
    if not all(type(length) is int and 0 <= length <= left[0] for length in lengths):
        raise ValueError(f"an array of shape {shape!r}")
    expected = math.prod(lengths) * np.dtype(str(dtype)).itemsize
    if expected > left[0]:
        raise ValueError(f"an array of {expected:,} bytes, and {left[0]:,} may be left")
    left[0] -= expected
    try:
        content = zlib.decompressobj().decompress(base64.b85decode(data), expected + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(content) != expected:
        raise ValueError(f"an array of {len(content):,} bytes where {expected:,} are expected")
    return np.frombuffer(content, str(dtype)).reshape(lengths).copy()

"""NumPy's ``.npz`` files of unknown origin: nothing is run, and no memory taken on trust.

A file states the sizes of its arrays twice, in the zip directory and in each array's header. Both
are compared, with each other and with a limit, before memory is taken for an array; pickled objects
are refused, and headers are matched, not evaluated. Reading takes the bytes of the arrays, and in
addition at most ten times those of the file's own directory.
"""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import check_memory, mebibytes

_HEADER = re.compile(
    rb"\{'descr': '(?P<type>[<>|=]?[biufSU]\d{1,6})', 'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>(?:\d{1,18},? ?)*)\), \}\s*"
)
_VERSIONS = {b"\x01\x00": 2, b"\x02\x00": 4}
"""Bytes of a header's length, by version; later versions are for named fields only."""

_LONGEST_HEADER = 1000
_MOST_ARRAYS = 100
_PIECE = 1 << 20


def read_arrays(stream: BinaryIO, largest: int) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by name: numbers, truth values and texts.

    Parameters
    ----------
    stream
        The file, to be read by seeking.
    largest
        Bytes of all arrays together that are taken at most.

    Raises
    ------
    BadInputError
        If it is no such file, is damaged, or holds anything else or more. `LackOfMemoryError` if
        the arrays do not fit into the memory that is free.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if len(members) > _MOST_ARRAYS or total > largest:
                raise BadInputError(
                    f"{len(members)} arrays of {mebibytes(total)} in all; at most {_MOST_ARRAYS} "
                    f"of {mebibytes(largest)} are possible"
                )
            check_memory(total, "reading the arrays", "take a smaller file")
            names = [member.filename.removesuffix(".npy") for member in members]
            if len(set(names)) < len(names):
                raise BadInputError("two arrays of one name")
            return {
                name: _read(archive, member) for name, member in zip(names, members, strict=True)
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as fault:
        # RuntimeError: an array that is encrypted.
        raise BadInputError(f"no file of NumPy arrays, or a damaged one ({fault})") from None
    except (ValueError, OverflowError, UnicodeError) as fault:
        if isinstance(fault, BadInputError):
            raise
        raise BadInputError(f"a damaged file of NumPy arrays ({fault})") from None


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Return one array."""
    with archive.open(info) as member:
        start = member.read(8)
        size = _VERSIONS.get(start[6:])
        if start[:6] != b"\x93NUMPY" or size is None:
            raise BadInputError(f"{info.filename!r} is no array of numbers")
        length = int.from_bytes(member.read(size), "little")
        found = _HEADER.fullmatch(member.read(length)) if length <= _LONGEST_HEADER else None
        if found is None:
            raise BadInputError(f"{info.filename!r} is no array of numbers, truth values or texts")
        kind = _kind(found["type"].decode("ascii"), info.filename)
        shape = tuple(map(int, re.findall(rb"\d+", found["shape"])))
        stated = math.prod(shape) * kind.itemsize
        held = info.file_size - len(start) - size - length
        if stated != held:
            raise BadInputError(
                f"{info.filename!r}: shape {shape} of {kind} takes {stated:,} bytes, but there are "
                f"{held:,}"
            )
        content = np.empty(held, np.uint8)
        filled = 0
        while piece := member.read(_PIECE):
            content[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
        if filled < held:
            raise BadInputError(f"{info.filename!r} ends in the middle")
    if not _is_plain(content, kind):
        raise BadInputError(f"{info.filename!r} holds what is no {kind}")
    order: Literal["F", "C"] = "F" if found["order"] == b"True" else "C"
    return content.view(kind).reshape(shape, order=order)


def _kind(text: str, name: str) -> np.dtype[np.generic]:
    try:
        kind = np.dtype(text)
    except TypeError:
        kind = np.dtype("V")
    if not kind.itemsize:
        raise BadInputError(f"{name!r} has the type {text}, which is not read")
    return kind


def _is_plain(content: NDArray[np.uint8], kind: np.dtype[np.generic]) -> bool:
    """Return whether bytes are truth values or characters, where the type says so."""
    if kind.kind == "b":
        return bool(np.all(content <= 1))
    if kind.kind == "U":
        points = content.view(np.dtype(np.uint32).newbyteorder(kind.byteorder))
        return bool(np.all((points < 0xD800) | ((points > 0xDFFF) & (points <= 0x10FFFF))))
    return True

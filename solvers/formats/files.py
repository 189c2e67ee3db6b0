"""Files of problems: the format by the suffix, compression by a second one."""

import gzip
import lzma
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from solvers.errors import InvalidProblemError, MalformedFileError, SolverError
from solvers.formats.instance import Instance
from solvers.problem import BestResponse

LARGEST = 1 << 28
"""Bytes of a file's text. Reading takes up to 30 times as many: Python's numbers and lists."""

_LARGEST_DICTIONARY = 1 << 28
"""Bytes that a file of xz may ask for; its own programs ask for 64 MiB at most."""

_PIECE = 1 << 20

SUFFIXES = (".wcnf", ".lp", ".mps", ".opb")
_WRITTEN = (".wcnf", ".lp", ".mps")
_COMPRESSIONS = (".gz", ".xz")


def is_instance_file(path: str | Path) -> bool:
    """Tell whether a name has the suffix of one of the formats."""
    return _format_of(Path(path)) in SUFFIXES


def read_instance(path: str | Path) -> Instance:
    """Read a problem from a file of one of :data:`SUFFIXES`, also with ``.gz`` or ``.xz``.

    Raises
    ------
    MalformedFileError
        If the file is not of its format, or holds what no best response can express; the message
        names the file, and the line if it is known.
    SolverError
        If the file cannot be read, or its suffix names no format.
    """
    path = Path(path)
    suffix = _checked_suffix(path)
    text = _read_text(path)
    try:
        if suffix == ".wcnf":
            from solvers.formats.wcnf import parse_wcnf

            return parse_wcnf(text, str(path))
        from solvers.formats.recognition import recognise

        if suffix == ".opb":
            from solvers.formats.opb_reader import parse_opb

            return recognise(parse_opb(text, str(path)))
        from solvers.formats.scip_reader import read_program_apart

        return recognise(read_program_apart(text, suffix, str(path)))
    except InvalidProblemError as error:
        raise MalformedFileError(f"{path}: {error}") from error


def write_instance(path: str | Path, problem: BestResponse) -> None:
    """Write a problem in the format that the file's suffix names.

    Raises
    ------
    ProblemTooLargeError
        If a linear constraint would take too many clauses in WCNF.
    SolverError
        If the file cannot be written, its suffix names no format, or the format cannot express the
        problem (:func:`solvers.formats.program.named_program`).
    """
    path = Path(path)
    suffix = _checked_suffix(path, _WRITTEN)
    if suffix == ".wcnf":
        from solvers.formats.clauses import encode
        from solvers.formats.wcnf import wcnf_text

        text = wcnf_text(encode(problem))
    else:
        from solvers.formats.lp import lp_text, mps_text
        from solvers.formats.program import named_program

        text = (lp_text if suffix == ".lp" else mps_text)(named_program(problem))
    data = text.encode("ascii")
    if path.suffix.lower() == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix.lower() == ".xz":
        data = lzma.compress(data)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise SolverError(f"{path} cannot be written: {error.strerror}") from error


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _checked_suffix(path: Path, known: Sequence[str] = SUFFIXES) -> str:
    suffix = _format_of(path)
    if suffix not in known:
        raise SolverError(
            f"{path}: the suffix names no format of problems that can be "
            f"{'read' if known is SUFFIXES else 'written'}; expected {', '.join(known)} "
            "(also with .gz or .xz)"
        )
    return suffix


def _read_text(path: Path) -> str:
    try:
        data = _content(path)
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise MalformedFileError(f"{path}, line {line}: not text in UTF-8") from error
    except (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error) as error:
        raise MalformedFileError(f"{path} cannot be decompressed: {error}") from error
    except OSError as error:
        raise SolverError(f"{path} cannot be read: {error.strerror}") from error


def _content(path: Path) -> bytes:
    """Return a file's bytes, unzipped; of a bomb no more than the limit is unpacked."""
    pieces: list[bytes] = []
    length = 0
    with path.open("rb") as plain:
        for piece in _pieces(plain, path.suffix.lower()):
            length += len(piece)
            if length > LARGEST:
                raise MalformedFileError(f"{path}: more than {LARGEST:,} bytes of text")
            pieces.append(piece)
    return b"".join(pieces)


def _pieces(plain: BinaryIO, suffix: str) -> Iterator[bytes]:
    """Yield the bytes of a file piece by piece."""
    if suffix != ".xz":
        stream = gzip.GzipFile(fileobj=plain) if suffix == ".gz" else plain
        while piece := stream.read(_PIECE):
            yield piece
        return
    left = plain.read(_PIECE)
    while left:  # streams of xz may follow each other
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_LARGEST_DICTIONARY)
        while not unpacking.eof:
            if unpacking.needs_input and not left:
                raise EOFError("it ends in the middle")
            yield unpacking.decompress(left, _PIECE)
            left = plain.read(_PIECE) if unpacking.needs_input else b""
        left = (unpacking.unused_data + plain.read(_PIECE)).lstrip(b"\0")  # they are padded

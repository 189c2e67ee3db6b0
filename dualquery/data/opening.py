"""Read files as bytes: unzip gzip, cut chunks at line ends, turn faults into clear errors.

A gzipped file of a few megabytes may hold gigabytes, and one line may be all of them. So files are
read in pieces, a line has at most `LONGEST_LINE` bytes, and what is read whole has a limit.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.reading import read_at_most
from dualquery.runtime.resources import mebibytes

FilePath: TypeAlias = Path | Traversable
"""A file on disk, or one inside the package."""

CHUNK_BYTES = 1 << 22
LONGEST_LINE = 1 << 24
"""Bytes of a line: a row of millions of items. Parsing takes about 30 times as many."""

_GZIP_MAGIC = b"\x1f\x8b"


_UNPACK = "unpack it first, or pack it by gzip"
_OTHERS = {
    b"PK\x03\x04": "a zip archive; unpack it, or give it as xlsx:PATH if it is an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or as CSV",
    b"PAR1\x15": "a Parquet file; give it as parquet:PATH",
    b"ARROW1\0\0": "an Arrow file; give it as arrow:PATH",
    b"BZh91AY&SY": f"packed by bzip2; {_UNPACK}",
    b"\xfd7zXZ\0": f"packed by xz; {_UNPACK}",
    b"7z\xbc\xaf\x27\x1c": f"packed by 7-Zip; {_UNPACK}",
    b"\x28\xb5\x2f\xfd": f"packed by Zstandard; {_UNPACK}",
}
"""What files begin with that are no text, what they are, and what to do with them."""

LONGEST_START = max(map(len, _OTHERS))
"""Bytes that tell these."""


def require_text(start: bytes, label: str) -> None:
    """Raise `BadInputError` if a file that is to be text begins as others do, whatever its name."""
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise BadInputError(f"{label}: this is no text but {what}")


@contextlib.contextmanager
def open_bytes(path: FilePath, label: str) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressing it if it starts like a gzip file.

    Raises
    ------
    BadInputError
        If the file cannot be read, is empty, or is a damaged or truncated gzip file: while the
        caller reads, too.
    """
    with reading_errors(label), path.open("rb") as plain:
        start = plain.read(2)
        if not start:
            raise BadInputError(f"{label}: the file is empty")
        plain.seek(0)
        if start != _GZIP_MAGIC:
            yield cast(BinaryIO, plain)
            return
        with gzip.GzipFile(fileobj=plain) as unzipped:
            buffered = io.BufferedReader(unzipped, CHUNK_BYTES)
            if not buffered.peek(1):
                raise BadInputError(f"{label}: the gzip file holds nothing")
            yield cast(BinaryIO, buffered)


def is_file(path: Path) -> bool:
    """Return whether there is a file; `BadInputError` if no file can have the name, or be seen."""
    try:
        return path.is_file()
    except OSError as fault:
        raise BadInputError(f"{path}: {fault.strerror}") from None


@contextlib.contextmanager
def reading_errors(label: str) -> Iterator[None]:
    """Turn the faults of reading a file into `BadInputError`."""
    try:
        yield
    except EOFError:
        raise BadInputError(
            f"{label}: the gzip file ends in the middle (truncated); copy it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as fault:
        raise BadInputError(f"{label}: damaged gzip file ({fault}); copy it again") from None
    except OSError as fault:
        raise BadInputError(f"{label}: cannot be read ({fault.strerror or fault})") from None


def read_whole(stream: BinaryIO, label: str, largest: int) -> bytes:
    """Return what is left of a stream; raise `BadInputError` if that is more than ``largest``."""
    with reading_errors(label):
        content = read_at_most(stream, largest)
    if content is None:
        raise BadInputError(f"{label}: more than {mebibytes(largest)}, the most that is read whole")
    return content


def line_chunks(path: FilePath, label: str, chunk_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield chunks of whole lines, each with the 1-based number of its first line.

    Every chunk ends with a line feed: one is added if the file's last line lacks it. Raises
    `BadInputError` as `open_bytes`, and if a line is longer than `LONGEST_LINE`.
    """
    first_line = 1
    carried: list[bytes] = []
    length = 0
    with open_bytes(path, label) as stream:
        while block := stream.read(chunk_bytes):
            cut = block.rfind(b"\n") + 1
            length += len(block)
            if not cut:
                carried.append(block)
                if length > LONGEST_LINE:
                    raise BadInputError(
                        f"{label}: line {first_line} has more than {LONGEST_LINE:,} bytes, the "
                        "most of a row; is this a file of this format?"
                    )
                continue
            chunk = b"".join([*carried, block[:cut]])
            carried = [block[cut:]]
            length = len(block) - cut
            yield first_line, chunk
            first_line += chunk.count(b"\n")
    if rest := b"".join(carried):
        yield first_line, rest + b"\n"


def show_byte(byte: int) -> str:
    """Return a byte as a message shows it."""
    return repr(chr(byte)) if 32 <= byte < 127 else f"the byte 0x{byte:02x}"

"""Read files as bytes: unzip gzip, cut chunks at line ends, turn faults into clear errors.

A gzipped file of a few megabytes may hold gigabytes, and one line may be all of them. So files are
read in pieces, a line has at most `LONGEST_LINE` bytes, and what is read whole has a limit.
"""

import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from dualquery.runtime.documents import read_at_most
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.resources import available_memory, mebibytes


@dataclass(frozen=True, repr=False)
class HeldFile:
    """A file in memory, such as what came through a pipe: no disk ever holds it."""

    content: bytes
    name: str = "-"

    def open(self, mode: str = "rb") -> BinaryIO:  # noqa: ARG002  # as of a path
        """Open it for reading."""
        return io.BytesIO(self.content)


FilePath: TypeAlias = Path | Traversable | HeldFile
"""A file on disk, inside the package, or in memory."""

CHUNK_BYTES = 1 << 22
LONGEST_LINE = 1 << 24  # bytes of a line; parsing takes about 30 times as many
_GZIP_MAGIC = b"\x1f\x8b"


@contextlib.contextmanager
def open_bytes(path: FilePath, label: str) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressing it if it starts like a gzip file."""
    with reading_errors(label), path.open("rb") as plain:
        if not (start := plain.read(2)):
            raise BadInputError(f"{label}: the file is empty")
        plain.seek(0)
        if start != _GZIP_MAGIC:
            yield cast(BinaryIO, plain)
            return
        with gzip.GzipFile(fileobj=plain) as unzipped:
            if not (buffered := io.BufferedReader(unzipped, CHUNK_BYTES)).peek(1):
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
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise BadInputError(f"{label}: damaged gzip file ({fault}); copy it again") from None
    except OSError as fault:
        raise BadInputError(f"{label}: cannot be read ({fault.strerror or fault})") from None


def read_whole(stream: BinaryIO, label: str, largest: int) -> bytes:
    """Return the rest of a stream; raise `BadInputError` if that is more than ``largest``."""
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
    first_line, carried = 1, b""
    with open_bytes(path, label) as stream:
        while block := stream.read(chunk_bytes):
            if cut := block.rfind(b"\n") + 1:
                chunk, carried = carried + block[:cut], block[cut:]
                yield first_line, chunk
                first_line += chunk.count(b"\n")
            else:
                carried += block
            if len(carried) > LONGEST_LINE:
                raise BadInputError(
                    f"{label}: line {first_line} has more than {LONGEST_LINE:,} bytes, the most "
                    "of a row; is this a file of this format?"
                )
    if carried:
        yield first_line, carried + b"\n"


def held(stream: BinaryIO, label: str) -> HeldFile:
    """Return what a pipe gives as a file; raise `BadInputError` if memory does not hold it."""
    available = available_memory()
    largest = sys.maxsize if available is None else available // 2  # which joining takes
    return HeldFile(read_whole(stream, label, largest))

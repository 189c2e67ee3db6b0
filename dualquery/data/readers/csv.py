"""``csv``: separated text with a header, quoted as in RFC 4180; by default commas and UTF-8."""

from __future__ import annotations

import codecs
import csv
import io
import logging
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, cast

import numpy as np

from dualquery.data.opening import (
    FilePath,
    line_chunks,
    open_bytes,
    reading_errors,
)
from dualquery.data.readers.dialect import SEPARATORS, STANDARD, Dialect
from dualquery.data.readers.python_objects import check_columns
from dualquery.data.readers.source import TextBits
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

BLOCK_BYTES = 1 << 22

_BIT_BYTES = 1 << 25
"""Text of 0s and 1s that is held at a time."""

_LINE_FEED = 10

_MOST_LINES = 20
"""Lines of a column's name, which a header may break in a quoted cell."""

_SLACK = 1 << 16
"""Bytes that a reader of lines may take in advance."""

_LONGEST_WAIT = 1_000
"""Milliseconds to wait for Arrow's threads, at most; it takes a few."""

_log = logging.getLogger(__name__)


class _OtherCellsError(Exception):
    """A file has other cells than ``0`` and ``1``."""


@dataclass(frozen=True)
class CsvSource:
    """A comma-separated file; every cell is handed on as the text that it is.

    Parameters
    ----------
    path, label
        The file, and what messages call it.
    implied_schema
        Name of the built-in schema of the file, if any.
    header
        Names of the columns of a file that has no header line, else None.
    block_bytes
        How much text is held at a time; also the longest possible row.
    dialect
        How the file differs from comma-separated UTF-8.
    """

    path: FilePath
    label: str
    implied_schema: str | None = None
    header: tuple[str, ...] | None = None
    block_bytes: int = BLOCK_BYTES
    dialect: Dialect = STANDARD
    types: ClassVar[tuple[str, ...]] = ()

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._names

    @property
    def written_as(self) -> str | None:
        """How the file is written, as ``--csv`` says it; None for standard CSV.

        The user said so, or the header shows it; no row does.
        """
        return self._header[1].words

    @cached_property
    def _names(self) -> tuple[str, ...]:
        found, dialect = self._header
        return tuple(map(str.strip, found)) if dialect.spaces == "trim" else found

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], Dialect]:
        """Names of the columns as they stand, and how the file is written: as said, or shown."""
        if self.header is not None:
            return self.header, replace(self.dialect, delimiter=",")
        said = self.dialect.delimiter
        separator = said or ","
        names = tuple(self._split_header(separator))
        if len(names) == 1 and said is None:
            split = {each: self._split_header(each) for each in SEPARATORS}
            separator = max(split, key=lambda each: len(split[each]))
            names = tuple(split[separator])
        if not names:
            raise BadInputError(f"{self.label}: the first line is empty; a header is expected")
        if any(name.count("\n") > _MOST_LINES for name in names):
            raise BadInputError(
                f"{self.label}: a column's name has more than {_MOST_LINES} lines; is a quotation "
                "mark in the header not closed?"
            )
        stripped = tuple(map(str.strip, names))
        if {*stripped} <= {"0", "1"} and len({*stripped}) < len(names) and separator in ",\t":
            raise BadInputError(
                f"{self.label}: the first line has only 0s and 1s, so it is no header; rows of 0 "
                "and 1 without a header are read as matrix:PATH"
            )
        check_columns(stripped if self.dialect.spaces == "trim" else names, self.label)
        if said is None and separator != ",":
            _log.warning(
                "%s: taken as separated by %s, as its header is; --csv delimiter=, says otherwise",
                self.label,
                SEPARATORS[separator],
            )
        return names, replace(self.dialect, delimiter=separator)

    def _split_header(self, separator: str) -> list[str]:
        """Return the cells of the first line."""
        with open_bytes(self.path, self.label) as stream:
            try:
                content = self.dialect.as_utf8(stream, self.label)
                checked = cast(BinaryIO, _Checked(content, self.label, self.block_bytes))
                text = io.TextIOWrapper(checked, "utf-8-sig", newline="")
                return next(csv.reader(text, delimiter=separator), [])
            except UnicodeDecodeError:
                raise self._not_utf8() from None
            except csv.Error as fault:
                raise BadInputError(f"{self.label}: unreadable header ({fault})") from None

    def blocks(self, columns: Sequence[str]) -> Iterator[pl.DataFrame | TextBits]:
        """Yield the `frames`; while all cells are ``0`` or ``1``, as such, in a tenth of the time.

        Which it is changes the time alone.
        """
        done = 0
        try:
            for bits in self._bits():
                yield bits
                done += bits.height
        except _OtherCellsError:
            for frame in self.frames(columns):
                if done < frame.height:
                    yield frame[done:]
                done = max(done - frame.height, 0)

    def _bits(self) -> Iterator[TextBits]:
        """Yield rows of ``0`` and ``1``; raise `_OtherCellsError` at any other text."""
        names, dialect = self._header
        width = 2 * len(names)
        if not dialect.is_utf8 or self.header is not None or len(names) < 2:
            raise _OtherCellsError
        delimiter = ord(dialect.delimiter or ",")
        try:
            for line, chunk in line_chunks(self.path, self.label, max(_BIT_BYTES, width)):
                start = chunk.index(b"\n") + 1 if line == 1 else 0
                if b'"' in chunk[:start] or (len(chunk) - start) % width:
                    raise _OtherCellsError
                text = np.frombuffer(chunk, np.uint8, offset=start).reshape(-1, width)
                cells, between = text[:, ::2], text[:, 1::2]
                ends = between[:, -1] == _LINE_FEED
                if not (ends.all() and (between[:, :-1] == delimiter).all()):
                    raise _OtherCellsError
                if not ((cells | 1) == ord("1")).all():
                    raise _OtherCellsError
                if len(cells):
                    yield TextBits(self._names, (cells & np.uint8(1)).T)
        except BadInputError:  # which `frames` says in its own words
            raise _OtherCellsError from None

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        import polars as pl
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        ragged = _RaggedRows()
        names, dialect = self._header
        as_they_stand = dict(zip(self._names, names, strict=True))
        with open_bytes(self.path, self.label) as stream:
            recoded = dialect.as_utf8(stream, self.label)
            checked: _Checked | None = _Checked(recoded, self.label)
            held = weakref.ref(cast(_Checked, checked))
            reader: Any = None
            try:
                reader = pa_csv.open_csv(
                    pa.PythonFile(checked, mode="r"),
                    read_options=pa_csv.ReadOptions(
                        use_threads=False,
                        block_size=self.block_bytes,
                        column_names=None if self.header is None else list(names),
                    ),
                    parse_options=pa_csv.ParseOptions(
                        delimiter=dialect.delimiter,
                        newlines_in_values=True,
                        # A blank line is a row only where a row may be one empty cell.
                        ignore_empty_lines=len(names) > 1,
                        invalid_row_handler=ragged,
                    ),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=[as_they_stand[name] for name in columns],
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    self._check(ragged)
                    frame = pl.DataFrame(pl.from_arrow(batch))
                    yield dialect.as_standard(
                        frame.rename(dict(zip(frame.columns, columns, strict=True)))
                    )
            except UnicodeDecodeError:
                raise self._not_utf8() from None
            except pa.ArrowInvalid as fault:
                self._check(ragged)
                if "cannot infer number of columns" in str(fault):
                    return  # only a header, and no line feed after it
                raise BadInputError(f"{self.label}: not readable as csv ({fault})") from None
            finally:
                reader = checked = None
                _wait_until_gone(held)
            self._check(ragged)

    def _check(self, ragged: _RaggedRows) -> None:
        if ragged.first is not None:
            number, expected, found = ragged.first
            row = number - (self.header is None)
            fix = "mend the row (a separator within a value needs quotes)"
            if found < expected:
                fix = "mend the row (is a quotation mark in it, or just above it, not closed?)"
            raise BadInputError(
                f"{self.label}: row {row} has {found} values, but {expected} columns are "
                f"expected; {fix}"
            )

    def _not_utf8(self) -> BadInputError:
        """Return the error that names the first line that is not UTF-8."""
        where = ""
        for number, chunk in line_chunks(self.path, self.label, self.block_bytes):
            try:
                chunk.decode("utf-8")
            except UnicodeDecodeError as fault:
                line = number + chunk.count(b"\n", 0, fault.start)
                where = f" at line {line}, byte {fault.start - chunk.rfind(10, 0, fault.start)}"
                break
        return BadInputError(
            f"{self.label}: not UTF-8 text{where}; name the file's encoding, such as "
            "--csv encoding=latin-1, or windows-1252 or utf-16 if it comes from Windows"
        )


@dataclass
class _RaggedRows:
    """Remembers the first row of the wrong length; pyarrow calls it for each."""

    first: tuple[int, int, int] | None = field(default=None, init=False)

    def __call__(self, row: Any) -> str:
        if self.first is None:
            self.first = (row.number, row.expected_columns, row.actual_columns)
        return "skip"


def _wait_until_gone(held: weakref.ref[_Checked]) -> None:
    """Wait until no thread of Arrow holds a stream: letting go while the program ends aborts it."""
    for _ in range(_LONGEST_WAIT):
        if held() is None:
            return
        time.sleep(0.001)


class _Checked(io.BufferedIOBase):
    """A stream of UTF-8 that refuses NUL bytes and keeps faults of reading clear.

    PyArrow would not see what is no UTF-8 in a row or column that it leaves out. A header and the
    first row, which are read as lines of any length, have at most ``longest`` bytes.
    """

    def __init__(self, stream: BinaryIO, label: str, longest: int | None = None) -> None:
        self._stream = stream
        self._label = label
        self._left = sys.maxsize if longest is None else longest
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        with reading_errors(self._label):
            block = self._stream.read(-1 if size is None else size)
        if b"\0" in block:
            raise BadInputError(
                f"{self._label}: a NUL byte, so this is not UTF-8 text; convert the file, name "
                "its encoding, such as --csv encoding=utf-16-le, or its format as FORMAT:PATH"
            )
        self._decoder.decode(block, final=not block)
        self._left -= len(block)
        if block and self._left < -_SLACK:
            raise BadInputError(
                f"{self._label}: a row has more bytes than the {BLOCK_BYTES:,} that are read at a "
                "time; is a quotation mark not closed?"
            )
        return block

    read1 = read


_KDD99_HEADER = """
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot
    num_failed_logins logged_in num_compromised root_shell su_attempted num_root
    num_file_creations num_shells num_access_files num_outbound_cmds is_host_login
    is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate
    same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count
    dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate
    dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
    dst_host_rerror_rate dst_host_srv_rerror_rate attack
"""
KDD99_COLUMNS = tuple(_KDD99_HEADER.split())


class Kdd99Source(CsvSource):
    """KDD Cup 99 as the DualQuery authors prepared it.

    There is no header, a space follows each comma, and a full stop ends each line.
    """

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        import polars as pl

        last = [name for name in columns if name == KDD99_COLUMNS[-1]]
        for frame in super().frames(columns):
            yield frame.with_columns(pl.col(last).str.strip_suffix("."))


def open_kdd99(path: FilePath, label: str) -> CsvSource:
    """Return the source for the authors' file; its schema is the built-in ``kdd99``."""
    return Kdd99Source(path, label, "kdd99", KDD99_COLUMNS, dialect=Dialect(spaces="trim"))


def open_tsv(path: FilePath, label: str) -> CsvSource:
    """Return the source for a file separated by tabs."""
    return CsvSource(path, label, dialect=Dialect("\t"))

"""``csv``: separated text with a header, quoted as in RFC 4180; by default commas and UTF-8."""

from __future__ import annotations

import codecs
import csv
import io
import logging
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from dualquery.data.opening import FilePath, line_chunks, open_bytes, reading_errors
from dualquery.data.readers.dialect import SEPARATORS, STANDARD, Dialect
from dualquery.data.readers.python_objects import check_columns
from dualquery.data.readers.source import TableSource, rows_at_once
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

_BLOCK_BYTES = 1 << 22
"""Text that is held at a time, and the longest row; more where the header has many columns."""

_LINE_FEED = 10

_MOST_LINES = 20
"""Lines of a column's name, which a header may break in a quoted cell."""

_LONGEST_WAIT = 1_000
"""Milliseconds to wait for Arrow's threads, at most; it takes a few."""

_log = logging.getLogger(__name__)


class _OtherCellsError(Exception):
    """A file has other cells than ``0`` and ``1``."""


@dataclass(frozen=True)
class CsvSource(TableSource):
    """A comma-separated file; every cell is handed on as the text that it is.

    Parameters
    ----------
    path, label, implied_schema
        The file, what messages call it, and the name of its built-in schema, if any.
    header
        Names of the columns of a file that has no header line, else None.
    block_bytes
        How much text is held at a time, also the longest row; None for as few as do many rows.
    dialect
        How the file differs from comma-separated UTF-8.
    """

    path: FilePath
    label: str
    implied_schema: str | None = None
    header: tuple[str, ...] | None = None
    block_bytes: int | None = None
    dialect: Dialect = STANDARD

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._header[0]

    @property
    def written_as(self) -> str | None:
        """How the file is written: the user said so, or the header shows it; no row does."""
        return self._header[1].words

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], Dialect]:
        """Names of the columns, and how the file is written: as said, or as the header shows."""
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
        names = stripped if self.dialect.spaces == "trim" else names
        check_columns(names, self.label)
        if said is None and separator != ",":
            _log.warning(
                f"{self.label}: taken as separated by {SEPARATORS[separator]}, as its header is; "
                "--csv delimiter=, says otherwise"
            )
        return names, replace(self.dialect, delimiter=separator)

    def _split_header(self, separator: str) -> list[str]:
        """Return the cells of the first line."""
        with open_bytes(self.path, self.label) as stream:
            try:
                raw: io.RawIOBase = _Utf8(stream, self.dialect.encoding, self.label, _BLOCK_BYTES)
                text = io.TextIOWrapper(io.BufferedReader(raw), "utf-8-sig", newline="")
                return next(csv.reader(text, delimiter=separator), [])
            except csv.Error as fault:
                raise BadInputError(f"{self.label}: unreadable header ({fault})") from None

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String.

        While all cells are ``0`` or ``1`` they are an Enum of these texts, read in a tenth of the
        time. Which it is changes the time alone.
        """
        done = 0
        try:
            for bits in self._bits(columns):
                yield bits
                done += bits.height
        except _OtherCellsError:
            for frame in self._texts(columns):
                if done < frame.height:
                    yield frame[done:]
                done = max(done - frame.height, 0)

    @property
    def _step(self) -> int:
        width = len(self.columns())
        return self.block_bytes or max(_BLOCK_BYTES, width * rows_at_once(width))

    def _bits(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield rows of ``0`` and ``1``; raise `_OtherCellsError` at any other text."""
        import polars as pl

        names, dialect = self._header
        width = 2 * len(names)
        if not dialect.is_utf8 or self.header is not None or len(names) < 2:
            raise _OtherCellsError
        delimiter = ord(dialect.delimiter or ",")
        place = {name: number for number, name in enumerate(names)}
        wanted = [2 * place[name] for name in columns]
        bits = pl.Series(["0", "1"], dtype=pl.Enum(["0", "1"]))
        try:
            for line, chunk in line_chunks(self.path, self.label, max(self._step, width)):
                start = chunk.index(b"\n") + 1 if line == 1 else 0
                if b'"' in chunk[:start] or (len(chunk) - start) % width:
                    raise _OtherCellsError
                text = np.frombuffer(chunk, np.uint8, offset=start).reshape(-1, width)
                between = text[:, 1:-1:2]
                if np.any(text[:, -1] != _LINE_FEED) or np.any(between != delimiter):
                    raise _OtherCellsError
                if np.any((text[:, ::2] | 1) != ord("1")):
                    raise _OtherCellsError
                cells = np.ascontiguousarray(text.T[wanted]) & np.uint8(1)
                flat, rows = bits.gather(cells.ravel()), len(text)  # a gather a column takes long
                yield pl.DataFrame(
                    [flat.slice(at * rows, rows).alias(name) for at, name in enumerate(columns)]
                )
        except BadInputError:  # which `_texts` says in its own words
            raise _OtherCellsError from None

    def _texts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        import polars as pl
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        ragged: list[tuple[int, int, int]] = []

        def note(row: Any) -> str:
            if not ragged:
                ragged.append((row.number, row.expected_columns, row.actual_columns))
            return "skip"

        names, dialect = self._header
        with open_bytes(self.path, self.label) as stream:
            checked: _Utf8 | None = _Utf8(stream, dialect.encoding, self.label)
            held = weakref.ref(cast(_Utf8, checked))
            reader: Any = None
            try:
                reader = pa_csv.open_csv(
                    pa.PythonFile(checked, mode="r"),
                    read_options=pa_csv.ReadOptions(
                        use_threads=False,
                        block_size=self._step,
                        column_names=list(names),
                        skip_rows_after_names=int(self.header is None),
                    ),
                    parse_options=pa_csv.ParseOptions(
                        delimiter=dialect.delimiter,
                        newlines_in_values=True,
                        # A blank line is a row only where a row may be one empty cell.
                        ignore_empty_lines=len(names) > 1,
                        invalid_row_handler=note,
                    ),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=list(columns),
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    self._refuse(ragged)
                    yield dialect.as_standard(pl.DataFrame(pl.from_arrow(batch)))
            except pa.ArrowInvalid as fault:
                self._refuse(ragged)
                raise BadInputError(f"{self.label}: not readable as csv ({fault})") from None
            finally:
                reader = checked = None
                _wait_until_gone(held)
            self._refuse(ragged)

    def _refuse(self, ragged: Sequence[tuple[int, int, int]]) -> None:
        for number, expected, found in ragged:
            row = number - (self.header is None)
            fix = "mend the row (a separator within a value needs quotes)"
            if found < expected:
                fix = "mend the row (is a quotation mark in it, or just above it, not closed?)"
            raise BadInputError(
                f"{self.label}: row {row} has {found} values, but {expected} columns are "
                f"expected; {fix}"
            )


def _wait_until_gone(held: weakref.ref[_Utf8]) -> None:
    """Wait until no thread of Arrow holds a stream: letting go while the program ends aborts it."""
    for _ in range(_LONGEST_WAIT):
        if held() is None:
            return
        time.sleep(0.001)


class _Utf8(io.RawIOBase):
    """A stream of text in some encoding as UTF-8, of whole lines, with clear faults.

    PyArrow would not see what is no UTF-8 in a row or column that it leaves out. A header, which is
    read as a line of any length, has at most ``longest`` bytes.
    """

    def __init__(
        self, stream: BinaryIO, encoding: str, label: str, longest: int | None = None
    ) -> None:
        self._stream, self._encoding, self._label = stream, encoding, label
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._lines, self._longest = 1, longest
        self._last, self._block = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any buffer will do
        while not self._block:
            with reading_errors(self._label):
                block = self._stream.read(len(buffer))
            text = self._as_utf8(block)
            if not block and self._last != b"\n":
                text += b"\n"
            self._block, self._last = memoryview(text), text[-1:] or self._last
            if not block:
                break
        given = self._block[: len(buffer)]
        buffer[: len(given)] = given
        self._block = self._block[len(given) :]
        return len(given)

    def _as_utf8(self, block: bytes) -> bytes:
        """Return the next bytes of the stream as UTF-8; check them."""
        if self._longest is not None:
            self._longest -= len(block)
            if self._longest < 0:
                raise BadInputError(
                    f"{self._label}: the header has more bytes than the {_BLOCK_BYTES:,} that are "
                    "read at a time; is a quotation mark not closed?"
                )
        try:
            text = self._decoder.decode(block, final=not block).encode()
        except UnicodeError as fault:
            before = block[: getattr(fault, "start", 0)]
            raise BadInputError(
                f"{self._label}: not {self._encoding} text at line "
                f"{self._lines + before.count(10)} ({fault}); name the file's encoding, such as "
                "--csv encoding=latin-1, or windows-1252 or utf-16 if it comes from Windows"
            ) from None
        self._lines += block.count(10)
        if b"\0" in text:
            raise BadInputError(
                f"{self._label}: a NUL byte, so this is not UTF-8 text; convert the file, name "
                "its encoding, such as --csv encoding=utf-16-le, or its format as FORMAT:PATH"
            )
        return text


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

"""``csv``: separated text with a header, quoted as in RFC 4180; by default commas and UTF-8."""

from __future__ import annotations

import codecs
import csv
import io
import logging
import re
import time
import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, BinaryIO, cast

import numpy as np
import polars as pl
import polars.selectors as cs

from dualquery.data.opening import FilePath, line_chunks, open_bytes, reading_errors
from dualquery.data.readers.source import TableSource, check_columns, rows_at_once
from dualquery.data.schema.columns import check_choice
from dualquery.data.schema.schema_files import load_schema
from dualquery.runtime.errors import BadInputError, suggest

_BLOCK_BYTES = 1 << 22  # of text that is held, and of the longest row; more for very many columns
_MOST_LINES = 20  # lines of a column's name, which a header may break in a quoted cell
_LONGEST_WAIT = 1_000  # milliseconds to wait for Arrow's threads, at most; it takes a few

_log = logging.getLogger(__name__)

_UTF8 = ("utf-8", "utf-8-sig", "ascii")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What a file may be separated by, and what messages call it."""

_PAIR = re.compile(r"(delimiter|encoding|decimal|spaces)=(,|[^,]+)(?:,|$)")
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}

_WITH_COMMA = r"^\s*[-+]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+(?:[eE][-+]?\d+)?\s*$"
_THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(?:\.\d{3})+\s*$"
_WITH_POINT = r"^([-+]?\d+)\.(\d+)$"


@dataclass(frozen=True)
class Dialect:
    """What is not as in standard CSV: the separator that the header shows, UTF-8, decimal points.

    Where ``decimal`` is a comma, points separate thousands; cells that are separated by commas,
    too, are then in quotation marks.
    """

    delimiter: str | None = None  # the sign between two cells; None for what the header shows
    encoding: str = "utf-8"  # a name that Python knows
    decimal: str = "."  # or ","
    spaces: str = "keep"  # around a cell, or "trim"

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n\0' or ord(self.delimiter) > 127
        ):
            raise BadInputError(
                f"csv: delimiter is {self.delimiter!r}; one sign is expected, such as ; or tab"
            )
        check_choice("csv", "decimal", self.decimal, (".", ","))
        check_choice("csv", "spaces", self.spaces, ("keep", "trim"))
        try:
            known = getattr(codecs.lookup(self.encoding), "_is_text_encoding", True)
        except (LookupError, ValueError):  # the latter for a name that none can have
            close = suggest(self.encoding, ["utf-8", "latin-1", "windows-1252", "utf-16"])
            raise BadInputError(f"csv: there is no encoding {self.encoding!r}; {close}") from None
        if not known:
            raise BadInputError(f"csv: {self.encoding!r} is no encoding of text")

    @staticmethod
    def parse(text: str) -> Dialect:
        """Read what ``--csv`` takes: ``delimiter=;,encoding=latin-1,decimal=,``."""
        found, place = dict[str, str](), 0
        while place < len(text):
            if (pair := _PAIR.match(text, place)) is None or pair[1] in found:
                raise BadInputError(
                    f"--csv {text!r}: {text[place:]!r} is not understood; write "
                    "delimiter=;,encoding=latin-1,decimal=, or some of these, each once"
                )
            found[pair[1]] = _NAMES.get(pair[2], pair[2]) if pair[1] == "delimiter" else pair[2]
            place = pair.end()
        return Dialect(**found)

    def as_standard(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table of texts as standard CSV would hold them, numbers with decimal points."""
        if self.spaces == "trim":
            frame = frame.select(pl.all().str.strip_chars())
        if self.decimal == ".":
            return frame
        cells = pl.all()
        return frame.select(
            pl.when(cells.str.contains(_WITH_COMMA) | cells.str.contains(_THOUSANDS))
            .then(cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
            .otherwise(cells)
        )

    def write(self, frame: pl.DataFrame, *, header: bool) -> bytes:
        """Return a table as separated text that is read back by `as_standard`; spaces stay."""
        if comma := self.decimal == ",":
            frame = frame.with_columns(cs.string().str.replace(_WITH_POINT, "$1,$2"))
        text = frame.write_csv(
            separator=self.delimiter or (";" if comma else ","),
            decimal_comma=comma,
            include_header=header,
        )
        try:
            # Only the first block may begin with a byte-order mark.
            found = text.encode(self.encoding)
            return found if header else found.removeprefix("".encode(self.encoding))
        except UnicodeError as fault:
            raise BadInputError(
                f"{self.encoding} cannot hold all texts ({fault}); give another encoding with "
                "--csv, such as utf-8"
            ) from None


@dataclass(frozen=True)
class CsvSource(TableSource):
    """A comma-separated file; every cell is handed on as the text that it is.

    ``header`` has the names of the columns of a file without a header line; all lines have the
    ``ending``. ``block_bytes`` of text are held, also the longest row; None for many rows.
    """

    path: FilePath
    label: str
    implied_schema: str | None = None
    header: tuple[str, ...] | None = None
    ending: str = ""
    block_bytes: int | None = None
    dialect: Dialect = field(default_factory=Dialect)

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._header[0]

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], Dialect]:
        """Names of the columns, and how the file is written: as said, or as the header shows."""
        if self.header is not None:
            return self.header, replace(self.dialect, delimiter=",")
        said = self.dialect.delimiter
        separator = said or (";" if self.dialect.decimal == "," else ",")
        names = self._split_header(separator)
        if len(names) == 1 and said is None:
            split = {each: self._split_header(each) for each in SEPARATORS}
            separator = max(split, key=lambda each: (len(split[each]), each == separator))
            names = split[separator]
        if not names:
            raise BadInputError(f"{self.label}: the first line is empty; a header is expected")
        stripped = tuple(map(str.strip, names))
        if {*stripped} <= {"0", "1"} and len({*stripped}) < len(names) and separator in ",\t":
            raise BadInputError(
                f"{self.label}: the first line has only 0s and 1s, so it is no header; rows of 0 "
                "and 1 without a header are read as matrix:PATH"
            )
        names = stripped if self.dialect.spaces == "trim" else names
        check_columns(names, self.label)
        if said is None and separator != "," and len(names) > 1:
            _log.warning(
                f"{self.label}: taken as separated by {SEPARATORS[separator]}, as its header is; "
                "--csv delimiter=, says otherwise, and decimal=, that commas stand before decimals"
            )
        return names, replace(self.dialect, delimiter=separator)

    def _split_header(self, separator: str) -> tuple[str, ...]:
        """Return the cells of the first line."""
        with open_bytes(self.path, self.label) as stream:
            head = _Utf8(stream, self.dialect.encoding, self.label).read(_BLOCK_BYTES) or b""
            whole = not stream.read(1)
        text = io.StringIO(head.decode("utf-8-sig", "ignore"), newline="")
        try:
            names = tuple(next(csv.reader(text, delimiter=separator), ()))
        except csv.Error as fault:
            raise BadInputError(f"{self.label}: unreadable header ({fault})") from None
        if not (whole or text.read(1)) or any(each.count("\n") > _MOST_LINES for each in names):
            raise BadInputError(
                f"{self.label}: the header has more than {_BLOCK_BYTES:,} bytes, or {_MOST_LINES} "
                "lines in a name; is a quotation mark in the header not closed?"
            )
        return names

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String.

        While all cells are ``0`` or ``1`` they are an Enum of these texts, read in a tenth of the
        time. Which it is changes the time alone.
        """
        done, ended = yield from self._bits(columns)
        for frame in () if ended else self._texts(columns):
            if done < frame.height:
                yield frame[done:]
            done = max(done - frame.height, 0)

    @property
    def _step(self) -> int:
        width = len(self.columns())
        return self.block_bytes or max(_BLOCK_BYTES, width * rows_at_once(width))

    def _bits(self, columns: Sequence[str]) -> Generator[pl.DataFrame, None, tuple[int, bool]]:
        """Yield rows of ``0`` and ``1`` up to any other; return how many, and whether all are."""
        names, dialect = self._header
        width, done = 2 * len(names), 0
        encoding = codecs.lookup(dialect.encoding).name
        if encoding not in _UTF8 or self.header is not None or len(names) < 2:
            return 0, False
        place = {name: 2 * number for number, name in enumerate(names)}
        wanted = [place[name] for name in columns]
        between = np.full(width // 2, ord(dialect.delimiter or ","), np.uint8)
        between[-1] = ord("\n")
        bits = pl.Series(["0", "1"], dtype=pl.Enum(["0", "1"]))
        try:
            for line, chunk in line_chunks(self.path, self.label, max(self._step, width)):
                start = chunk.index(b"\n") + 1 if line == 1 else 0
                if {*b'"\r'} & {*chunk[:start]} or (len(chunk) - start) % width:
                    return done, False
                text = np.frombuffer(chunk, np.uint8, offset=start).reshape(-1, width)
                if np.any(text[:, 1::2] != between) or np.any((text[:, ::2] | 1) != ord("1")):
                    return done, False
                cells = np.ascontiguousarray(text.T[wanted]) & np.uint8(1)
                flat, rows = bits.gather(cells.ravel()), len(text)  # a gather a column takes long
                yield pl.DataFrame(
                    [flat.slice(at * rows, rows).alias(name) for at, name in enumerate(columns)]
                )
                done += rows
        except BadInputError:  # which `_texts` says in its own words
            return done, False
        return done, True

    def _texts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        names, dialect = self._header
        end = "\0" if len(names) > 1 else f"\0{dialect.delimiter}\0"  # a last row of another width
        ragged, ends = list[Any](), list[Any]()

        def note(row: Any) -> str:
            (ends if row.text == end else ragged).append(row)
            return "skip"

        with open_bytes(self.path, self.label) as stream:
            checked: _Utf8 | None = _Utf8(stream, dialect.encoding, self.label, end)
            held = weakref.ref(cast(_Utf8, checked))
            reader: Any = None
            try:
                reader = pa_csv.open_csv(
                    pa.PythonFile(_Blocks(cast(Any, checked)), mode="r"),
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
                    frame = dialect.as_standard(pl.DataFrame(pl.from_arrow(batch)))
                    if len(frame) and any("\0" in cell for cell in frame.row(-1)):
                        break  # the end mark, within a quotation
                    last = [name for name in columns if self.ending and name == names[-1]]
                    yield frame.with_columns(cs.by_name(*last).str.strip_suffix(self.ending))
            except pa.ArrowInvalid as fault:
                self._refuse(ragged)
                raise BadInputError(f"{self.label}: not readable as csv ({fault})") from None
            finally:
                reader = checked = None
                _wait_until_gone(held)
            self._refuse(ragged)
            if not ends:
                raise BadInputError(f"{self.label}: a quotation mark is not closed; mend its row")

    def _refuse(self, ragged: Sequence[Any]) -> None:
        for row in ragged:
            raise BadInputError(
                f"{self.label}: row {row.number - (self.header is None)} has {row.actual_columns} "
                f"values, but {row.expected_columns} columns are expected; mend the row (a "
                "separator within a value needs quotes, and these need their ends)"
            )


def _wait_until_gone(held: weakref.ref[_Utf8]) -> None:
    """Wait until no thread of Arrow holds a stream: letting go while the program ends aborts it."""
    for _ in range(_LONGEST_WAIT):
        if held() is None:
            return
        time.sleep(0.001)


class _Blocks(io.BufferedReader):
    """Full blocks that do not end between CR and LF, where Arrow would drop the LF in a cell."""

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size and size - (size > 1))
        while found.endswith(b"\r") and (more := super().read(1)):
            found += more
        return found


class _Utf8(io.RawIOBase):
    """Text as checked UTF-8: PyArrow would not see faults in a row or column that it leaves out."""

    def __init__(self, stream: BinaryIO, encoding: str, label: str, end: str = "") -> None:
        self._stream, self._encoding, self._label = stream, encoding, label
        self._end = end.encode() + b"\n"
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._lines, self._last, self._block = 1, b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # any buffer will do
        while not self._block:
            with reading_errors(self._label):
                block = self._stream.read(len(buffer))
            text = self._as_utf8(block)
            if not block:
                text += (b"" if self._last == b"\n" else b"\n") + self._end
                self._end = b""
            self._block, self._last = memoryview(text), text[-1:] or self._last
            if not block:
                break
        given = self._block[: len(buffer)]
        buffer[: len(given)] = given
        self._block = self._block[len(given) :]
        return len(given)

    def _as_utf8(self, block: bytes) -> bytes:
        """Return the next bytes of the stream as UTF-8; check them."""
        try:
            if b"\0" in (text := self._decoder.decode(block, final=not block).encode()):
                raise UnicodeError("it has a NUL byte")
        except UnicodeError as fault:
            before = block[: getattr(fault, "start", 0)]
            raise BadInputError(
                f"{self._label}: not {self._encoding} text at line "
                f"{self._lines + before.count(10)} ({fault}); name the file's encoding, such as "
                "--csv encoding=latin-1, windows-1252 or utf-16, or its format as FORMAT:PATH"
            ) from None
        self._lines += block.count(10)
        return text


def open_kdd99(path: FilePath, label: str) -> CsvSource:
    """Return the source for the authors' file; its schema is the built-in ``kdd99``."""
    header = (*load_schema("kdd99").column_names, "attack")
    return CsvSource(path, label, "kdd99", header, ".", dialect=Dialect(spaces="trim"))

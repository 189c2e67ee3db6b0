"""``csv``: comma-separated text with a header, in UTF-8, quoted as in RFC 4180."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from dualquery.data.opening import FilePath, line_chunks, open_bytes, reading_errors
from dualquery.data.readers.python_objects import check_names, check_width
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

BLOCK_BYTES = 1 << 22

_SLACK = 1 << 16
"""Bytes that a reader of lines may take in advance."""

_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs"}


class Translate(Protocol):
    """Rewrites the text of a dialect as standard CSV."""

    def __call__(self, stream: BinaryIO) -> BinaryIO:
        """Return a stream of plain comma-separated text."""
        ...


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
    translate
        Rewrites the text of a dialect as standard CSV; None for none.
    block_bytes
        How much text is held at a time; also the longest possible row.
    """

    path: FilePath
    label: str
    implied_schema: str | None = None
    header: tuple[str, ...] | None = None
    translate: Translate | None = None
    block_bytes: int = BLOCK_BYTES

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        if self.header is not None:
            return self.header
        with open_bytes(self.path, self.label) as stream:
            try:
                checked = cast(BinaryIO, _Checked(stream, self.label, self.block_bytes))
                text = io.TextIOWrapper(checked, "utf-8-sig", newline="")
                names = next(csv.reader(text), [])
            except UnicodeDecodeError:
                raise self._not_utf8() from None
            except csv.Error as fault:
                raise BadInputError(f"{self.label}: unreadable header ({fault})") from None
        if not names:
            raise BadInputError(f"{self.label}: the first line is empty; a header is expected")
        check_width(len(names), self.label)
        if len(names) == 1:
            self._check_separator(names[0])
        check_names(names, self.label)
        return tuple(names)

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        import polars as pl
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        ragged = _RaggedRows()
        names = list(self._names)
        with open_bytes(self.path, self.label) as stream:
            content = self.translate(stream) if self.translate else stream
            try:
                reader = pa_csv.open_csv(
                    pa.PythonFile(_Checked(content, self.label), mode="r"),
                    read_options=pa_csv.ReadOptions(
                        use_threads=False,
                        block_size=self.block_bytes,
                        column_names=None if self.header is None else names,
                    ),
                    parse_options=pa_csv.ParseOptions(
                        newlines_in_values=True,
                        # A blank line is a row only where a row may be one empty cell.
                        ignore_empty_lines=len(names) > 1,
                        invalid_row_handler=ragged,
                    ),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=list(columns),
                        strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    self._check(ragged)
                    yield pl.DataFrame(pl.from_arrow(batch))
            except pa.ArrowInvalid as fault:
                self._check(ragged)
                if "cannot infer number of columns" in str(fault):
                    return  # only a header, and no line feed after it
                if "invalid UTF8" in str(fault):
                    raise self._not_utf8() from None
                raise BadInputError(f"{self.label}: not readable as csv ({fault})") from None
            self._check(ragged)

    def _check(self, ragged: _RaggedRows) -> None:
        if ragged.first is not None:
            number, expected, found = ragged.first
            row = number - (self.header is None)
            raise BadInputError(
                f"{self.label}: row {row} has {found} values, but {expected} columns are expected; "
                "mend the row (a comma within a value needs quotes)"
            )

    def _check_separator(self, header: str) -> None:
        """Refuse a file that has one column only because its separator is not the comma.

        Quoted cells may hold anything, so header and first row must both split into several, and
        into as many.
        """
        for separator, name in _OTHER_SEPARATORS.items():
            if separator not in header:
                continue
            columns = values = 0
            with open_bytes(self.path, self.label) as stream, contextlib.suppress(csv.Error):
                checked = cast(BinaryIO, _Checked(stream, self.label, self.block_bytes))
                text = io.TextIOWrapper(checked, "utf-8-sig", errors="replace", newline="")
                rows = csv.reader(text, delimiter=separator)
                columns, values = len(next(rows, [])), len(next(rows, []))
            if columns == values > 1:
                raise BadInputError(
                    f"{self.label}: the file seems to be separated by {name}, not by commas "
                    f"(with {columns} columns); save it as comma-separated text, with "
                    "points in decimal numbers"
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
        return BadInputError(f"{self.label}: not UTF-8 text{where}; convert the file to UTF-8")


@dataclass
class _RaggedRows:
    """Remembers the first row of the wrong length; pyarrow calls it for each."""

    first: tuple[int, int, int] | None = field(default=None, init=False)

    def __call__(self, row: Any) -> str:
        if self.first is None:
            self.first = (row.number, row.expected_columns, row.actual_columns)
        return "skip"


class _Checked(io.BufferedIOBase):
    """A stream that refuses NUL bytes, which no text has, and keeps faults of reading clear.

    With ``longest`` it refuses to give more than about that many bytes: of a header and the first
    row, which are read as lines of any length.
    """

    def __init__(self, stream: BinaryIO, label: str, longest: int | None = None) -> None:
        self._stream = stream
        self._label = label
        self._left = sys.maxsize if longest is None else longest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        with reading_errors(self._label):
            block = self._stream.read(-1 if size is None else size)
        if b"\0" in block:
            raise BadInputError(
                f"{self._label}: a NUL byte, so this is not UTF-8 text; convert the file, or "
                "name its format as FORMAT:PATH"
            )
        self._left -= len(block)
        if block and self._left < -_SLACK:
            raise BadInputError(
                f"{self._label}: a row has more bytes than the {BLOCK_BYTES:,} that are read at a "
                "time; is a quotation mark not closed?"
            )
        return block

    read1 = read

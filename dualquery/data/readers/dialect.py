"""How separated text may be written: the sign between cells, the encoding, decimals, spaces."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualquery.runtime.errors import BadInputError, suggest

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""What a file may be separated by, and what messages call it."""

_KEYS = ("delimiter", "encoding", "decimal", "spaces")
_PAIR = re.compile(rf"({'|'.join(_KEYS)})=(,|[^,]+)(?:,|$)")
_NAMES = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}

_WITH_COMMA = r"^\s*[-+]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+\s*$"
_THOUSANDS = r"^\s*[-+]?\d{1,3}(?:\.\d{3})+\s*$"
_WITH_POINT = r"^([-+]?\d+)\.(\d+)$"


@dataclass(frozen=True)
class Dialect:
    """What is not as in standard CSV.

    Parameters
    ----------
    delimiter
        The sign between two cells; None for the comma, or what the header shows.
    encoding
        A name that Python knows.
    decimal
        The sign before decimals: ``"."``, or ``","``, where a point then separates thousands. Cells
        that are separated by commas, too, are in quotation marks.
    spaces
        What becomes of spaces around a cell: ``"keep"`` or ``"trim"``.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    spaces: str = "keep"

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n\0' or ord(self.delimiter) > 127
        ):
            raise BadInputError(
                f"csv: delimiter is {self.delimiter!r}; one sign is expected, such as ; or tab"
            )
        if self.decimal not in (".", ","):
            raise BadInputError(f"csv: decimal is {self.decimal!r}; it must be . or ,")
        if self.spaces not in ("keep", "trim"):
            raise BadInputError(f"csv: spaces is {self.spaces!r}; it must be keep or trim")
        try:
            known = codecs.lookup(self.encoding)
        except (LookupError, ValueError):  # the latter for a name that none can have
            close = suggest(self.encoding, ["utf-8", "latin-1", "windows-1252", "utf-16"])
            raise BadInputError(f"csv: there is no encoding {self.encoding!r}; {close}") from None
        if not getattr(known, "_is_text_encoding", True):
            raise BadInputError(f"csv: {self.encoding!r} is no encoding of text")

    @staticmethod
    def parse(text: str) -> Dialect:
        """Read what ``--csv`` takes: ``delimiter=;,encoding=latin-1,decimal=,``."""
        found: dict[str, str] = {}
        place = 0
        while place < len(text):
            pair = _PAIR.match(text, place)
            if pair is None or pair[1] in found:
                raise BadInputError(
                    f"--csv {text!r}: {text[place:]!r} is not understood; write "
                    "delimiter=;,encoding=latin-1,decimal=, or some of these, each once"
                )
            found[pair[1]] = _NAMES.get(pair[2], pair[2]) if pair[1] == "delimiter" else pair[2]
            place = pair.end()
        return Dialect(**found)

    @property
    def words(self) -> str | None:
        """What `parse` reads as this dialect, but for spaces, which `write` leaves as they are.

        None for standard CSV, of commas and points in UTF-8.
        """
        said = {}
        if self.delimiter is not None and (self.delimiter, self.decimal) != (",", "."):
            said["delimiter"] = "tab" if self.delimiter == "\t" else self.delimiter
        if not self.is_utf8:
            said["encoding"] = self.encoding
        if self.decimal != ".":
            said["decimal"] = self.decimal
        return ",".join(f"{key}={value}" for key, value in said.items()) or None

    @property
    def is_utf8(self) -> bool:
        """Whether the file is UTF-8 text, with or without a mark in front."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")

    def as_standard(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return a table of texts as standard CSV would hold them.

        Numbers have points before decimals and nothing else; spaces are as the dialect says.
        """
        import polars as pl

        if self.spaces == "trim":
            frame = frame.select(pl.all().str.strip_chars())
        if self.decimal == ".":
            return frame
        return frame.select(
            pl.when(column.str.contains(_WITH_COMMA) | column.str.contains(_THOUSANDS))
            .then(column.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
            .otherwise(column)
            .alias(column.name)
            for column in frame.get_columns()
        )

    def write(self, frame: pl.DataFrame, *, header: bool) -> bytes:
        """Return a table as separated text that is read back by `as_standard`; spaces stay."""
        import polars.selectors as cs

        comma = self.decimal == ","
        if comma:
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


STANDARD = Dialect()
"""The separator that the header shows, UTF-8, points before decimals."""

"""Several CSV files with the same header as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dualquery.data.readers.csv import CsvSource
from dualquery.data.readers.dialect import Dialect
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class CsvFiles:
    """A table in several CSV files, its rows in the order of the files' names."""

    parts: tuple[CsvSource, ...]
    label: str
    implied_schema: ClassVar[str | None] = None

    def columns(self) -> Sequence[str]:
        """Return the names of the columns.

        Raises
        ------
        BadInputError
            If two files have other headers.
        """
        first, *others = self.parts
        for part in others:
            if part.columns() != first.columns():
                raise BadInputError(
                    f"{part.label}: its header is not that of {first.label}; the files of one "
                    "table must have the same columns, in the same order"
                )
        return first.columns()

    @property
    def written_as(self) -> str | None:
        """How the first file is written (see `CsvSource.written_as`)."""
        return self.parts[0].written_as

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block, all String."""
        return chain.from_iterable(part.frames(columns) for part in self.parts)


def open_csv_files(paths: Sequence[Path], label: str, dialect: Dialect) -> CsvFiles:
    """Return the source for several CSV files, at least one, that are written alike."""
    return CsvFiles(tuple(CsvSource(path, str(path), dialect=dialect) for path in paths), label)

"""Several files as one table: those of a folder, or those that a pattern matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.data.readers.csv import CsvSource
from dualquery.data.readers.dialect import STANDARD, Dialect
from dualquery.data.readers.parquet import ParquetSource, open_parquet
from dualquery.data.readers.python_objects import ListItems
from dualquery.data.readers.source import Source, TableSource
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

ENDINGS = {"parquet": (".parquet",), "csv": (".csv", ".csv.gz"), "tsv": (".tsv", ".tab", ".tsv.gz")}
"""Formats whose files may together be one table, and how their names end."""


@dataclass(frozen=True)
class PartitionedTable(TableSource):
    """A table in several files, its rows in the order of the files' names."""

    label: str
    parts: tuple[ParquetSource, ...] | tuple[CsvSource, ...] = ()

    def columns(self) -> Sequence[str]:
        """Return the names of the columns; refuse files with other columns."""
        first, *others = self.parts
        for part in others:
            if (*part.columns(),) != (*first.columns(),) or part.types != first.types:
                raise BadInputError(
                    f"{part.label}: its columns or their types are not those of {first.label}; the "
                    "files of one table must have the same columns, in the same order"
                )
        return first.columns()

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the columns, where the format has some."""
        return self.parts[0].types

    @property
    def written_as(self) -> str | None:
        """How the first file is written."""
        return self.parts[0].written_as

    def row_count(self) -> int | None:
        """Return the number of rows, which parquet files state."""
        counts = [part.row_count() for part in self.parts]
        return None if None in counts else sum(filter(None, counts))

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        return chain.from_iterable(part.frames(columns) for part in self.parts)


def open_parts(form: str | None, path: str, text: str) -> Source | None:
    """Return the table in the files of a folder or a pattern; None for another path.

    ``form`` is the format that the user named: without it a folder is one of parquet files, and the
    ending of a pattern determines its format. ``text`` is what messages call the table. Paths are
    absolute: the workers of a cluster may run in other folders.
    """
    form, files = _files(form, path, text)
    if not files:
        return None
    if form != "parquet":
        dialect = Dialect("\t") if form == "tsv" else STANDARD
        parts = (CsvSource(file.absolute(), str(file), dialect=dialect) for file in files)
        return PartitionedTable(text, tuple(parts))
    found = [open_parquet(file.absolute(), str(file)) for file in files]
    of_lists = {isinstance(part, ListItems) for part in found}
    if len(of_lists) == 2:
        raise BadInputError(f"{text}: some files hold lists of items, and others do not")
    tables = (part.table if isinstance(part, ListItems) else part for part in found)
    table = PartitionedTable(
        text, tuple(part for part in tables if isinstance(part, ParquetSource))
    )
    if of_lists == {True}:
        return ListItems(table)
    table.columns()  # checks them
    return table


def _files(form: str | None, path: str, text: str) -> tuple[str, list[Path]]:
    folder = Path(path)
    if folder.is_dir():
        named, form = form is not None, form or "parquet"
        if form not in ENDINGS:
            return form, []
        found = [part for part in folder.iterdir() if part.name.lower().endswith(ENDINGS[form])]
        parts = sorted(part for part in found if part.is_file())
        if named and not parts:
            raise BadInputError(
                f"{text}: no file in the folder ends in {' or '.join(ENDINGS[form])}"
            )
        return form, parts
    meant = [each for each, ends in ENDINGS.items() if path.endswith(ends) and form in (each, None)]
    if not meant or folder.exists() or not set("*?[") & set(path):
        return form or "parquet", []
    top, pattern = Path(folder.anchor), str(folder.relative_to(folder.anchor))
    return meant[0], sorted(part for part in top.glob(pattern) if part.is_file())

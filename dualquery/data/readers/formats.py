"""``NAME | FORMAT:PATH | PATH``: what the data argument of the command line means.

A name is a built-in data set or a generator, which takes numbers after a colon instead of a path.
"""

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from dualquery.data.builtin import DATASETS, dataset_path
from dualquery.data.opening import FilePath
from dualquery.data.readers.arrow import open_arrow, open_duckdb, open_parquet
from dualquery.data.readers.csv import CsvSource, Dialect, open_kdd99
from dualquery.data.readers.excel import open_excel
from dualquery.data.readers.item_text import BitstringSource, FimiSource, MatrixSource
from dualquery.data.readers.netflix import NetflixSource
from dualquery.data.readers.npz import open_npz
from dualquery.data.readers.python_objects import ArraySource, frame_of_pandas, frame_source
from dualquery.data.readers.source import ItemSource, ListItems, Source, TableSource
from dualquery.runtime.errors import BadInputError, suggest


@dataclass(frozen=True)
class Format:
    """A format of data files.

    Files whose names end in ``extensions``, each also with ``.gz``, are of it. ``open`` returns the
    source for a path, given what messages are to call it, and with ``parts`` for what follows the
    question mark of ``FORMAT:FILE?PART``. The path may be a folder (``folders``).
    """

    extensions: tuple[str, ...]
    open: Callable[..., Source]
    folders: bool = False
    parts: bool = False


FORMATS: dict[str, Format] = {
    "csv": Format((".csv",), CsvSource),
    "tsv": Format((".tsv", ".tab"), partial(CsvSource, dialect=Dialect("\t"))),
    "parquet": Format((".parquet",), open_parquet),
    "arrow": Format((".arrow", ".feather"), open_arrow),
    "xlsx": Format((".xlsx",), open_excel, parts=True),
    "duckdb": Format((), open_duckdb, parts=True),
    "fimi": Format((".dat",), FimiSource),
    "matrix": Format((), MatrixSource),
    "bitstring": Format((), BitstringSource),
    "npz": Format((".npz",), open_npz),
    "kdd99": Format((), open_kdd99),
    "netflix": Format((), NetflixSource, folders=True),
}

_JOINED = ("parquet", "csv", "tsv")  # whose files in a folder, or of a pattern, may be one table

GENERATORS: dict[str, str] = {
    "biased": "dualquery.rows.generated.generated_source:open_biased",
    "netflix-like": "dualquery.rows.generated.generated_source:open_netflix_like",
}
"""Tables that are computed from parameters, and what opens them, by name: rows are made one floor
up. An opener takes the parameters and what messages call the table."""


@dataclass(frozen=True)
class PartitionedTable(TableSource):
    """A table in several files, its rows in the order of the files' names."""

    label: str
    parts: tuple[Any, ...] = ()

    def columns(self) -> Sequence[str]:
        """Return the names of the columns; refuse files with other columns."""
        first, *others = self.parts
        names = tuple(first.columns())
        types = getattr(first, "types", ())
        for part in others:
            if tuple(part.columns()) != names or getattr(part, "types", ()) != types:
                raise BadInputError(
                    f"{part.label}: its columns or their types are not those of {first.label}; the "
                    "files of one table must have the same columns, in the same order"
                )
        return names

    @cached_property
    def row_count(self) -> int | None:  # type: ignore[override]
        """Number of rows, which parquet files state."""
        counts = [part.row_count for part in self.parts]
        return None if None in counts else sum(counts)

    def frames(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of some columns block by block."""
        return chain.from_iterable(part.frames(columns) for part in self.parts)


def is_public(text: str) -> bool:
    """Return whether a text names data that are public: built in, or made up by a generator."""
    return text in DATASETS or text.partition(":")[0] in GENERATORS


def parse_source(text: str, dialect: Dialect | None = None) -> Source:
    """Return the source that a text names.

    That is a built-in data set, ``GENERATOR:NUMBERS`` such as ``biased:N,D,SEED``, ``FORMAT:PATH``,
    or a path whose ending tells the format. A folder of parquet files is one table, as is
    ``csv:FOLDER`` or a pattern such as ``data/*.csv``. ``dialect`` is how a file of the formats
    ``csv`` and ``tsv`` differs from the standard one. `BadInputError` if there is no such file, its
    format cannot be told, or a dialect is given of another.
    """
    return _in_dialect(_parsed(text), text, dialect)


def open_as(form: str, path: FilePath, label: str, dialect: Dialect | None = None) -> Source:
    """Return the source of a file of a format, whatever its name."""
    return _in_dialect(FORMATS[form].open(path, label), label, dialect)


def csv_of(source: Source) -> CsvSource | None:
    """Return the first file of CSV that may be written in several ways: its header is its own."""
    first = source.parts[0] if source.parts else source
    return first if isinstance(first, CsvSource) and first.header is None else None


def _in_dialect(source: Any, text: str, dialect: Dialect | None) -> Source:
    if dialect is not None:
        if (first := csv_of(source)) is None:
            raise BadInputError(f"{text}: --csv is about csv and tsv files, and this is none")
        dialect = replace(dialect, delimiter=dialect.delimiter or first.dialect.delimiter)
        parts = tuple(replace(part, dialect=dialect) for part in source.parts)
        source = replace(source, parts=parts) if parts else replace(source, dialect=dialect)
    return cast(Source, source)


def _parsed(text: str) -> Any:
    if text in DATASETS:
        built_in: Any = open_parquet(dataset_path(text), text)
        return replace(built_in, implied_schema=DATASETS[text])
    prefix, colon, rest = text.partition(":")
    if prefix in GENERATORS:
        module, _, opener = GENERATORS[prefix].partition(":")
        return getattr(import_module(module), opener)(rest, text)
    named = prefix if colon and prefix in FORMATS else None
    if not (path := rest if named else text):
        raise BadInputError(f"{text or 'the table'}: a path or a built-in name is expected")
    try:
        found = _located(named, path, text)
    except OSError as fault:
        raise BadInputError(f"{text}: {fault.strerror}") from None
    return found()


def _located(form: str | None, path: str, text: str) -> Callable[[], Source]:
    """Return what opens the files of a path; ``form`` is the format that the user named."""
    place = Path(path)
    whole = FORMATS[form] if form else None
    if whole and whole.parts:
        for mark in (at for at, sign in enumerate(path) if sign == "?"):
            if (file := Path(path[:mark])).is_file():
                return partial(whole.open, file, text, path[mark + 1 :])
    folder = place.is_dir()
    kind = form or ("parquet" if folder else _form_of(path))
    if kind in _JOINED and (folder or (set("*?[") & set(path) and not place.exists())):
        within = f"{glob.escape(path)}/[!._]*"
        if files := _named_by(within if folder else path, kind):
            if folder and (deeper := _named_by(f"{within}/**", kind)):
                raise BadInputError(
                    f"{text}: {deeper[0]} is in a subfolder, where no file is read; move it away, "
                    f"or name all files by a pattern: {place}/**/*{deeper[0].suffix}"
                )
            return partial(_joined, kind, files, text)
    if folder and not (whole and whole.folders):
        raise BadInputError(
            f"{text}: a folder, not a file, and no file in it is read (parquet:FOLDER, csv:FOLDER "
            "and tsv:FOLDER read those of that ending)"
        )
    if not folder and not place.is_file():
        raise BadInputError(f"{text}: there is no such file{'' if form else _meant(text)}")
    if kind is None:
        raise BadInputError(
            f"{text}: the format cannot be told from the name; write FORMAT:{text} with one of "
            f"{', '.join(FORMATS)}; text with a header is csv, rows of item ids are fimi; unpack "
            "other archives than gzip, and write tables of other programs as Parquet or CSV"
        )
    return partial(FORMATS[kind].open, place, text)


def _named_by(pattern: str, form: str) -> list[Path]:
    """Return the files of a format that a pattern names; a star is for no hidden file."""
    found = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207  # hides what is hidden
    return sorted(each for each in found if _form_of(each.name) == form and each.is_file())


def _form_of(name: str) -> str | None:
    """Return the format that the ending of a name tells."""
    ending = name.lower().removesuffix(".gz")
    fitting = (form for form, known in FORMATS.items() if ending.endswith(known.extensions))
    return next(fitting, None)


def _joined(form: str, files: Sequence[Path], text: str) -> Source:
    """Return several files as one table. The workers of a cluster may run in other folders."""
    if files[0].parent != files[-1].parent and "=" in (folder := files[0].parent.name):
        raise BadInputError(
            f"{text}: the folder {folder} has the value of a column in its name, which would be "
            "lost; write it into the files"
        )
    found = [FORMATS[form].open(file.absolute(), str(file)) for file in files]
    tables = tuple(part.table if isinstance(part, ListItems) else part for part in found)
    if len(of_lists := {isinstance(part, ListItems) for part in found}) == 2:
        raise BadInputError(f"{text}: some files hold lists of items, and others do not")
    table = PartitionedTable(text, tables)
    if of_lists == {True}:
        return ListItems(table)
    if form == "parquet":
        table.columns()  # checks them
    return table


def source_of(data: Any) -> Source:
    """Return data as a source.

    They are a text as for `parse_source`, a path, a NumPy matrix or SciPy sparse matrix of 0s and
    1s, a Polars, pandas or Arrow table, or a source. `BadInputError` for what no reader expects.
    """
    if isinstance(data, str | Path):
        return parse_source(str(data))
    if isinstance(data, np.ndarray):
        return ArraySource(data)
    if isinstance(data, TableSource | ItemSource):
        return data
    # Libraries need not be imported for those who do not use them.
    kind = type(data).__name__
    match type(data).__module__.partition(".")[0], kind:
        case "scipy", _ if hasattr(data, "tocsr"):
            return ArraySource(data, "sparse matrix")
        case ("polars", "DataFrame" | "LazyFrame") | ("pyarrow", "Table"):
            return frame_source(data, "table")
        case "pandas", "DataFrame":
            return frame_of_pandas(data, "table")
    raise BadInputError(
        f"data of type {kind} cannot be read: a path, a NumPy or SciPy matrix of 0s and 1s, or a "
        "Polars, pandas or Arrow table is expected"
    )


def _meant(text: str) -> str:
    """Return what else a text that is no file may have meant, to follow a message."""
    prefix, colon, _ = text.partition(":")
    if colon and re.fullmatch(r"[\w-]{2,}", prefix):  # one letter is a drive
        return f", and {prefix!r} is no format; {suggest(prefix, [*FORMATS, *GENERATORS])}"
    known = f"the built-in data sets are {', '.join(DATASETS)}"
    return f"; {suggest(text, [*DATASETS, *GENERATORS], known)}"

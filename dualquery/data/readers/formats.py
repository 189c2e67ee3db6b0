"""``NAME | FORMAT:PATH | PATH``: what the data argument of the command line means.

A name is a built-in data set or a generator, which takes numbers after a colon instead of a path.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dualquery.data.builtin import DATASETS, dataset_path
from dualquery.data.opening import FilePath
from dualquery.data.readers.batches import open_arrow, open_duckdb
from dualquery.data.readers.csv import CsvSource, open_kdd99, open_tsv
from dualquery.data.readers.dialect import Dialect
from dualquery.data.readers.excel import open_excel
from dualquery.data.readers.item_text import BitstringSource, FimiSource, MatrixSource
from dualquery.data.readers.netflix import NetflixSource
from dualquery.data.readers.npz import NpzSource
from dualquery.data.readers.parquet import open_parquet
from dualquery.data.readers.parts import open_parts
from dualquery.data.readers.python_objects import (
    DenseSource,
    SparseSource,
    frame_of_pandas,
    frame_of_table,
    frame_source,
)
from dualquery.data.readers.source import ItemSource, Source, TableSource
from dualquery.runtime.errors import BadInputError, suggest


@dataclass(frozen=True)
class Format:
    """A format of data files.

    Files whose names end in ``extensions``, each also with ``.gz``, are of it. ``open`` returns the
    source for a path, given what messages are to call it, and with ``parts`` for what follows the
    question mark of ``FORMAT:FILE?PART``. The path may be a folder (``folders``).
    """

    description: str
    extensions: tuple[str, ...]
    open: Callable[..., Source]
    folders: bool = False
    parts: bool = False


FORMATS: dict[str, Format] = {
    "csv": Format("comma-separated text with a header", (".csv",), CsvSource),
    "tsv": Format("the same, separated by tabs", (".tsv", ".tab"), open_tsv),
    "parquet": Format("a table, or one list of item ids a row", (".parquet",), open_parquet),
    "arrow": Format("Arrow's IPC format, file or stream", (".arrow", ".feather"), open_arrow),
    "xlsx": Format(
        "the first sheet of an Excel workbook, or FILE?SHEET (extra excel)",
        (".xlsx",),
        open_excel,
        parts=True,
    ),
    "duckdb": Format("FILE?SELECT ...: a query (extra duckdb)", (), open_duckdb, parts=True),
    "fimi": Format("item ids separated by spaces, one row a line", (".dat",), FimiSource),
    "matrix": Format("rows of 0 and 1, comma or space, no header", (), MatrixSource),
    "bitstring": Format("bits, a tab and a count a line", (), BitstringSource),
    "npz": Format("a SciPy sparse matrix", (".npz",), NpzSource),
    "kdd99": Format("KDD Cup 99 as the DualQuery authors prepared it", (), open_kdd99),
    "netflix": Format("the folder of the Netflix Prize files", (), NetflixSource, folders=True),
}

GENERATORS: dict[str, str] = {
    "biased": "dualquery.rows.generated.source:open_biased",
    "netflix-like": "dualquery.rows.generated.source:open_netflix_like",
}
"""Tables that are computed from parameters, and what opens them, by name: rows are made one floor
up. An opener takes the parameters and what messages call the table."""


def is_public(text: str) -> bool:
    """Return whether a text names data that are public: built in, or made up by a generator."""
    return text in DATASETS or text.partition(":")[0] in GENERATORS


def parse_source(text: str, dialect: Dialect | None = None) -> Source:
    """Return the source that a text names.

    Parameters
    ----------
    text
        Name of a built-in data set, ``GENERATOR:NUMBERS`` (``biased:N,D,SEED``,
        ``netflix-like:N,D,SEED``), ``FORMAT:PATH``, or a path whose ending tells the format. A
        prefix that is none of these is part of the path. A folder of parquet files is one table,
        as is ``csv:FOLDER`` or a pattern such as ``data/*.csv``.
    dialect
        How a file of the formats ``csv`` and ``tsv`` differs from the standard one.

    Raises
    ------
    BadInputError
        If there is no such file, or its format cannot be told; if a dialect is given of another
        format.
    """
    source: Source = _in_dialect(_parsed(text), text, dialect)
    return source


def open_as(form: str, path: FilePath, label: str, dialect: Dialect | None = None) -> Source:
    """Return the source of a file of a format, whatever its name."""
    source: Source = _in_dialect(FORMATS[form].open(path, label), label, dialect)
    return source


def is_csv(source: Source) -> bool:
    """Return whether a source is CSV that may be written in several ways: its header is its own."""
    first = source.parts[0] if source.parts else source
    return isinstance(first, CsvSource) and first.header is None


def _in_dialect(source: Any, text: str, dialect: Dialect | None) -> Any:
    if dialect is None:
        return source
    if not is_csv(source):
        raise BadInputError(f"{text}: --csv says how a csv or tsv file is written; this is none")
    if source.parts:
        return replace(source, parts=tuple(replace(part, dialect=dialect) for part in source.parts))
    return replace(source, dialect=dialect)


def _parsed(text: str) -> Source:
    if text in DATASETS:
        built_in: Any = open_parquet(dataset_path(text), text)
        table: Source = replace(built_in, implied_schema=DATASETS[text])
        return table
    prefix, colon, rest = text.partition(":")
    if prefix in GENERATORS:
        module, _, opener = GENERATORS[prefix].partition(":")
        made: Source = getattr(import_module(module), opener)(rest, text)
        return made
    if not text:
        raise BadInputError("the table's name is empty; give a path or a built-in name")
    named = prefix if colon and prefix in FORMATS else None
    if named and not rest:
        raise BadInputError(f"{text}: a path is expected after the colon")
    if named and FORMATS[named].parts:
        file, part = _file_and_part(rest, text)
        if part is not None:
            return FORMATS[named].open(file, text, part)
    with _name_errors(text):
        parts = open_parts(named, rest if named else text, text)
    if parts is not None:
        return parts
    if named:
        return FORMATS[named].open(_existing(rest, text, FORMATS[named].folders), text)
    path = _existing(text, text)
    ending = path.name.lower().removesuffix(".gz")
    for known in FORMATS.values():
        if ending.endswith(known.extensions):
            return known.open(path, text)
    raise BadInputError(
        f"{text}: the format cannot be told from the name; write FORMAT:{text} with one of "
        f"{', '.join(FORMATS)}; text with a header is csv, rows of item ids are fimi; unpack other "
        "archives than gzip, and write tables of other programs as Parquet or CSV"
    )


def source_of(data: Any) -> Source:
    """Return data as a source.

    Parameters
    ----------
    data
        A text as for `parse_source`, a path, a NumPy matrix or SciPy sparse matrix of 0s and 1s,
        a Polars, pandas or Arrow table, or a source.

    Raises
    ------
    BadInputError
        If the data are of another type, or not as their reader expects.
    """
    if isinstance(data, str | Path):
        return parse_source(str(data))
    if isinstance(data, np.ndarray):
        return DenseSource(data)
    if isinstance(data, TableSource | ItemSource):
        return data
    # Libraries need not be imported for those who do not use them.
    kind = type(data).__name__
    match type(data).__module__.partition(".")[0], kind:
        case "scipy", _ if hasattr(data, "tocsr"):
            return SparseSource(data)
        case "polars", "DataFrame":
            return frame_source(data, "table")
        case ("polars", "LazyFrame") | ("pyarrow", "Table"):
            return frame_of_table(data, "table")
        case "pandas", "DataFrame":
            return frame_of_pandas(data, "table")
    raise BadInputError(
        f"data of type {kind} cannot be read: a path, a NumPy or SciPy matrix of 0s and 1s, or a "
        "Polars, pandas or Arrow table is expected"
    )


@contextlib.contextmanager
def _name_errors(text: str) -> Iterator[None]:
    """Turn what the system says of a name or a pattern into `BadInputError`."""
    try:
        yield
    except BadInputError:
        raise
    except OSError as fault:
        raise BadInputError(f"{text}: {fault.strerror}") from None
    except (ValueError, NotImplementedError) as fault:
        raise BadInputError(f"{text}: no name or pattern of files ({fault})") from None


def _file_and_part(path: str, text: str) -> tuple[Path, str | None]:
    """Return a file and what follows its question mark; its name may have such marks, too."""
    marks = [at for at, sign in enumerate(path) if sign == "?"]
    with _name_errors(text):
        end = next((at for at in marks if Path(path[:at]).is_file()), None)
    with contextlib.suppress(OSError, ValueError):  # a query is longer than names are
        if Path(path).exists():
            end = None
    return (Path(path), None) if end is None else (Path(path[:end]), path[end + 1 :])


def _existing(path: str, text: str, folders: bool = False) -> Path:
    found = Path(path)
    with _name_errors(text):
        if found.is_file() or (folders and found.is_dir()):
            return found
        if found.is_dir():
            raise BadInputError(
                f"{text}: a folder, not a file (of parquet files a folder is one table; of CSV "
                "files csv:FOLDER is)"
            )
    raise BadInputError(f"{text}: there is no such file{_meant(text) if path == text else ''}")


def _meant(text: str) -> str:
    """Return what else a text that is no file may have meant, to follow a message."""
    prefix, colon, _ = text.partition(":")
    if colon and re.fullmatch(r"[\w-]{2,}", prefix):  # one letter is a drive
        return f", and {prefix!r} is no format; {suggest(prefix, [*FORMATS, *GENERATORS])}"
    known = f"the built-in data sets are {', '.join(DATASETS)}"
    return f"; {suggest(text, [*DATASETS, *GENERATORS], known)}"

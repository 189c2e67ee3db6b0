"""A user's list of queries, read from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dualquery.data.opening import open_bytes, read_whole
from dualquery.data.readers.csv import CsvSource
from dualquery.data.readers.parquet import open_parquet
from dualquery.data.readers.source import TableSource
from dualquery.queries.conjunctions import Workload
from dualquery.queries.text import parse_queries
from dualquery.rows.repeats import first_occurrences
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema


LARGEST = 1 << 28
MOST_LINES = 1 << 24
"""Bytes and lines of a list of queries: five million of them. Reading takes about five times the
bytes, and forty more a line."""


def read_queries(path: str | Path, schema: Schema) -> Workload:
    """Read a list of queries (written as `dualquery.queries.text` says).

    Parameters
    ----------
    path
        A ``.csv`` or ``.parquet`` file with a column ``query``; any other file is UTF-8 text, one
        query a line, where blank lines and lines that begin with ``#`` are skipped. Each may be
        gzipped and then ends in ``.gz`` too.
    schema
        Knows the columns and their values.

    Raises
    ------
    BadInputError
        When the file cannot be read, holds no query, or holds one that is wrong or repeated; the
        message names the file and the line or row.
    """
    texts, place = read_texts(Path(path))
    return workload_of_texts(texts, schema, Path(path).name, place)


def read_texts(path: Path) -> tuple[pl.Series, Callable[[int], str]]:
    """Return the texts of a list of queries or questions, and how messages call entry ``i``.

    Raises
    ------
    BadInputError
        When the file cannot be read, or holds no text.
    """
    suffix = Path(path.stem if path.suffix == ".gz" else path.name).suffix
    if suffix in (".csv", ".parquet"):
        unit = "row"
        texts = _column(path, suffix)
        numbers = np.arange(1, len(texts) + 1)
    else:
        unit = "line"
        lines = _lines(path)
        kept = (lines != "") & ~lines.str.starts_with("#")
        texts = lines.filter(kept)
        numbers = np.flatnonzero(kept.to_numpy()) + 1
    if texts.is_empty():
        raise BadInputError(
            f"{path}: there is no query in it; write one a line, such as age=30-35 & sex=Male"
        )
    return texts.fill_null(""), lambda i: f"{path}, {unit} {numbers[i]}"


def workload_of_texts(
    texts: Sequence[str] | pl.Series, schema: Schema, source: str, place: Callable[[int], str]
) -> Workload:
    """Return the workload of a list of queries, whose entry ``i`` messages call ``place(i)``.

    Raises
    ------
    BadInputError
        As `parse_query`; also when a query is repeated.
    """
    literals = parse_queries(texts, schema, place)
    first = first_occurrences(literals, 2 * schema.domain.bits)
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if len(repeated):
        again = int(repeated[0])
        raise BadInputError(
            f"{place(again)}: {texts[again]!r} is the same query as {place(int(first[again]))}; "
            "leave one of them out"
        )
    return Workload(literals, schema.domain, {"kind": "list", "source": source})


def _lines(path: Path) -> pl.Series:
    with open_bytes(path, str(path)) as stream:
        content = read_whole(stream, str(path), LARGEST)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInputError(
            f"{path}, line {line}: not UTF-8 text; save the list as UTF-8"
        ) from None
    if text.count("\n") > MOST_LINES:
        raise BadInputError(f"{path}: more than {MOST_LINES:,} lines, the most that are read")
    # Not splitlines, which also cuts at characters that a value may contain.
    return pl.Series("query", text.split("\n"), dtype=pl.String).str.strip_chars()


def _column(path: Path, suffix: str) -> pl.Series:
    source = (CsvSource if suffix == ".csv" else open_parquet)(path, str(path))
    names = source.columns() if isinstance(source, TableSource) else ()
    if not isinstance(source, TableSource) or "query" not in names:
        raise BadInputError(f"{path}: no column 'query' among {', '.join(names)}")
    frames = [frame["query"] for frame in source.frames(["query"])]
    texts = pl.concat(frames) if frames else pl.Series("query", [], dtype=pl.String)
    if texts.dtype != pl.String:
        raise BadInputError(f"{path}: the column 'query' holds {texts.dtype}, not texts")
    return texts

"""A user's list of queries, read from a file."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.opening import open_bytes, read_whole
from dualquery.data.readers.arrow import open_parquet
from dualquery.data.readers.csv import CsvSource
from dualquery.data.readers.source import TableSource
from dualquery.data.schema.any_schema import Schema
from dualquery.queries.conjunctions import Workload
from dualquery.queries.literals import are_apart, read_plain, refuse_contradictions
from dualquery.questions.compiler import Compiled, CompiledQuestion, ask
from dualquery.questions.plain_parser import read_question
from dualquery.questions.syntax_tree import SHARE, literals_of
from dualquery.rows.repeats import first_occurrences, pad_right, side_by_side
from dualquery.runtime.errors import BadInputError, suggest

MOST_PARTS = 5_000_000  # conjunctions that the questions of a list are made from, repeats counted

LARGEST, MOST_LINES = 1 << 28, 1 << 24
"""Bytes and lines of a list of queries: five million of them. Reading takes about five times the
bytes, and forty more a line."""


def read_queries(path: str | Path, schema: Schema) -> Workload:
    """Read a list of queries (written as `dualquery.questions.parser` says).

    A ``.csv`` or ``.parquet`` file has a column ``query``; any other file is UTF-8 text, one query
    a line, where blank lines and lines that begin with ``#`` are skipped. Each may be gzipped and
    then ends in ``.gz`` too. `BadInputError`, with the line or row, when the file cannot be read,
    holds no query, or holds one that is wrong or repeated.
    """
    texts, place = read_texts(path := Path(path))
    return workload_of_texts(texts, schema, path.name.encode(errors="replace").decode(), place)


def check_texts(queries: object, names: Sequence[str]) -> None:
    """Refuse a list, of a file or of texts, that is wrong whatever values the columns may have."""
    if not names or queries == "all" or not isinstance(queries, str | Path | list | tuple):
        return

    def literal(name: str, _: object = None) -> int:
        if name not in names:
            raise BadInputError(f"there is no column {name!r}; {suggest(name, names)}")
        return 0

    any_value: Any = SimpleNamespace(literal=literal)  # what is asked of a schema
    named: Any = queries, "query {}".format
    texts, place = read_texts(Path(queries)) if isinstance(queries, str | Path) else named
    lines = pl.Series("line", texts, dtype=pl.String)
    for row in (~lines.is_first_distinct()).arg_true().to_list():
        raise BadInputError(f"{place(row)}: {lines[row]!r} is repeated; leave one of them out")
    for row in np.flatnonzero(~read_plain(lines, any_value)[1]).tolist():
        try:
            asked = read_question(lines[row], any_value)
            both = *literals_of(asked.condition), *literals_of(asked.given)
            deque(map(literal, ({asked.column} - {""}).union(each.column for each in both)), 0)
        except BadInputError as error:
            raise BadInputError(f"{place(row)}: {error}") from None


def read_texts(path: Path) -> tuple[pl.Series, Callable[[int], str]]:
    """Return the texts of a list of queries or questions, and how messages call entry ``i``.

    `BadInputError` when the file cannot be read, or holds no text.
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

    A question that is no conjunction, or names a column twice, is asked by its *parts*:
    conjunctions whose sum, or ratio of sums, is its answer. So all that is proven of conjunctions
    holds, and ``dualquery answer`` puts the question together. The conjunctions of the list come
    first, in its order. If not all are, the description has all its ``questions``.

    `BadInputError` when a text is no question, a query is repeated, never true or always true, or
    there are more than `MOST_PARTS` parts.
    """
    lines = pl.Series("line", texts, dtype=pl.String)
    literals, plain = read_plain(lines, schema)
    asked: dict[int, Compiled] = {}
    for row in np.flatnonzero(~plain).tolist():
        try:
            asked[row] = ask(read_question(lines[row], schema), schema)
        except BadInputError as error:
            raise BadInputError(f"{place(row)}: {error}") from None
    same: dict[int, NDArray[np.int32]] = {
        row: one.conjunctions[0]
        for row, one in asked.items()
        if isinstance(one, CompiledQuestion) and one.conjunctions and one.question.measure == SHARE
    }
    if same:
        written = side_by_side(literals, *(each[None, :] for each in same.values()))
        literals = written[: len(lines)]
        literals[list(same)] = written[len(lines) :]
    refuse_contradictions(literals, lines, schema, place)
    # A conjunction that names a column twice is asked by its parts, as a set of values is.
    for row in np.flatnonzero(~are_apart(literals, schema.domain)).tolist():
        asked[row] = asked.get(row) or ask(read_question(lines[row], schema), schema)
        same.pop(row, None)
        literals[row] = -1
    questions = {row: each for row, each in asked.items() if row not in same}
    _refuse_repeats(literals, questions, lines, place, 2 * schema.domain.bits)
    kept = literals[(literals >= 0).any(axis=1)]
    description: dict[str, Any] = {"kind": "list", "source": source}
    if not questions:
        return Workload(kept, schema.domain, description)
    parts = _parts(questions, lines, place)
    joined = side_by_side(kept, parts) if len(kept) else parts
    first = first_occurrences(pad_right(joined), 2 * schema.domain.bits)
    description["questions"] = lines.to_list()
    return Workload(joined[first == np.arange(len(first))], schema.domain, description)


def _refuse_repeats(
    literals: NDArray[np.int32],
    questions: Mapping[int, Compiled],
    lines: pl.Series,
    place: Callable[[int], str],
    codes: int,
) -> None:
    """Raise `BadInputError` if two conjunctions, or two questions, are the same."""
    first = first_occurrences(literals, codes)
    seen: dict[str, int] = {}
    for row, each in questions.items():
        first[row] = seen.setdefault(each.text, row)
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if len(repeated):
        again = int(repeated[0])
        raise BadInputError(
            f"{place(again)}: {lines[again]!r} is the same query as {place(int(first[again]))}; "
            "leave one of them out"
        )


def _parts(
    questions: Mapping[int, Compiled], lines: pl.Series, place: Callable[[int], str]
) -> NDArray[np.int32]:
    """Return the conjunctions that questions are made of, repeats among them."""
    found: list[NDArray[np.int32]] = []
    total = 0
    for row, each in questions.items():
        try:
            # What lies beyond the edges of a column is in the conjunctions of the limits alone.
            forms = (form for bounds in each.bounds for form in bounds.distinct)
            conjunctions = [form.conjunctions()[0] for form in forms]
        except BadInputError as error:
            raise BadInputError(f"{place(row)}: {error}") from None
        total += sum(map(len, conjunctions))
        if not any(map(len, conjunctions)):
            raise BadInputError(
                f"{place(row)}: {lines[row]!r} has the same answer for every table; leave it out"
            )
        if total > MOST_PARTS:
            raise BadInputError(
                f"{place(row)}: the questions so far are sums of {total:,} conjunctions; at most "
                f"{MOST_PARTS:,} are released: ask about fewer columns or values"
            )
        found += [rows for rows in conjunctions if len(rows)]
    return side_by_side(*found)


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

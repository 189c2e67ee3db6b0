"""Queries as text: ``age=30-35 & sex!=Female & !flag``.

A query is one or more literals joined by ``&``. A literal is ``column=value``, ``column!=value``,
or the bare name of a binary column; a leading ``!`` negates it. A name or value that contains
``&``, a quotation mark or spaces at its ends (a name also: ``=``, ``!`` or ``#``) stands in double
quotation marks, in which a quotation mark is doubled. Spaces around names, values and ``&`` mean
nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.data.schema.columns import Numeric
from dualquery.rows.repeats import pad_right
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema

_QUOTED = r'"(?:[^"]|"")*"'
# Every sign can be read in one way only, so that no text takes long: a doubled quotation mark is
# the end of one quoted part and the start of the next.
_PIECE = r'(?:[^&"]|"[^"]*")+'
_LINE = rf"^{_PIECE}(?:&{_PIECE})*$"
_LITERAL = re.compile(
    rf'\s*+(?P<bang>!?)\s*+(?P<name>{_QUOTED}\s*+|[^"=]*?)'
    rf'(?:(?P<relation>!?=)\s*+(?P<value>{_QUOTED}\s*+|[^"]*+))?',
    re.DOTALL,
)
_OTHER_OPERATOR = re.compile(r"[<>|]|\b(?:and|or)\b", re.IGNORECASE)
_RANGE = re.compile(r"\s*([-+]?[\d.]+)\s*-\s*([-+]?[\d.]+)\s*")
_NAME_NEEDS_QUOTES = r'[&"=!#]|^\s|\s$|^$'
_VALUE_NEEDS_QUOTES = r'[&"]|^\s|\s$|^$'


def parse_query(text: str, schema: Schema) -> NDArray[np.int32]:
    """Return the literals of one query.

    Parameters
    ----------
    text
        The query, as this module describes.
    schema
        Knows the columns and their values.

    Returns
    -------
    int32, shape ``(k,)``: literal codes ``2 * bit + negated``, increasing.

    Raises
    ------
    BadInputError
        When the text is no query, a column or value is unknown, or the query is never true.
    """
    query: NDArray[np.int32] = parse_queries([text], schema, lambda _: "query")[0]
    return query


def print_queries(literals: NDArray[np.int32], schema: Schema) -> pl.Series:
    """Return queries as text that `parse_query` reads back.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``: literal codes, each row padded with -1.
    schema
        Knows the columns and their values.

    Returns
    -------
    String series ``query`` of length ``m``.
    """
    domain = schema.domain
    names = pl.Series(list(schema.column_names), dtype=pl.String)[domain.column_of_bit]
    labels = schema.bit_labels()
    bits = pl.select(
        name=names,
        # A label is the column's name, an equals sign and the value.
        value=labels.str.slice(names.str.len_chars() + 1),
        binary=pl.Series(domain.sizes[domain.column_of_bit] == 1),
    ).with_columns(
        name=_quoted("name", _NAME_NEEDS_QUOTES), value=_quoted("value", _VALUE_NEEDS_QUOTES)
    )
    positive, negated = bits.select(
        positive=pl.when("binary").then("name").otherwise(pl.format("{}={}", "name", "value")),
        negated=pl.when("binary")
        .then(pl.format("!{}", "name"))
        .otherwise(pl.format("{}!={}", "name", "value")),
    ).get_columns()
    printed = positive.append(negated)
    place = np.where(literals < 0, -1, (literals >> 1) + (literals & 1) * domain.bits)
    columns = [
        printed.gather(pl.Series(column).replace(-1, None)).alias(str(j))
        for j, column in enumerate(place.T)
    ]
    return (
        pl.DataFrame(columns)
        .select(query=pl.concat_str(pl.all(), separator=" & ", ignore_nulls=True))
        .to_series()
    )


def _quoted(column: str, needs_quotes: str) -> pl.Expr:
    text = pl.col(column)
    doubled = text.str.replace_all('"', '""', literal=True)
    return pl.when(text.str.contains(needs_quotes)).then(pl.format('"{}"', doubled)).otherwise(text)


def parse_queries(
    texts: Sequence[str] | pl.Series, schema: Schema, place: Callable[[int], str]
) -> NDArray[np.int32]:
    """Return the literals of many queries, int32 ``(m, k)``, sorted, padded with -1."""
    lines = pl.Series("line", texts, dtype=pl.String)
    broken = (~lines.str.contains(_LINE)).fill_null(True).arg_true()
    if len(broken):
        row = int(broken[0])
        raise BadInputError(
            f"{place(row)}: {lines[row]!r} is no query: a literal is missing beside an '&', or a "
            "quotation mark is not closed; write, for instance, age=30-35 & sex!=Female"
        )
    pieces = (
        pl.DataFrame({"row": np.arange(len(lines)), "piece": lines.str.extract_all(_PIECE)})
        .explode("piece")
        .with_columns(pl.col("piece").str.strip_chars())
    )
    distinct = pieces.group_by("piece", maintain_order=True).agg(pl.col("row").first())
    codes = [
        _literal(piece, schema, place, row) for piece, row in distinct.iter_rows()
    ]  # over the distinct literals only, however many queries there are
    coded = pieces.join(
        distinct.select("piece", code=pl.Series(codes, dtype=pl.Int32)),
        on="piece",
        maintain_order="left",
    )
    rows = coded["row"].to_numpy()
    lengths = np.bincount(rows, minlength=len(lines))
    literals = np.full((len(lines), lengths.max(initial=0)), -1, np.int32)
    literals[rows, np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]] = coded["code"]
    literals = pad_right(literals)
    literals[:, 1:][literals[:, 1:] == literals[:, :-1]] = -1  # x & x is x
    literals = pad_right(literals)
    _refuse_contradictions(literals, lines, schema, place)
    return literals[:, (literals >= 0).any(axis=0)]


def _literal(piece: str, schema: Schema, place: Callable[[int], str], row: int) -> int:
    match = _LITERAL.fullmatch(piece)
    if match is None or not match["name"].strip():
        raise BadInputError(
            f"{place(row)}: {piece!r} is no literal; write column=value, column!=value, flag or "
            '!flag, with double quotation marks around a whole name or value, as in "a & b"=1'
        )
    value = None if match["value"] is None else match["value"].strip()
    name = _unquoted(match["name"].strip())
    try:
        code = schema.literal(name, None if value is None else _unquoted(value))
    except BadInputError as error:
        message = str(error).removeprefix("query: ")
        hint = _hint(schema, name, value or "")
        raise BadInputError(f"{place(row)}: {message}{hint}") from None
    return code ^ (match["bang"] == "!") ^ (match["relation"] == "!=")


def _hint(schema: Schema, name: str, value: str) -> str:
    """Return what to add to the message about a literal that the schema does not know."""
    # A value such as >50K may hold what would be an operator in a name.
    odd = value.startswith("=") or re.search(r"\|\||\s(?:and|or)\s", value, re.IGNORECASE)
    if odd or _OTHER_OPERATOR.search(name):
        return "; only = and != exist, joined by &"
    asked = _RANGE.fullmatch(value)
    column = next((c for c in getattr(schema, "columns", ()) if c.name == name), None)
    if asked is None or not isinstance(column, Numeric):
        return ""
    try:
        low, high = map(float, asked.groups())
    except ValueError:  # several points in a number
        return ""
    buckets = [
        label
        for label, (start, end) in zip(
            column.labels, itertools.pairwise(column.edges), strict=False
        )
        if start < high and low < end
    ]
    return f" {value} lies in the buckets {', '.join(buckets)}: ask for one" if buckets else ""


def _unquoted(text: str) -> str:
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _refuse_contradictions(
    literals: NDArray[np.int32], lines: pl.Series, schema: Schema, place: Callable[[int], str]
) -> None:
    """Raise for a query that no legal record satisfies because two of its literals exclude it."""
    columns = schema.domain.column_of_bit[literals >> 1]
    positive = (literals >= 0) & (literals & 1 == 0)
    for j in range(1, literals.shape[1]):
        later, earlier = literals[:, j], literals[:, j - 1]
        opposite = (later >= 0) & (later >> 1 == earlier >> 1)
        # Sorted literals of one column are neighbours, up to negated ones: compare with all before.
        exclusive = positive[:, j] & (
            positive[:, :j] & (columns[:, :j] == columns[:, j : j + 1])
        ).any(axis=1)
        wrong = np.flatnonzero(opposite | exclusive)
        if len(wrong):
            row = int(wrong[0])
            raise BadInputError(
                f"{place(row)}: {lines[row]!r} is never true: it asks for two things of the column "
                f"{schema.column_names[columns[row, j]]!r} that exclude each other"
            )

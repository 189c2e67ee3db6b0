"""Conjunctions as text, many at a time: ``age=30-35 & sex!=Female & !flag``.

They are written in the plain form of questions (`dualquery.questions.plain`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dualquery.questions.plain import LINE, PIECE, literal_code
from dualquery.rows.repeats import pad_right
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema

_NAME_NEEDS_QUOTES = r'[&"=!#]|^\s|\s$|^$'
_VALUE_NEEDS_QUOTES = r'[&"]|^\s|\s$|^$'


def print_queries(literals: NDArray[np.int32], schema: Schema) -> pl.Series:
    """Return queries as text that `read_plain` reads back: a String series ``query``.

    ``literals`` is int32, shape ``(m, k)``: literal codes, each row padded with -1.
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


def read_plain(lines: pl.Series, schema: Schema) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the literals of many queries in the plain form, and which of the texts have it.

    int32 ``(m, k)``, sorted, padded with -1, and only padding where a text has another form.
    """
    formed = lines.str.contains(LINE).fill_null(False)
    pieces = (
        pl.DataFrame({"row": np.arange(len(lines)), "piece": lines.str.extract_all(PIECE)})
        .filter(formed)
        .explode("piece")
        .with_columns(pl.col("piece").str.strip_chars())
    )
    distinct = pieces["piece"].unique(maintain_order=True)
    codes = [literal_code(piece, schema) for piece in distinct]  # however many queries there are
    coded = pieces.join(
        pl.DataFrame({"piece": distinct, "code": pl.Series(codes, dtype=pl.Int32)}),
        on="piece",
        maintain_order="left",
    )
    rows = coded["row"].to_numpy()
    plain = formed.to_numpy().copy()
    plain[rows[coded["code"].is_null().to_numpy()]] = False
    lengths = np.bincount(rows, minlength=len(lines))
    literals = np.full((len(lines), max(lengths.max(initial=0), 1)), -1, np.int32)
    place = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
    literals[rows, place] = coded["code"].fill_null(-1)
    literals[~plain] = -1
    literals = pad_right(literals)
    literals[:, 1:][literals[:, 1:] == literals[:, :-1]] = -1  # x & x is x
    literals = pad_right(literals)
    widest = max(int((literals >= 0).any(axis=0).sum()), 1)
    return literals[:, :widest], plain


def refuse_contradictions(
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

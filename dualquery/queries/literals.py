"""Conjunctions as rows of literal codes: checked, counted, evaluated, read from text and printed.

Texts, such as ``age=30-35 & sex!=Female & !flag``, have the plain form of questions
(`dualquery.questions.plain_parser`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualquery.data.domain import Domain
from dualquery.questions.plain_parser import LINE, PIECE, literal_code
from dualquery.rows.repeats import first_occurrences, pad_right
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl

    from dualquery.data.schema.any_schema import Schema
    from dualquery.rows.row_sums import Rows


@dataclass(frozen=True, eq=False)
class LiteralRows:
    """``m`` conjunctions of at most ``k`` literals over the bits of a domain, repeats allowed.

    A literal has the code ``2 * bit + negated``. On construction the literals of each row are
    sorted and columns of padding only are dropped, so that equal conjunctions have equal rows.

    Parameters
    ----------
    literals
        int32, shape ``(m, k)``, each row padded with -1; at least one literal a row, none twice.
    domain
        The bits and the columns they belong to.

    Raises
    ------
    BadInputError
        When there are no rows, a literal is not one of the domain, or a row is empty, has a literal
        twice or a literal with its negation.
    """

    literals: NDArray[np.int32]
    domain: Domain

    # Values 0 and 1 (see `dualquery.queries.family`).
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    step: ClassVar[float] = 1.0
    spread: ClassVar[int] = 1

    def __post_init__(self) -> None:
        rows = np.asarray(self.literals)
        if rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "iu":
            raise BadInputError(
                "a workload needs an integer array of one or more queries by one or more literals, "
                f"not {rows.dtype} of shape {rows.shape}"
            )
        codes = 2 * self.domain.bits
        refuse_rows(
            (rows < -1) | (rows >= codes),
            f"has a literal outside -1..{codes - 1}",
            lambda q: rows[q],
        )
        rows = pad_right(rows.astype(np.int32))
        refuse_rows(rows[:, :1] < 0, "has no literal", lambda q: rows[q])
        refuse_rows(
            (rows[:, 1:] >= 0) & (rows[:, 1:] >> 1 == rows[:, :-1] >> 1),
            "uses one bit twice",
            lambda q: rows[q],
        )
        rows = np.ascontiguousarray(rows[:, (rows >= 0).any(axis=0)])
        rows.flags.writeable = False  # bounds are proven once, and kept
        object.__setattr__(self, "literals", rows)

    def __len__(self) -> int:
        return len(self.literals)

    @property
    def way(self) -> int:
        """The largest number of literals of a conjunction (k in the papers)."""
        return int(self.literals.shape[1])

    @property
    def apart(self) -> NDArray[np.bool_]:
        """Which conjunctions name no column twice: bool, ``(m,)``."""
        return are_apart(self.literals, self.domain)

    def on_record(self, record: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return which conjunctions hold on a record, uint8 ``(bits,)``: uint8, ``(m,)``, 0/1."""
        from dualquery.queries.counting import evaluate

        if record.shape != (self.domain.bits,):
            raise ValueError(f"a record of {self.domain.bits} bits expected, not {record.shape}")
        truth = np.empty(len(self), np.uint8)
        evaluate(self.literals, np.ascontiguousarray(record, np.uint8), truth)
        return truth

    def counts(self, records: Rows, threads: int) -> NDArray[np.int64]:
        """Return in how many of the records each conjunction holds, exactly: int64, ``(m,)``.

        Records may carry numbers behind the bits of the domain (`dualquery.data.schema.grids`).

        Raises `BadInputError` if the rows cannot be read to the end.
        """
        from dualquery.queries.counting import ConjunctionCounts

        if records.bits < self.domain.bits:
            raise ValueError(f"records of {self.domain.bits} bits expected, not {records.bits}")
        return records.total(ConjunctionCounts(self.literals), threads)


def refuse_rows(
    wrong: NDArray[np.bool_], complaint: str, show: Callable[[int], object], what: str = "query"
) -> None:
    """Raise `BadInputError` for the first row that has a wrong entry.

    ``wrong`` is bool, shape ``(rows,)`` or ``(rows, ...)``; ``show`` returns what the message shows
    of a row, and ``what`` is what a row is called.
    """
    rows = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
    if len(rows):
        first = int(rows[0])
        raise BadInputError(f"{what} {first} {complaint}: {show(first)}")


def write_padded(name: str, rows: NDArray[np.int32]) -> dict[str, pl.Series]:
    """Return columns ``name_1`` .. ``name_k`` of int32 rows ``(m, k)``: null for the padding -1."""
    import polars as pl

    series = [pl.Series(f"{name}_{place + 1}", column) for place, column in enumerate(rows.T)]
    return {one.name: one.set(one < 0, None) for one in series}


def read_padded(name: str, columns: Mapping[str, pl.Series]) -> NDArray[np.int32]:
    """Return the rows that `write_padded` wrote; raise `BadInputError` without a first column."""
    import polars as pl

    found: list[pl.Series] = []
    while (key := f"{name}_{len(found) + 1}") in columns:
        found.append(columns[key])
    if not found:
        raise BadInputError(f"the table of queries has no column {name}_1")
    if not all(one.dtype.is_integer() or one.dtype == pl.Null for one in found):
        raise BadInputError(f"a column of {name}_1 .. {name}_{len(found)} holds no whole numbers")
    rows = np.stack([one.cast(pl.Int64).fill_null(-1).to_numpy() for one in found], axis=1)
    if rows.size and not -1 <= rows.min() <= rows.max() < 2**31:
        raise BadInputError(f"the columns {name}_1 .. {name}_{len(found)} reach {rows.max()}")
    return rows.astype(np.int32)


def different_bits(literals: NDArray[np.int32]) -> int:
    """Return how many different sets of bits conjunctions mention."""
    first = first_occurrences(np.where(literals >= 0, literals | 1, -1), int(literals.max()) + 2)
    return int(np.count_nonzero(first == np.arange(len(first))))


_NAME_NEEDS_QUOTES = r'[&"=!#]|^[\s\x1c-\x1f]|[\s\x1c-\x1f]$|^$'  # all that `str.strip` takes away
_VALUE_NEEDS_QUOTES = r'[&"]|^[\s\x1c-\x1f]|[\s\x1c-\x1f]$|^$'


def print_queries(literals: NDArray[np.int32], schema: Schema) -> pl.Series:
    """Return queries as text that `read_plain` reads back: a String series ``query``.

    ``literals`` is int32, shape ``(m, k)``: literal codes, each row padded with -1.
    """
    import polars as pl

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
    import polars as pl

    text = pl.col(column)
    doubled = text.str.replace_all('"', '""', literal=True)
    return pl.when(text.str.contains(needs_quotes)).then(pl.format('"{}"', doubled)).otherwise(text)


def read_plain(lines: pl.Series, schema: Schema) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the literals of many queries in the plain form, and which of the texts have it.

    int32 ``(m, k)``, sorted, padded with -1, and only padding where a text has another form.
    """
    import polars as pl

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


def are_apart(literals: NDArray[np.int32], domain: Domain) -> NDArray[np.bool_]:
    """Return which rows of literals, padded with -1, name no column twice: bool, ``(m,)``."""
    none = np.arange(-literals.shape[1], 0)
    columns = np.where(literals >= 0, domain.column_of_bit[literals >> 1], none)
    return np.asarray(np.diff(np.sort(columns, axis=1), axis=1).all(axis=1))


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

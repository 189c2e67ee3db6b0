"""Cross tables of a release: one question for every pair of values of two columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualquery.data.schema.columns import Binary, Column
from dualquery.estimates.intervals import LEVEL
from dualquery.questions.parser import parse_question
from dualquery.questions.plain_parser import read_question
from dualquery.questions.syntax_tree import (
    COUNT,
    SHARE,
    SUM,
    And,
    Comparison,
    Condition,
    Question,
    print_question,
)
from dualquery.releases.answer.answering import answer_question
from dualquery.releases.answer.knowledge import Knowledge
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.any_schema import Schema
    from dualquery.releases.keep.folder import Release

MOST_CELLS = 10_000  # of a table: each is a question of its own


@dataclass(frozen=True)
class CrossTable:
    """Answers by the values of one or two columns."""

    rows: str  # names of columns
    columns: str  # "" for none
    row_labels: tuple[str, ...]  # their values
    column_labels: tuple[str, ...]  # one empty label where there are no columns
    value: str  # what is asked of each cell
    where: str  # the condition on rows; "" for all
    cells: tuple[dict[str, Any], ...]  # by rows, as of `answer_queries`, without ``query``
    level: float  # the chance that an interval has, or all of them at once if simultaneous
    simultaneous: bool

    def _repr_html_(self) -> str:
        import polars as pl

        return pl.DataFrame(self.lines(), infer_schema_length=None)[:, :-1]._repr_html_()

    def lines(self) -> list[dict[str, Any]]:
        """Return a line a cell: values, answer, interval; ``low_`` beside a column called low."""
        own = {self.rows, self.columns}
        pairs = itertools.product(self.row_labels, self.column_labels)
        kept = ("answer", "low", "high", "source", "basis")
        named = {key: key + "_" * ((key in own) + ({key, f"{key}_"} == own)) for key in kept}
        return [
            {self.rows: row}
            | ({self.columns: column} if self.columns else {})
            | {named[key]: cell[key] for key in kept}
            for (row, column), cell in zip(pairs, self.cells, strict=True)
        ]


def cross_table(
    release: Release,
    rows: str,
    columns: str | None = None,
    *,
    where: str | None = None,
    value: str = SHARE,
    simultaneous: bool = False,
) -> CrossTable:
    """Answer a question for all values of a column, or pairs of values of two.

    Parameters
    ----------
    release, rows, columns, where
        A release, names of its columns, and a condition on the table's rows; None for all.
    value
        What is asked of each cell: ``share`` of the table's rows that are in it, ``count``,
        ``mean(age)``, ``sum(age)``, ``median(age)`` or ``quantile(age, 0.25)`` of the rows in it.
    simultaneous
        Whether the intervals hold all at once with their chance, and not each by itself: each
        then misses with at most its part of the chance (Bonferroni).

    Raises
    ------
    BadInputError
        If a name or text cannot be read, columns are the same, or there are over `MOST_CELLS`.
    """
    schema, asked = release.schema, _question(value)
    condition = None if where is None else _condition(where, schema)
    row_labels = _labels(schema, rows)
    if rows == columns:
        raise BadInputError(f"--rows and --columns are both {rows!r}; name two columns")
    column_labels = ("",) if columns is None else _labels(schema, columns)
    count = len(row_labels) * len(column_labels)
    if count > MOST_CELLS:
        raise BadInputError(
            f"a table of {count:,} cells; at most {MOST_CELLS:,} are answered: name columns of "
            "fewer values"
        )
    level = 1.0 - (1.0 - LEVEL) / count if simultaneous else LEVEL
    knowledge, cells = Knowledge(release), []
    for row, column in itertools.product(row_labels, column_labels):
        cell: Condition = Comparison(rows, "=", row)
        if columns is not None:
            cell = And((cell, Comparison(columns, "=", column)))
        cells.append(answer_question(knowledge, _of_cell(asked, cell, condition), level))
    lost = max((level - each["level"] for each in cells if each["level"]), default=0.0)
    return CrossTable(
        rows, columns or "", row_labels, column_labels, value, where or "", tuple(cells),
        LEVEL - lost, simultaneous,
    )  # fmt: skip


def _of_cell(asked: Question, cell: Condition, where: Condition | None) -> Question:
    """Return the question of a cell: shares are among the table's rows, others of the cell's."""
    if asked.measure == SHARE:
        return Question(SHARE, cell, given=where)
    inside = cell if where is None else And((cell, where))
    if asked.measure == COUNT:
        return Question(COUNT, inside)
    return Question(asked.measure, column=asked.column, level=asked.level, given=inside)


def _question(value: str) -> Question:
    if value in (SHARE, COUNT):
        return Question(value)
    question = parse_question(value)
    if question.measure in (SHARE, COUNT) or question.given is not None:
        raise BadInputError(
            f"--value is {print_question(question)!r}; it must be share, count, mean(COLUMN), "
            f"{SUM}(COLUMN), median(COLUMN) or quantile(COLUMN, LEVEL)"
        )
    return question


def _condition(where: str, schema: Schema) -> Condition:
    question = read_question(where, schema)
    if question.measure != SHARE or question.condition is None or question.given is not None:
        raise BadInputError(f"--where is {where!r}; a condition is needed, such as age>=25")
    return question.condition


def _labels(schema: Schema, name: str) -> tuple[str, ...]:
    column: Column = schema.column(name)[1]
    return (column.zero, column.one) if isinstance(column, Binary) else column.labels

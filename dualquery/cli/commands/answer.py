"""``dualquery answer`` and ``dualquery table``: questions and cross tables from a release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.shared_options import Json, ReleaseFolder
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import share, terminal_line

if TYPE_CHECKING:
    from dualquery.releases.answer.cross_tables import CrossTable


_MOST_DIGITS = 6
_ALONE = 5  # digits of a number above 1 without an interval: it would say which of them are noise
_HUGE = 1e15  # from here on digits before the point are rounded, too
_ALL_DIGITS = Context(prec=400)  # more than any floating-point number has before its point


def shown(answer: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Return an answer as text, a dash for None, and its interval, empty if that is unknown.

    Both have the decimals down to the second digit of half the interval's width. Its ends are
    rounded outwards: shown shorter than it is, it would hold less often.
    """
    if low is None or high is None:
        if answer is None or abs(answer) <= 1.0:
            return "-" if answer is None else share(answer), ""
        return _rounded(answer, _decimals_of(abs(answer), _ALONE), ROUND_HALF_EVEN), ""
    largest = max(abs(each) for each in (answer, low, high) if each is not None)
    decimals = min(_decimals_of(largest, _MOST_DIGITS), _supported(low, high))
    number = "-" if answer is None else _rounded(answer, decimals, ROUND_HALF_EVEN)
    ends = _rounded(low, decimals, ROUND_FLOOR), _rounded(high, decimals, ROUND_CEILING)
    return number, " to ".join(ends)


def _decimals_of(size: float, digits: int) -> int:
    """Return the decimals of a number with some digits; negative for huge numbers."""
    # Before the point none is left out: rounded to tens, a count could exceed the number of rows.
    if size == 0.0:
        return 0
    decimals = digits - 1 - math.floor(math.log10(size))
    return decimals if size >= _HUGE else max(decimals, 0)


def _supported(low: float, high: float) -> int:
    """Return the decimals that an interval supports; one of a single number supports all it has."""
    half = high / 2 - low / 2
    if half > 0:
        return max(1 - math.floor(math.log10(half)), 0)
    exponent = Decimal(repr(low)).normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _rounded(value: float, decimals: int, rounding: str) -> str:
    step = Decimal(1).scaleb(-decimals)
    found = Decimal(repr(float(value))).quantize(step, rounding, _ALL_DIGITS)
    if found.is_zero():  # it may have a sign
        return f"{0:.{max(decimals, 0)}f}"
    return f"{found:f}" if decimals >= 0 else str(found)


def _footnotes(answers: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return each answer's mark, such as ``[2]``, empty if all have one remark; and the remarks."""
    said = [
        f"{'no interval' if each['low'] is None else 'interval'}: {each['basis']}"
        for each in answers
    ]
    numbers = {remark: number for number, remark in enumerate(dict.fromkeys(said), 1)}
    if len(numbers) < 2:
        return [""] * len(said), [*numbers]
    lines = [f"[{number}] {remark}" for remark, number in numbers.items()]
    return [f"[{numbers[remark]}]" for remark in said], lines


def answer(
    release: ReleaseFolder,
    questions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION", help="Such as 'age=18-64 & sex!=Female' or 'mean(age)'."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Questions, one a line; or .csv or .parquet, in a column 'query'."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File of the answers to make: .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer questions from a release; costs no privacy.

    Without questions, answers those of the list that the release was made for.
    A query of the release's workload gets its released answer, to which the
    interval of all measurements is made to reach; any other question is
    answered from the fitted model, or else from the synthetic records. Where
    noisy measurements determine an interval of the truth, it is shown, for
    each question by itself. What it rests on, or why there is none, stands
    below the answers; a mark such as [2] refers to it.

      share      age=30-35 & sex!=Female      age>=18      edu in (9, 10)
                 not (a or b) & age between 18 and 64
      count      count(age>=18), count(*)     how many rows, and of all
      number     mean(age)  sum(age)  median(age)  quantile(age, 0.25)
      given      income=>50K given sex=Female & edu=Bachelors

    What binds most comes first: not, & (and), or, given. A value stands for its
    whole bucket or category, a date for its whole period, in ranges too; a range
    that cuts a bucket takes the numbers in it to lie as the schema says. A name
    or value that holds signs or words of the language stands in double quotes.

    Example:

      dualquery answer my-release "age=18-64 & sex=Female" "mean(age) given income=>50K"
    """
    from dualquery.queries.generate.query_files import read_texts
    from dualquery.releases.answer.answering import answer_queries
    from dualquery.releases.answer.table_files import check_target
    from dualquery.releases.keep.folder import load_release

    if file is not None and questions:
        raise BadInputError("ask in words, or name a file of questions with --file: one of the two")
    if out is not None:
        check_target(out)
    made = load_release(release, to_ask=True)
    if file is not None:
        texts, place = read_texts(file)
        found = answer_queries(made, texts.to_list(), place)
    else:
        if not (asked := questions or made.workload.description.get("questions", ())):
            raise BadInputError(
                f"{release} was made without questions of its own, and the answers of its queries "
                "are in answers.parquet; ask in words, or name a file with --file"
            )
        found = answer_queries(made, asked)
    if out is not None:
        found.save(out)
    Terminal(machine=as_json).emit({"answers": found})
    if as_json or out is not None:
        return
    marks, notes = _footnotes(found)
    for line, mark in zip(found, marks, strict=True):
        typer.echo(_shown(line, mark))
    for note in notes:
        typer.echo(terminal_line(note), err=True)


def _shown(line: dict[str, Any], mark: str) -> str:
    """Return an answer as a line for people: fields between tabs, the mark of its remark last."""
    asked, answered = terminal_line(line["query"]), terminal_line(line["answered"])
    number, ends = shown(line["answer"], line["low"], line["high"])
    fields = [
        number,
        line["source"],
        asked,
        "" if asked == answered else f"answered: {answered}",
        f"{line['level']:.0%} interval of the truth: {ends}" if ends else "",
        mark,
    ]
    return "\t".join(filter(None, fields))


def table(
    release: ReleaseFolder,
    rows: Annotated[str, typer.Option(help="Column whose values are the rows.")],
    columns: Annotated[
        str | None, typer.Option(help="Column whose values are the columns.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Condition: the table is about the rows that satisfy it.")
    ] = None,
    value: Annotated[
        str,
        typer.Option(
            help="Of each cell: share, count, mean(COLUMN), sum, median or quantile(COLUMN, 0.25)."
        ),
    ] = "share",
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="Make all intervals hold at once, not each by itself."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to make: .csv or .parquet.")] = None,
    as_json: Json = False,
) -> None:
    """Make a cross table from a release; costs no privacy.

    Each cell is a question, answered as by dualquery answer. Shares are those
    of the rows that --where leaves.

    Example:

      dualquery table my-release --rows education --columns sex --where "age=25-44"
    """
    import polars as pl

    from dualquery.releases.answer.cross_tables import cross_table
    from dualquery.releases.answer.table_files import check_target, write_frames
    from dualquery.releases.keep.folder import load_release

    if out is not None:
        check_target(out)
    known = load_release(release, to_ask=True)
    made = cross_table(known, rows, columns, where=where, value=value, simultaneous=simultaneous)
    if out is not None:
        numbers = pl.selectors.by_dtype(pl.Null).cast(pl.Float64)
        cells = pl.DataFrame(made.lines(), infer_schema_length=None)
        write_frames([cells.with_columns(numbers)], out)
    described = {
        "rows": made.rows, "columns": made.columns or None, "value": made.value,
        "where": made.where or None, "level": made.level, "simultaneous": made.simultaneous,
    }  # fmt: skip
    terminal = Terminal(machine=as_json)
    terminal.emit({**described, "cells": made.lines()})
    if not as_json and out is None:
        _show(terminal, made)


def _show(terminal: Terminal, made: CrossTable) -> None:
    by = f"{made.rows} and {made.columns}" if made.columns else made.rows
    title = f"{made.value} by {by}" + (f" where {made.where}" if made.where else "")
    marks, notes = _footnotes(made.cells)
    texts = []
    for cell, mark in zip(made.cells, marks, strict=True):
        number, interval = shown(cell["answer"], cell["low"], cell["high"])
        texts.append("\n".join(filter(None, (f"{number} {mark}".rstrip(), interval))))
    width = len(made.column_labels)
    rows = [
        (terminal_line(label), *texts[row * width : (row + 1) * width])
        for row, label in enumerate(made.row_labels)
    ]
    heads = [terminal_line(name or made.value) for name in (made.rows, *made.column_labels)]
    terminal.table(heads, rows, title=terminal_line(title))
    if any(cell["low"] is not None for cell in made.cells):
        at_once = "all at once" if made.simultaneous else "each by itself"
        notes.insert(0, f"intervals of the truth: {made.level:.0%}, {at_once}")
    for note in notes:
        typer.echo(terminal_line(note), err=True)

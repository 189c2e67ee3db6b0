"""``dualquery table``: a cross table from a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.numbers import Footnotes, shown
from dualquery.cli.options import Json, ReleaseFolder
from dualquery.cli.terminal import Terminal
from dualquery.runtime.escaping import csv_cell, terminal_line

if TYPE_CHECKING:
    import polars as pl

    from dualquery.releases.answer.cross_tables import CrossTable


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
    from dualquery.releases.answer.cross_tables import cross_table
    from dualquery.releases.answer.table_files import check_target, write_frames
    from dualquery.releases.keep.folder import load_release

    if out is not None:
        check_target(out)
    terminal = Terminal(machine=as_json)
    made = cross_table(
        load_release(release), rows, columns, where=where, value=value, simultaneous=simultaneous
    )
    if out is not None:
        write_frames([_frame(made, escaped=out.suffix == ".csv")], out)
    described = {
        "rows": made.rows, "columns": made.columns or None, "value": made.value,
        "where": made.where or None, "level": made.level, "simultaneous": made.simultaneous,
    }  # fmt: skip
    terminal.emit({**described, "cells": made.lines()})
    if not terminal.machine and out is None:
        _show(terminal, made)


def _show(terminal: Terminal, made: CrossTable) -> None:
    from rich.markup import escape
    from rich.table import Table

    notes = Footnotes(made.cells)
    drawn = Table(title=escape(terminal_line(_title(made))))
    for number, name in enumerate((made.rows, *made.column_labels)):
        label = terminal_line(name or made.value)
        drawn.add_column(escape(label), justify="right" if number else "left")
    for label, cells in _by_rows(made):
        texts = ("\n".join(filter(None, _texts(cell, notes))) for cell in cells)
        drawn.add_row(escape(terminal_line(label)), *map(escape, texts))
    terminal.console.print(drawn)
    for note in _notes(made, notes):
        typer.echo(terminal_line(note), err=True)


def _frame(made: CrossTable, *, escaped: bool) -> pl.DataFrame:
    """Return a row a cell; texts ``escaped`` for CSV, which spreadsheets open."""
    import polars as pl

    def text(cell: str) -> str:
        return csv_cell(cell) if escaped else cell

    lines = made.lines()
    found: dict[str, Any] = {}
    for name in (made.rows, *([made.columns] if made.columns else [])):
        found[f"{text(name)}"] = pl.Series([text(line[name]) for line in lines], dtype=pl.String)
    # A column of the table may have the name of one of these.
    for key in ("answer", "low", "high"):
        values = [line[key] for line in lines]
        found[key if key not in found else f"{key}_"] = pl.Series(values, dtype=pl.Float64)
    for key in ("source", "basis"):
        found[key if key not in found else f"{key}_"] = [line[key] for line in lines]
    return pl.DataFrame(found)


def _by_rows(made: CrossTable) -> list[tuple[str, list[dict[str, Any]]]]:
    width = len(made.column_labels)
    return [
        (label, list(made.cells[number * width : (number + 1) * width]))
        for number, label in enumerate(made.row_labels)
    ]


def _title(made: CrossTable) -> str:
    by = f"{made.rows} and {made.columns}" if made.columns else made.rows
    return f"{made.value} by {by}" + (f" where {made.where}" if made.where else "")


def _texts(cell: dict[str, Any], notes: Footnotes) -> tuple[str, str]:
    """Return the number of a cell with the mark of its remark, and its interval."""
    number, interval = shown(cell["answer"], cell["low"], cell["high"])
    return f"{number} {notes.mark(cell)}".rstrip(), interval


def _notes(made: CrossTable, notes: Footnotes) -> list[str]:
    at_once = "all at once" if made.simultaneous else "each by itself"
    known = any(cell["low"] is not None for cell in made.cells)
    lead = [f"intervals of the truth: {made.level:.0%}, {at_once}"] if known else []
    return [*lead, *notes.lines]

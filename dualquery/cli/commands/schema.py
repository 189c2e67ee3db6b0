"""``dualquery schema``: draft a schema for the user to check and declare; check one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dualquery.cli.options import (
    Budget,
    Columns,
    Csv,
    Delta,
    MaxRowsPerUnit,
    NeighboursName,
    Quiet,
    TableName,
    UnitColumn,
    given_table,
    with_default,
)
from dualquery.cli.terminal import Terminal, start_logging
from dualquery.data.schema.columns import Binary
from dualquery.data.schema.numbers import finite_number
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import some, terminal_line, terminal_text
from dualquery.runtime.files import require_new

if TYPE_CHECKING:
    from rich.table import Table

    from dualquery.data.drafts.drafting import DraftedColumn
    from dualquery.data.schema.items import ItemSchema
    from dualquery.data.schema.table import TableSchema
    from dualquery.privacy.neighbours import Neighbours

NOT_PRIVATE = (
    "NOT PRIVATE: the draft holds what the table's rows hold; give it to nobody before you have "
    "checked it"
)
"""How every draft from a table ends."""

_SHOWN, _COLUMNS = 6, 500
"""Values of a column that ``check`` shows, and columns that are shown."""


_DraftByDefault = with_default("draft", lambda first: bool(first))
"""What is no command is a table: ``dualquery schema survey.csv`` drafts."""

schema = typer.Typer(cls=_DraftByDefault, rich_markup_mode="rich", no_args_is_help=True)


@schema.callback()
def about() -> None:
    """Draft a schema from a table, or check a schema's file.

    "dualquery schema TABLE" is short for "dualquery schema draft TABLE".

    Examples:

      dualquery schema survey.csv --out survey.json

      dualquery schema check survey.json
    """


@schema.command()
def check(
    file: Annotated[
        str,
        typer.Argument(help="A schema's file.", metavar="FILE"),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to make: the same as a schema of this program.")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Table: read it as a release would. What does not fit is shown to you only, NOT "
            "PRIVATE.",
        ),
    ] = None,
    csv: Csv = None,
    quiet: Quiet = False,
) -> None:
    """Read a schema's file and say what it means, or what is wrong with it.

    Rules between columns are read, too, and whether any record keeps them all. A
    table is read only for --with; what of it does not fit the schema is shown on
    stderr and nowhere else. What you change in the schema after seeing it is
    outside the guarantee.

    Examples:

      dualquery schema check survey.json

      dualquery schema check survey.json --with survey.csv
    """
    terminal = Terminal(quiet=quiet)
    start_logging(verbose=False, quiet=quiet)
    if out is not None:
        _require_place(out)

    from dualquery.data.schema.files import load_schema, write_schema
    from dualquery.data.schema.table import TableSchema
    from dualquery.rules.reading import rules_of

    found = load_schema(file)
    rules = rules_of(found)
    if isinstance(found, TableSchema):
        terminal.console.print(_columns(found))
        for remark in _on_missing_values(found):
            terminal.console.print(f"note: {terminal_line(remark)}", markup=False)
    for number, (text, forbids) in enumerate(rules.said(), 1):
        told = "" if forbids else " (always holds: it forbids nothing)"
        terminal.console.print(f"rule {number}: {terminal_line(text)}{told}", markup=False)
    if out is not None:
        write_schema(found, out)
    state = (
        "declared"
        if found.declared
        else "not declared, so releases with it are not private: check that all of it is public "
        'knowledge, then set "declared": true'
    )
    written = "" if out is None else f"; written to {out}"
    terminal.console.print(
        f"{len(found.column_names):,} columns, {found.domain.bits:,} bits: {state}{written}",
        markup=False,
    )
    if table is None:
        return

    from dualquery.rows.engines import Engine

    with given_table(table, csv) as rows, Engine().open(rows, found):
        pass  # whatever does not fit has been said by now


@schema.command()
def draft(
    table: TableName,
    columns: Columns = None,
    csv: Csv = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Learn the schema under differential privacy, at this epsilon."),
    ] = None,
    delta: Delta = None,
    known: Annotated[
        str | None,
        typer.Option("--schema", help="With --epsilon: columns that are public; not paid for."),
    ] = None,
    neighbours: NeighboursName = "replace-one",
    unit: UnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    budget: Budget = None,
    out: Annotated[
        Path | None, typer.Option(help="File to make; default: print the draft.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draft a schema from a table, for you to check; or learn it privately.

    With --epsilon the schema is learned under differential privacy, so it needs
    no check: it says "declared": true, and what it cost. Column names, their
    number and order are taken as public.

    Without it the draft takes categories and buckets from the data and says
    "declared": false, so a release with it is not private. It says of every
    column what it took from the data. Check that nothing in it is known from the
    private table alone, then set "declared": true and hand it to --schema.

    Examples:

      dualquery schema survey.csv --out survey.json

      dualquery schema survey.csv --epsilon 0.2 --out survey.json
    """
    terminal = Terminal(machine=out is None, quiet=quiet)
    if out is not None:
        _require_place(out)
    if epsilon is not None:
        from dualquery.data.encoding.units import Unit
        from dualquery.privacy.neighbours import Neighbours

        relation = Neighbours.parse(neighbours, Unit.of_options(unit, max_rows_per_unit))
        _learn(terminal, table, csv, columns, epsilon, delta, known, relation, budget, out)
        return
    needless = {"--delta": delta, "--schema": known, "--unit": unit, "--budget": budget}
    for option, value in needless.items():
        if value is not None:
            raise BadInputError(f"{option} is for a schema that is learned: give --epsilon, too")
    with given_table(table, csv) as rows, terminal.progress() as progress:
        from dualquery.data.drafts.choose import choose_schema
        from dualquery.data.drafts.drafting import careful_draft
        from dualquery.data.readers.formats import source_of
        from dualquery.data.readers.source import TableSource
        from dualquery.data.schema.files import format_schema, write_schema

        drafted: TableSchema | ItemSchema
        progress.phase("reading the table")
        source = source_of(rows)
        if isinstance(source, TableSource) and source.implied_schema is None:
            draft = careful_draft(source, columns)
            drafted = draft.schema
            remarks = draft.columns
        else:
            drafted = choose_schema(source, None, columns)
            remarks = ()
    if remarks:
        terminal.console.print(_explained(remarks))
        if any(finite_number(each.name) is not None for each in remarks):
            terminal.console.print("Some columns are called by numbers: is the first row a header?")
    if out is None:
        typer.echo(terminal_text(format_schema(drafted)), nl=False)
    else:
        write_schema(drafted, out)
    if not drafted.declared:
        typer.echo(NOT_PRIVATE, err=True)  # however quiet
    if out is None:
        return
    from rich.markup import escape

    state = (
        "declared already" if drafted.declared else 'a draft: check it, then set "declared": true'
    )
    terminal.console.print(
        f"{len(drafted.column_names):,} columns, {drafted.domain.bits:,} bits: {state}; "
        f"written to [bold]{escape(str(out))}[/bold]"
    )


def _learn(
    terminal: Terminal,
    table: str,
    csv: str | None,
    columns: str | None,
    epsilon: float,
    delta: float | None,
    known: str | None,
    relation: Neighbours,
    budget: Path | None,
    out: Path | None,
) -> None:
    """Learn a schema under differential privacy, and write or print it."""
    from dualquery.data.schema.files import format_schema, load_schema, write_schema
    from dualquery.data.schema.table import TableSchema
    from dualquery.releases.make.learning import schema_of_table

    said = None if known is None else load_schema(known)
    if said is not None and not (isinstance(said, TableSchema) and said.declared):
        raise BadInputError(
            f'--schema {known}: what it says is taken as public, so it must say "declared": true'
        )
    with given_table(table, csv) as rows, terminal.progress() as progress:
        progress.phase("learning the schema")
        learned = schema_of_table(
            rows, epsilon, delta, columns=columns, neighbours=relation, known=said, budget=budget
        )
    for note in learned.notes:
        terminal.console.print(terminal_line(note), markup=False)
    if out is None:
        typer.echo(terminal_text(format_schema(learned.schema)), nl=False)
    else:
        write_schema(learned.schema, out)
        terminal.console.print(f"written to {terminal_line(str(out))}", markup=False)


def _require_place(out: Path) -> None:
    """Refuse a file that cannot be made, or whose name says that it is no JSON."""
    if out.suffix.lower() in (".toml", ".yaml", ".yml"):
        raise BadInputError(f"{out}: schemas are written as JSON; name a file that ends in .json")
    require_new(out)


def _columns(found: TableSchema) -> Table:
    """Return every column of a schema, and the first of its values."""
    from rich.table import Table
    from rich.text import Text

    table = Table("column", "kind", "bits", "values", box=None)
    for column in found.columns[:_COLUMNS]:
        shown = ", ".join(column.labels[:_SHOWN])
        more = "" if len(column.labels) <= _SHOWN else ", ..."
        if isinstance(column, Binary):
            shown, more = f"{column.zero}, {column.one}", ""
        kind = type(column).__name__.lower()
        values = Text(terminal_line(shown + more))
        table.add_row(Text(terminal_line(column.name)), kind, f"{column.bits}", values)
    if (more_columns := len(found.columns) - _COLUMNS) > 0:
        table.add_row(f"and {more_columns:,} more")
    return table


def _on_missing_values(found: TableSchema) -> Iterator[str]:
    """Yield which missing values columns have of their own, and then which all columns have."""
    own = [column for column in found.columns if column.missing_values]
    for column in own:
        its_own = some(column.missing_values, _SHOWN)
        yield f"column {column.name!r}: missing values of its own are {its_own}"
    if own:
        of_all = ", ".join(filter(None, ("null", some(found.missing_values, _SHOWN))))
        yield f"missing values of all columns are {of_all}"


def _explained(columns: Sequence[DraftedColumn]) -> Table:
    """Return what is proposed for every column, and what of it is to be checked."""
    from rich.table import Table
    from rich.text import Text

    table = Table("column", "kept as", "taken from the data: check it", box=None)
    for each in columns[:_COLUMNS]:
        kept = "left out"
        if each.column is not None:
            kept = type(each.column).__name__.lower()
            kept += "" if each.column.bits == 1 else f", {each.column.bits} bits"
        table.add_row(Text(each.name), kept, Text(each.remark))
    if (more := len(columns) - _COLUMNS) > 0:
        table.add_row(f"and {more:,} more: see the file")
    return table

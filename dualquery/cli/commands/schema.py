"""``dualquery schema``: draft a schema for the user to check and declare; check one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.shared_options import Quiet, TableName, given_table, with_default, with_options
from dualquery.cli.terminal import Terminal, start
from dualquery.data.schema.numbers import finite_number
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import some, terminal_line, terminal_text
from dualquery.runtime.files import require_new

if TYPE_CHECKING:
    from dualquery.data.drafts.drafting import DraftedColumn
    from dualquery.data.schema.any_schema import Schema
    from dualquery.data.schema.columns import Column
    from dualquery.data.schema.table import TableSchema

NOT_PRIVATE = (
    "NOT PRIVATE: the draft holds what the table's rows hold; give it to nobody before you have "
    "checked it"
)
"""How every draft from a table ends."""

_CHECK_IT = 'check that all of it is public knowledge, then set "declared": true'

_SHOWN, _COLUMNS = 6, 500  # values of a column that ``check`` shows, and columns that are shown

_DraftByDefault = with_default("draft", lambda first: bool(first))
"""What is no command is a table: ``dualquery schema survey.csv`` drafts."""

schema = typer.Typer(cls=_DraftByDefault, rich_markup_mode="rich", no_args_is_help=True)


@schema.callback()
def about() -> None:
    """Draft a schema from a table, or check a schema's file.

    "dualquery schema TABLE" is short for "dualquery schema draft TABLE".

    Example:

      dualquery schema survey.csv --out survey.json
    """


@schema.command()
@with_options("csv")
def check(
    file: Annotated[str, typer.Argument(help="A schema's file.", metavar="FILE")],
    *,
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
    csv: str | None,
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
    terminal = start(quiet=quiet)
    _require_place(out)

    from dualquery.data.schema.schema_files import load_schema
    from dualquery.data.schema.table import TableSchema
    from dualquery.rules.reading import rules_of, without_absent

    found = load_schema(file)
    partial = getattr(found, "partial", False)
    known, remarks = without_absent(found, learned=partial)
    if isinstance(found, TableSchema):
        _show_columns(terminal, ("column", "kind", "bits", "values"), found.columns, _described)
        for remark in (*_on_missing_values(found), *remarks):
            terminal.say(f"note: {terminal_line(remark)}")
    for number, (text, forbids) in enumerate(rules_of(known).said(), 1):
        told = "" if forbids else " (always holds: it forbids nothing)"
        terminal.say(f"rule {number}: {terminal_line(text)}{told}")
    if out is not None:
        _write(found, out)
    draft = "not declared, so releases with it are not private: " + _CHECK_IT
    declared = "declared; what it does not say is learned" if partial else "declared"
    written = "" if out is None else f"; written to {out}"
    terminal.say(f"{_size(found)}: {declared if found.declared else draft}{written}")
    if table is None:
        return

    from dualquery.rows.engines import Engine

    with Engine().open(given_table(table, csv), found):
        pass  # whatever does not fit has been said by now


@schema.command()
@with_options(
    "columns", "csv", "delta", "neighbours", "unit", "max_rows_per_unit", "budget", epsilon=None
)
def draft(
    table: TableName,
    *,
    known: Annotated[
        str | None,
        typer.Option("--schema", help="With --epsilon: columns that are public; not paid for."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to make; default: print the draft.")
    ] = None,
    quiet: Quiet = False,
    **asked: Any,
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
    _require_place(out)
    if asked["epsilon"] is not None:
        _learn(terminal, table, known, out, asked)
        return
    needless = {name: asked[name] for name in ("delta", "unit", "budget")} | {"schema": known}
    for option, value in needless.items():
        if value is not None:
            raise BadInputError(f"--{option} is for a schema that is learned: give --epsilon, too")
    progress = terminal.progress()
    from dualquery.data.drafts.choose import choose_schema
    from dualquery.data.drafts.drafting import careful_draft
    from dualquery.data.readers.formats import source_of
    from dualquery.data.readers.source import TableSource

    drafted: Schema
    remarks: Sequence[DraftedColumn] = ()
    progress.phase("reading the table")
    source = source_of(given_table(table, asked["csv"]))
    if isinstance(source, TableSource) and source.implied_schema is None:
        draft = careful_draft(source, asked["columns"])
        drafted, remarks = draft.schema, draft.columns
    else:
        drafted = choose_schema(source, None, asked["columns"])
    if remarks:
        heads = ("column", "kept as", "taken from the data: check it")
        _show_columns(terminal, heads, remarks, _explained)
        if any(finite_number(each.name) is not None for each in remarks):
            terminal.say("Some columns are called by numbers: is the first row a header?")
    _write(drafted, out)
    if not drafted.declared:
        typer.echo(NOT_PRIVATE, err=True)  # however quiet
    if out is not None:
        state = "declared already" if drafted.declared else f"a draft: {_CHECK_IT}"
        terminal.say(f"{_size(drafted)}: {state}; written to {out}")


def _learn(
    terminal: Terminal, table: str, known: str | None, out: Path | None, asked: Mapping[str, Any]
) -> None:
    """Learn a schema under differential privacy, and write or print it."""
    from dualquery.data.given_table import Unit
    from dualquery.data.schema.schema_files import load_schema
    from dualquery.data.schema.table import TableSchema
    from dualquery.privacy.neighbours import Neighbours
    from dualquery.releases.make.schema_learning import schema_of_table
    from dualquery.runtime.option_fields import together

    relation = Neighbours.parse(asked["neighbours"], together(Unit, asked))
    said = None if known is None else load_schema(known)
    if said is not None and not (isinstance(said, TableSchema) and said.declared):
        raise BadInputError(
            f'--schema {known}: what it says is taken as public, so it must say "declared": true'
        )
    terminal.progress().phase("learning the schema")
    rows = given_table(table, asked["csv"])
    learned = schema_of_table(
        rows, asked["epsilon"], asked["delta"], columns=asked["columns"], neighbours=relation,
        known=said, budget=asked["budget"],
    )  # fmt: skip
    assert learned.schema is not None
    try:
        _write(learned.schema, out)
    except BadInputError:
        _write(learned.schema, None)  # it is paid for
        raise
    for note in learned.notes:  # a pipe that is closed ends here
        terminal.say(terminal_line(note))
    if out is not None:
        terminal.say(f"written to {out}")


def _require_place(out: Path | None) -> None:
    """Refuse a file that cannot be made, or whose name says that it is no JSON."""
    if out is None:
        return
    if out.suffix.lower() in (".toml", ".yaml", ".yml"):
        raise BadInputError(f"{out}: schemas are written as JSON; name a file that ends in .json")
    require_new(out)


def _write(found: Schema, out: Path | None) -> None:
    """Write a schema to a file, or print it."""
    from dualquery.data.schema.schema_files import format_schema, write_schema

    if out is None:
        typer.echo(terminal_text(format_schema(found)), nl=False)
    else:
        write_schema(found, out)


def _size(found: Schema) -> str:
    return f"{len(found.column_names):,} columns, {found.domain.bits:,} bits"


def _show_columns(
    terminal: Terminal,
    heads: Sequence[str],
    columns: Sequence[Any],
    line: Callable[[Any], tuple[str, ...]],
) -> None:
    """Print a line for each of the first columns."""
    rows = [[*map(terminal_line, line(each))] for each in columns[:_COLUMNS]]
    terminal.table(heads, rows, box=None)
    if (more := len(columns) - _COLUMNS) > 0:
        terminal.say(f"and {more:,} more")


def _described(column: Column) -> tuple[str, ...]:
    """Return what a column is, and the first of its values."""
    from dualquery.data.schema.columns import Binary

    values = column.codes if isinstance(column, Binary) else column.labels
    shown = ", ".join([*values][:_SHOWN]) + ", ..." * (len(values) > _SHOWN)
    return column.name, column.KIND, f"{column.bits}", shown


def _explained(each: DraftedColumn) -> tuple[str, ...]:
    """Return what is proposed for a column, and what of it is to be checked."""
    if each.column is None:
        return each.name, "left out", each.remark
    bits = "" if each.column.bits == 1 else f", {each.column.bits} bits"
    return each.name, each.column.KIND + bits, each.remark


def _on_missing_values(found: TableSchema) -> Iterator[str]:
    """Yield which missing values columns have of their own, and then which all columns have."""
    own = [column for column in found.columns if column.missing_values]
    for column in own:
        its_own = some(column.missing_values, _SHOWN)
        yield f"column {column.name!r}: missing values of its own are {its_own}"
    if own:
        of_all = ", ".join(filter(None, ("null", some(found.missing_values, _SHOWN))))
        yield f"missing values of all columns are {of_all}"

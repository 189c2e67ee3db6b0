"""``dualquery schema``: draft a schema for the user to check and declare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli.options import Quiet
from dualquery.cli.terminal import Terminal
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_text


def schema(
    table: Annotated[str, typer.Argument(help="NAME, PATH or FORMAT:PATH.")],
    columns: Annotated[
        str | None, typer.Option(help="Columns: names, positions, ranges; !name leaves one out.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to make; default: print the draft.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draft a schema from a table, for you to check.

    The draft takes categories and buckets from the data and says "declared":
    false, so a release with it is not private. Check that nothing in it is
    known from the private table alone, then set "declared": true in the file
    and hand it to --schema.

    Example:

      dualquery schema survey.csv --out survey.json
    """
    terminal = Terminal(quiet=quiet)
    if out is not None and out.exists():
        raise BadInputError(f"{out} exists already; name another file with --out")
    with terminal.progress() as progress:
        from dualquery.data.blocks import choose_schema
        from dualquery.data.readers.formats import source_of
        from dualquery.data.schema.files import format_schema, write_schema

        progress.phase("reading the table")
        drafted = choose_schema(source_of(table), None, columns)
    if out is None:
        typer.echo(terminal_text(format_schema(drafted)), nl=False)
        return
    write_schema(drafted, out)
    from rich.markup import escape

    state = (
        "declared already" if drafted.declared else 'a draft: check it, then set "declared": true'
    )
    terminal.console.print(
        f"{len(drafted.column_names):,} columns, {drafted.domain.bits:,} bits: {state}; "
        f"written to [bold]{escape(str(out))}[/bold]"
    )

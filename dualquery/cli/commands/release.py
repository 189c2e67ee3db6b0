"""``dualquery release``: the main job."""

from __future__ import annotations

import ast
import contextlib
import datetime
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.options import (
    Json,
    Verbose,
    given_table,
    is_stdin,
    read_config,
    with_options_of,
)
from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.requests import ReleaseSpec
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import share, terminal_line
from dualquery.runtime.option_fields import RUN, built, options_of

if TYPE_CHECKING:
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.releases.keep.folder import Release

KEPT = tuple(name for name, each in options_of(ReleaseSpec).items() if not each.attempt)
"""Options that an interrupted release hands on to the attempt that resumes it."""


@with_options_of(ReleaseSpec)
def release(
    context: typer.Context,
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to make; default: release-<UTC time>.", rich_help_panel=RUN),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with an interrupted release: its OUT.unfinished.", rich_help_panel=RUN
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what the release would be, cost and need; reads no row, spends nothing.",
            rich_help_panel=RUN,
        ),
    ] = False,
    no_other_copy: Annotated[
        bool,
        typer.Option(
            "--no-other-copy",
            help="With --resume, and without --budget: your word that no other copy of it ran.",
            rich_help_panel=RUN,
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with these options; see above.",
            rich_help_panel=RUN,
            is_eager=True,
            callback=read_config,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print errors only, and what weakens the guarantee or voids it.",
            rich_help_panel=RUN,
        ),
    ] = False,
    verbose: Verbose = False,
    **_: Any,
) -> None:
    """Release private answers and synthetic records of a table.

    Examples:

      dualquery release

      dualquery release survey.csv --schema survey.json --epsilon 0.5 --out survey-release

      dualquery release adult --schema adult-paper --queries 100000 --delta 0.001

      dualquery release survey.csv --schema survey.json --rows 5000 --dry-run

      dualquery release baskets.dat.gz --columns 0-999 --query-items top:100 --way 2

      dualquery release --mechanism mwem -o help

      dualquery release --resume survey-release.unfinished

    A TOML file for --config holds the same options by their names, for example:

      epsilon = 0.5

      queries = "all"

      mechanism = "dualquery"

      option = {free = "coins", burn_in = 0}
    """
    given = dict(context.params)
    if given["show_private_errors"] and given["quiet"]:
        raise BadInputError("--show-private-errors has something to say; leave --quiet out")
    terminal = Terminal(machine=given["as_json"], quiet=given["quiet"])
    start_logging(verbose=given["verbose"], quiet=given["quiet"])
    set_threads(given["threads"])

    if "help" in (given["option"] or []):
        _show_options(terminal, given["mechanism"])
    elif given["dry_run"]:
        from dualquery.cli.commands.dry_run import show_outlook

        show_outlook(terminal, given)
    else:
        _release(context, given, terminal)


def option_helps(mechanism: type[Any]) -> dict[str, str]:
    """Return each field of a configuration class with its default, and what its docstring says."""
    texts: dict[str, str] = {}
    for cls in reversed(mechanism.__mro__[:-1]):
        with contextlib.suppress(OSError, TypeError):  # a third party's class without source
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
            for field, text in itertools.pairwise(getattr(tree, "body", [])):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    said = getattr(text.value, "value", "")
                    texts[ast.unparse(field.target)] = " ".join(str(said).split())
    return {
        field.name
        if field.default in (MISSING, None)
        else f"{field.name}={field.default}": texts.get(field.name, "")
        for field in fields(mechanism)
    }


def _show_options(terminal: Terminal, mechanism: str | None) -> None:
    """List a mechanism's options with their defaults; None for all that ``auto`` may take."""
    from dualquery.mechanisms.registry import AUTOMATIC, mechanism_class

    for name in AUTOMATIC if mechanism is None else (mechanism,):
        helps = option_helps(mechanism_class(name))
        terminal.console.print(f"options of the mechanism {name}", markup=False)
        for title, text in helps.items():
            terminal.console.print(title, markup=False, style="bold")
            terminal.console.print(f"    {text}", markup=False)
        if not helps:
            terminal.console.print(f"{name} has no options")


def _release(context: typer.Context, given: dict[str, Any], terminal: Terminal) -> None:
    """Make the release, or go on with it, and show it."""
    spec = None if given["resume"] else built(ReleaseSpec, given)

    from dualquery.releases.keep import reservation

    with contextlib.ExitStack() as held:
        if spec is None:
            place = held.enter_context(
                reservation.resume(
                    given["resume"], given["out"], no_other_copy=given["no_other_copy"]
                )
            )
            given = _resumed(context, given, place.checkpoint)
            spec = built(ReleaseSpec, given)
        else:
            place = held.enter_context(reservation.reserve(given["out"] or Path(default_name())))
        place.hold_space()
        if spec.seed is None:
            place.checkpoint.same("command", {name: _plain(given[name]) for name in KEPT})
        progress = held.enter_context(terminal.progress())

        from dualquery.releases.make.making import release_of

        if is_stdin(given["data"]):
            table = held.enter_context(given_table(given["data"], spec.table.csv))
            spec = replace(spec, table=replace(spec.table, data=table))
        run = replace(spec.run, checkpoint=place.checkpoint, progress=progress)
        made = release_of(replace(spec, run=run))
        progress.phase("writing the release")
        place.write(made.write_files)
    if given["quiet"] and not made.privacy.private:
        typer.echo(terminal_line(made.privacy.guarantee()), err=True)
    summary = made.summary()
    shown = {key: value for key, value in summary.items() if key not in ("schema", "proof")}
    terminal.emit({"release": str(place.target), **shown})
    if not terminal.machine:
        _show(terminal, made, place.target, verbose=given["verbose"])


def default_name() -> str:
    """Return the default name of a release folder."""
    return f"release-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}"


def _resumed(
    context: typer.Context, given: Mapping[str, Any], checkpoint: Checkpoint
) -> dict[str, Any]:
    """Return the options of the interrupted release, and this attempt's own."""
    stored = checkpoint.facts.get("command")
    if stored is None:
        raise BadInputError(
            f"{given['resume']} does not say what was asked for: it was made in Python, or stopped "
            "at once; go on in Python, or delete it"
        )
    for name in KEPT:
        source = context.get_parameter_source(name)
        typed = source is not None and source.name == "COMMANDLINE"
        if typed and _plain(given[name]) != stored.get(name):
            raise BadInputError(
                f"--{name.replace('_', '-')} {given[name]} does not go with --resume: the "
                f"interrupted release had {stored.get(name)!r}; leave it out, or make a new release"
            )
    return {**given, **{name: stored[name] for name in KEPT if name in stored}}


def _plain(value: Any) -> Any:
    """Return an option as JSON has it."""
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _show(terminal: Terminal, made: Release, target: Path, *, verbose: bool) -> None:
    """Show a release to a person."""
    from rich.markup import escape
    from rich.panel import Panel
    from rich.table import Table

    from dualquery.queries.conjunctions import require_conjunctions
    from dualquery.queries.text import print_queries

    console = terminal.console
    style = "green" if made.privacy.private else "bold red"
    statement = made.privacy.text() if verbose else made.privacy.guarantee()
    console.print(Panel(escape(statement), title="Privacy", border_style=style))
    for note in made.notes:
        # The panel says already why a release is not private, and what some notes repeat.
        if note not in statement and "not private" not in note:
            console.print(f"note: {escape(note)}", style="yellow")
    if questions := made.workload.description.get("questions"):
        console.print(
            f"{len(questions):,} questions of the list were asked by their parts, the conjunctions "
            "that they are made of; they are answered by "
            f"[bold]dualquery answer {escape(str(target))}[/bold]"
        )
    shown = 5  # the text of all of them would take a while
    few = ", the first few" if len(made.workload) > shown else ""
    answers = "answer" if len(made.workload) == 1 else "answers"
    table = Table("query", "released answer", title=f"{len(made.workload):,} {answers}{few}")
    texts = print_queries(require_conjunctions(made.workload).literals[:shown], made.schema)
    rows = [[escape(text), share(made.answers[i])] for i, text in enumerate(texts)]
    if made.intervals is not None:
        table.add_column(f"{made.intervals.level:.0%} interval of the truth")
        for i, row in enumerate(rows):
            row.append(made.intervals.text(i))
        table.caption = f"intervals: {escape(made.intervals.basis)}"
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if made.means:
        from dualquery.releases.answer.bought import means_of

        for column, mean, _ in means_of(made):
            console.print(f"mean of {column}: {mean:.6g}", markup=False)
    if made.records is not None:
        grain = f": answers are multiples of 1/{len(made.records):,}"
        console.print(
            f"{len(made.records):,} synthetic records in the table's own columns"
            f"{grain if made.chosen == 'dualquery' else ''}"
        )
    console.print(f"written to [bold]{escape(str(target))}[/bold]")

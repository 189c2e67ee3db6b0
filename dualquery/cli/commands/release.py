"""``dualquery release``: the main job."""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualquery.cli.shared_options import (
    Json,
    Quiet,
    Verbose,
    given_table,
    is_stdin,
    read_config,
    run_option,
    timed_name,
    with_options,
)
from dualquery.cli.terminal import Terminal, start
from dualquery.mechanisms.registry import AUTOMATIC, mechanism_class
from dualquery.queries.conjunctions import require_conjunctions
from dualquery.queries.literals import print_queries
from dualquery.requests import ReleaseSpec
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import share, terminal_line
from dualquery.runtime.option_fields import built, options_of

if TYPE_CHECKING:
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.releases.keep.folder import Release

KEPT = tuple(name for name, each in options_of(ReleaseSpec).items() if not each.attempt)
"""Options that an interrupted release hands on to the attempt that resumes it."""


@with_options()
def release(
    context: typer.Context,
    *,
    out: Annotated[Path | None, run_option("Folder to make; default: release-<UTC time>.")] = None,
    resume: Annotated[
        Path | None, run_option("Go on with an interrupted release: its OUT.unfinished.")
    ] = None,
    dry_run: Annotated[
        bool,
        run_option(
            "Say what the release would be, cost and need; reads no row, spends nothing.",
            "--dry-run",
        ),
    ] = False,
    no_other_copy: Annotated[
        bool,
        run_option(
            "With --resume, and without --budget: your word that no other copy of it ran.",
            "--no-other-copy",
        ),
    ] = False,
    config: Annotated[
        Path | None,
        run_option("TOML file with these options; see above.", is_eager=True, callback=read_config),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **_: Any,
) -> None:
    """Release private answers and synthetic records of a table.

    A TOML file for --config holds the same options by their names, such as
    query-columns = "age,sex" or option = {rounds = 40}.

    Examples:

      dualquery release survey.csv --schema survey.json --epsilon 0.5 --out survey-release

      dualquery release survey.csv --schema survey.json --rows 5000 --dry-run

      dualquery release baskets.dat.gz --columns 0-999 --query-items top:100 --way 2

      dualquery release --resume survey-release.unfinished
    """
    given = dict(context.params)
    if given["show_private_errors"] and quiet:
        raise BadInputError("--show-private-errors has something to say; leave --quiet out")
    if dry_run and given["resume"] is not None:
        raise BadInputError("--dry-run plans a new release; leave --resume out")
    terminal = start(machine=as_json, quiet=quiet, verbose=verbose, threads=given["threads"])
    if "help" in (given["option"] or []):
        _show_options(terminal, given["mechanism"])
    elif dry_run:
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
    for name in AUTOMATIC if mechanism is None else (mechanism,):
        helps = option_helps(mechanism_class(name))
        terminal.say(f"options of the mechanism {name}" if helps else f"{name} has no options")
        for title, text in helps.items():
            terminal.say(title, style="bold")
            terminal.say(f"    {text}")


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
            place = held.enter_context(reservation.reserve(given["out"] or timed_name("release")))
        place.hold_space()
        if spec.seed is None:
            place.checkpoint.same("command", {name: _plain(given[name]) for name in KEPT})
        progress = terminal.progress()

        from dualquery.releases.make.making import release_of

        if is_stdin(given["data"]):
            table = given_table(given["data"], spec.table.csv)
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


def _resumed(
    context: typer.Context, given: Mapping[str, Any], checkpoint: Checkpoint
) -> dict[str, Any]:
    """Return the options of the interrupted release, and this attempt's own."""
    if (stored := checkpoint.facts.get("command")) is None:
        raise BadInputError(
            f"{given['resume']} does not say what was asked for: it was made in Python, or stopped "
            "at once; go on in Python, or delete it"
        )
    for name in KEPT:
        source = context.get_parameter_source(name)
        typed = source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP")
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

    style = "green" if made.privacy.private else "bold red"
    statement = made.privacy.text() if verbose else made.privacy.guarantee()
    terminal.console.print(Panel(escape(statement), title="Privacy", border_style=style))
    for note in made.notes:
        # The panel says already why a release is not private, and what some notes repeat.
        if note not in statement and "not private" not in note:
            terminal.say(f"note: {note}", style="yellow")
    if questions := made.workload.description.get("questions"):
        terminal.say(
            f"the {len(questions):,} questions of the list were asked by their parts, conjunctions "
            f"that they are made of; they are answered by dualquery answer {target}"
        )
    shown = 5  # the text of all of them would take a while
    few = ", the first few" if len(made.workload) > shown else ""
    answers = "answer" if len(made.workload) == 1 else "answers"
    texts = print_queries(require_conjunctions(made.workload).literals[:shown], made.schema)
    heads = ["query", "released answer"]
    rows = [[text, share(made.answers[i])] for i, text in enumerate(texts)]
    if made.intervals is not None:
        heads.append(f"{made.intervals.level:.0%} interval of the truth")
        rows = [[*row, made.intervals.text(i)] for i, row in enumerate(rows)]
    terminal.table(heads, rows, title=f"{len(made.workload):,} {answers}{few}")
    if made.intervals is not None:
        terminal.say(f"intervals, outside which a released answer may lie: {made.intervals.basis}")
    if made.means:
        from dualquery.releases.answer.bought import means_of

        for column, mean, _ in means_of(made):
            terminal.say(f"mean of {column}: {mean:.6g}")
    if made.records is not None:
        grain = f": answers are multiples of 1/{len(made.records):,}"
        terminal.say(
            f"{len(made.records):,} synthetic records in the table's own columns"
            f"{grain if made.chosen == 'dualquery' else ''}"
        )
    terminal.say(f"written to {target}")

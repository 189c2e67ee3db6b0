"""``dualquery release``: the main job."""

from __future__ import annotations

import contextlib
import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dualquery.cli import completing
from dualquery.cli.checking import check_options, chosen
from dualquery.cli.counted_rows import (
    DATA,
    MaxRowsPerUnit,
    MaxWeight,
    UnitColumn,
    WeightColumn,
    unit_of,
    weight_of,
)
from dualquery.cli.dry_run import show_outlook
from dualquery.cli.given_table import Csv, given_table
from dualquery.cli.mechanism_help import show_options
from dualquery.cli.options import (
    RUN,
    AnswersCache,
    EngineName,
    Explain,
    Json,
    Scheduler,
    Threads,
    Verbose,
    apply_config,
    mechanism_options,
)
from dualquery.cli.resuming import keep_command, resumed_command
from dualquery.cli.showing import show
from dualquery.cli.terminal import Terminal, set_threads, start_logging
from dualquery.mechanisms.registry import AUTOMATIC, BUILT_IN
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.escaping import terminal_line

# What declares an option in each panel of the help.
_data, _workload, _mechanism, _budget, _run = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in (DATA, "Workload", "Mechanism", "Budget", RUN)
)

PASSED_ON = (
    "schema", "columns", "max_ones_per_row", "mechanism", "records", "polish", "epsilon",
    "delta", "neighbours", "rows", "accountant", "budget", "seed", "threads", "show_private_errors",
)  # fmt: skip
"""Options that `dualquery.release` takes under the same names, as they are."""


def release(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            help="A built-in table, PATH or FORMAT:PATH; - for CSV from the standard input.",
            metavar="TABLE",
            autocompletion=completing.tables,
        ),
    ] = "adult",
    schema: Annotated[
        str | None,
        _data(
            help="Schema: a file or a built-in name. A draft is made without it: NOT private.",
            autocompletion=completing.schemas,
        ),
    ] = None,
    csv: Csv = None,
    columns: Annotated[
        str | None, _data(help="Columns to read: names, positions, ranges; !name leaves one out.")
    ] = None,
    unit: UnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    weight: WeightColumn = None,
    max_weight: MaxWeight = None,
    max_ones_per_row: Annotated[
        int | None,
        _data(
            help="Cut rows of 0/1 columns to this many 1s, so that they need less noise. Public.",
            min=1,
        ),
    ] = None,
    queries: Annotated[
        str | None,
        _workload(
            help="Number of random conjunctions (default: 100000, or all that differ), 'all', or a "
            "file with one query a line."
        ),
    ] = None,
    way: Annotated[int, _workload(help="Literals of a query.")] = 3,
    signed: Annotated[
        bool, _workload("--signed/--positive", help="Whether literals may be negated.")
    ] = True,
    workload_seed: Annotated[int, _workload(help="Seed of the random queries. Public.")] = 0,
    query_columns: Annotated[
        str | None, _workload(help="Columns that queries may use; default: all.")
    ] = None,
    marginals: Annotated[
        str | None,
        _workload(
            help="Number of random whole marginals to ask about, or 'all', instead of --queries."
        ),
    ] = None,
    max_cells: Annotated[
        int | None, _workload(help="Most cells of a marginal; default: n.")
    ] = None,
    target: Annotated[
        str | None,
        _workload(
            help="Column that models will predict, instead of --queries: all its marginals with "
            "two other columns."
        ),
    ] = None,
    query_items: Annotated[
        str | None,
        _workload(
            help="Ask about items found to be frequent, instead of --queries: top:100 or "
            "share>=0.01. All positive conjunctions of --way of them."
        ),
    ] = None,
    means: Annotated[
        str | None,
        _workload(help="Numeric columns whose means are bought besides, for a tenth of epsilon."),
    ] = None,
    mechanism: Annotated[
        str | None,
        _mechanism(
            help=f"One of {', '.join(BUILT_IN)}. Default: auto, which passes the options below on "
            "to what it chooses; those of a game imply dualquery.",
            autocompletion=completing.mechanisms,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        _mechanism(
            "--option",
            "-o",
            help="An option of the mechanism; -o help lists them.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    records: Annotated[
        int | None,
        _mechanism(help="Synthetic records; default: one a row, 1,000,000 at most.", min=1),
    ] = None,
    polish: Annotated[
        float | None,
        _mechanism(help="Seconds in which records are brought nearer to the answers."),
    ] = None,
    rounds: Annotated[
        int | None, _mechanism("--rounds", "--iterations", help="Rounds of the game (T).")
    ] = None,
    samples: Annotated[int | None, _mechanism(help="Queries drawn in each round (s).")] = None,
    eta: Annotated[float | None, _mechanism(help="Learning rate of the game.")] = None,
    repetitions: Annotated[
        int | None, _mechanism(help="Updates in each iteration of mwem.")
    ] = None,
    solver: Annotated[
        str | None,
        _mechanism(
            help="Solver of best responses, one that 'dualquery solvers' lists; default: auto.",
            autocompletion=completing.solvers,
        ),
    ] = None,
    solver_timeout: Annotated[
        float | None, _mechanism(help="Most seconds for one best response; default: 20.")
    ] = None,
    epsilon: Annotated[float, _budget(help="Largest privacy loss.")] = 1.0,
    delta: Annotated[
        float | None,
        _budget(help="Default: 1/n^2 of n rows or units, or 0 for a pure mechanism."),
    ] = None,
    neighbours: Annotated[
        str, _budget(help="replace-one (n is public) or add-remove (n is private).")
    ] = "replace-one",
    rows: Annotated[
        int | None,
        _budget(
            help="With add-remove or --unit: a public number of rows (with --weight their total "
            "weight); default: a noisy one. With --dry-run: how many rows to plan for."
        ),
    ] = None,
    accountant: Annotated[
        str,
        _budget(help="auto (the smallest valid bound), or one that 'dualquery budget plan' lists."),
    ] = "auto",
    budget: Annotated[
        Path | None,
        _budget(help="A budget file to charge (dualquery budget init makes one)."),
    ] = None,
    seed: Annotated[
        int | None, _run(help="Makes the run reproducible, and the release NOT private.")
    ] = None,
    engine: EngineName = "auto",
    scheduler: Scheduler = None,
    answers_cache: AnswersCache = None,
    explain: Explain = False,
    show_private_errors: Annotated[
        bool,
        _run(
            "--show-private-errors",
            help="Show the TRUE errors of the answers on stderr: for you only, NOT PRIVATE.",
        ),
    ] = False,
    threads: Threads = None,
    out: Annotated[Path | None, _run(help="Folder to make; default: release-<UTC time>.")] = None,
    resume: Annotated[
        Path | None, _run(help="Go on with an interrupted release: its OUT.unfinished.")
    ] = None,
    dry_run: Annotated[
        bool,
        _run(
            "--dry-run",
            help="Say what the release would be, cost and need; reads no row, spends nothing.",
        ),
    ] = False,
    no_other_copy: Annotated[
        bool,
        _run(
            "--no-other-copy",
            help="With --resume, and without --budget: your word that no other copy of it ran.",
        ),
    ] = False,
    config: Annotated[Path | None, _run(help="TOML file with these options; see above.")] = None,
    as_json: Json = False,
    quiet: Annotated[
        bool,
        _run(
            "--quiet", "-q", help="Print errors only, and what weakens the guarantee or voids it."
        ),
    ] = False,
    verbose: Verbose = False,
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
    given = apply_config(context, config)
    if given["show_private_errors"] and given["quiet"]:
        raise BadInputError("--show-private-errors has something to say; leave --quiet out")
    terminal = Terminal(machine=given["as_json"], quiet=given["quiet"])
    start_logging(verbose=given["verbose"], quiet=given["quiet"], explain=given["explain"])
    set_threads(given["threads"])

    if "help" in (given["option"] or []):
        for name in (given["mechanism"],) if given["mechanism"] else AUTOMATIC:
            show_options(terminal, name)
        return
    if given["dry_run"]:
        # Rows that are public need not be stated to a release, but to this.
        public = given["neighbours"] == "replace-one" and not (given["unit"] or given["weight"])
        planned = {**given, "rows": None} if public else given
        if given["out"] is not None:
            from dualquery.releases.reservation import require_free

            require_free(given["out"])
        show_outlook(terminal, planned, check_options(planned), given["rows"])
        return
    if given["resume"] is None:
        check_options(given)

    from dualquery.releases import reservation

    with contextlib.ExitStack() as held:
        if given["resume"] is not None:
            place = held.enter_context(
                reservation.resume(
                    given["resume"], given["out"], no_other_copy=given["no_other_copy"]
                )
            )
            given = resumed_command(context, given, place.checkpoint)
        else:
            place = held.enter_context(reservation.reserve(given["out"] or Path(default_name())))
        workload = check_options(given)
        place.hold_space()
        if given["seed"] is None:
            keep_command(given, place.checkpoint)
        progress = held.enter_context(terminal.progress())

        from dualquery.api import release as make_release
        from dualquery.data.table import Table
        from dualquery.rows.engines import Engine

        table = held.enter_context(given_table(given["data"], given["csv"]))
        made = make_release(
            Table(table, csv=given["csv"]),
            queries=workload,
            options=mechanism_options(given),
            engine=Engine(name=given["engine"], **chosen(given, "scheduler", "answers_cache")),
            checkpoint=place.checkpoint,
            progress=progress,
            unit=unit_of(given),
            weight=weight_of(given),
            **chosen(given, *PASSED_ON),
        )
        progress.phase("writing the release")
        place.write(made.write_files)
    if given["quiet"] and not made.privacy.private:
        typer.echo(terminal_line(made.privacy.guarantee()), err=True)
    summary = made.summary()
    shown = {key: value for key, value in summary.items() if key not in ("schema", "proof")}
    terminal.emit({"release": str(place.target), **shown})
    if not terminal.machine:
        show(terminal, made, place.target, verbose=given["verbose"])


def default_name() -> str:
    """Return the default name of a release folder."""
    return f"release-{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}"
